"""Optuna studies over any nestbo manifold: the public name of ``nestbo.bridges.optuna``."""

try:
    from nestbo.bridges.optuna import ManifoldSampler, distributions, params, point, suggest
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "optuna":
        raise
    raise ModuleNotFoundError("nestbo.optuna needs Optuna: pip install 'nestbo[optuna]'.", name="optuna") from error

__all__ = ["ManifoldSampler", "distributions", "params", "point", "suggest"]
