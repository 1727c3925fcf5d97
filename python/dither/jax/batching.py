"""Batches of calls as one call on more rows, where that gives the same bits.

It does where rows of blocks end with each entry, and nothing depends on other entries: no amax of a tensor, no sum over
rows, no random bits of a place. That is what splitting a call over devices needs too, with nothing exchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from ..recording import Collective, Splitting

if TYPE_CHECKING:
    from .calls import Call, Types

#: The dimension of the rows that entries of a batch follow each other in.
_ROWS = "row0"


def places_of_rows(
    call: Call, splitting: Splitting | None, entry: Types, outputs: int, mapped: Sequence[bool], size: int
) -> tuple[list[int | None], list[int]] | None:
    """The dimension that rows are in, for each array that is batched and for each result; None where a batch of `size`
    is not one call. `entry` has the types of the arrays of one entry."""
    if splitting is None or splitting.told or size < 2 or _ROWS not in splitting.extents:
        return None
    extents = {**splitting.extents, _ROWS: size * splitting.extents[_ROWS]}
    if dataclasses.replace(splitting, extents=extents).most(_ROWS) % size:
        return None
    at = [_rows_in(splitting, i) for i in range(len(entry) + outputs)]
    given, made = at[: len(entry)], [place for place in at[len(entry) :] if place is not None]
    if len(made) != outputs or any(
        (place is not None) is not is_mapped for place, is_mapped in zip(given, mapped, strict=True)
    ):
        return None
    stages = call.stages(call.split(entry, size, 1))
    for step in stages.steps:
        # The buffer after those of the arrays says where the entry begins.
        if isinstance(step, Collective) or len(entry) in step[1]:
            return None
    return given, made


def _rows_in(splitting: Splitting, index: int) -> int | None:
    labels = splitting.labels.get(index, ())
    return labels.index(_ROWS) if _ROWS in labels else None


def joined(x: Any, dim: int, at: int) -> Any:
    """A batch along `dim` as entries that follow each other along dimension `at` of an entry."""
    moved = jnp.moveaxis(x, dim, at)
    return moved.reshape(*moved.shape[:at], moved.shape[at] * moved.shape[at + 1], *moved.shape[at + 2 :])


def parted(x: Any, size: int, at: int) -> Any:
    """The inverse: the batch is along `at`."""
    return x.reshape(*x.shape[:at], size, x.shape[at] // size, *x.shape[at + 1 :])
