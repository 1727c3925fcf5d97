"""Numbers that a call is given: an amax, or scales, on the host or on a device.

What lies on the host is checked. To look at what lies on a GPU would be to wait for it: Semantics.md says what kernels
make of any value.
"""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Any

from ..arrays import Array, describe, describe_argument
from ..devices import Device
from ..extents import is_integer
from ..formats import Format
from ..scalars import check_number, run_time_number
from ..types import DType, float32, int64
from . import kernels
from .allocate import empty_like, fill, filled


def one_element(name: str, value: Any, dtype: DType, expected: str) -> Array:
    """An array of one element as one of rank 0; `expected` says in messages what else the argument could be."""
    described = describe_argument(name, value)
    if described is None:
        raise TypeError(f"argument '{name}' is {expected.format(value=value, type=type(value).__name__)}")
    if described.dtype is not dtype:
        raise TypeError(f"argument '{name}' has data type {described.dtype or described.storage}, expected {dtype}")
    if any(extent != 1 for extent in described.shape):
        raise ValueError(f"argument '{name}' has shape {described.shape}, expected one element")
    return dataclasses.replace(described, shape=(), strides=())


def written_number(name: str, value: Any) -> Array:
    """An array of one float32 that a kernel writes, as one of rank 0."""
    return one_element(name, value, float32, "a {type}, expected a float32 array")


def number_or_array(name: str, value: Any) -> float | Array:
    """A number, if it lies on the host, or an array of one float32 on a device."""
    number = run_time_number(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        check_number(name, number)
        return float(number)
    source = one_element(name, value, float32, "a {type}, expected a number or a float32 array")
    return float(ctypes.c_float.from_address(source.pointer).value) if source.device == "cpu" else source


def integer_or_array(name: str, value: Any) -> int | Array:
    """An integer of 64 bits, as a signed one, if it lies on the host, or an array of one int64."""
    number = run_time_number(value)
    if is_integer(number) and not isinstance(number, bool):
        if not -(2**63) <= number < 2**64:
            raise ValueError(f"argument '{name}' is {number}, expected an integer of 64 bits")
        return number - 2**64 if number >= 2**63 else number
    return one_element(name, value, int64, "{value!r}, expected an integer or an int64 array of one element")


def own_amax(value: Any, x: Any, array: Array, where: Device, stream: int | None) -> Any:
    """An amax given by the caller as an array of rank 0 of the result's own, beside `x`, which `array` describes."""
    return own(checked("amax", value), x, array, where, stream)


def own_scale(name: str, value: Any, x: Any, array: Array, where: Device, stream: int | None, place: Any = None) -> Any:
    """The same of a scale of the tensor."""
    return own(checked(name, value), x, array, where, stream, place)


def factor(name: str, value: Any, fmt: Format, x: Any, array: Array) -> Any:
    """What elements of the tensor are multiplied by, as an array of rank 0: the caller's where it lies on a device."""
    check_factor(name, fmt)
    given = checked(name, value)
    return filled(x, array, (), given) if isinstance(given, float) else given


def check_factor(name: str, fmt: Format) -> None:
    """Raises ValueError for a format without a tensor scale whose elements are not multiplied by one number first."""
    if name == "decode_scale":
        raise ValueError(
            f"argument 'decode_scale' was given for {fmt.name}, expected a format with a tensor scale, such as nvfp4"
        )
    if fmt.order != "encode_first" or fmt.block != "tensor":
        raise ValueError(
            f"argument 'encode_scale' was given for {fmt.name}, expected a format with a tensor scale, or one of one "
            "scale for the tensor with the order encode_first, such as fp8_tensor_e4m3"
        )


def checked(name: str, value: Any) -> float | Array:
    """An amax or a scale that was given, checked where it lies on the host. Raises TypeError or ValueError."""
    given = number_or_array(name, value)
    if name == "amax" and isinstance(given, float) and not 0 <= given < math.inf:
        raise ValueError(f"argument 'amax' is {given!r}, expected a finite number that is not negative")
    if name != "amax" and isinstance(given, float) and not 0 < given < math.inf:
        raise ValueError(f"argument '{name}' is {given!r}, expected a finite number above zero")
    return given


def own(given: float | Array, x: Any, array: Array, where: Device, stream: int | None, place: Any = None) -> Any:
    """The same of what `checked` returned; in `place`, an array of the result, if there is one."""
    copied = empty_like(x, array, (), float32) if place is None else place
    if isinstance(given, float):
        fill(copied, given + 0.0)  # the positive one of the two zeros
    elif not is_at(given, copied):
        # On the stream of the launch that reads it, whatever framework it is of.
        kernels.copy_kernel.launch(1, given, copied, device=where, stream=stream)
    return copied


def is_at(given: Array, place: Any) -> bool:
    """Whether an array lies where another one begins."""
    array = describe(place)
    return array is not None and array.pointer == given.pointer


def scale_of_amax(
    amax: Any, fmt: Format, x: Any, array: Array, where: Device, stream: int | None, place: Any = None
) -> Any:
    """The tensor scale of a format that has it as an encode or decode scale, from an amax; in `place` as `own`."""
    own = empty_like(x, array, (), float32) if place is None else place
    kernels.tensor_scale_kernel.launch(1, amax, own, FMT=fmt, device=where, stream=stream)
    return own
