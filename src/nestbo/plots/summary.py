"""The numbers behind the pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from nestbo.history import Trial
from nestbo.plots.front import volumes_so_far
from nestbo.plots.one import One
from nestbo.plots.view import WIDTH, Array, Study, View, objective_names

LEVELS = (0.5, 0.8, 0.95)
FEWEST = 3  # values for which leaving one out says something


def summarise(study: Study) -> dict[str, Any]:
    """The results of a study as numbers, texts and lists that ``json`` can write.

    ``values`` and ``best_so_far`` have an entry for each finished trial, or None if there is no number.
    ``leave_one_out`` is None without a model or with fewer than three values. ``arms`` is empty unless several models
    compete. With several objectives, ``values`` has a list for each trial, ``leave_one_out`` has an entry for each
    objective, and ``front`` and ``hypervolume`` replace ``best`` and ``best_so_far``.
    """
    view = View(study)
    if view.history.several:
        return _of_several(study, view)
    best = view.history.best
    return {
        "space": study.space.specification,
        "strategy": study.strategy.specification,
        "direction": study.direction,
        "counts": {"told": len(view.told), "failed": len(view.failed), "asked": len(view.history.pending)},
        "index": [trial.index for trial in view.finished],
        "values": [trial.value for trial in view.finished],
        "best_so_far": view.best_so_far,
        "best": None if best is None else _best(best),
        "times": _times(study),
        "leave_one_out": leave_one_out(view),
        "arms": _arms(view),
    }


def _of_several(study: Study, view: View) -> dict[str, Any]:
    """The same for several objectives."""
    names = objective_names(study)
    each = (leave_one_out(View(One(study, place))) for place in range(len(names)))
    return {
        "space": study.space.specification,
        "strategy": study.strategy.specification,
        "objectives": list(names),
        "direction": list(view.history.directions),
        "counts": {"told": len(view.told), "failed": len(view.failed), "asked": len(view.history.pending)},
        "index": [trial.index for trial in view.finished],
        "values": [list(trial.values) or None for trial in view.finished],
        "front": [trial.index for trial in view.history.front],
        "hypervolume": volumes_so_far(view.finished) if view.told else [],
        "times": _times(study),
        "leave_one_out": dict(zip(names, each, strict=True)),
        "arms": [],
    }


def _best(best: Trial) -> dict[str, Any]:
    """The best trial; the parameters of one that has names are arrays as lists."""
    found: dict[str, Any] = {"index": best.index, "value": best.value, "x": best.x.tolist()}
    if best.space is not None and best.space.names is not None:
        found["parameters"] = dict(zip(best.space.labels, best.space.cells(best.x), strict=True))
    return found


def _arms(view: View) -> list[dict[str, Any]]:
    """How the arms are doing, if there are several."""
    names, standings = ("arm", "suggestions", "share", "score"), view.standings
    return [{name: getattr(s, name) for name in names} for s in standings] if len(standings) > 1 else []


def _times(study: Study) -> dict[str, float] | None:
    """When the first trial was asked and the last told, in seconds since 1970."""
    pairs = list(study.times.values())
    asked, told = ([time for pair in pairs if (time := pair[k]) is not None] for k in (0, 1))
    return {"first_asked": min(asked), "last_told": max(told)} if asked and told else None


def leave_one_out(view: View) -> dict[str, Any] | None:
    """Each told value predicted from all others, with 95 % intervals, and how well these intervals keep their word.

    ``coverage`` is the share of values inside the central interval of each level.
    """
    if len(view.told) < FEWEST or view.model is None:
        return None
    kept = [k for k, trial in enumerate(view.finished) if trial.status == "told"]
    mean, variance = (part.numpy() for part in view.model.gp.leave_one_out())
    deviation = np.sqrt(variance)
    errors = np.abs(view.model.gp.z.numpy() - mean)[kept] / deviation[kept]
    predicted, low, high = (_back(view, mean + view.sign * k * deviation)[kept] for k in (0.0, -WIDTH, WIDTH))
    return {
        "index": [trial.index for trial in view.told],
        "observed": view.values.tolist(),
        "predicted": predicted.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "error": _root_mean_square(predicted - view.values),
        "standardised": errors.tolist(),
        "coverage": {str(level): float(np.mean(errors <= norm.ppf((1 + level) / 2))) for level in LEVELS},
    }


def _root_mean_square(x: Array) -> float:
    """Without overflow."""
    size = float(np.abs(x).max())
    return size * float(np.sqrt(np.mean((x / size) ** 2))) if size > 0 else 0.0


def _back(view: View, z: Array) -> Array:
    """From the model's units to the objective's."""
    outputs = view.model.outputs
    return np.asarray(view.sign * outputs.inverse(outputs.shift.new_tensor(z)).numpy())
