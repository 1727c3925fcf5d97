"""Quantized tensors: codes, scales, and how to read them."""

from __future__ import annotations

import dataclasses
import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from ..data_classes import dataclass
from ..formats import Format, restore_format
from ..language import ScaleLayout
from ..types import DType, dtype_from_mlir
from .hadamard import Transform
from .orders import OF_LAYOUT
from .tensor_methods import TensorMethods


@dataclass(frozen=True, eq=False, repr=False)
class ScaledTensor1x(TensorMethods):
    """A tensor quantized along one direction: a matrix of M rows and N columns.

    Results are pickled and copied like the arrays in them. `torch.load` with `weights_only=True` reads them after
    `torch.serialization.add_safe_globals([dither.ops.scaled_tensor.restore])`.

    Attributes:
        data: codes. Rowwise, and columnwise in formats that are not transposed, (M, N); columnwise in those that are
            (NVFP4), (N, M). FP4 lies in uint8, two codes to a byte, the even column in the low half; the last half byte
            of an odd row is zero. Of a tensor of another rank they have its dimensions, those along columns first where
            codes are transposed.
        scale_inv: what codes are multiplied by, one for each block: (M / block_rows, N / block_cols) rowwise;
            columnwise (N / block_rows, M / block_cols) in transposed formats, and (M / block_cols, N / block_rows) in
            the others, all rounded up. In another order, what `dither.swizzle_scales` makes of that matrix, columnwise
            of the transposed one; padding is zero.
        amax: largest magnitude of what was quantized (float32, rank 0), in formats with a tensor scale; else None. In
            those with an amax of each row (M, 1), columnwise (1, N).
        tensor_scale: what stands for the tensor scale in formats that have it as an encode or decode scale
            (`Format.tensor_scale_as`; float32, rank 0); else None. Then `amax` is None where that scale was given.
        format: the block-scaled format.
        shape: that of the tensor, (M, N) for a matrix.
        dtype: the data type before quantization.
        is_colwise: whether blocks run along columns.
        scale_layout: order of the scales: dl.linear, dl.swizzle_128x4, dl.swizzle_8x4, dl.column_major or
            dl.packed_column_major.
        transform: the Hadamard transform of what was quantized (`dither.RandomHadamard`), or None.
        flatten_axis: the first dimension of `shape` that is along columns; those before it are rows.
        repeated: whether scales of blocks of several rows are there once for each row (columnwise: column).
        scale_given: whether the one scale of the tensor was given, as by delayed scaling (`encode_scale`).
    """

    data: Any
    scale_inv: Any
    amax: Any
    format: Format
    shape: tuple[int, ...]
    dtype: DType
    is_colwise: bool
    scale_layout: ScaleLayout
    repeated: bool = False
    transform: Transform | None = None
    flatten_axis: int = -1
    tensor_scale: Any = None
    scale_given: bool = False

    @property
    def is_transposed(self) -> bool:
        """Whether `data` is (N, M)."""
        return self.is_colwise and self.format.transposed

    def dequantize(self, dtype: Any = None, undo_transform: bool = False) -> Any:
        """The values of the codes as an array of `shape` and `dtype`, by default that before quantization."""
        from .dequantize import dequantize

        return dequantize(self, dtype, undo_transform=undo_transform)

    def __reduce__(self) -> tuple[Any, ...]:
        fmt, order = self.format, self.scale_layout.name
        arrays = [_as_bytes(x) for x in (self.data, self.scale_inv)]
        transform = None if self.transform is None else tuple(self.transform)
        rest = (fmt.__reduce__()[1], self.shape, self.dtype.mlir, self.is_colwise, order)
        more = (self.repeated, transform, self.flatten_axis, self.tensor_scale, self.scale_given)
        return restore, (*arrays, self.amax, *rest, *more)

    def __copy__(self) -> ScaledTensor1x:
        return dataclasses.replace(self)

    def __repr__(self) -> str:
        way = "colwise" if self.is_colwise else "rowwise"
        order = OF_LAYOUT[self.scale_layout]
        scales = "" if order.linear else f", scales in {order.name} order"
        scales += ", repeated" if self.repeated else ""
        scales += ", transformed" if self.transform else ""
        return f"ScaledTensor1x({self.format.name}, {way}, shape={self.shape}, dtype={self.dtype}{scales})"


