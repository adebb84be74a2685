"""The learned space: evaluations and surrogate as the nested model sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from nestbo.history import History, Trial
from nestbo.manifolds import Space
from nestbo.plots.nesting import nested_models, unnested
from nestbo.plots.style import words
from nestbo.plots.surrogate import picture
from nestbo.plots.view import Study, View


def latent(study: Study) -> Figure:
    """The projected evaluations and the mean on the latent S^1, S^2 or SPD(2) of the leading nested model."""
    view = View(study)
    models = nested_models(view)
    if not models:
        return words(view.title, unnested(view))
    for model in models.values():
        space = model.mapping.latent
        draw = picture(space)
        if draw is not None:
            return draw(View(Projected(study, model), f"the {space} learned in {view.space}", "z"))
    spaces = ", ".join(str(model.mapping.latent) for model in models.values())
    return words(view.title, f"Pictures are there for a latent Sphere(1), Sphere(2) or SPD(2).\nHere it is {spaces}.")


@dataclass(frozen=True)
class Projected:
    """A study whose trials lie in the latent space of one of its models, where it predicts, too."""

    study: Study
    surrogate: Any

    @property
    def space(self) -> Space:
        space: Space = self.surrogate.mapping.latent
        return space

    @property
    def strategy(self) -> Any:
        return self.study.strategy

    @property
    def direction(self) -> str | tuple[str, ...]:
        return self.study.direction

    @property
    def times(self) -> Mapping[int, tuple[float | None, float | None]]:
        return self.study.times

    @property
    def history(self) -> History:
        history = self.study.history
        points = self.surrogate.mapping.project(history.points)
        return replace(history, trials=tuple(replace(trial, x=z) for trial, z in zip(history, points, strict=True)))

    def recommend(self) -> Trial | None:
        found = self.study.recommend()
        return None if found is None else next(trial for trial in self.history if trial.index == found.index)

    def standings(self) -> Sequence[Any]:
        return self.study.standings()

    def models(self) -> Mapping[str, Any]:
        return {"latent": self}

    def predict(self, z: Tensor, deviations: float = 0.0) -> Tensor:
        """At latent points (q, *point): the model projects any lift of them back to them."""
        prediction: Tensor = self.surrogate.predict(self.surrogate.mapping.lift(z), deviations)
        return prediction
