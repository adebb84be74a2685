"""What nestbo raises on a user's mistake: each message says what was wanted, what came, and what to do."""


class NestboError(Exception):
    """The base of every error nestbo raises on purpose."""


class ArgumentError(NestboError, ValueError):
    """An argument has no meaning here."""


class ShapeError(ArgumentError):
    """A tensor's shape does not fit."""


class OffManifoldError(ArgumentError):
    """A point does not lie on its manifold, or is not finite."""


class SpecificationError(ArgumentError):
    """A text form such as ``sphere:50`` cannot be read."""


class StoreError(NestboError):
    """The file of a study cannot be read or written."""


class TrialError(ArgumentError):
    """A trial is not what an operation needs: unknown, or told already."""


class ObjectiveError(NestboError):
    """The objective raised an error in another process, and ``on_error="raise"`` wants to see it."""


class ConstraintError(ArgumentError):
    """Constraints are no function of a point, are not those of the study, or no point was found that satisfies them."""
