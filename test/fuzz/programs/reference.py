"""Runs the text of a kernel as plain Python: `dither` and `dl` are the names below, tiles are NumPy arrays.

Written from dialect/Quant/Semantics.md and the documentation of `dither.language`; shares no code with the compiler.
A NaN that arithmetic made has neither sign nor payload: tiles remember whether their NaNs are exact (`exact`), and
tensors which bytes of them may hold any NaN (`loose`).
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import arithmetic as m


class Undefined(Exception):
    """The program does something that Semantics.md leaves undefined."""


@dataclasses.dataclass(frozen=True)
class DType:
    """`numpy` is what elements of a tile are kept in: codes of narrow and 16-bit floats as unsigned integers."""

    name: str
    bits: int
    kind: str
    numpy: type

    def __repr__(self) -> str:
        return f"dl.{self.name}"


DTYPES = {
    name: DType(name, bits, kind, numpy)
    for name, bits, kind, numpy in (
        ("float32", 32, "float", np.float32),
        ("bfloat16", 16, "float", np.uint16),
        ("float16", 16, "float", np.uint16),
        ("float8_e4m3", 8, "narrow", np.uint8),
        ("float8_e5m2", 8, "narrow", np.uint8),
        ("float6_e2m3", 8, "narrow", np.uint8),
        ("float6_e3m2", 8, "narrow", np.uint8),
        ("float4_e2m1", 4, "narrow", np.uint8),
        ("int8", 8, "narrow", np.uint8),
        ("e8m0", 8, "narrow", np.uint8),
        ("int32", 32, "int", np.int32),
        ("int64", 64, "int", np.int64),
        ("index", 64, "int", np.int64),
        ("bool", 1, "bool", np.bool_),
    )
}
FLOAT32, INT32, INT64, INDEX, BOOL = (DTYPES[name] for name in ("float32", "int32", "int64", "index", "bool"))


@dataclasses.dataclass(frozen=True)
class Format:
    """A block-scaled format and its options."""

    name: str
    scale_rounding: str = ""
    order: str = "te"

    @property
    def block(self) -> int:
        return m.FORMATS[self.name][2]

    @property
    def element(self) -> DType:
        return DTYPES[m.FORMATS[self.name][0]]

    @property
    def scale(self) -> DType:
        return DTYPES[m.FORMATS[self.name][1]]

    @property
    def tensor_scale(self) -> bool:
        return self.name == "nvfp4"

    def with_(self, scale_rounding: str | None = None, order: str | None = None) -> Format:
        return dataclasses.replace(
            self, scale_rounding=scale_rounding or self.scale_rounding, order=order or self.order
        )


FORMATS = {name: Format(name, about[-1]) for name, about in m.FORMATS.items()}


def make_format(*, element: DType, scale: DType, block: int) -> Format:
    """One that dither has no name for."""
    about = (element.name, scale.name, block)
    return next(f for name, f in FORMATS.items() if name.startswith("own_") and m.FORMATS[name][:3] == about)


#: What the text of a format is made of.
NAMES = {
    "dither": types.SimpleNamespace(Format=make_format, **{name.upper(): fmt for name, fmt in FORMATS.items()}),
    "dl": types.SimpleNamespace(**DTYPES),
}


def _format(value: Any) -> Format:
    return value if isinstance(value, Format) else FORMATS[value.lower()]


# ---------------------------------------------------------------------------
# Values
# ---------------------------------------------------------------------------


class Value:
    """A number known only at run time, or a tile of them."""

    __array_ufunc__ = None  # NumPy's numbers leave operators to us

    def __init__(self, data: Any, dtype: DType, exact: bool = False) -> None:
        self.data: np.ndarray = np.asarray(data, dtype.numpy)
        self.dtype = dtype
        self.exact = exact

    def to(self, dtype: DType, rounding: str | None = None) -> Any:
        return convert(self, dtype, rounding)

    def __pos__(self) -> Any:
        return unary("+", self)

    def __neg__(self) -> Any:
        return unary("-", self)

    def __invert__(self) -> Any:
        return unary("~", self)

    __hash__ = None  # type: ignore[assignment]


class Tile(Value):
    """Rank 0 to 2."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def T(self) -> Tile:
        assert self.data.ndim == 2
        return Tile(self.data.T, self.dtype, self.exact)

    def __getitem__(self, key: Any) -> Tile:
        return Tile(self.data[key], self.dtype, self.exact)

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        raise TypeError("the truth of a tile")


