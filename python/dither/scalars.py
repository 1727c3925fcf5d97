"""Numbers as arguments of kernels: Python's own, and those of other libraries that stand for them."""

from __future__ import annotations

import enum
import math
import numbers
import operator
import struct
import sys
from typing import Any, Literal

#: What the objects of a type are: numbers that stand for an int, a float or a bool of Python wherever they are, or
#: subclasses of int and float, which are numbers at run time and themselves as constexprs.
NumberKind = Literal["integer", "real", "truth", "own"]
#: Types of most arguments, which need no look at those of libraries.
_COMMON: dict[type, NumberKind | None] = {
    **dict.fromkeys((bool, str, tuple, type(None))),
    **dict.fromkeys((int, float), "own"),
}


def number_kind(kind: type) -> NumberKind | None:
    """What the objects of a type are; None where they are no numbers (a bool of Python's is a constexpr)."""
    if kind in _COMMON:
        return _COMMON[kind]
    numpy = sys.modules.get("numpy")
    of_numpy = numpy is not None and issubclass(kind, numpy.generic)
    if issubclass(kind, (int, float)) and not of_numpy:
        return "own"
    if issubclass(kind, numbers.Integral):
        return "integer"
    if issubclass(kind, numbers.Real):
        return "real"
    if numpy is not None and issubclass(kind, numpy.bool_):
        return "truth"
    # bfloat16 and the float8 types of ml_dtypes are registered as nothing.
    return "real" if of_numpy and kind.__module__ == "ml_dtypes" and "float" in kind.__name__ else None


def run_time_number(value: Any) -> Any:
    """A number as an int, a float or a bool of Python's; any other object as it is."""
    kind = number_kind(type(value))
    if kind is None:
        return value
    if kind == "truth":
        return bool(value)
    whole = kind == "integer" or (kind == "own" and isinstance(value, int))
    return int(operator.index(value)) if whole else float(value)


def constant_number(value: Any) -> Any:
    """As `run_time_number`, of a constexpr: also within tuples, and members of an IntEnum stay what they are."""
    if type(value) is tuple:
        items = tuple(constant_number(item) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, enum.Enum) or number_kind(type(value)) == "own":
        return value
    return run_time_number(value)


def check_number(name: str, value: int | float) -> None:
    """Whether a number fits the type that kernels take it as: int64 or float32."""
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"argument '{name}' is {_digits(value)}, expected an integer from -2^63 to 2^63 - 1")
    elif math.isfinite(value) and not fits_float32(value):
        raise ValueError(f"argument '{name}' is {value!r}, expected a float32, at most 3.4028235e+38 in magnitude")


def fits_float32(value: float) -> bool:
    """Whether a finite number is finite as a float32."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True


def _digits(value: int) -> str:
    return str(value) if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"
