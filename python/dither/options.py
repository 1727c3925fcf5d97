"""What a kernel's code may do, beyond what its source says."""

from __future__ import annotations

import operator
from typing import Any

from . import knobs
from .data_classes import dataclass

MATH = ("exact", "fast")


@dataclass(frozen=True)
class CodeOptions:
    """Options of `jit` and of launches; None leaves the choice to the compiler, or to a knob."""

    #: The warps of a program on a GPU.
    num_warps: int | None = None
    #: "fast" lets a GPU approximate and contract; "exact" has the same bits everywhere.
    math: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_warps", _warps(self.num_warps))
        if self.math is not None and self.math not in MATH:
            raise ValueError(f"math is {self.math!r}, expected 'exact' or 'fast'")

    def under(self, num_warps: int | None = None, math: str | None = None) -> CodeOptions:
        """These, where a launch does not say otherwise; the knob `math` where neither does."""
        asked = CodeOptions(num_warps, math)
        return CodeOptions(asked.num_warps or self.num_warps, asked.math or self.math or knobs.get("math"))

    def fields(self) -> dict[str, str]:
        """For keys and explanations."""
        return {"num_warps": repr(self.num_warps), "math": self.math or "exact"}


def _warps(count: Any) -> int | None:
    """A number of warps, checked."""
    if count is None:
        return None
    try:
        number = 0 if isinstance(count, bool) else operator.index(count)
    except TypeError:
        number = 0
    if number not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"num_warps is {count!r}, expected 1, 2, 4, 8, 16 or 32")
    return number


#: Nothing is said.
UNSAID = CodeOptions()
