"""The bytes of arguments: contents by name and seed, guard bytes around each tensor and between its rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .program import Argument
from .reference import DTYPES, Tensor

#: Bytes that belong to nobody, before and after each tensor.
GUARD = 192

SPECIAL32 = np.array(
    [
        *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00400000, 0x00800000, 0x80800000),
        *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF),
        *(0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x477FE000, 0x477FF000, 0x33000000, 0x33000001),
        *(0x43E00000, 0x43E80000, 0x40C00000, 0x40E00000, 0x3B000000, 0x39800000, 0x7EFFFFFF, 0x42B17218),
    ],
    np.uint32,
)


@dataclasses.dataclass
class Memory:
    """A tensor's bytes (`whole`, guards included) and how they are to be read."""

    argument: Argument
    whole: np.ndarray
    begin: int
    strides: tuple[int, ...]

    def tensor(self, shapes: str, loose: np.ndarray) -> Tensor:
        """For the reference; `shapes` is the class of specialization, which says what code knows."""
        shape, dtype = self.argument.shape, DTYPES[self.argument.dtype]
        known = {"static": True, "dynamic": False}.get(shapes)
        each = tuple(d > 0 if known is None else known for d in range(len(shape)))
        return Tensor(self.whole, loose, self.begin, dtype, shape, self.strides, each)

    def array(self) -> Any:
        """For a launch: a NumPy array, or a view of one."""
        import dither
        import ml_dtypes

        stored: dict[str, Any] = {
            "float32": np.float32,
            "bfloat16": ml_dtypes.bfloat16,
            "float16": np.float16,
            "float8_e4m3": ml_dtypes.float8_e4m3fn,
            "float8_e5m2": ml_dtypes.float8_e5m2,
            "float6_e2m3": ml_dtypes.float6_e2m3fn,
            "float6_e3m2": ml_dtypes.float6_e3m2fn,
            "int8": np.int8,
            "e8m0": ml_dtypes.float8_e8m0fnu,
            "int32": np.int32,
            "int64": np.int64,
        }
        argument = self.argument
        shape, bits = argument.shape, DTYPES[argument.dtype].bits
        steps = tuple(s * bits // 8 for s in self.strides[:-1]) + (max(bits // 8, 1),) * min(len(shape), 1)
        if bits == 4:
            pairs = np.ndarray((*shape[:-1], (shape[-1] + 1) // 2), np.uint8, self.whole.data, self.begin, steps)
            return dither.view(pairs, dither.float4_e2m1, shape, shapes=argument.shapes)
        array = np.ndarray(shape, stored[argument.dtype], self.whole.data, self.begin, steps)
        return dither.view(array, shapes=argument.shapes) if argument.shapes else array


def _aligned(size: int) -> np.ndarray:
    """Bytes at a multiple of 64."""
    raw = np.empty(size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size]


def make_all(arguments: list[Argument]) -> list[Memory]:
    """The arguments before a launch."""
    made: dict[str, Memory] = {}
    for argument in arguments:
        made[argument.name] = _inside(argument, made[argument.of]) if argument.of else _make(argument)
    return list(made.values())


def copies(memories: list[Memory]) -> list[Memory]:
    """The same bytes elsewhere, with the same alignment; what shares memory still does."""
    wholes: dict[int, np.ndarray] = {}
    for m in memories:
        if id(m.whole) not in wholes:
            wholes[id(m.whole)] = other = _aligned(len(m.whole))
            other[:] = m.whole
    return [dataclasses.replace(m, whole=wholes[id(m.whole)]) for m in memories]


def _strides(argument: Argument) -> tuple[tuple[int, ...], int]:
    """Strides in elements, and the elements that the tensor spans with its gaps."""
    dtype, shape = DTYPES[argument.dtype], argument.shape
    strides: list[int] = []
    step = 1
    for d in reversed(range(len(shape))):
        strides.append(step)
        step *= shape[d]
        if d == len(shape) - 1:
            step += argument.gap
            if dtype.bits == 4:
                step += step % 2
    return tuple(reversed(strides)), max(step, 1)


def _inside(argument: Argument, owner: Memory) -> Memory:
    """An argument in the memory of another one of its type."""
    begin = owner.begin + argument.shift * max(DTYPES[argument.dtype].bits // 8, 1)
    return Memory(argument, owner.whole, begin, _strides(argument)[0])


def _make(argument: Argument) -> Memory:
    """An argument with memory of its own: at least one element, for a tensor of rank 0."""
    dtype, shape = DTYPES[argument.dtype], argument.shape
    strides, elements = _strides(argument)
    begin = GUARD + argument.shift * max(dtype.bits // 8, 1)
    size = (elements * dtype.bits + 7) // 8
    whole = _aligned(begin + size + GUARD)
    random = np.random.PCG64(argument.seed)
    words = random.random_raw(-(-len(whole) // 8))
    whole[:] = words.view(np.uint8)[: len(whole)]
    inside = whole[begin : begin + size]
    inside[:] = _contents(argument.fill, argument.dtype, elements, random).view(np.uint8)[:size]
    memory = Memory(argument, whole, begin, strides)
    if argument.gap and len(shape) == 2:  # bytes between rows are guards
        row = shape[-1] * dtype.bits // 8 + (shape[-1] * dtype.bits % 8 > 0)
        rows = np.ndarray((shape[0], strides[1] * dtype.bits // 8), np.uint8, whole.data, begin)
        rows[:, row:] = random.random_raw(rows[:, row:].size).astype(np.uint8).reshape(rows[:, row:].shape)
    return memory


def _contents(fill: str, dtype: str, count: int, random: Any) -> np.ndarray:
    """Elements by the name of what they are; FP4 packed."""
    words = random.random_raw(count)
    if dtype == "float4_e2m1":
        return (words[: (count + 1) // 2] >> 13).astype(np.uint8)
    if dtype in ("float6_e2m3", "float6_e3m2"):
        return (words >> 11).astype(np.uint8) & 0x3F
    if dtype == "int8":
        return (words >> 11).astype(np.uint8)
    if dtype in ("float8_e4m3", "float8_e5m2", "e8m0"):
        codes = (words >> 11).astype(np.uint8)
        if dtype == "e8m0" and fill != "special":
            return (117 + codes % 20).astype(np.uint8)
        if fill != "special":  # no NaN, no infinity
            codes = np.where(codes & 0x7F >= (0x7F if dtype == "float8_e4m3" else 0x7C), codes & 0x3F, codes)
        return codes.astype(np.uint8)
    if dtype == "int32":
        if fill == "special":
            edge = np.array([0, 1, -1, 2**31 - 1, -(2**31), 255, 256, 65535, 65536, 16777217, 33554435, 7], np.int32)
            return np.where(words & 1, edge[words % 12], (words >> 20).astype(np.uint32).view(np.int32))
        return ((words >> 30) % 2001).astype(np.int32) - 1000
    if dtype == "int64":
        if fill == "special":
            wide = np.array([0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1, 2**32 + 5, 2**24 + 1, 3, -7], np.int64)
            return np.where(words & 1, wide[words % 11], words.view(np.int64))
        return ((words >> 30) % 2001).astype(np.int64) - 1000
    floats = _floats(fill, words)
    if dtype == "float32":
        return floats
    from . import arithmetic

    encode = arithmetic.encode_bf16 if dtype == "bfloat16" else arithmetic.encode_f16
    codes = encode(floats)
    if fill == "special":  # NaNs with payloads and signs
        raw = (words >> 7).astype(np.uint16)
        codes = np.where(words % 5 == 0, raw, codes)
    return codes.astype(np.uint16)


def _floats(fill: str, words: np.ndarray) -> np.ndarray:
    bits = (words >> 17).astype(np.uint32)
    sign, mantissa = bits & 0x80000000, bits & 0x7FFFFF
    if fill == "zeros":
        return np.zeros(len(words), np.float32)
    if fill == "normal":  # magnitudes from 1/16 to 8
        exponent = 123 + (words & 7) % 7
        return (sign | exponent.astype(np.uint32) << 23 | mantissa).view(np.float32)
    if fill == "ties":  # few bits of mantissa: sums are exact, roundings are ties
        exponent = 121 + (words & 0xFF) % 12
        return (sign | exponent.astype(np.uint32) << 23 | mantissa & 0x780000).view(np.float32)
    if fill == "wide":  # every finite exponent
        exponent = (words & 0xFFFF) % 255
        return (sign | exponent.astype(np.uint32) << 23 | mantissa).view(np.float32)
    if fill == "positive":
        return np.abs(_floats("normal", words))
    if fill == "sparse":  # mostly zeros of both signs, whole blocks of them
        zero = (np.arange(len(words)) // 37 % 3 > 0) | (words & 3 > 0)
        return np.where(zero, (sign).view(np.float32), _floats("normal", words))
    assert fill == "special", fill
    chosen = SPECIAL32[(words % 32).astype(np.int64)].view(np.float32)
    return np.where(words & 64 > 0, chosen.view(np.uint32), _floats("wide", words).view(np.uint32)).view(np.float32)
