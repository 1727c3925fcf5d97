"""Orders of scales in memory, and the arrays that hold matrices of scales in them."""

from __future__ import annotations

from ..data_classes import dataclass
from ..language import ScaleLayout
from ..types import DType, e8m0, float8_e4m3, float32, int32
from .tiles import round_up


@dataclass(frozen=True)
class Order:
    """How a matrix of scales lies in memory (dialect/Quant/SemanticsOfModes.md, More orders of scales).

    Attributes:
        name: as calls have it.
        layout: as kernels store it.
        rows, cols: what the extents of the padded matrix are multiples of, for scales of a byte.
        scales: the data types it is defined for.
    """

    name: str
    layout: ScaleLayout
    rows: int
    cols: int
    scales: tuple[DType, ...]

    @property
    def linear(self) -> bool:
        """Whether it is the matrix itself."""
        return self.layout is ScaleLayout.linear

    def padded(self, shape: tuple[int, int], dtype: DType) -> tuple[int, int]:
        """The extents of the padded matrix."""
        rows, cols = self.steps(dtype)
        return round_up(shape[0], rows), round_up(shape[1], cols)

    def steps(self, dtype: DType) -> tuple[int, int]:
        """What the extents of the padded matrix are multiples of."""
        by_bytes = self.layout is ScaleLayout.column_major
        return self.rows * 8 // dtype.bits if by_bytes else self.rows, self.cols

    def matrix(self, stored: tuple[int, ...]) -> tuple[int, ...]:
        """The extents of the padded matrix in an array of this shape, as `stored` gives them."""
        if self.layout is ScaleLayout.column_major:
            return stored[::-1]
        if self.layout is ScaleLayout.packed_column_major:
            return stored[1], 4 * stored[0]
        return stored

    def stored(self, shape: tuple[int, int], dtype: DType) -> tuple[tuple[int, int], DType]:
        """Shape and data type of the array that holds a matrix of scales of this shape."""
        rows, cols = self.padded(shape, dtype)
        if self.layout is ScaleLayout.column_major:
            return (cols, rows), dtype
        if self.layout is ScaleLayout.packed_column_major:
            return (cols // 4, rows), int32
        return (rows, cols), dtype


_BYTES = (e8m0, float8_e4m3)

#: Orders by the names that calls have for them.
ORDERS = {
    order.name: order
    for order in (
        Order("linear", ScaleLayout.linear, 1, 1, (*_BYTES, float32)),
        Order("128x4", ScaleLayout.swizzle_128x4, 128, 4, _BYTES),
        Order("8x4", ScaleLayout.swizzle_8x4, 8, 4, _BYTES),
        Order("column_major", ScaleLayout.column_major, 16, 1, (*_BYTES, float32)),
        Order("packed", ScaleLayout.packed_column_major, 4, 4, (e8m0,)),
    )
}
OF_LAYOUT = {order.layout: order for order in ORDERS.values()}
