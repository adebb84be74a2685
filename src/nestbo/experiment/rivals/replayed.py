"""Local searches that call their function: replayed on what is known until they ask for what is not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nestbo.experiment.rivals.base import INITIAL, Rival
from nestbo.strategies.base import check_choice

Vector = NDArray[np.float64]
METHODS = ("nelder-mead", "powell")
_SHRUNK = 1e-8  # spread of a simplex, or length of a step, at which a search is over and another begins


class Unknown(Exception):  # noqa: N818 (not an error: a search has come to a point that nobody has evaluated)
    """Raised by the function of a search at the first point without a value."""

    def __init__(self, u: Vector) -> None:
        super().__init__()
        self.u = u


@dataclass(frozen=True, repr=False, kw_only=True)
class Replayed(Rival):
    """A method that keeps its state in its own variables: it is run from the start for every suggestion.

    Its function answers with the values that are known, in their order, and stops it at the first that is not. The
    search is deterministic, so that it asks again for the same points; on a run's first point depends what it draws.
    """

    @abstractmethod
    def search(self, f: Callable[[Vector], float], start: Vector, rng: np.random.Generator) -> None:
        """Minimise f over the unit cube from a start, without end: begin anew when a search is over."""

    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        best = int(y[:INITIAL].argmin())
        start, values = u[best].numpy(), iter(y[INITIAL:].tolist())

        def f(at: Vector) -> float:
            if np.array_equal(at, start):
                return float(y[best])
            known = next(values, None)
            if known is None:
                raise Unknown(np.array(at))
            return float(known)

        drawn = np.random.default_rng(np.frombuffer(u[0].numpy().tobytes(), np.uint32))
        try:
            self.search(f, start, drawn)
        except Unknown as stop:
            return torch.from_numpy(np.clip(stop.u, 0, 1))
        raise AssertionError("a search has no end")


@dataclass(frozen=True, repr=False, kw_only=True)
class Local(Replayed):
    """scipy's Nelder–Mead or Powell in the cube, from the best initial point, then from random ones."""

    method: str = "nelder-mead"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("method", self.method, METHODS)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(method=method) for method in METHODS]

    def search(self, f: Callable[[Vector], float], start: Vector, rng: np.random.Generator) -> None:
        from scipy.optimize import minimize  # a second to import, which every command would wait for

        ends: dict[str, Any] = {"maxfev": 10**9, "maxiter": 10**9, "xatol": _SHRUNK, "fatol": _SHRUNK}
        if self.method == "powell":
            ends = {"maxfev": 10**9, "maxiter": 10**9, "xtol": _SHRUNK, "ftol": _SHRUNK}
        while True:
            minimize(f, start, method=self.method, bounds=[(0, 1)] * len(start), options=ends)
            start = rng.random(len(start))
