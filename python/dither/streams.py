"""The current stream of the frameworks that tensors come from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from .arrays import Array
from .devices import Device


def source(device: Device, arrays: Iterable[Array]) -> Callable[[], int] | None:
    """What gives the current stream of a GPU: that of the first tensor on it whose framework has one.

    None where there is none: on the CPU, and for memory that no framework orders; the default stream it is then.
    """
    if not device.name.startswith("cuda:"):
        return None
    ordinal = int(device.name.removeprefix("cuda:"))
    for array in arrays:
        if array.device != device.name:
            continue
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(array.owner, torch.Tensor):
            return lambda: torch.cuda.current_stream(ordinal).cuda_stream
        cupy = sys.modules.get("cupy")
        if cupy is not None and isinstance(array.owner, cupy.ndarray):
            return lambda: cupy.cuda.get_current_stream(ordinal).ptr
    return None
