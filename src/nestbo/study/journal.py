"""What a strategy decided, for those who listen to the logger "nestbo" at the level INFO."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from nestbo.history import Trial
from nestbo.memory import Memory

LOG = logging.getLogger("nestbo")


def log_suggestions(trials: Sequence[Trial], before: Sequence[Trial]) -> None:
    """Log what is new in each suggestion, compared with the one before; nothing where nobody listens."""
    if not LOG.isEnabledFor(logging.INFO):
        return
    last = next((trial.memory for trial in reversed(before) if trial.memory.fits), Memory())
    for trial in trials:
        for text in news(trial.memory, last):
            LOG.info("Trial %d: %s.", trial.index, text)
        last = trial.memory if trial.memory.fits else last


def news(memory: Memory, last: Memory) -> Iterator[str]:
    """What a memory says that an earlier one did not."""
    if memory.arm is not None and memory.arm != last.arm:
        yield f"suggested by {memory.arm}" + ("" if last.arm is None else f", after {last.arm}")
    for name, fit in memory.fits.items():
        if fit.failed:
            yield f"the fit of {name} to {fit.evaluations} evaluations failed, and its start is used instead"
    for index in sorted(set(memory.closed) - set(last.closed)):
        yield f"the basin around trial {index} is closed"
    for index in sorted(set(last.closed) - set(memory.closed)) if memory.fits else ():
        yield f"the basin around trial {index} is open again"
    if memory.moved is not None:
        yield f"moved, {memory.moved}"
