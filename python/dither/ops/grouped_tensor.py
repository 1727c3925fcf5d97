"""Quantized groups of rows: codes and scales of all of them in one array each."""

from __future__ import annotations

from typing import Any

from ..arrays import describe
from ..data_classes import dataclass
from ..formats import Format
from ..language import ScaleLayout
from ..types import DType
from .allocate import as_numpy
from .group_parts import parts_of
from .group_tiles import CODES_ROWS
from .hadamard import Transform
from .orders import OF_LAYOUT
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x
from .tensor_methods import TensorMethods


@dataclass(frozen=True, eq=False, repr=False)
class GroupedScaledTensor1x(TensorMethods):
    """Groups of rows, quantized along one direction each as a tensor of its own.

    Attributes:
        data: codes, (M, N), a row for each of the groups' rows, those past all groups zero. Columnwise codes of formats
            that are stored transposed: (N M,), the (N, rows) matrix of each group after that of the one before (of FP4
            with an even number of rows for each), or (N, M) where `joined`.
        scale_inv: scales, each group's where those of the one before end. Rowwise, a row for each row of blocks; in an
            order that pads rows, each group is padded. Columnwise (blocks, N), a row for each row of blocks; where
            scales are stored transposed (in an order, or with the codes), one dimension, the matrix of each group after
            that of the one before. One for a group (G, 1), or one for each of its columns (G, N). Past those of the
            groups they are zero.
        amax: largest magnitude of each group, (G,), in formats with a tensor scale, or one for all of them, rank 0; of
            formats with an amax of each row (M, 1), columnwise (G, N); else None.
        tensor_scale: what stands for the tensor scale where a format has it otherwise, as `amax`.
        format, dtype, is_colwise, scale_layout, transform: as of `ScaledTensor1x`.
        shape: (M, N), M the rows of codes; along columns that are transformed those of groups with whole runs.
        groups: the number of groups.
        table: (G + 1, 8) int64 on the device: where each group begins, and what is past them.
        wrong: 1 where the sizes of groups were not those of all rows (int32, one element), else 0.
        repeated: as of `ScaledTensor1x`.
        joined: whether transposed codes are one matrix, of which each group has some columns.
        scale_given: as of `ScaledTensor1x`.
        height: rows of codes of each group, where all are known to have as many; else None.
    """

    data: Any
    scale_inv: Any
    amax: Any
    format: Format
    shape: tuple[int, int]
    dtype: DType
    is_colwise: bool
    scale_layout: ScaleLayout
    groups: int
    table: Any
    wrong: Any
    repeated: bool = False
    transform: Transform | None = None
    tensor_scale: Any = None
    joined: bool = False
    scale_given: bool = False
    height: int | None = None

    @property
    def is_transposed(self) -> bool:
        """Whether `data` has matrices (N, rows)."""
        return self.is_colwise and self.format.transposed

    @property
    def num_groups(self) -> int:
        """The number of groups."""
        return self.groups

    @property
    def group_sizes(self) -> Any:
        """Rows of each group, (G,) int32, on the device."""
        rows = self.table[:-1, CODES_ROWS]
        return rows.astype("int32") if hasattr(rows, "astype") else rows.int()

    @property
    def first_dims(self) -> Any:
        """`group_sizes`, as Transformer Engine calls them: groups lie along the first dimension."""
        return self.group_sizes

    @property
    def last_dims(self) -> None:
        """None: groups have all columns."""
        return None

    @property
    def original_shape(self) -> tuple[int, int]:
        """`shape`."""
        return self.shape

    def split(self) -> list[ScaledTensor1x]:
        """Each group as a tensor, of the same memory. Waits for the device, which knows where they are."""
        return self.split_at(_on_host(self.table))

    def split_at(self, places: Any) -> list[ScaledTensor1x]:
        """As `split`, where the host knows what is in `table`: `places`, an array of NumPy."""
        return parts_of(self, places[: self.groups].T.tolist())

    def group(self, g: int) -> ScaledTensor1x:
        """One group as a tensor, as in `split`."""
        if not -self.groups <= g < self.groups:
            raise IndexError(f"group {g} of {self.groups}, expected {-self.groups} to {self.groups - 1}")
        g %= self.groups
        return parts_of(self, _on_host(self.table)[g : g + 1].T.tolist(), g)[0]

    def dequantize(self, dtype: DType | None = None) -> Any:
        """The values of the codes, (M, N), by default in the data type before quantization."""
        from .grouped import grouped_dequantize

        return grouped_dequantize(self, dtype)

    def __repr__(self) -> str:
        way = "colwise" if self.is_colwise else "rowwise"
        order = OF_LAYOUT[self.scale_layout]
        scales = "" if order.linear else f", scales in {order.name} order"
        return (
            f"GroupedScaledTensor1x({self.format.name}, {way}, {self.groups} groups, shape={self.shape}, "
            f"dtype={self.dtype}{scales})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class GroupedScaledTensor2x(TensorMethods):
    """Groups of rows, quantized along rows and along columns. Those along columns are padded to whole runs where they
    are transformed, and have places of their own then."""

    rowwise: GroupedScaledTensor1x
    colwise: GroupedScaledTensor1x

    @property
    def rowwise_tensor(self) -> GroupedScaledTensor1x:
        """`rowwise`, as Transformer Engine calls it."""
        return self.rowwise

    @property
    def colwise_tensor(self) -> GroupedScaledTensor1x:
        """`colwise`, as Transformer Engine calls it."""
        return self.colwise

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of codes, and columns."""
        return self.rowwise.shape

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.rowwise.groups

    @property
    def height(self) -> int | None:
        """As of GroupedScaledTensor1x."""
        return self.rowwise.height

    @property
    def wrong(self) -> Any:
        """As of GroupedScaledTensor1x."""
        return self.rowwise.wrong

    @property
    def table(self) -> Any:
        """As of GroupedScaledTensor1x."""
        return self.rowwise.table

    def split(self) -> list[ScaledTensor2x]:
        """Each group as a tensor, of the same memory. Waits for the device, which knows where they are."""
        row, col = self.rowwise, self.colwise
        places = _on_host(row.table)
        of_columns = places if col.table is row.table else _on_host(col.table)
        parts = zip(row.split_at(places), col.split_at(of_columns), strict=True)
        return [ScaledTensor2x(*both) for both in parts]

    def group(self, g: int) -> ScaledTensor2x:
        """One group as a tensor, as in `split`."""
        return ScaledTensor2x(self.rowwise.group(g), self.colwise.group(g))

    def dequantize(self, dtype: DType | None = None) -> Any:
        """The values of the rowwise codes."""
        return self.rowwise.dequantize(dtype)

    def __repr__(self) -> str:
        return f"GroupedScaledTensor2x({self.rowwise!r}, {self.colwise!r})"


def _on_host(table: Any) -> Any:
    """A table of groups as NumPy has it."""
    if hasattr(table, "cpu"):
        return table.cpu().numpy()
    array = describe(table)
    assert array is not None
    if array.device == "cpu":
        return as_numpy(array).view("int64")
    raise TypeError("found groups on a GPU in memory of no framework, expected those of a tensor of torch")
