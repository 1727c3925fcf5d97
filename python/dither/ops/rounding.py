"""How codes are rounded: to nearest, or stochastically by a seed and an offset."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import Array
from ..scalars import run_time_number
from ..types import int64
from .given import one_element

ROUNDINGS = ("nearest", "stochastic")


class Random(NamedTuple):
    """Where random bits come from: integers, or arrays of rank 0 (int64), which the kernel reads."""

    seed: int | Array
    offset: int | Array

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the kernel is compiled for: "number" or "tensor", for each."""
        return tuple("number" if isinstance(value, int) else "tensor" for value in self)


def random_of(rounding: Any, seed: Any, offset: Any) -> Random | None:
    """The random bits of a call; None where it rounds to nearest. Raises TypeError or ValueError."""
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise ValueError(f"rounding is {rounding!r}, expected {', '.join(ROUNDINGS)}")
    if rounding == "nearest":
        if seed is not None or not (isinstance(offset, int) and offset == 0):
            given = "seed" if seed is not None else "offset"
            raise ValueError(f"argument '{given}' was given, expected rounding='stochastic' with it, or none")
        return None
    if seed is None:
        raise ValueError("rounding is 'stochastic', expected a seed: an integer, or an int64 array of one element")
    return Random(_integer("seed", seed), _integer("offset", offset))


def _integer(name: str, value: Any) -> int | Array:
    number = run_time_number(value)
    if isinstance(number, int) and not isinstance(number, bool):
        if not -(2**63) <= number < 2**64:
            raise ValueError(f"argument '{name}' is {number}, expected an integer of 64 bits")
        return number - 2**64 if number >= 2**63 else number
    return one_element(name, value, int64, "{value!r}, expected an integer or an int64 array of one element")
