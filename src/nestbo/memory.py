"""What a method wants to know again when it makes the next suggestion: typed, small, and in one place turned to JSON.

Nobody but the method that made a memory acts on it; pictures and reports may look. What the user told is elsewhere, in
``nestbo.history``, so that no method can change it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Fit:
    """Where the next fit of a model starts.

    ``parameters`` are the logarithms of length scales and relative noise, ``basis`` the flat entries of a learned
    basis, ``evaluations`` how many there were, ``seen`` how many of them the fit looked at, if not at all, and
    ``given`` how many of them the model predicts from, if not from all. ``failed`` says that nothing finite was found,
    so that the first start stands in.
    """

    parameters: tuple[float, ...]
    evaluations: int
    basis: tuple[float, ...] = ()
    seen: int | None = None
    failed: bool = False
    given: int | None = None


@dataclass(frozen=True)
class Memory:
    """What a suggestion leaves to the next ones.

    Args:
        arm: The model that made the suggestion; None for a random point.
        fits: The last fit of each model, by the model's name.
        noise: The variance of the noise in the values, as the model estimates it.
        frame: The seed of a frame or of a random embedding: a whole number.
        moved: Why the suggestion is not where the acquisition function is largest; None if it is.
        span: The indices of the trials whose points a frame begins with, in the first memory that names it.
        closed: The indices of the trials around which basins are closed.
        best: The index of the best trial outside of closed basins, when it last improved noticeably.
        forecast: For each model the value it predicted, with the values one deviation below and above.
        own: JSON values that a method of your own remembers.
    """

    arm: str | None = None
    fits: Mapping[str, Fit] = field(default_factory=dict)
    noise: float | None = None
    frame: int | None = None
    moved: str | None = None
    span: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()
    best: int | None = None
    forecast: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> dict[str, Any]:
        """The memory as JSON values, without empty fields."""
        said = {name: value for name, value in vars(self).items() if value != _SILENT[name]}
        if self.fits:
            said["fits"] = {name: _brief(fit) for name, fit in self.fits.items()}
        return said

    @classmethod
    def of(cls, found: Any) -> Self:
        """Read what ``json`` wrote, also in nestbo 0.1. Damaged memories are refused.

        Args:
            found: A JSON object.
        """
        if not isinstance(found, dict):
            raise ValueError(f"the memory of a trial is a JSON object, got {type(found).__name__}")
        try:
            return cls(**_checked(_today(found)))
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"the memory of a trial is damaged: {error}") from error

    def without(self, models: Iterable[str]) -> Memory:
        """The same without the fits of some models.

        Args:
            models: The names of models.
        """
        dropped = set(models)
        if dropped.isdisjoint(self.fits):
            return self
        return dataclasses.replace(self, fits={name: fit for name, fit in self.fits.items() if name not in dropped})


_SILENT: dict[str, Any] = {f.name: getattr(Memory(), f.name) for f in dataclasses.fields(Memory)}


def _brief(fit: Fit) -> dict[str, Any]:
    """The JSON form of a fit."""
    optional = {"basis": fit.basis, "seen": fit.seen, "failed": fit.failed, "given": fit.given}
    return {
        "parameters": fit.parameters,
        "evaluations": fit.evaluations,
        **{name: value for name, value in optional.items() if value},
    }


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of a memory from JSON values, each of its type."""
    return {name: _READERS[name](value) for name, value in found.items()}


def _fit(found: dict[str, Any]) -> Fit:
    return Fit(
        _numbers(found["parameters"]),
        _whole(found["evaluations"]),
        _numbers(found.get("basis", ())),
        _optional(_whole)(found.get("seen")),
        _truth(found.get("failed", False)),
        _optional(_whole)(found.get("given")),
    )


def _numbers(values: Any) -> tuple[float, ...]:
    """Finite numbers from nested lists of them, flat."""
    if isinstance(values, list) and set(map(type, values)) == {float} and all(map(math.isfinite, values)):
        return tuple(values)  # as most are, and a basis has hundreds
    if isinstance(values, list | tuple):
        return tuple(number for value in values for number in _numbers(value))
    return (_number(values),)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.80} is no finite number")
    return float(value)


def _whole(value: Any) -> int:
    """An index, a count or a name: none of them is negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.80} is no whole number from 0 on")
    return value


def _wholes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list | tuple):
        raise ValueError(f"{values!r:.80} is no list of whole numbers")
    return tuple(map(_whole, values))


def _three(values: Any) -> tuple[float, float, float]:
    low, middle, high = _numbers(values)
    return low, middle, high


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r:.80} is neither true nor false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is no text")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r:.80} is no JSON object")
    return value


def _optional(read: Any) -> Any:
    return lambda value: None if value is None else read(value)


_READERS: dict[str, Any] = {
    "arm": _optional(_text),
    "fits": lambda found: {name: _fit(fit) for name, fit in _object(found).items()},
    "noise": _optional(_number),
    "frame": _optional(_whole),
    "moved": _optional(_text),
    "span": _wholes,
    "closed": _wholes,
    "best": _optional(_whole),
    "forecast": lambda found: {name: _three(values) for name, values in _object(found).items()},
    "own": _object,
}


# What nestbo 0.1 called things. The coordinates of embedded spaces, which had the name of their arm, and those of
# starts have no successor: they begin anew.
_WORTH, _SEED, _START = "worth:", "embedding", "start"
_RETIRED = {"worth", "steep", "start", "columns"}  # of methods that 0.2 has no more
_REASONS = ("explored", "moved")
_RENAMED = {"inferred_noise": "noise", _SEED: "frame", **dict.fromkeys(_REASONS, "moved")}


def _today(found: dict[str, Any]) -> dict[str, Any]:
    """What a memory says, in the words of this version."""
    if found.keys() <= _SILENT.keys():
        return found
    if "arm" in found and found.keys() <= _SILENT.keys() | _RETIRED:
        return {name: value for name, value in found.items() if name not in _RETIRED}
    return _translated(found)


def _translated(found: dict[str, Any]) -> dict[str, Any]:
    """A memory of nestbo 0.1, whose fits were keys beside the others; a method's own keys stay its own."""
    fits = {name: _old_fit(value) for name, value in found.items() if _is_fit(value)}
    if "arm" not in found and not fits:
        return _translated_of_user(found)
    arm = found.get("arm")
    worth = [name for name in found if name.startswith(_WORTH)]
    known = {"arm", "steep", *fits, *worth, *_RENAMED, _START, arm}
    return {
        "arm": arm,
        "fits": fits,
        **{name: found[old] for old, name in _RENAMED.items() if old in found},
        "own": {name: value for name, value in found.items() if name not in known},
    }


def _translated_of_user(found: dict[str, Any]) -> dict[str, Any]:
    """The same of a method without arms and fits: its keys stay its own, but for the reason that nestbo put there."""
    reasons = {name: found[name] for name in _REASONS if isinstance(found.get(name), str)}
    own = {name: value for name, value in found.items() if name not in reasons}
    return {"own": own, "frame": found.get(_SEED), "moved": next(iter(reasons.values()), None)}


def _is_fit(value: Any) -> bool:
    return isinstance(value, dict) and {"parameters", "evaluations"} <= value.keys()


def _old_fit(value: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value[name] for name in ("parameters", "evaluations", "basis") if name in value}
    return rest | {"seen": value.get("fitted_to"), "failed": "fallback" in value}
