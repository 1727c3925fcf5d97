"""FSDP2's hooks: shards of a quantized parameter are gathered as codes and scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .fields import map_tensors, parts_of, quantized_of, tensors_of
from .rows import along, check_rows, concatenated, fields_of
from .tensor import QuantizedTensor
from .values import depends_on_all


def pre_all_gather(x: QuantizedTensor, mesh: Any, outer_size: Any) -> tuple[tuple[torch.Tensor, ...], Any]:
    """What of a shard is gathered, bytes of each array, and what `post_all_gather` needs besides.

    Raises ValueError, in all processes alike, for a tensor whose shards differ in size, or are no whole blocks. What is
    written into shards from now on has the amax of all of them.
    """
    if x.description[0] == "groups":
        raise ValueError("found a parameter of groups of rows, expected one without for FSDP2")
    count = mesh.size()
    if outer_size[0] % count:
        raise ValueError(
            f"found a quantized parameter of {outer_size[0]} rows, expected a multiple of {count}, the shards"
        )
    q = x.quantized
    check_rows(q, "a shard of a quantized parameter")
    if depends_on_all(q):
        x.amax_group = mesh.get_group()
    tensors = tensors_of(q)
    shared = _shared(q)
    names = [name for name in tensors if name not in shared]
    kept = {name: tensors[name] for name in shared if name in tensors}
    kinds = [(name, tuple(tensors[name].shape), tensors[name].dtype) for name in names]
    gathered = tuple(tensors[name].contiguous().reshape(-1).view(torch.uint8) for name in names)
    return gathered, (x.description, count, kinds, kept)


def post_all_gather(gathered: Sequence[torch.Tensor], metadata: Any, out: Any) -> Any:
    """The tensor of what was gathered, and the memory that it has of its own; with `out` into that memory."""
    description, count, kinds, kept = metadata
    pieces: dict[str, Sequence[torch.Tensor]] = {}
    for raw, (name, shape, kind) in zip(gathered, kinds, strict=True):
        pieces[name] = [row.view(kind).reshape(shape) for row in raw.view(count, -1)]
    part = quantized_of(description, {name: each[0] for name, each in pieces.items()} | kept)
    whole = map_tensors(
        concatenated(part, pieces), lambda t: t.clone() if any(t is one for one in kept.values()) else t
    )
    if out is None:
        return QuantizedTensor(whole), tuple(tensors_of(whole).values())
    made = tensors_of(whole)
    # Gathered again for the backward pass: modules saved these tensors, which have the same values as before.
    with torch.autograd._unsafe_preserve_version_counter(tuple(getattr(out, name) for name in made)):
        for name, tensor in made.items():
            getattr(out, name).copy_(tensor)
    return None


def _shared(q: Any) -> set[str]:
    """The arrays that all rows share."""
    found = set()
    for way, part in parts_of(q).items():
        found |= {f"_{way}_{name}" for name in fields_of(part) if along(part, name) is None}
    return found