@dataclass(frozen=True, eq=False, repr=False)
class ScaledTensor2x(TensorMethods):
    """A tensor quantized along rows and along columns."""

    rowwise: ScaledTensor1x
    colwise: ScaledTensor1x

    @property
    def rowwise_tensor(self) -> ScaledTensor1x:
        """`rowwise`, as Transformer Engine calls it."""
        return self.rowwise

    @property
    def colwise_tensor(self) -> ScaledTensor1x:
        """`colwise`, as Transformer Engine calls it."""
        return self.colwise

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the tensor."""
        return self.rowwise.shape

    @property
    def dtype(self) -> DType:
        """The data type before quantization."""
        return self.rowwise.dtype

    @property
    def format(self) -> Format:
        """The block-scaled format."""
        return self.rowwise.format

    @property
    def amax(self) -> Any:
        """As of ScaledTensor1x: of what was quantized along rows."""
        return self.rowwise.amax

    @property
    def colwise_beside(self) -> Any:
        """`colwise` as calls that are like earlier ones are compared (replay.py): all of it, or its fields, less the
        arrays that `rowwise` has, too, with which."""
        row, col = self.rowwise, self.colwise
        amax = row.amax is not None and row.amax is col.amax
        scale = row.tensor_scale is not None and row.tensor_scale is col.tensor_scale
        return (amax, scale, _fields_but(amax, scale)(col)) if amax or scale else col

    def dequantize(self, dtype: Any = None) -> Any:
        """The values of the rowwise codes."""
        return self.rowwise.dequantize(dtype)

    def __repr__(self) -> str:
        return f"ScaledTensor2x({self.rowwise!r}, {self.colwise!r})"


@functools.cache
def _fields_but(amax: bool, scale: bool) -> Callable[[ScaledTensor1x], tuple[Any, ...]]:
    """What gives the fields of a direction, less its amax, or its tensor scale, where those are true."""
    left = [name for name, there in (("amax", amax), ("tensor_scale", scale)) if there]
    names = (field.name for field in dataclasses.fields(ScaledTensor1x))
    return operator.attrgetter(*(name for name in names if name not in left))


def restore(
    data: tuple[Any, str],
    scale_inv: tuple[Any, str],
    amax: Any,
    format: tuple[str, dict[str, Any]],
    shape: tuple[int, ...],
    dtype: str,
    is_colwise: bool,
    scale_layout: str,
    repeated: bool = False,
    transform: tuple[int, int] | None = None,
    flatten_axis: int = -1,
    tensor_scale: Any = None,
    scale_given: bool = False,
) -> ScaledTensor1x:
    """A ScaledTensor1x that was pickled or deeply copied. Names stand for formats and types, so that who unpickles
    what he does not trust has this one function to allow."""
    codes, scales = (_from_bytes(*x) for x in (data, scale_inv))
    layout = ScaleLayout[scale_layout]
    fmt, kind = restore_format(*format), dtype_from_mlir(dtype)
    known = None if transform is None else Transform(*transform)
    rest = (repeated, known, flatten_axis, tensor_scale, scale_given)
    return ScaledTensor1x(codes, scales, amax, fmt, shape, kind, is_colwise, layout, *rest)


def _as_bytes(x: Any) -> tuple[Any, str]:
    """An array for pickle, and its data type where torch's is one that pickle fails on: they go as bytes."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor) and str(x.dtype).startswith("torch.float8"):
        return x.view(torch.uint8), str(x.dtype).removeprefix("torch.")
    return x, ""


def _from_bytes(x: Any, dtype: str) -> Any:
    return x.view(getattr(sys.modules["torch"], dtype)) if dtype else x


def data_shape(shape: tuple[int, ...], fmt: Format, colwise: bool) -> tuple[int, int]:
    """Shape of the codes of an (M, N) tensor, in elements."""
    m, n = shape
    return (n, m) if colwise and fmt.transposed else (m, n)


def scale_matrix(shape: tuple[int, ...], fmt: Format, colwise: bool, repeated: bool = False) -> tuple[int, int]:
    """Extents of the matrix of scales of an (M, N) tensor: columns count blocks along the axis that they run along."""
    extents = shape[::-1] if colwise else shape
    rows, cols = (-(-n // (block or n or 1)) for n, block in zip(extents, fmt.block_extents(1), strict=True))
    return extents[0] if repeated else rows, cols


def scale_storage(
    shape: tuple[int, ...], fmt: Format, colwise: bool, layout: ScaleLayout, repeated: bool = False
) -> tuple[tuple[int, int], DType]:
    """Shape and data type of the array of the scales of an (M, N) tensor."""
    rows, cols = scale_matrix(shape, fmt, colwise, repeated)
    if layout is ScaleLayout.linear and colwise and not fmt.transposed:
        return (cols, rows), fmt.scale
    return OF_LAYOUT[layout].stored((rows, cols), fmt.scale)


def specialization(fmt: Format, colwise: bool, layout: ScaleLayout) -> tuple[str | None, str | None]:
    """The `shapes` of codes and scales for `dither.view`: rows as long as the batch compile nothing anew."""
    data = colwise and fmt.transposed
    if layout is ScaleLayout.column_major:  # a row has a scale for each row of the tensor, or column
        scale = not colwise
    else:
        scale = colwise and (fmt.transposed or layout is not ScaleLayout.linear)
    return "dynamic" if data else None, "dynamic" if scale else None
