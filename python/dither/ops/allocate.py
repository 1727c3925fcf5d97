"""Outputs of operators: arrays of the library, and on the device, that the input is of."""

from __future__ import annotations

import functools
import math
import struct
import sys
from typing import Any

from .. import types
from ..arrays import FOREIGN, Array, Buffer, describe, describe_argument, foreign_name
from ..devices import Device, get_device
from ..recording import Recording
from ..types import DType

_NAMES = {
    types.float8_e4m3: "float8_e4m3fn",
    types.float8_e5m2: "float8_e5m2",
    types.e8m0: "float8_e8m0fnu",
    types.float6_e2m3: "float6_e2m3fn",
    types.float6_e3m2: "float6_e3m2fn",
}
#: What torch has no type for lies in its uint8.
_NOT_OF_TORCH = (types.float4_e2m1, types.float6_e2m3, types.float6_e3m2)


class DeviceArray:
    """Memory of a GPU that no framework owns; others read it through `__cuda_array_interface__`."""

    def __init__(self, device: Device, dtype: DType, shape: tuple[int, ...]) -> None:
        size = max(dtype.bits // 8, 1)
        count = 1
        for extent in shape:
            count *= extent
        self._device = device
        self._pointer = device.allocate(count * size)
        self.shape = shape
        self.dtype = dtype
        kind = "f" if dtype in (types.float32, types.float16) else "i" if dtype in (types.int8, types.int32) else "u"
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": f"{'<' if size > 1 else '|'}{kind}{size}",
            "data": (self._pointer, False),
            "version": 3,
        }

    def reshaped(self, shape: tuple[int, ...]) -> DeviceArray:
        """Itself, which nobody else has yet, in another shape of as many elements."""
        self.shape = shape
        self.__cuda_array_interface__ |= {"shape": shape}
        return self

    def __reduce__(self) -> Any:
        found = f"found memory of {self._device.name} that no framework owns"
        raise TypeError(f"{found}, which is neither pickled nor copied: quantize a tensor of torch")

    def __del__(self) -> None:
        if getattr(self, "_pointer", 0):
            self._device.release(self._pointer)


