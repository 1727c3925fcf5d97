"""Tensors of other libraries, as the compiler and the launch path see them.

NumPy (with ml_dtypes), torch, anything with `__cuda_array_interface__`, `__dlpack__` or the buffer
protocol. Nothing is copied, and no framework is imported that the caller has not.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import operator
import sys
import weakref
from collections.abc import Sequence
from typing import Any

from . import torch_tensors, types
from .data_classes import dataclass
from .extents import integer, number_of
from .formats import Format
from .scalars import number_kind
from .types import DType, TensorType

#: Names that NumPy, ml_dtypes and torch give to the types of `dither.types`.
FOREIGN = {
    "float32": types.float32,
    "bfloat16": types.bfloat16,
    "float16": types.float16,
    "float8_e4m3fn": types.float8_e4m3,
    "float8_e5m2": types.float8_e5m2,
    "float8_e8m0fnu": types.e8m0,
    "float6_e2m3fn": types.float6_e2m3,
    "float6_e3m2fn": types.float6_e3m2,
    "float4_e2m1fn_x2": types.float4_e2m1,
    "int8": types.int8,
    "int32": types.int32,
    "int64": types.int64,
}
#: The inverse.
STORAGE = {dtype: name for name, dtype in FOREIGN.items()}
#: (code, bits) of the DLPack standard.
_DLPACK = {
    (2, 32): types.float32,
    (4, 16): types.bfloat16,
    (2, 16): types.float16,
    (0, 8): types.int8,
    (0, 32): types.int32,
    (0, 64): types.int64,
    (10, 8): types.float8_e4m3,
    (12, 8): types.float8_e5m2,
    (14, 8): types.e8m0,
}
_DLPACK_FP4 = (17, 4)
#: What specialization distinguishes of pointers and strides, in bytes.
_ALIGNMENTS = (32, 16)
#: Which extents of a tensor its code knows: all but the first, all (and the strides), or none.
SHAPES = ("trailing", "static", "dynamic")
#: Data types of tensors, in the order of DataType (include/dither/Runtime/Launch/TensorRef.h).
TENSOR_TYPES = (
    types.float32,
    types.bfloat16,
    types.float16,
    types.float8_e4m3,
    types.float8_e5m2,
    types.float6_e2m3,
    types.float6_e3m2,
    types.float4_e2m1,
    types.int8,
    types.e8m0,
    types.int32,
    types.int64,
)


def foreign_name(dtype: Any) -> str:
    """What frameworks call a data type, of a class of theirs, a description, or that name."""
    return str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype)).removeprefix("torch.")


@dataclass(frozen=True, eq=False)
class Array:
    """A tensor in memory.

    `dtype` is None for storage without a meaning here (uint8), which `dither.view` gives one. Shape and
    strides count elements; `owner` keeps the memory alive. `shapes` is the class of specialization that a view
    asks for; None leaves it to the kernel.
    """

    pointer: int
    dtype: DType | None
    storage: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    readonly: bool
    owner: Any
    shapes: str | None = None

    def __reduce__(self) -> Any:
        raise TypeError("found the address of an array, which means nothing elsewhere: pickle or copy the array itself")

    def in_bytes(self, elements: int) -> int:
        """So many elements in bytes, begun ones included."""
        return -(-elements * (self.dtype.bits if self.dtype else 8) // 8)

    @property
    def now(self) -> Array:
        """The array, of which extents that may be others are the numbers that they are."""
        shape, strides = tuple(map(number_of, self.shape)), tuple(map(number_of, self.strides))
        return dataclasses.replace(self, pointer=number_of(self.pointer), shape=shape, strides=strides)

    @property
    def row_bytes(self) -> int:
        """Bytes of the elements of a row, which follow each other; of the only element where there are no rows."""
        return self.in_bytes(self.shape[-1] if self.shape else 1)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape[:-1]) * self.row_bytes

    @property
    def span(self) -> tuple[int, int]:
        """The addresses of the first byte of any element, and past the last."""
        if 0 in self.shape:
            return self.pointer, self.pointer
        steps = [self.in_bytes((n - 1) * stride) for n, stride in zip(self.shape[:-1], self.strides, strict=False)]
        begin = self.pointer + sum(step for step in steps if step < 0)
        return begin, self.pointer + sum(step for step in steps if step > 0) + self.row_bytes

    @property
    def extent(self) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
        """Where the elements are: address, place of the data type in TENSOR_TYPES or its end, shape, strides."""
        kind = len(TENSOR_TYPES) if self.dtype is None else TENSOR_TYPES.index(self.dtype)
        return self.pointer, kind, self.shape, self.strides

    def type(self, name: str = "argument", shapes: str = "trailing", aligned: bool = True) -> TensorType:
        """The type that a kernel is specialized to: extents as `shapes` says, alignment (that of an element where it is
        not to be `aligned`), whether rows are dense."""
        dtype = self.dtype
        if dtype is None:
            found = f"argument '{name}' has data type {self.storage}"
            if self.storage in ("uint8", "int8"):
                raise TypeError(f"{found}, expected a type of codes: dither.view(x, dtype) gives bytes their meaning")
            hint = ": of a mask pass x.view('int8'), where m.to(dl.float32) != 0" if self.storage == "bool" else ""
            raise TypeError(f"{found}, expected float32, bfloat16, float16, int32, int64 or a type of codes{hint}")
        rank = len(self.shape)
        if rank > 4:
            raise ValueError(f"argument '{name}' has rank {rank}, expected at most 4")
        if rank and self.strides[-1] != 1 and self.shape[-1] > 1 and 0 not in self.shape:
            raise ValueError(
                f"argument '{name}' has stride {self.strides[-1]} along its last dimension, expected 1: "
                "make it contiguous first"
            )
        size = max(dtype.bits // 8, 1)
        if self.pointer % size:
            raise ValueError(
                f"argument '{name}' is at address {self.pointer:#x}, expected a multiple of {size}, the size of {dtype}"
            )
        extents, strides = self._known(dtype, self.shapes or shapes)
        if not aligned:
            return TensorType(dtype, extents, strides, size, size)
        # A single element is never part of a wider access.
        align = _alignment([self.pointer], size) if self.shape else size
        steps = [stride * dtype.bits // 8 for stride in self.strides[:-1]]
        return TensorType(dtype, extents, strides, align, _alignment(steps, size))

    def _known(self, dtype: DType, shapes: str) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        """Extents and strides, None for what code does not know."""
        rank = len(self.shape)
        unknown = (None,) * (rank - 1) + (1,) * min(rank, 1)
        if rank == 0:
            return (), ()
        if shapes == "dynamic":
            return (None,) * rank, unknown
        trailing = tuple(map(operator.index, self.shape[1:]))
        extents = (operator.index(self.shape[0]) if shapes == "static" else None, *trailing)
        if 0 in trailing:  # no stride means anything
            return extents, unknown
        if 0 in self.shape or self.strides == row_major(self.shape, dtype):
            return extents, row_major((1, *trailing), dtype)
        return extents, ((*map(operator.index, self.strides[:-1]), 1) if shapes == "static" else unknown)


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory that is not there yet: what an array is while a call is recorded (recording.py).

    `array` is dense and describes it; FP4 lies in bytes, two codes to one, as frameworks have it.
    """

    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Its rank."""
        return len(self.array.shape)

    def reshape(self, shape: tuple[int, ...]) -> Buffer:
        """The same memory in another shape of as many elements."""
        return self.view(self.array.dtype, self.array.storage, shape)

    def view(self, dtype: DType | None, storage: str, shape: tuple[int, ...]) -> Buffer:
        """The same memory as elements of another type and shape."""
        strides = row_major(shape, dtype or types.float8_e4m3)
        return Buffer(dataclasses.replace(self.array, dtype=dtype, storage=storage, shape=shape, strides=strides))

    def __getitem__(self, key: tuple[Any, slice]) -> Array:
        """`x[..., first:last]`: some of the last dimension."""
        _, chosen = key
        first, last, _ = chosen.indices(self.shape[-1])
        shape = (*self.shape[:-1], last - first)
        return dataclasses.replace(self.array, pointer=self.array.pointer + self.array.in_bytes(first), shape=shape)


def row_major(shape: tuple[int, ...], dtype: DType) -> tuple[int, ...]:
    """Strides in elements of a dense tensor; rows of FP4 are padded to whole bytes."""
    step = 1
    strides: list[int] = []
    for dim in range(len(shape) - 1, -1, -1):
        strides.append(step)
        step *= shape[dim]
        if dim == len(shape) - 1 and dtype.bits == 4:
            step += step % 2
    return tuple(reversed(strides))


def _alignment(values: Sequence[int], size: int) -> int:
    return next((a for a in _ALIGNMENTS if all(value % a == 0 for value in values)), size)


@dataclass(frozen=True, eq=False)
class View:
    """See `view`."""

    base: Any
    dtype: DType | None
    shape: tuple[int, ...] | None
    shapes: str | None


def view(
    x: Any, dtype: DType | None = None, shape: tuple[int, ...] | None = None, *, shapes: str | None = None
) -> View:
    """`x` with its bytes read as `dtype`: an argument for kernels.

    Codes and scales often lie in uint8. For float4_e2m1, two to a byte, the last extent is twice that
    of `x`; `shape` says so where it is odd. `shapes` is the class that this argument is specialized by, whatever
    the kernel and the launch say: "trailing", "static" or "dynamic" (see `dither.jit`).
    """
    if not isinstance(dtype, DType) and (dtype is not None or shapes is None):
        raise TypeError(f"dtype is {dtype!r}, expected a dither data type")
    extents = None if shape is None else _check_extents(shape)
    return View(x, dtype, extents, None if shapes is None else check_shapes(shapes))


def _check_extents(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(x if torch_tensors.is_symbol(x) else integer(x) for x in shape)
    except TypeError:
        raise TypeError(f"shape is {shape!r}, expected a tuple of integers") from None


def check_shapes(shapes: Any) -> str:
    """A class of specialization, checked."""
    if not isinstance(shapes, str) or shapes not in SHAPES:
        instead = "; those of parameters are for dither.jit" if isinstance(shapes, dict) else ""
        raise ValueError(f"shapes is {shapes!r}, expected {', '.join(SHAPES)}{instead}")
    return shapes


def describe(x: Any) -> Array | None:
    """The array behind `x`; None where `x` is not one."""
    if isinstance(x, Array):
        return x
    if isinstance(x, View):
        return _reinterpret(x)
    if isinstance(x, Buffer):
        return x.array
    array = _describe_foreign(x)
    if array is not None and array.pointer == 0 and 0 not in array.shape:
        raise ValueError(
            f"found a tensor of shape {array.shape} without memory (its address is 0), expected one that has some: "
            "its storage was freed, or it only stands for a tensor while code is transformed"
        )
    return array


def describe_argument(name: str, x: Any) -> Array | None:
    """As `describe`; errors name the argument."""
    try:
        return describe(x)
    except (TypeError, ValueError) as error:
        raise type(error)(f"argument '{name}': {error}") from error.__cause__


def _describe_foreign(x: Any) -> Array | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        return _from_numpy(x)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return _from_torch(x)
    if hasattr(x, "__cuda_array_interface__"):
        return _from_interface(x)
    if hasattr(x, "__dlpack__"):
        return _from_dlpack(x)
    if isinstance(x, (bytes, bytearray, memoryview)):
        return _from_buffer(x)
    return None


def _from_numpy(x: Any) -> Array:
    if _is_masked(type(x)):
        raise TypeError("found a masked array, expected a plain one: x.filled(value) makes one")
    strides = _in_elements(x.strides, x.dtype)
    name = _numpy_name(x.dtype)
    dtype = FOREIGN.get(name)
    if dtype is not None and not x.dtype.isnative:
        raise TypeError(f"found {name} with foreign byte order, expected native")
    return Array(x.ctypes.data, dtype, name, x.shape, strides, "cpu", not x.flags.writeable, x)


@functools.cache
def _numpy_name(kind: Any) -> str:
    """NumPy makes the name of a type anew each time, which takes longer than the rest of a description."""
    name: str = kind.name
    return name


def _in_elements(strides: tuple[int, ...], kind: Any) -> tuple[int, ...]:
    size = max(kind.itemsize, 1)
    if any(stride % size for stride in strides):
        raise ValueError(f"strides {strides} are not multiples of {size}, the size of {kind.name}")
    return tuple(stride // size for stride in strides)


def _is_masked(kind: type) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and issubclass(kind, masked.MaskedArray)


def _from_torch(x: Any) -> Array:
    torch_tensors.check(x)
    name = str(x.dtype).removeprefix("torch.")
    device = "cpu" if x.device.type == "cpu" else f"{x.device.type}:{x.device.index or 0}"
    shape, strides = tuple(x.shape), tuple(x.stride())
    dtype = FOREIGN.get(name)
    array = Array(torch_tensors.data_pointer(x), dtype, name, shape, strides, device, False, x)
    if dtype is types.float4_e2m1:
        return _unpack(array, dtype, None)
    return array


def _from_interface(x: Any) -> Array:
    import numpy

    about = x.__cuda_array_interface__
    if about.get("mask") is not None:
        raise TypeError("found an array with a mask, expected a plain one")
    pointer, readonly = about["data"]
    storage = numpy.dtype(about["typestr"])
    shape = tuple(about["shape"])
    dtype = FOREIGN.get(storage.name)
    steps = about.get("strides")
    if steps is None:
        strides = row_major(shape, dtype or types.float8_e4m3)
    else:
        strides = _in_elements(steps, storage)
    ordinal = getattr(getattr(x, "device", None), "id", 0)
    return Array(pointer, dtype, storage.name, shape, strides, f"cuda:{ordinal}", readonly, x)


def _from_dlpack(x: Any) -> Array:
    from . import _dither

    _check_jax(x)
    try:
        kind, ordinal = x.__dlpack_device__()
    except Exception as error:
        raise _without_memory(x, error) from error
    devices = {1: "cpu", 2: f"cuda:{ordinal}", 3: "cpu", 13: f"cuda:{ordinal}"}
    if kind not in devices:
        raise TypeError(f"found a tensor on DLPack device type {int(kind)}, expected a CPU or CUDA one")
    try:
        try:
            capsule = x.__dlpack__(max_version=(1, 0), copy=False)
        except TypeError:
            capsule = x.__dlpack__()
    except Exception as error:
        raise _without_memory(x, error) from error
    pointer, (code, bits, lanes), shape, strides, readonly, owner = _dither.from_dlpack(capsule)
    if (code, bits) == _DLPACK_FP4:
        return _fp4_of_dlpack(pointer, lanes, shape, strides, devices[kind], readonly, owner)
    dtype = _DLPACK.get((code, bits)) if lanes == 1 else None
    storage = f"dlpack ({code}, {bits}, {lanes})" if dtype is None else dtype.name
    if strides is None:
        strides = row_major(shape, dtype or types.float8_e4m3)
    # JAX's arrays do not change; its capsules, before version 1.0 of DLPack, cannot say so.
    jax = sys.modules.get("jax")
    readonly = readonly or (jax is not None and isinstance(x, jax.Array))
    return Array(pointer, dtype, storage, shape, strides, devices[kind], readonly, owner)


def _fp4_of_dlpack(
    pointer: int,
    lanes: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    device: str,
    readonly: bool,
    owner: Any,
) -> Array:
    """Codes of 4 bits, of which an element is a pair (as torch has them) or one (as JAX has them)."""
    if strides is None:
        strides = row_major(shape, types.float8_e4m3)
    if lanes == 2:
        bytes_ = Array(pointer, None, "uint8", shape, strides, device, readonly, owner)
        return _unpack(bytes_, types.float4_e2m1, None)
    if lanes != 1:
        raise TypeError(f"found FP4 of DLPack in {lanes} lanes, expected 1 or 2")
    lines = [stride for stride, extent in zip(strides[:-1], shape[:-1], strict=True) if extent > 1]
    if math.prod(shape) > 1 and (strides[-1] != 1 or any(stride % 2 for stride in lines)):
        raise ValueError(f"found FP4 of DLPack with strides {strides}, expected rows of whole bytes")
    return Array(pointer, types.float4_e2m1, "float4_e2m1fn", shape, strides, device, readonly, owner)


def _check_jax(x: Any) -> None:
    """Arrays of JAX that stand for none."""
    jax = sys.modules.get("jax")
    if jax is None:
        return
    if isinstance(x, jax.core.Tracer):
        raise TypeError(
            "found a value that JAX traces, which has no data: expected an array, so a call outside jax.jit"
        )
    if isinstance(x, jax.Array) and x.is_deleted():
        raise ValueError("found an array of JAX that was deleted or donated, expected one with data")


def _without_memory(x: Any, error: Exception) -> TypeError:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return TypeError(f"found a {type(x).__name__} that does not give its memory ({why}), expected an array with data")


def _from_buffer(x: Any) -> Array:
    import numpy

    return _from_numpy(numpy.frombuffer(x, dtype=numpy.uint8))


def hold(x: Any) -> Any:
    """What keeps the memory of an argument, whatever becomes of the object `x`; of a tensor of torch, another one."""
    if isinstance(x, (View, Array)):
        return hold(x.base if isinstance(x, View) else x.owner)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        while isinstance(x.base, numpy.ndarray):
            x = x.base
        # NumPy resizes no array that something refers to weakly.
        return x, weakref.ref(x)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return x.detach()
    return x


def source_of(kind: type) -> tuple[int, Any]:
    """How objects of a type are read, and the capsule of DLPack's exchange API where that is by it.

    The number is a Source of python/src/LaunchTensor.cpp, which asks once for each type.
    """
    constant, of_numpy, of_torch, of_view, of_array, foreign, integer, real, truth, own = range(10)
    number = number_kind(kind)
    if number is not None:
        return {"integer": integer, "real": real, "truth": truth, "own": own}[number], None
    if kind is Array:
        return of_array, None
    if kind is View:
        return of_view, None
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return (foreign if _is_masked(kind) else of_numpy), None
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        api = getattr(kind, "__dlpack_c_exchange_api__", None)
        return (of_torch, api) if torch_tensors.is_memory(kind) else (foreign, None)
    plain = (type(None), bool, str, tuple, DType, Format, enum.Enum)
    return (constant if issubclass(kind, plain) else foreign), None


def numpy_type(descriptor: Any) -> int:
    """The place of a NumPy data type in TENSOR_TYPES, after its end for bytes, -1 for others."""
    if not descriptor.isnative:
        return -1
    if descriptor.name in ("uint8", "int8"):
        return len(TENSOR_TYPES)
    dtype = FOREIGN.get(descriptor.name)
    return TENSOR_TYPES.index(dtype) if dtype in TENSOR_TYPES and dtype.bits >= 8 else -1


def _reinterpret(x: View) -> Array:
    array = describe(x.base)
    if array is None:
        wanted = f" as {x.dtype}" if x.dtype else ""
        raise TypeError(f"found {type(x.base).__name__}, expected an array to view{wanted}")
    if x.shapes is not None:
        array = dataclasses.replace(array, shapes=x.shapes)
    if x.dtype is None:
        if x.shape not in (None, array.shape):
            raise ValueError(f"found shape {array.shape}, expected {x.shape}")
        return array
    if x.dtype.bits == 4 and array.dtype is x.dtype:
        shape = array.shape if x.shape is None else x.shape
        # Codes that came as pairs may have one too many.
        if shape[:-1] != array.shape[:-1] or (shape[-1] + 1) // 2 != (array.shape[-1] + 1) // 2:
            raise ValueError(f"found shape {array.shape}, expected {shape}")
        return dataclasses.replace(array, shape=shape)
    if x.dtype.bits == 4:
        return _unpack(array, x.dtype, x.shape)
    have = array.dtype.bits if array.dtype else {"uint8": 8, "int8": 8, "bool": 8}.get(array.storage)
    if have != x.dtype.bits:
        raise TypeError(f"found {array.storage}, expected {x.dtype.bits} bits for a view as {x.dtype}")
    if x.shape is not None and x.shape != array.shape:
        raise ValueError(f"found shape {array.shape}, expected {x.shape}")
    return dataclasses.replace(array, dtype=x.dtype)


def _unpack(array: Array, dtype: DType, shape: tuple[int, ...] | None) -> Array:
    """Bytes as pairs of FP4 codes along the last dimension."""
    if (array.dtype.bits if array.dtype else {"uint8": 8, "int8": 8}.get(array.storage)) not in (4, 8):
        raise TypeError(f"found {array.storage}, expected bytes for a view as {dtype}")
    if not array.shape:
        raise ValueError("found a tensor of rank 0, expected a last dimension to hold pairs of codes")
    pairs = array.shape[-1]
    shape = (*array.shape[:-1], 2 * pairs) if shape is None else shape
    if shape[:-1] != array.shape[:-1] or (shape[-1] + 1) // 2 != pairs:
        raise ValueError(f"found {pairs} bytes a row in shape {array.shape}, which cannot hold shape {shape}")
    if array.strides[-1] != 1 and pairs > 1 and 0 not in array.shape:
        raise ValueError(f"found stride {array.strides[-1]} along the last dimension, expected 1")
    return dataclasses.replace(array, dtype=dtype, shape=shape, strides=(*(2 * s for s in array.strides[:-1]), 1))
