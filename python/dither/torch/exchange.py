"""What processes of a group exchange, whatever the backend of torch.distributed."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def group_of(group: Any) -> Any:
    """A process group of what stands for one: None for all processes."""
    found = dist.group.WORLD if group is None else group.get_group() if hasattr(group, "get_group") else group
    if not isinstance(found, dist.ProcessGroup):
        raise TypeError(f"found {type(group).__name__} as a group, expected a process group or a device mesh")
    return found


def gathered(x: torch.Tensor, group: Any) -> torch.Tensor:
    """What all processes have, (count, ..), in the order of ranks."""
    out = torch.empty((dist.get_world_size(group), *x.shape), dtype=x.dtype, device=x.device)
    dist.all_gather(list(out), x.contiguous(), group=group)
    return out


def all_reduce_amax(amax: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Raises an amax (float32, not negative) to the largest of all processes of a group, in place, and returns it.

    A NaN is larger than all else, as in kernels.
    """
    if amax.dtype is not torch.float32:
        raise TypeError(f"argument 'amax' has data type {amax.dtype}, expected float32")
    dist.all_reduce(amax.view(torch.int32), dist.ReduceOp.MAX, group=group_of(group))
    return amax


def reduce_amax(amax: torch.Tensor, group: Any = None) -> torch.Tensor:
    """`all_reduce_amax` where torch.distributed is initialized; elsewhere there is one process, whose amax it is."""
    return all_reduce_amax(amax, group) if dist.is_available() and dist.is_initialized() else amax


def gathered_slices(x: torch.Tensor, start: int, count: int, group: Any = None) -> torch.Tensor:
    """All of `count` elements, of which each process of a group has those from `start` on, (n,), by rank one after the
    other. Raises ValueError in all processes where they are not all."""
    group = group_of(group)
    places = gathered(torch.tensor([start, x.numel()], device=x.device), group).tolist()
    ends = [0, *(begin + size for begin, size in places)]
    if [begin for begin, _ in places] + [count] != ends:
        found = ", ".join(f"{begin} to {begin + size}" for begin, size in places)
        raise ValueError(f"found elements {found} in the processes, expected 0 to {count}, one after the other")
    raw = x.contiguous().view(torch.uint8)
    sizes = [size * x.element_size() for _, size in places]
    padded = torch.nn.functional.pad(raw, (0, max(sizes) - len(raw)))
    rows = zip(gathered(padded, group), sizes, strict=True)
    return torch.cat([row[:size] for row, size in rows]).view(x.dtype)


def swap(got: list[torch.Tensor], shares: list[torch.Tensor], group: Any, rank: int) -> None:
    """Each process gives the others their share. Gloo has no all_to_all: sends and receives."""
    got[rank].copy_(shares[rank])
    works = []
    for other in range(len(shares)):
        if other != rank:
            peer = dist.get_global_rank(group, other)
            works.append(dist.isend(shares[other], peer, group=group))
            works.append(dist.irecv(got[other], peer, group=group))
    for work in works:
        if work is not None:
            work.wait()