class Scalar(Value):
    """A number: index, int64, int32, float32 or bool."""

    def __bool__(self) -> bool:
        return bool(self.data != 0)

    def __index__(self) -> int:
        return int(self.data)


def _is_float(value: Any) -> bool:
    return value.dtype.kind == "float" if isinstance(value, Value) else isinstance(value, float)


def common(values: list[Any]) -> DType:
    """Floats meet in float32, integers in the widest type (beside a tile an index is an int64), booleans in bool."""
    if any(_is_float(value) for value in values):
        return FLOAT32
    found = [value.dtype for value in values if isinstance(value, Value)]
    for dtype in (INT64, INDEX, INT32):
        if dtype in found:
            return INT64 if dtype is INDEX and any(isinstance(value, Tile) for value in values) else dtype
    return BOOL if all(isinstance(v, (Value, bool)) for v in values) else INT32


def convert(value: Value, dtype: DType, rounding: str | None = None) -> Any:
    """A tile or scalar in another type."""
    if value.dtype is dtype:
        return value
    kind, source = type(value), value.dtype
    if dtype.kind == "float":
        wide = widen(value).data if source.kind == "float" else None
        if source.kind == "narrow":
            wide = m.DECODE[source.name](value.data)
        if wide is None:
            wide = value.data.astype(np.float32)
        if dtype.name == "bfloat16":
            return kind(m.encode_bf16(wide), dtype)
        return kind(m.encode_f16(wide) if dtype.name == "float16" else wide, dtype)
    if dtype.kind == "narrow":
        wide = widen(value).data
        return kind(m.encode_e8m0(wide, str(rounding)) if dtype.name == "e8m0" else m.ENCODE[dtype.name](wide), dtype)
    if dtype is BOOL:
        return kind(widen(value).data != 0, dtype)
    assert source.kind in ("int", "bool"), f"{source} to {dtype}"
    return kind(value.data.astype(dtype.numpy), dtype)


def widen(value: Value) -> Value:
    """bfloat16 and float16 as float32."""
    decode = {"bfloat16": m.decode_bf16, "float16": m.decode_f16}.get(value.dtype.name)
    return type(value)(decode(value.data), FLOAT32) if decode else value


def plain(value: Any, dtype: DType) -> np.ndarray:
    """Elements of a number, scalar or tile in a type."""
    if isinstance(value, Value):
        return convert(value, dtype).data
    return np.asarray(value).astype(dtype.numpy)


def make(values: list[Any], data: Any, dtype: DType, exact: bool = False) -> Any:
    """A tile if one of the operands is, else a scalar."""
    return (Tile if any(isinstance(value, Tile) for value in values) else Scalar)(data, dtype, exact)


