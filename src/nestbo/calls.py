"""Who is at work on a trial: a call of this process, for as long as it lasts.

A process that lives on, such as a notebook, makes many calls, and an interrupt can end each of them at any instant:
before it has said that it ends, too. Whether a call lasts is therefore asked of Python itself, which knows what it is
executing, in whichever thread.
"""

from __future__ import annotations

import sys
import uuid
from types import FrameType

_FRAMES: dict[str, FrameType] = {}


def begin() -> str:
    """A name for the present call of the function that wants one: no other call ever has it."""
    name = uuid.uuid4().hex
    _FRAMES[name] = sys._getframe(1)
    return name


def end(name: str) -> None:
    """Say that a call ends. If it cannot, nothing is lost but some memory."""
    _FRAMES.pop(name, None)


def lasts(name: str) -> bool:
    """Whether a call has not ended yet; of another process, no call lasts here."""
    frame = _FRAMES.get(name)
    if frame is None:
        return False
    try:
        frame.clear()  # refused while it is being executed
    except RuntimeError:
        return True
    end(name)
    return False
