"""Families of calls: those of an operator that differ in numbers alone.

The numbers are extents of tensors, shapes of quantized tensors, and integers of the host: seeds, offsets, and how many
rows groups have. One of the calls is recorded with numbers that may be others (extents.py), for all of them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from .arrays import Array, row_major
from .extents import Terms
from .programs import map_leaves
from .types import float8_e4m3

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def vary(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    arrays: Sequence[Array],
    holders: Sequence[Any],
    numbers: Sequence[tuple[int, ...]],
    varying: Sequence[tuple[int, int]],
    terms: Terms,
) -> tuple[tuple[Any, ...], dict[str, Any], list[Array], list[tuple[Any, ...]]]:
    """A call with numbers that may be others: its arguments, its `arrays`, and the shapes of these with the numbers of
    `holders` after them.

    `holders` have `numbers` besides arrays: quantized tensors their shapes, and names of integers, or of lists of them.
    `varying` are the numbers that may be others: the place of an array, or of a holder after them, and that of a number
    in its shape.
    """
    named = [isinstance(holder, str) for holder in holders]
    made = vary_shapes([*(array.shape for array in arrays), *numbers], varying, terms, named)
    varied = [with_shape(array, shape) for array, shape in zip(arrays, made, strict=False)]
    return *_with_numbers(args, kwargs, holders, made[len(arrays) :]), varied, made


def vary_shapes(
    shapes: Sequence[tuple[int, ...]], varying: Sequence[tuple[int, int]], terms: Terms, apart: Sequence[bool] = ()
) -> list[tuple[Any, ...]]:
    """Shapes whose `varying` numbers may be others, as those that are equal now may be together. `apart` says which of
    the last shapes are numbers of their own, which others are equal to by chance."""
    first = len(shapes) - len(apart)
    known: dict[Any, Any] = {}

    def number(i: int, at: int, n: int) -> Any:
        if (i, at) not in varying:
            return n
        own = (i, at) if i >= first and apart[i - first] else n
        if own not in known:
            known[own] = terms.extent(i, at, n)
        return known[own]

    return [tuple(number(i, at, n) for at, n in enumerate(shape)) for i, shape in enumerate(shapes)]


def with_shape(array: Array, shape: tuple[Any, ...]) -> Array:
    """A dense array with other extents, or one with the same strides."""
    of_rows = functools.partial(row_major, dtype=array.dtype or float8_e4m3)
    strides = of_rows(shape) if array.strides == of_rows(array.shape) else array.strides
    return dataclasses.replace(array, shape=shape, strides=strides)


def _with_numbers(
    args: tuple[Any, ...], kwargs: dict[str, Any], holders: Sequence[Any], numbers: Sequence[tuple[Any, ...]]
) -> Arguments:
    """The arguments of a call with other numbers in what holds them."""
    others: dict[int, Any] = {}
    for holder, own in zip(holders, numbers, strict=True):
        if isinstance(holder, str):
            kwargs = {**kwargs, holder: list(own) if isinstance(kwargs[holder], list) else own[0]}
        else:
            others[id(holder)] = dataclasses.replace(holder, shape=own)

    def same(value: Any) -> Any:
        return value

    return map_leaves(same, args, others), map_leaves(same, kwargs, others)