COMPARISONS: dict[str, Callable[..., Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
LOGIC: dict[str, Callable[..., Any]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


def binary(symbol: str, a: Any, b: Any) -> Any:
    """NumPy's broadcasting, with one rounding."""
    dtype = common([a, b])
    if symbol in COMPARISONS:
        return make([a, b], COMPARISONS[symbol](plain(a, dtype), plain(b, dtype)), BOOL)
    if symbol in LOGIC:
        return make([a, b], LOGIC[symbol](plain(a, dtype), plain(b, dtype)), dtype)
    dtype = INT32 if dtype is BOOL else dtype
    dtype = FLOAT32 if symbol == "/" else dtype
    x, y = plain(a, dtype), plain(b, dtype)
    return make([a, b], ARITHMETIC[symbol](x, y), dtype)


def unary(symbol: str, a: Value) -> Any:
    if symbol == "~":
        return type(a)(~a.data, a.dtype)
    a = convert(a, INT32) if a.dtype is BOOL else widen(a)
    return type(a)(-a.data, a.dtype) if symbol == "-" else a


def _operators() -> None:
    names = {
        "+": "add",
        "-": "sub",
        "*": "mul",
        "/": "truediv",
        "//": "floordiv",
        "%": "mod",
        "&": "and",
        "|": "or",
        "^": "xor",
    }
    for symbol, name in names.items():
        setattr(Value, f"__{name}__", lambda a, b, symbol=symbol: binary(symbol, a, b))
        setattr(Value, f"__r{name}__", lambda b, a, symbol=symbol: binary(symbol, a, b))
    for symbol, name in {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}.items():
        setattr(Value, f"__{name}__", lambda a, b, symbol=symbol: binary(symbol, a, b))


_operators()

# ---------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------


class Tensor:
    """An argument: bytes with a shape and strides in elements (FP4: even ones), and which extents code knows.

    `loose` has a byte for each of `memory`, not 0 where that may be of any NaN.
    """

    def __init__(
        self,
        memory: np.ndarray,
        loose: np.ndarray,
        begin: int,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        known: tuple[bool, ...],
    ) -> None:
        self.dtype = dtype
        self.extents = shape
        self.shape = tuple(n if k else Scalar(n, INDEX) for n, k in zip(shape, known, strict=True))
        self.ndim = len(shape)
        self.loose = loose
        self.packed = dtype.bits == 4
        size = max(dtype.bits // 8, 1)
        stored: Any = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}[size]
        steps = tuple(s * dtype.bits // 8 for s in strides[:-1]) + (size,) * min(len(shape), 1)
        extents = (*shape[:-1], (shape[-1] + 1) // 2) if self.packed else shape
        self.bits = np.ndarray(extents, stored, memory.data, begin, steps)
        self.loose_bits = np.ndarray(extents, stored, self.loose.data, begin, steps)

    def _overlap(self, offset: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Slices of the tensor and of the tile for the elements that both have."""
        here, there = [], []
        for at, extent, tile in zip(offset, self.extents, shape, strict=True):
            low, high = builtins.max(at, 0), builtins.min(at + tile, extent)
            high = builtins.max(high, low)
            here.append(slice(low, high))
            there.append(slice(low - at, high - at))
        return tuple(here), tuple(there)

    def _codes(self) -> np.ndarray:
        """Unpacked FP4, with the padding of rows."""
        both = np.stack([self.bits & 15, self.bits >> 4], axis=-1)
        return both.reshape(*self.bits.shape[:-1], -1)

    def load(self, offset: tuple[int, ...], shape: tuple[int, ...]) -> Tile:
        here, there = self._overlap(offset, shape)
        bits = self._codes() if self.packed else self.bits
        tile = np.zeros(shape, bits.dtype)
        tile[there] = bits[here]
        exact = not self.packed and not self.loose_bits[here].any()
        return Tile(tile.view(self.dtype.numpy), self.dtype, exact)

    def store(self, offset: tuple[int, ...], tile: Tile, valid: tuple[int, ...] | None) -> None:
        data = tile.data
        if valid is not None:
            data = data.copy()
            for d, (at, limit) in enumerate(zip(offset, valid, strict=True)):
                np.moveaxis(data, d, 0)[builtins.max(limit - at, 0) :] = 0
        here, there = self._overlap(offset, data.shape)
        if self.packed:
            codes = self._codes()
            codes[here] = data[there]
            if here[-1].start < here[-1].stop == self.extents[-1]:  # padding is stored with the last element
                codes[(*here[:-1], slice(self.extents[-1], None))] = 0
            self.bits[...] = codes[..., 0::2] | codes[..., 1::2] << 4
            return
        self.bits[here] = data[there].view(self.bits.dtype)
        if self.dtype.kind == "float" and not tile.exact:
            nan = np.isnan(widen(Tile(data, self.dtype)).data)
            self.loose_bits[here] = np.where(nan[there], np.iinfo(self.bits.dtype).max, 0)
        else:
            self.loose_bits[here] = 0

    def store_swizzled(self, offset: tuple[int, ...], tile: Tile, valid: tuple[int, ...] | None) -> None:
        rows, columns = self.extents
        flat = self.bits.reshape(-1)
        assert np.shares_memory(flat, self.bits)
        for (i, j), code in np.ndenumerate(tile.data):
            r, c = offset[0] + i, offset[1] + j
            if 0 <= r < rows and 0 <= c < columns:
                inside = valid is None or (r < valid[0] and c < valid[1])
                at = (r // 128 * (columns // 4) + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4
                flat[at] = code if inside else 0

    def atomic_add(self, offset: tuple[int, ...], tile: Tile) -> None:
        here, there = self._overlap(offset, tile.data.shape)
        self.bits[here] += tile.data[there].view(self.bits.dtype)

    def atomic_max(self, offset: tuple[int, ...], tile: Tile) -> None:
        if not tile.exact and np.isnan(tile.data).any():
            raise Undefined("dl.atomic_max of a NaN")
        here, there = self._overlap(offset, tile.data.shape)
        self.bits[here] = np.maximum(self.bits[here], tile.data[there].view(np.uint32))


def _integers(value: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in (value if isinstance(value, tuple) else (value,)))


# ---------------------------------------------------------------------------
# dither.language
# ---------------------------------------------------------------------------


class Language:
    """What `dl` is to a kernel; `ids` and `grid` are those of the program that runs."""

    constexpr = Any
    linear, swizzle_128x4 = "linear", "swizzle_128x4"

    def __init__(self) -> None:
        self.ids = (0, 0, 0)
        self.grid = (1, 1, 1)
        for name, dtype in DTYPES.items():
            setattr(self, name, dtype)

    # ---- programs and memory

    def program_id(self, axis: int, backwards: bool = False) -> Scalar:
        number = self.ids[axis]
        return Scalar(self.grid[axis] - 1 - number if backwards else number, INDEX)

    def num_programs(self, axis: int) -> Scalar:
        return Scalar(self.grid[axis], INDEX)

    def load(self, x: Tensor, offset: Any = (), shape: Any = ()) -> Tile:
        if isinstance(offset, tuple) and offset and isinstance(offset[0], Tile):
            column, width = int(offset[1]), _integers(shape)[1]
            rows = [x.load((int(row), column), (1, width)) for row in offset[0].data.reshape(-1)]
            return Tile(np.concatenate([row.data for row in rows]), x.dtype, builtins.all(row.exact for row in rows))
        return x.load(_integers(offset), _integers(shape))

    def store(self, x: Tensor, offset: Any, value: Any, layout: str = "linear", valid: Any = None) -> None:
        if not isinstance(value, Tile):
            value = Tile(plain(value, x.dtype), x.dtype)
        assert value.dtype is x.dtype
        write = x.store_swizzled if layout == "swizzle_128x4" else x.store
        write(_integers(offset), value, None if valid is None else _integers(valid))

    def atomic_add(self, x: Tensor, offset: Any, value: Any) -> None:
        x.atomic_add(_integers(offset), value if isinstance(value, Tile) else Tile(plain(value, x.dtype), x.dtype))

    def atomic_max(self, x: Tensor, offset: Any, value: Any) -> None:
        x.atomic_max(_integers(offset), value if isinstance(value, Tile) else Tile(plain(value, FLOAT32), FLOAT32))

    @staticmethod
    def static_assert(condition: Any, message: str = "") -> None:
        assert condition, message

    @staticmethod
    def static_range(*bounds: int) -> range:
        return builtins.range(*bounds)

    # ---- shapes

    @staticmethod
    def arange(n: int) -> Tile:
        return Tile(np.arange(n), INT32)

    @staticmethod
    def full(shape: Any, value: Any, dtype: DType = FLOAT32) -> Tile:
        if dtype.name in ("bfloat16", "float16"):
            value = convert(Scalar(plain(value, FLOAT32), FLOAT32), dtype)
        exact = not isinstance(value, Value) or value.exact
        return Tile(np.broadcast_to(plain(value, dtype), _integers(shape)), dtype, exact)

    def zeros(self, shape: Any, dtype: DType = FLOAT32) -> Tile:
        return self.full(shape, 0, dtype)

    @staticmethod
    def reshape(t: Tile, shape: Any) -> Tile:
        return Tile(t.data.reshape(_integers(shape)), t.dtype, t.exact)

    @staticmethod
    def concat(tiles: tuple[Tile, ...], axis: int) -> Tile:
        dtype = tiles[0].dtype
        assert all(t.dtype is dtype for t in tiles)
        return Tile(np.concatenate([t.data for t in tiles], axis), dtype, builtins.all(t.exact for t in tiles))

    @staticmethod
    def broadcast_to(t: Any, shape: Any) -> Tile:
        if not isinstance(t, Value):
            t = Scalar(t, FLOAT32 if isinstance(t, float) else BOOL if isinstance(t, bool) else INT32)
        elif t.dtype is INDEX:
            t = convert(t, INT64)
        wide = np.broadcast_to(t.data, _integers(shape))
        return Tile(wide, t.dtype, t.exact and (t.dtype is FLOAT32 or wide.shape == t.data.shape))

    # ---- elementwise

    @staticmethod
    def _float(function: Callable[..., Any], *values: Any) -> Any:
        return make(list(values), function(*(plain(value, FLOAT32) for value in values)), FLOAT32)

    def exp(self, x: Any) -> Any:
        return self._float(m.exp, x)

    def exp2(self, x: Any) -> Any:
        return self._float(m.exp2, x)

    def log(self, x: Any) -> Any:
        return self._float(m.log, x)

    def log2(self, x: Any) -> Any:
        return self._float(m.log2, x)

    def tanh(self, x: Any) -> Any:
        return self._float(m.tanh, x)

    def erf(self, x: Any) -> Any:
        return self._float(m.erf, x)

    def sin(self, x: Any) -> Any:
        return self._float(m.sin, x)

    def cos(self, x: Any) -> Any:
        return self._float(m.cos, x)

    def mulhi(self, a: Any, b: Any) -> Any:
        return self._product(m.mulhi, a, b)

    def umulhi(self, a: Any, b: Any) -> Any:
        return self._product(m.umulhi, a, b)

    @staticmethod
    def _product(function: Callable[..., Any], a: Any, b: Any) -> Any:
        a, b = (x - 2**32 if isinstance(x, int) and x >= 2**31 else x for x in (a, b))
        return make([a, b], function(plain(a, INT32), plain(b, INT32)), INT32)

    def sqrt(self, x: Any) -> Any:
        return self._float(np.sqrt, x)

    def floor(self, x: Any) -> Any:
        return self._float(np.floor, x)

    def ceil(self, x: Any) -> Any:
        return self._float(np.ceil, x)

    def rint(self, x: Any) -> Any:
        return self._float(np.rint, x)

    def rsqrt(self, x: Any) -> Any:
        return self._float(lambda v: m.F32(1) / np.sqrt(v), x)

    def sigmoid(self, x: Any) -> Any:
        return self._float(m.sigmoid, x)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self._float(m.fma, a, b, c)

    @staticmethod
    def abs(x: Any) -> Any:
        if not isinstance(x, Value):
            return builtins.abs(x)
        x = convert(x, INT32) if x.dtype is BOOL else widen(x)
        return type(x)(np.abs(x.data), x.dtype)

    def _extremum(self, a: Any, b: Any, fold: Any, floats: Any, integers: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return fold(a, b)
        dtype = common([a, b])
        if dtype is FLOAT32:
            return self._float(floats, a, b)
        dtype = INT32 if dtype is BOOL else dtype
        return make([a, b], integers(plain(a, dtype), plain(b, dtype)), dtype)

    def maximum(self, a: Any, b: Any) -> Any:
        return self._extremum(a, b, builtins.max, m.maximum, np.maximum)

    def minimum(self, a: Any, b: Any) -> Any:
        return self._extremum(a, b, builtins.min, m.minimum, np.minimum)

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        if not isinstance(condition, Value) and not isinstance(a, Value) and not isinstance(b, Value):
            return a if condition else b
        dtype = common([a, b])
        if not any(isinstance(v, Tile) for v in (condition, a, b)) and not any(isinstance(v, Value) for v in (a, b)):
            dtype = INDEX if dtype is INT32 else dtype
        exact = all(not isinstance(v, Value) or (v.dtype is dtype and v.exact) for v in (a, b))
        x, y = plain(a, dtype), plain(b, dtype)
        chosen = np.where(plain(condition, BOOL), x.view(_bits(x)), y.view(_bits(y))).view(x.dtype)
        return make([condition, a, b], chosen, dtype, exact)

    @staticmethod
    def cdiv(a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return -(-a // b)
        return (a + (b - 1)) // b

    def hadamard(self, t: Tile, axis: int, size: int = 16, signs: int = 0) -> Tile:
        v = np.moveaxis(convert(t, FLOAT32).data, axis, -1)
        runs = v.reshape(-1, size).copy()
        flipped = [i for i in range(size) if signs >> i & 1]
        runs[:, flipped] = -runs[:, flipped]
        step = 1
        while step < size:
            pairs = runs.reshape(len(runs), -1, 2, step)
            low, high = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
            pairs[:, :, 0], pairs[:, :, 1] = low + high, low - high
            step *= 2
        runs = runs * np.float32(size**-0.5)
        return Tile(np.moveaxis(runs.reshape(v.shape), -1, axis), FLOAT32, False)

    # ---- reductions

    @staticmethod
    def _reduce(kind: str, t: Tile, axis: int, count: int | None) -> Tile:
        data = np.moveaxis(convert(t, FLOAT32).data, axis, -1)
        rows = m.reduce(kind, data.reshape(-1, data.shape[-1]), count)
        return Tile(np.moveaxis(rows.reshape(*data.shape[:-1], 1), -1, axis), FLOAT32)

    def sum(self, t: Tile, axis: int, count: int | None = None) -> Tile:
        return self._reduce("sum", t, axis, count)

    def max(self, t: Tile, axis: int, count: int | None = None) -> Tile:
        return self._reduce("max", t, axis, count)

    def min(self, t: Tile, axis: int, count: int | None = None) -> Tile:
        return self._reduce("min", t, axis, count)

    def amax(self, t: Tile, axis: int, count: int | None = None) -> Tile:
        return self._reduce("amax", t, axis, count)

    # ---- quantization

    @staticmethod
    def _tensor_amax(value: Any) -> np.float32 | None:
        return None if value is None else np.float32(plain(value, FLOAT32).reshape(()))

    def block_scale(self, t: Tile, fmt: Any, axis: int = 1, amax: Any = None) -> Tile:
        fmt = _format(fmt)
        x = np.moveaxis(convert(t, FLOAT32).data, axis, -1)
        s = m.block_scale(x, fmt.name, fmt.scale_rounding, fmt.order, self._tensor_amax(amax))
        return Tile(np.moveaxis(s, -1, axis), fmt.scale)

    def cast(self, t: Tile, scale: Tile, fmt: Any, axis: int = 1, amax: Any = None, bits: Tile | None = None) -> Tile:
        fmt = _format(fmt)
        assert scale.dtype is fmt.scale
        x, s = (np.moveaxis(data, axis, -1) for data in (convert(t, FLOAT32).data, scale.data))
        r = None if bits is None else np.moveaxis(bits.data, axis, -1)
        codes = m.cast(x, s, fmt.name, fmt.order, self._tensor_amax(amax), r)
        return Tile(np.moveaxis(codes, -1, axis), fmt.element)

    def stochastic_round(self, t: Tile, bits: Tile, dtype: DType) -> Tile:
        x = convert(t, FLOAT32)
        return Tile(m.stochastic_round(x.data, bits.data, dtype.name), FLOAT32, x.exact)

    def random_bits(
        self,
        seed: Any,
        at: tuple[Any, Any],
        shape: tuple[int, int],
        groups: Any,
        axis: int = 1,
        offset: Any = 0,
        columnwise: bool = False,
    ) -> Tile:
        if not 0 <= int(groups) < 2**32:
            raise Undefined(f"lines of {groups} groups")
        lines, count = shape[1 - axis], shape[axis] // 16
        first = (int(at[0]) + np.arange(lines, dtype=object)[:, None]) * int(groups) + int(at[1])
        group = (first + np.arange(count, dtype=object)) % 2**64
        words = m.mode_oracle.words(int(seed), int(offset), group.astype(np.uint64), columnwise)
        drawn = words.astype("<u4").view(np.uint8).reshape(lines, -1).astype(np.int32)
        return Tile(np.ascontiguousarray(drawn if axis == 1 else drawn.T), INT32)

    def dequantize(self, q: Tile, scale: Tile, fmt: Any, axis: int = 1, amax: Any = None) -> Tile:
        fmt = _format(fmt)
        assert q.dtype is fmt.element and scale.dtype is fmt.scale
        codes, s = (np.moveaxis(data, axis, -1) for data in (q.data, scale.data))
        values = m.dequantize(codes, s, fmt.name, fmt.order, self._tensor_amax(amax))
        return Tile(np.moveaxis(values, -1, axis), FLOAT32)

    def rms_norm(
        self, t: Tile, gamma: Tile, eps: float, zero_centered_gamma: bool = False, count: int | None = None
    ) -> tuple[Tile, Tile]:
        x, g = convert(t, FLOAT32).data, convert(gamma, FLOAT32).data
        one = m.F32(1)
        total = m.reduce("sum", x * x, count)
        mean = total * (one / m.F32(count or x.shape[1]))
        rsigma = one / np.sqrt(mean + m.F32(eps))
        g = g + one if zero_centered_gamma else g
        return Tile(g * (rsigma * x), FLOAT32), Tile(rsigma, FLOAT32)


def _bits(x: np.ndarray) -> Any:
    return np.uint32 if x.dtype == np.float32 else x.dtype


def _jit(function: Any = None, **_: Any) -> Any:
    return function if function is not None else _jit


def _range(*bounds: Any) -> Iterator[Scalar]:
    """Python's, but for a step of 0 at run time: no iteration."""
    if len(bounds) == 3 and int(bounds[2]) == 0:
        return
    for i in builtins.range(*(int(bound) for bound in bounds)):
        yield Scalar(i, INDEX)


class _Chains(ast.NodeTransformer):
    """`a < b < c` of tiles is element by element: a call of `_chain`."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        operands = [node.left, *node.comparators]
        late: list[ast.expr] = [ast.Lambda(_NO_ARGUMENTS, operand) for operand in operands]
        symbols: list[ast.expr] = [ast.Constant(_SYMBOLS[type(op)]) for op in node.ops]
        return ast.Call(ast.Name("_chain", ast.Load()), [ast.List(late, ast.Load()), ast.List(symbols, ast.Load())], [])


_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])
_SYMBOLS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def _chain(operands: list[Callable[[], Any]], symbols: list[str]) -> Any:
    left = operands[0]()
    result: Any = True
    for operand, symbol in zip(operands[1:], symbols, strict=True):
        right = operand()
        value = COMPARISONS[symbol](left, right)
        if isinstance(result, Tile):
            result = result & value
        else:
            result = value
            if not isinstance(value, Tile) and not value:
                return value
        left = right
    return result


def namespace(language: Language) -> dict[str, Any]:
    """The globals that a kernel's text is run with."""
    dither = types.SimpleNamespace(jit=_jit, language=language, **NAMES["dither"].__dict__, **DTYPES)
    fold = builtins.any

    def extremum(name: str) -> Callable[..., Any]:
        def function(*values: Any) -> Any:
            if not fold(isinstance(value, Value) for value in values):
                return getattr(builtins, name)(*values)
            result = values[0]
            for value in values[1:]:
                result = getattr(language, f"{name}imum")(result, value)
            return result

        return function

    def to_float(value: Any) -> Any:
        return convert(value, FLOAT32) if isinstance(value, Value) else builtins.float(value)

    return {
        "dither": dither,
        "dl": language,
        "range": _range,
        "min": extremum("min"),
        "max": extremum("max"),
        "abs": language.abs,
        "float": to_float,
        "_chain": _chain,
    }


def run(
    source: str, kernel: str, arguments: dict[str, Any], grid: tuple[int, int, int], backwards: bool = False
) -> None:
    """Runs every program of the grid on `Tensor`s, numbers and constexprs, one after the other."""
    language = Language()
    names = namespace(language)
    tree = ast.fix_missing_locations(_Chains().visit(ast.parse(_without_imports(source))))
    exec(compile(tree, "<reference>", "exec"), names)
    language.grid = grid
    values = {name: _argument(value) for name, value in arguments.items()}
    ids = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    for language.ids in reversed(ids) if backwards else ids:
        names[kernel](**values)


def _argument(value: Any) -> Any:
    """A number of the launch as a scalar; `Constexpr` marks those that are known while compiling."""
    if isinstance(value, Constexpr):
        return value.value
    if isinstance(value, float):
        return Scalar(value, FLOAT32)
    return Scalar(value, INT64) if isinstance(value, int) and not isinstance(value, bool) else value


@dataclasses.dataclass(frozen=True)
class Constexpr:
    """A value known while compiling; of a format, its text."""

    value: Any


def _without_imports(source: str) -> str:
    return "\n".join("" if line.startswith("import dither") else line for line in source.split("\n"))
