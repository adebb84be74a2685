"""The exceptions of nestbo: each message says what was expected, what was given, and what to do."""

import warnings
from typing import Any

_LONGEST = 200  # characters of what came, in a message


class NestboError(Exception):
    """The base class of all errors that nestbo raises on purpose."""


class ArgumentError(NestboError, ValueError):
    """An argument is wrong or does not fit here."""


class ShapeError(ArgumentError):
    """A tensor has the wrong shape."""


class OffManifoldError(ArgumentError):
    """A point does not lie on its manifold, or is not finite."""


class SpecificationError(ArgumentError):
    """A text form such as ``sphere:50`` cannot be read."""


class StoreError(NestboError):
    """The file of a study cannot be read or written."""


class TrialError(ArgumentError):
    """A trial is not what an operation needs: unknown, or told already."""


class ObjectiveError(NestboError):
    """The objective raised an exception in another process, or all evaluations of a new study failed."""


class FailureWarning(UserWarning):
    """The first evaluation of a run that failed."""


class ConstraintError(ArgumentError):
    """Constraints are not a function of a point, differ from those of the study, or no point satisfies them."""


def shown(value: Any) -> str:
    """What came, for a message: not too long, and whatever its own ``repr`` does."""
    try:
        text = repr(value)
    except Exception:  # a whole number of ten thousand digits has none
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def retired(name: str, instead: str, gone_in: str) -> None:
    """Warn whoever uses a public name that a later version will not have; called from the name's own code."""
    message = f"{name} is deprecated; nestbo {gone_in} removes it. Use {instead}."
    warnings.warn(message, DeprecationWarning, stacklevel=3)
