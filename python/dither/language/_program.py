"""Program ids and memory."""

from __future__ import annotations

from typing import Any

from ._builtin import Builtin, ScaleLayout, linear


@Builtin
def program_id(axis: int) -> Any:
    """Index of this program along axis 0, 1 or 2 of the grid."""


@Builtin
def num_programs(axis: int) -> Any:
    """Number of programs along axis 0, 1 or 2 of the grid."""


@Builtin
def load(x: Any, offset: Any = None, shape: Any = None) -> Any:
    """The tile of `x` at `offset`, with x's data type; elements outside `x` are 0.

    Offset and shape have as many entries as `x` dimensions (a bare number will do for one); the shape is
    a constexpr. Both are left out for a tensor of rank 0.
    """


@Builtin
def store(x: Any, offset: Any, value: Any, layout: ScaleLayout = linear, valid: Any = None) -> None:
    """Writes a tile of x's data type at `offset`; what falls outside `x` is not written.

    `layout=dl.swizzle_128x4` stores scales in the 128x4 order (`x` has the padded 2-D shape). Elements at
    or past the coordinates `valid` are written as zero.
    """


@Builtin
def atomic_max(x: Any, offset: Any, value: Any) -> None:
    """Raises elements of `x` (float32) to those of a tile of non-negative float32."""


@Builtin
def static_assert(condition: Any, message: str = "") -> None:
    """Stops the compilation where a constexpr is false."""
