"""The operators as a user of another framework would write them, each independent of the others and of dither.

A peer module has `NAME`, `version()` and `prepare(case, threads) -> Prepared`; it raises Unavailable where the
framework is missing or cannot express an operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


class Unavailable(RuntimeError):
    """The framework, or this operator in it, is not to be had; the message says why."""


@dataclass
class Prepared:
    """`call` runs the operator and waits for it; `outputs` gives the last results as bytes, by the case's names."""

    call: Callable[[], object]
    outputs: Callable[[], dict[str, np.ndarray]]


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The array's bytes, in rows."""
    return np.ascontiguousarray(array).view(np.uint8)


def mismatches(prepared: Prepared, expected: dict[str, np.ndarray]) -> dict[str, float]:
    """Fraction of the bytes of each output that differ from the expected ones; outputs that are equal are left out."""
    result: dict[str, float] = {}
    for name, got in prepared.outputs().items():
        want = expected[name]
        if got.shape != want.shape:
            raise ValueError(f"{name} has the shape {got.shape}, expected {want.shape}")
        fraction = float(np.mean(got != want))
        if fraction > 0:
            result[name] = fraction
    return result
