"""Strategies as the stores of earlier versions name them."""

from __future__ import annotations

import warnings

from nestbo.specification import split

_GONE = ("arms", "choice")  # settings of HD-GaBO in nestbo 0.1
_FITTED = "arms=fitted,"  # the paper's method, which had one arm


def without_retired(text: str) -> str:
    """The text form of a strategy without settings that only earlier versions had, with a warning if there were any.

    >>> without_retired("hdgabo:latent_dim=5:arms=fitted,:exact=false")
    'hdgabo:latent_dim=5:exact=false:lift=fitted:metric=isotropic'
    """
    name, *settings = split(text, ":")
    gone = [setting for setting in settings if split(setting, "=")[0] in _GONE]
    if name != "hdgabo" or not gone:
        return text
    kept = [setting for setting in settings if setting not in gone]
    if _FITTED in gone:
        return ":".join([name, *kept, "lift=fitted", "metric=isotropic"])
    today = ":".join([name, *kept])
    warnings.warn(
        f"This study was begun with {':'.join(gone)}, which nestbo 0.2 has no more. It goes on with {today}.",
        UserWarning,
        stacklevel=2,
    )
    return today
