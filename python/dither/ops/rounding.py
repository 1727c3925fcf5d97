"""How codes are rounded: to nearest, or stochastically by a seed and an offset."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import Array
from ..extents import is_integer
from .given import integer_or_array

ROUNDINGS = ("nearest", "stochastic")


class Random(NamedTuple):
    """Where random bits come from: integers, or arrays of rank 0 (int64), which the kernel reads."""

    seed: int | Array
    offset: int | Array

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the kernel is compiled for: "number" or "tensor", for each."""
        return tuple("number" if is_integer(value) else "tensor" for value in self)


def random_of(rounding: Any, seed: Any, offset: Any) -> Random | None:
    """The random bits of a call; None where it rounds to nearest. Raises TypeError or ValueError."""
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise ValueError(f"rounding is {rounding!r}, expected {', '.join(ROUNDINGS)}")
    if rounding == "nearest":
        if seed is not None or not (is_integer(offset) and offset == 0):
            given = "seed" if seed is not None else "offset"
            raise ValueError(f"argument '{given}' was given, expected rounding='stochastic' with it, or none")
        return None
    if seed is None:
        raise ValueError("rounding is 'stochastic', expected a seed: an integer, or an int64 array of one element")
    return Random(integer_or_array("seed", seed), integer_or_array("offset", offset))
