"""Replaying one iteration on a GPU.

There the time of an iteration is that of the host, which launches hundreds of small operations. Captured once in a CUDA
graph, they are launched together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import torch

from nestbo.optimise.state import State

_LOOKS = 5  # iterations between two looks at whether anything is still running


def replayed(step: Callable[[State], State], state: State, iterations: int) -> State | None:
    """The state of a GPU's batch after so many iterations; None where these wait for their results in between.

    Elements that have ended stay in the batch. Every call captures anew, since the sizes differ from fit to fit.
    """
    stream, keeper = _lane(state.x.device)
    current, graph = torch.cuda.current_stream(state.x.device), torch.cuda.CUDAGraph()
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        first = _without_waiting(step, state)  # which also prepares the libraries for the capture
        if first is None:
            return None
        held = first.map(torch.clone).change(index=first.index, data=first.data)  # these stay as they are
        if not _captured(graph, keeper, step, held):
            return None
        for k in range(1, iterations):
            if k % _LOOKS == 0 and not held.running.any():
                break
            graph.replay()
    current.wait_stream(stream)
    return held


def _captured(
    graph: torch.cuda.CUDAGraph, keeper: torch.cuda.CUDAGraph, step: Callable[[State], State], held: State
) -> bool:
    """Whether the graph could take up a step of a state; a failure spoils the lane."""
    graph.capture_begin(pool=keeper.pool(), capture_error_mode="thread_local")
    try:
        held.overwrite(step(held))
        graph.capture_end()
    except RuntimeError:
        with suppress(RuntimeError):
            graph.capture_end()
        _lane.cache_clear()
        return False
    return True


def _without_waiting(step: Callable[[State], State], state: State) -> State | None:
    """One step, or None where the host had to wait for the GPU within it; no thread may do so meanwhile."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        return step(state)
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        return None
    finally:
        torch.cuda.set_sync_debug_mode(before)


@lru_cache(maxsize=8)
def _lane(device: torch.device) -> tuple[torch.cuda.Stream, torch.cuda.CUDAGraph]:
    """A stream for captures, and a graph that keeps their memory from being given back in between."""
    with warnings.catch_warnings():  # that this mode does not see all that waits; a capture fails on the rest
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(torch.cuda.get_sync_debug_mode())
    stream, keeper, number = torch.cuda.Stream(device), torch.cuda.CUDAGraph(), torch.zeros((), device=device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        keeper.capture_begin(capture_error_mode="thread_local")
        number.add_(1)
        keeper.capture_end()
    return stream, keeper
