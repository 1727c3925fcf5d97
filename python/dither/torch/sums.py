"""Sums of the tensors of several processes, in one written order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from .exchange import gathered, group_of, swap


def reduce_scatter_sum(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """The sums of tensors of all processes of a group, each process those of its share of the rows.

    Terms are added in float32 in one written order, whatever the backend: pairs of neighbours by rank, then pairs of
    these, as `dither` sums columns of parts. The result has the data type of `x`, and a `group`th of its rows.
    """
    group = group_of(group)
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    if x.shape[0] % size:
        raise ValueError(f"argument 'x' has {x.shape[0]} rows, expected a multiple of {size}, the processes")
    shares = [share.contiguous() for share in x.detach().reshape(size, -1, *x.shape[1:])]
    got = [torch.empty_like(shares[0]) for _ in range(size)]
    swap(got, shares, group, rank)
    return ordered_sum(got).to(x.dtype)


def all_reduce_sum(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """The sums of tensors of all processes of a group, in the order of `reduce_scatter_sum`, the same bits in each."""
    group = group_of(group)
    return ordered_sum(list(gathered(x.detach().reshape(-1), group).reshape(-1, *x.shape))).to(x.dtype)


def ordered_sum(terms: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of tensors in float32: pairs of neighbours, then pairs of these; what is left over goes up as it is."""
    level = [term.float() for term in terms]
    while len(level) > 1:
        pairs = [one + other for one, other in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def ordered_hook(group: Any, bucket: Any) -> Any:
    """The means of gradients of DistributedDataParallel, by `all_reduce_sum`:

    model.register_comm_hook(group, dither.torch.distributed.ordered_hook)
    """
    group = group_of(group)
    done: Any = torch.futures.Future()
    done.set_result(all_reduce_sum(bucket.buffer(), group) / dist.get_world_size(group))
    return done


# DDP looks at the types that a hook names, not at their names.
ordered_hook.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}


class OrderedReduceScatter:
    """The sums of gradients of FSDP2, by `reduce_scatter_sum`:

    module.set_custom_reduce_scatter(dither.torch.distributed.OrderedReduceScatter())
    """

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Memory for what is exchanged."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        total = reduce_scatter_sum(input_tensor, group)
        if op == dist.ReduceOp.AVG:
            total = total / dist.get_world_size(group)
        elif op != dist.ReduceOp.SUM:
            raise ValueError(f"found {op} of gradients, expected SUM or AVG")
        output_tensor.copy_(total)
