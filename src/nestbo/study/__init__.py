"""A study: ``asking``, ``telling`` and ``running`` are parts of it, on a ``record`` that keeps its file."""

from nestbo.study.asking import ATTEMPTS, too_near
from nestbo.study.course import Callback, Stop
from nestbo.study.record import Objective
from nestbo.study.study import Study

__all__ = ["ATTEMPTS", "Callback", "Objective", "Stop", "Study", "too_near"]
