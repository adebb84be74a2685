"""The threads of worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "OMP_NUM_THREADS"  # OpenBLAS, MKL and OpenMP read it when they are loaded


@contextmanager
def workers(threads: int) -> Iterator[None]:
    """Inside the block, new processes use this number of threads for the linear algebra of numpy and scipy.

    Otherwise each process starts as many threads as there are cores, and the processes slow each other down. torch has
    a setting of its own.
    """
    former = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(threads)
    try:
        yield
    finally:
        if former is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = former