def empty_like(x: Any, array: Array, shape: tuple[int, ...], dtype: DType) -> Any:
    """An uninitialised array beside `x` (whose description is `array`). FP4 lies in uint8, two codes to a byte, and
    what torch has no type for in uint8, too."""
    if dtype.bits == 4:
        shape = (*shape[:-1], (shape[-1] + 1) // 2)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        name = "uint8" if dtype in _NOT_OF_TORCH else _NAMES.get(dtype, dtype.name)
        return torch.empty(shape, dtype=getattr(torch, name), device=x.device)
    if array.device != "cpu":
        return on_device(get_device(array.device), dtype, shape)
    return aligned(shape, numpy_type(dtype))


def on_device(device: Device, dtype: DType, shape: tuple[int, ...]) -> DeviceArray | Buffer:
    """An uninitialised array that no framework owns; `shape` counts bytes of FP4."""
    if isinstance(device, Recording):
        return device.empty(None if dtype.bits == 4 else dtype, shape)
    return DeviceArray(device, dtype, shape)


def numpy_type(dtype: DType) -> Any:
    """NumPy's type for elements of memory; FP4 lies in uint8."""
    return foreign_type("uint8" if dtype.bits == 4 else _NAMES.get(dtype, dtype.name))


@functools.cache
def foreign_type(name: str) -> Any:
    """NumPy's type of this name, or that of ml_dtypes."""
    import ml_dtypes
    import numpy

    return numpy.dtype(getattr(ml_dtypes, name, name))


def aligned(shape: tuple[int, ...], kind: Any) -> Any:
    """An uninitialised NumPy array that starts at a multiple of 64 bytes.

    What malloc gives does so by chance, and kernels are specialized by alignment.
    """
    import numpy

    nbytes = math.prod(shape) * kind.itemsize
    memory = numpy.empty(nbytes + 64, numpy.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + nbytes].view(kind).reshape(shape)


def filled(x: Any, array: Array, shape: tuple[int, ...], value: float = 0.0, dtype: DType = types.float32) -> Any:
    """An array of one number beside `x`, zero where it is not of float32."""
    out = empty_like(x, array, shape, dtype)
    fill(out, value, dtype)
    return out


def can_fill(x: Any) -> bool:
    """Whether `fill` takes an array that was written before. Memory of a GPU that no framework owns is filled at once,
    and not after what was launched on a stream."""
    return isinstance(x, Buffer) or hasattr(x, "fill_") or type(x).__module__ == "numpy"


def fill(out: Any, value: float = 0.0, dtype: DType = types.float32) -> None:
    """Fills what `empty_like` made with one number, zero where it is not of float32."""
    real = dtype is types.float32
    if isinstance(out, Buffer):
        from . import kernels

        kernels.fill(out, value)
    elif isinstance(out, DeviceArray):
        one = struct.pack("<f", value) if real else bytes(dtype.bits // 8)
        out._device.write(out._pointer, one * math.prod(out.shape))
    elif hasattr(out, "fill_"):
        (out if real else out.view(sys.modules["torch"].uint8)).fill_(value)
    else:
        (out if real else out.view("uint8"))[...] = value


def as_numpy(array: Array) -> Any:
    """A CPU array of 8 bits or more as NumPy's, of the same memory, whoever it is of."""
    import numpy

    dtype = array.dtype
    assert dtype is not None and array.device == "cpu"
    kind = numpy_type(dtype)

    interface = {
        "data": (array.pointer, array.readonly),
        "shape": array.shape,
        "strides": tuple(stride * kind.itemsize for stride in array.strides),
        "typestr": f"<u{kind.itemsize}",
        "version": 3,
    }
    # NumPy keeps the object alive that it got the memory from.
    memory = type("Memory", (), {"owner": array, "__array_interface__": interface})()
    return numpy.asarray(memory).view(kind)


def float_type(dtype: Any, name: str = "dtype") -> DType:
    """A data type that values are given in: one of dither, or of NumPy, ml_dtypes, torch or JAX, as a class of theirs
    or a description. Raises TypeError for others, with the `name` of the argument."""
    known = dtype
    if not isinstance(dtype, (DType, str)):
        known = FOREIGN.get(foreign_name(dtype))
    if not isinstance(known, DType) or not known.is_float:
        hint = ": an object, such as dither.float32 or numpy.float32, and no string" if isinstance(dtype, str) else ""
        raise TypeError(f"{name} is {dtype!r}, expected float32, bfloat16 or float16{hint}")
    return known


def floats(x: Any, name: str) -> Array:
    """The description of an operator's input: float32, bfloat16 or float16 of any rank."""
    array = describe_argument(name, x)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected an array")
    if array.dtype is None or not array.dtype.is_float:
        found = array.dtype or array.storage
        raise TypeError(f"argument '{name}' has data type {found}, expected float32, bfloat16 or float16")
    return array


def matrix(x: Any, name: str) -> Array:
    """The description of an operator's input: float32, bfloat16 or float16 of rank 2."""
    array = floats(x, name)
    if len(array.shape) != 2:
        raise ValueError(f"argument '{name}' has rank {len(array.shape)}, expected 2")
    return array


def contiguous_rows(x: Any, array: Array) -> tuple[Any, Array]:
    """`x` and its description, copied where the elements of a row do not follow each other."""
    if array.strides[-1] == 1 or array.shape[-1] <= 1 or 0 in array.shape:
        return x, array
    if hasattr(x, "contiguous"):
        x = x.contiguous()
    elif array.device == "cpu":
        import numpy

        x = numpy.ascontiguousarray(as_numpy(array))
    else:
        raise ValueError(f"found stride {array.strides[-1]} along rows, expected 1: make the tensor contiguous first")
    copied = describe(x)
    assert copied is not None
    return x, copied
