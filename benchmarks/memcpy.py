"""A copy in memory, in as many threads as what is measured beside it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from benchmarks import limit


def memcpy(x: np.ndarray, moved: int, threads: int) -> Callable[[], None]:
    """A call that moves so many bytes, half of them read, those of `x` and more where it has fewer, half written."""
    size = moved // 2
    source = x.reshape(-1).view(np.uint8)
    source = np.resize(source, size) if size > x.nbytes else source[:size]
    target = limit.empty((size,))
    try:
        library = limit.load()
    except limit.LimitError:
        return lambda: _numpy_copy(target, source, threads)
    return lambda: library.memcpy(target, source, threads)


def _numpy_copy(target: np.ndarray, source: np.ndarray, threads: int) -> None:
    """In parts, one for each thread; NumPy lets others run meanwhile."""
    edges = [len(source) * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda part: np.copyto(target[slice(*part)], source[slice(*part)]), pairwise(edges)))
