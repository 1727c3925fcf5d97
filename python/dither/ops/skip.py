"""Flags that make a launch leave its outputs as they are, as for weights that did not change."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Any

from ..arrays import Array, describe_argument
from ..data_classes import dataclass
from ..devices import Device
from ..scalars import run_time_number
from ..types import DType, float32, int32, int64

#: Data types of flags.
_TYPES: dict[DType | None, Any] = {float32: ctypes.c_float, int32: ctypes.c_int32, int64: ctypes.c_int64}
_EXPECTED = "expected True, False, or an array of one element, float32, int32 or int64"


@dataclass(frozen=True)
class Skip:
    """A flag on a device, of rank 0: kernels store nothing where it is not zero."""

    flag: Array

    @staticmethod
    def of(value: Any, where: Device) -> Skip | bool:
        """A flag as it was given, for kernels on a device; that of a launch on the CPU is read here."""
        number = run_time_number(value)
        if value is None or isinstance(number, bool):
            return bool(number)
        array = describe_argument("skip", value)
        if array is None:
            raise TypeError(f"argument 'skip' is {value!r}, {_EXPECTED}")
        if array.dtype not in _TYPES:
            raise TypeError(f"argument 'skip' has data type {array.dtype or array.storage}, {_EXPECTED}")
        if math.prod(array.shape) != 1:
            raise ValueError(f"argument 'skip' has shape {array.shape}, expected one element")
        if where.is_cpu and array.device == "cpu":
            return bool(_TYPES[array.dtype].from_address(array.pointer).value)
        return Skip(dataclasses.replace(array, shape=(), strides=()))
