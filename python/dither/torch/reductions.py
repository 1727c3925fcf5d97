"""Largest magnitudes over the processes of a group."""

from __future__ import annotations

from typing import Any

import torch


def reduce_amax(amax: torch.Tensor, group: Any = None) -> torch.Tensor:
    """The amax, in place, as that of all processes of a group of torch.distributed, None for all there are; as it is
    where torch.distributed is not initialized."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        distributed.all_reduce(amax, distributed.ReduceOp.MAX, group=group)
    return amax
