"""What pictures read of a nested model: its factors, and its fits along the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nestbo.plots.view import View


def nested_models(view: View) -> dict[str, Any]:
    """The models that live on a space nested in the study's own, the leading one first."""
    return {name: model for name, model in view.models.items() if model.mapping.latent != model.mapping.ambient}


def unnested(view: View) -> str:
    """Why there is no nested model to draw."""
    return view.nothing if not view.told else f"{view.study.strategy} learns no nested space on {view.space}."


def factors(mapping: Any) -> list[Any]:
    """The mappings that have a basis: those of the factors of a product, else the mapping itself."""
    return [part for part in getattr(mapping, "mappings", (mapping,)) if part.basis.numel()]


def fits(view: View, name: str) -> Iterator[tuple[int, list[Tensor]]]:
    """The bases of a model, one per factor, with the index of the trial whose memory holds them."""
    shapes = [part.basis.shape[-2:] for part in factors(view.models[name].mapping)]
    for trial in view.finished:
        fit = trial.memory.fits.get(name)
        if fit is not None and fit.basis:
            basis = torch.tensor(fit.basis, dtype=torch.float64)
            packed = basis.split([rows * columns for rows, columns in shapes])
            yield trial.index, [part.reshape(shape) for part, shape in zip(packed, shapes, strict=True)]


def refitted(mapping: Any, bases: list[Tensor], x: Tensor) -> Any:
    """The mapping with other bases, one per factor, and the lift nearest to points x (n, *point)."""
    rest = iter(bases)

    def at(part: Any) -> Any:
        return type(part).at(next(rest), part.ambient) if part.basis.numel() else part

    product = hasattr(mapping, "mappings")
    other = type(mapping)(tuple(map(at, mapping.mappings))) if product else at(mapping)
    return other.fit_lift(x)
