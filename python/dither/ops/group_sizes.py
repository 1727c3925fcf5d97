"""Sizes of groups that the host knows: they are checked there, and written to the device without a copy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..arrays import Array, describe, describe_argument
from ..devices import Device
from ..extents import is_integer
from ..scalars import run_time_number
from ..types import int32, int64
from . import group_kernels
from .allocate import as_numpy, empty_like


def known_sizes(kind: str, value: Any, height: int, beside: Array) -> list[int] | None:
    """Rows of each group where the host knows them: of a list or tuple of integers, or an array of the host `beside`
    one of another device; None for what lies where that does. `kind` says what they are given as, `height` is the
    number of all rows.

    Raises TypeError or ValueError for what are no groups of so many rows.
    """
    if isinstance(value, (list, tuple)):
        # Most are, of hundreds.
        given = [n if type(n) is int else _integer(kind, i, n) for i, n in enumerate(value)]
    else:
        array = describe_argument(kind, value)
        if array is None or array.device != "cpu" or beside.device == "cpu":
            return None
        if array.dtype not in (int32, int64) or len(array.shape) != 1:
            return None  # who takes it as an array says what is wrong
        given = [int(n) for n in as_numpy(array).view(array.dtype.name)]
    if not given:
        raise ValueError(f"argument '{kind}' has no elements, expected one for each group")
    sizes = given
    if kind == "starts":
        if given[0] != 0:
            raise ValueError(f"argument 'starts' has {given[0]} at first, expected 0")
        sizes = [after - first for first, after in itertools.pairwise([*given, height])]
    elif kind == "ends":
        sizes = [end - before for before, end in itertools.pairwise([0, *given])]
    if any(n < 0 for n in sizes):
        i, n = next((i, n) for i, n in enumerate(sizes) if n < 0)
        raise ValueError(f"argument '{kind}' has a group of {n} rows at {i}, expected none below 0")
    if sum(sizes) != height:
        raise ValueError(f"argument '{kind}' has groups of {sum(sizes)} rows, expected {height}")
    return sizes


def on_device(sizes: Sequence[int], x: Any, array: Array, where: Device, stream: int | None) -> Array:
    """The sizes as an int64 array beside `x`, which `array` describes."""
    own = empty_like(x, array, (len(sizes),), int64)
    described = describe(own)
    assert described is not None
    if described.device == "cpu":
        as_numpy(described).view("int64")[...] = sizes
        return described
    step = group_kernels.NUMBERS
    for at in range(0, len(sizes), step):
        some = [*sizes[at : at + step], *([0] * step)][:step]
        group_kernels.numbers_kernel.launch(1, (own, *some), at, device=where, stream=stream)
    return described


def _integer(kind: str, i: int, value: Any) -> int:
    number = run_time_number(value)
    if not is_integer(number) or isinstance(number, bool):
        raise TypeError(f"argument '{kind}' has {value!r} at {i}, expected an integer")
    return number
