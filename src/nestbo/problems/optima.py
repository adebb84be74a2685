"""Optimal values."""

OPTIMA: dict[tuple[str, str], tuple[float, bool, tuple[float, ...]]] = {}
