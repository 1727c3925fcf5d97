"""dither.transpose and dither.cast_transpose."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from typing import Any

from ..arrays import Array, View, describe_argument, view
from ..devices import Device, chosen_device, get_device
from ..formats import FP8_TENSOR_E4M3, Format, get_format
from ..frameworks import replayable
from ..recording import Recording
from ..types import DType, bfloat16, float4_e2m1, int8, int32
from . import kernels
from .allocate import DeviceArray, aligned, contiguous_rows, empty_like, foreign_type, numpy_type
from .flatten import Flattened, flatten_part, flattened, reshape
from .outputs import check_apart, check_arrays
from .quantize import quantize
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x, data_shape
from .shards import Describing, describes
from .tiles import transpose_tile

#: What elements of so many bits are moved as.
MOVED = {4: float4_e2m1, 8: int8, 16: bfloat16, 32: int32}
#: Kinds of elements by their code in DLPack.
_DLPACK_KINDS = {"0": "int", "1": "uint", "2": "float", "6": "bool"}


@replayable
def transpose(
    x: Any,
    flatten_axis: int = -1,
    dtype: DType | None = None,
    out: Any = None,
    device: str | Device | None = None,
    stream: int | None = None,
) -> Any:
    """The transpose of a matrix, (N, M) of (M, N), as a dense array of its own; bits are moved as they are.

    Of a tensor of another rank it is that of the matrix with `flatten_axis`: the dimensions along columns come first,
    as in the transposed codes of `dither.quantize`.

    Args:
        x: elements of 8, 16 or 32 bits of any type: NumPy, torch, or anything with DLPack or the CUDA array interface.
            With `dtype=dither.float4_e2m1` bytes of two codes of 4 bits, the even column in the low half:
            `dither.view(x, dither.float4_e2m1, (M, N))` has an odd number of columns. A ScaledTensor1x stands for its
            codes, (N, M) where they are transposed; its scales are no part of the result.
        flatten_axis: dimensions of `x` from this one on are columns, those before it rows; by default the last one.
        dtype: what elements are where `x` has bytes of codes.
        out: an array of the shape and data type of the result, in memory of its own, to be written; its rows need not
            be dense.
        device: where to run; by default where `x` is.
        stream: the stream of a GPU to run on.

    Returns an array of the library, and in the data type, of `x`, or `out`. FP4 is (N, (M + 1) // 2) bytes; the last
    half byte of an odd row is zero. The result has no gradient.

    On GPUs fastest where M and N are multiples of the elements in 32 bits, and rows begin at multiples of 4 bytes.
    Raises TypeError or ValueError for other elements, shapes that have no rows and columns, and an `out` that does not
    fit.
    """
    if isinstance(x, ScaledTensor2x):
        raise TypeError("argument 'x' is a ScaledTensor2x, expected one of its halves: x.rowwise or x.colwise")
    given = x
    if isinstance(x, ScaledTensor1x):
        if dtype is not None:
            raise ValueError(f"argument 'dtype' was given, expected none: codes are {x.format.element}")
        x, flatten_axis, flat = _codes(x, flatten_axis)
    else:
        flat = None
        x = x if dtype is None else view(x, dtype)
    source = _described("x", x)
    bits = _bits("x", source)
    if not source.shape:
        raise ValueError("argument 'x' has rank 0, expected rows")
    flat = flattened(source.shape, flatten_axis) if flat is None else flat
    m, n = flat.matrix
    x, source = _as_matrix(x, source, flat, bits)
    shape = flat.stored(True, bits)
    matrix = (n, (m + 1) // 2 if bits == 4 else m)
    if out is None:
        result = _empty(x, source, shape)
        written = _described("out", reshape(result, matrix, "out") if shape != matrix else result)
        if isinstance(result, DeviceArray):
            result = result.reshaped(shape)
    else:
        result, written = out, _checked(out, source, shape, matrix, bits)
    where = chosen_device(device, source.device)
    if m and n:
        _run(_moved(source, (m, n), bits), _moved(written, (n, m), bits), bits, where, stream)
    if describes(where):
        _describe(where, given, result, flat, bits)
    return result


@replayable
def cast_transpose(x: Any, format: Format | str = FP8_TENSOR_E4M3, **options: Any) -> ScaledTensor2x:
    """`x` in a format, and its transpose in it, from one read: `dither.quantize(x, format, layout="both")`.

    Of FP8 and INT8 of a whole tensor there is one scale, and the codes (M, N) of `rowwise` and (N, M) of `colwise` are
    each other's transposes, as of Transformer Engine's cast_transpose; with `encode_scale=` (delayed scaling) `x` is
    read once in all, otherwise once more for its amax. Other formats have scales of their own along columns, and so
    other codes.

    Args:
        x: float32, bfloat16 or float16 of any rank.
        format: a format whose codes along columns are stored transposed, or its name.
        options: those of `dither.quantize`, but `layout`: `out=` is an earlier result, for instance.

    Raises ValueError for formats whose codes along columns keep the orientation of `x`.
    """
    fmt = get_format(format)
    if "layout" in options:
        raise TypeError("argument 'layout' was given, expected none: cast_transpose has codes along rows and columns")
    if not fmt.transposed:
        raise ValueError(
            f"format {fmt.name} keeps codes along columns as (M, N), expected one that stores them transposed, such as "
            f"fp8_tensor_e4m3 or dither.{fmt.name.upper()}.with_(transposed=True); "
            "dither.quantize(x, format, layout='both') gives the codes as they are"
        )
    result: ScaledTensor2x = quantize(x, fmt, layout="both", **options)
    return result


def _describe(where: Recording, x: Any, result: Any, flat: Flattened, bits: int) -> None:
    """Says how the tensors of a call may be split: `x` is what it was given, `flat` how that is a matrix."""
    quantized = isinstance(x, ScaledTensor1x)
    shape, axis = (x.shape, x.flatten_axis % len(x.shape)) if quantized else (flat.shape, flat.axis)
    split = Describing(shape[:axis], shape[axis:])
    if not split.rows:
        return
    if bits == 4:
        split.multiple("row", 2)
        split.multiple("col", 2)
    stored = split.rows, split.cols
    if quantized:
        split.quantized(x)
        stored = stored[::-1] if x.is_transposed else stored
    else:
        split.label(x.base if isinstance(x, View) else x, (*stored[0], *stored[1]))
    seen = Flattened(shape, axis).stored(not (quantized and x.is_transposed), bits)
    if len(seen) == len(shape):
        split.label(result, (*stored[1], *stored[0]), seen)
    else:  # a matrix of codes
        split.keep(*split.rows, *split.cols)
        split.label(result, (None, None))
    split.say(where)


def _codes(x: ScaledTensor1x, axis: int) -> tuple[View, int, Flattened]:
    """The codes of a quantized tensor as a matrix, and how they are to be flattened."""
    if axis != -1:
        raise ValueError(f"flatten_axis is {axis}, expected -1: a quantized tensor has its own, {x.flatten_axis}")
    part = flatten_part(x, "x")
    check_arrays(part, "x")
    shape = data_shape(part.shape, part.format, part.is_colwise)
    return view(part.data, part.format.element, shape), -1, Flattened(shape, 1)


def _described(name: str, x: Any) -> Array:
    array = describe_argument(name, x)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected an array")
    return array


def _kind(array: Array) -> str:
    """The name of the data type of an array, the same for every library."""
    if array.dtype is not None:
        return array.dtype.name
    found = re.fullmatch(r"dlpack \((\d+), (\d+), 1\)", array.storage)
    if found is None:
        return array.storage
    kind = _DLPACK_KINDS.get(found[1], "unknown")
    return kind if kind == "bool" else f"{kind}{found[2]}"


def _bits(name: str, array: Array) -> int:
    """The size of an element. Raises TypeError for what is not moved."""
    kind = _kind(array)
    size = re.match(r"(?:u?int|float)(\d+)", kind)
    if array.dtype is not None:
        bits = array.dtype.bits
    elif kind == "bool":
        bits = 8
    else:
        # Of types that are none of ours, smaller ones than bytes lie in memory in one way or another.
        bits = int(size[1]) if size and int(size[1]) >= 8 else 0
    if bits not in MOVED:
        raise TypeError(f"argument '{name}' has data type {kind}, expected elements of 4, 8, 16 or 32 bits")
    return bits


def _as_matrix(x: Any, source: Array, flat: Flattened, bits: int) -> tuple[Any, Array]:
    """What results are to be like, and the description of `x` as a matrix, of rows whose elements follow each other."""
    base, kind = (x.base, source.dtype) if isinstance(x, View) else (x, None)
    m, n = flat.matrix
    if not flat.plain:
        if bits == 4 and source.shape[-1] % 2 and math.prod(source.shape[flat.axis : -1]) != 1:
            found = f"argument 'x' has rows of {source.shape[-1]} codes of 4 bits in shape {source.shape}"
            raise ValueError(f"{found}, expected an even number: a row of the matrix has several")
        base = reshape(base, (m, (n + 1) // 2 if bits == 4 else n), "x")
        source = _described("x", base if kind is None else view(base, kind, (m, n) if bits == 4 else None))
    if bits != 4:
        moved = dataclasses.replace(source, dtype=MOVED[bits])
        copy, array = contiguous_rows(base, moved)
        if array is not moved:
            source = dataclasses.replace(source, pointer=array.pointer, strides=array.strides, owner=copy)
    return base, source


def _empty(x: Any, source: Array, shape: tuple[int, ...]) -> Any:
    """An uninitialised array of the library and data type of `x`, whose description is `source`.

    `shape` counts bytes of codes of 4 bits.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return torch.empty(shape, dtype=x.dtype, device=x.device)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        return aligned(shape, x.dtype)
    dtype, kind = source.dtype, _kind(source)
    if source.device != "cpu":
        where = get_device(source.device)
        if isinstance(where, Recording):
            return where.empty(dtype if dtype is not float4_e2m1 else None, shape, source.storage)
        if dtype is float4_e2m1 or kind == "uint8":
            # Memory of a GPU is bytes where it has no other meaning.
            return DeviceArray(where, float4_e2m1, shape)
        if dtype is None:
            raise TypeError(f"argument 'x' has data type {kind} on {source.device}, expected 'out' of the same type")
        return empty_like(x, source, shape, dtype)
    return aligned(shape, foreign_type(kind) if dtype is None else numpy_type(dtype))


def _checked(out: Any, source: Array, shape: tuple[int, ...], matrix: tuple[int, int], bits: int) -> Array:
    """The description of `out` as a matrix, checked: it is to be written."""
    array = _described("out", out)
    found = array.shape
    if array.dtype is float4_e2m1:
        found = (*found[:-1], (found[-1] + 1) // 2)
    fits = {_kind(source), "uint8"} if bits == 4 else {_kind(source)}
    if _kind(array) not in fits:
        expected = f"{float4_e2m1} or uint8" if bits == 4 else _kind(source)
        raise TypeError(f"argument 'out' has data type {_kind(array)}, expected {expected}, as 'x' has")
    if found != shape:
        raise ValueError(f"argument 'out' has shape {found}, expected {shape}")
    if array.readonly:
        raise ValueError("argument 'out' is read-only, expected memory that can be written")
    if 0 not in shape and shape[-1] > 1 and array.strides[-1] != 1:
        raise ValueError(f"argument 'out' has stride {array.strides[-1]} along rows, expected 1")
    if 0 not in shape:
        check_apart([("argument 'out'", _in_bits(array, bits))], {"x": _in_bits(source, bits)})
    if len(shape) == 2 or 0 in shape:
        return array
    dense, step = [], 1
    for extent in reversed(array.shape):
        dense.append(step)
        step *= extent
    strides = tuple(reversed(dense))
    if any(extent > 1 and a != b for extent, a, b in zip(array.shape, array.strides, strides, strict=True)):
        raise ValueError(f"argument 'out' has strides {array.strides}, expected a dense array")
    rows, cols = matrix
    cols = 2 * cols if array.dtype is float4_e2m1 else cols
    return dataclasses.replace(array, shape=(rows, cols), strides=(cols, 1))


def _in_bits(array: Array, bits: int) -> Array:
    """An array whose elements are known by their size alone; bytes of codes stay what they are."""
    return array if bits == 4 else dataclasses.replace(array, dtype=MOVED[bits])


def _moved(array: Array, shape: tuple[int, int], bits: int) -> Array:
    """A matrix as kernels take it: elements are bits."""
    rows, cols = shape
    step = array.strides[0] if rows > 1 else cols + cols % 2 * (bits == 4)
    if bits == 4 and array.dtype is not float4_e2m1 and rows > 1:
        step *= 2
    return dataclasses.replace(array, dtype=MOVED[bits], shape=shape, strides=(step, 1))


def _run(source: Array, result: Array, bits: int, where: Device, stream: int | None) -> None:
    """Writes the transpose; both are matrices of elements of so many bits."""
    m, n = source.shape
    each = 32 // bits
    # A CPU has lines of the result together whatever their elements are.
    words = not (where.is_cpu or m % each or n % each)
    for array in (source, result):
        words = words and not (array.pointer % 4 or array.strides[0] % each)
    tile = transpose_tile(bits, words, where.is_cpu)
    extents = {"ROWS": tile.rows, "COLS": tile.cols}
    # A row of the result is as long as the batch: nothing is compiled for its length.
    result = dataclasses.replace(result, shapes="dynamic")
    if not words:
        kernels.transpose_kernel.launch(tile.grid(m, n), source, result, **extents, device=where, stream=stream)
        return
    x, y = _in_words(source, each), _in_words(result, each)
    grid = tile.grid(m // each, n // each)
    kernels.transpose_words_kernel.launch(grid, x, y, BITS=bits, **extents, device=where, stream=stream)


def _in_words(array: Array, each: int) -> Array:
    """A matrix as words of 32 bits that hold so many elements of a row: (rows / each, each, columns / each)."""
    (rows, cols), step = array.shape, array.strides[0] // each
    return dataclasses.replace(
        array, dtype=int32, shape=(rows // each, each, cols // each), strides=(each * step, step, 1)
    )
