"""Emits operations: constants, conversions, broadcasting. Knows nothing of syntax."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from .. import types
from ..errors import in_words
from ..printing import Site
from ..types import DType, ScalarType, TensorType
from .values import Problem, Scalar, TensorArg, Tile, describe

Location = list[tuple[str, int, int]]

#: Operations of a kernel, at most: more take the compiler minutes.
MAX_OPERATIONS = 65536

#: Operations of the language's functions that `math="fast"` is about, besides arithmetic.
FUNCTIONS = {name: f"quant.{name}" for name in ("exp", "exp2", "log", "log2", "tanh", "sigmoid", "erf", "sin", "cos")}
FUNCTIONS |= {"sqrt": "math.sqrt", "rsqrt": "math.rsqrt"}
_FAST = {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", *FUNCTIONS.values()}


class Located(Protocol):
    """What knows the places of its nodes."""

    def location(self, node: Any) -> Location:
        """The place of a node, then those of the calls that led to it."""
        raise NotImplementedError


class Emitter:
    """A builder that remembers where in the source it is."""

    def __init__(self, builder: Any, ir_error: type[Exception], fast: bool = False) -> None:
        self.builder = builder
        #: Whether arithmetic of the user's may be approximated and contracted.
        self.fast = fast
        self.ir_error = ir_error
        #: The frame and the node at hand: most nodes make no operation, and need no location.
        self.at: tuple[Located, Any] | None = None
        self.constants: list[dict[tuple[DType, str], Scalar]] = [{}]
        self.count = 0
        #: Inside a function that `dither.fuse` was given, what it sees of a tensor: a Part (parts.py).
        self.part: Any = None
        #: The calls of dl.print so far.
        self.sites: list[Site] = []
        #: Arguments that the launch adds to the kernel's own, by name.
        self.added: dict[str, TensorArg] = {}

    @property
    def loc(self) -> Location:
        """Where in the source it is, innermost first."""
        return [] if self.at is None else self.at[0].location(self.at[1])

    # ---- operations

    def op(
        self,
        name: str,
        operands: Sequence[Any] = (),
        attrs: dict[str, Any] | None = None,
        result: str | None = None,
    ) -> Any:
        """Creates an operation on values, tiles or scalars; its value, a list of several, None for none.

        `result` is the result's type as text; left out, the compiler infers it.
        """
        values = [getattr(operand, "ir", operand) for operand in operands]
        if self.fast and name in _FAST:
            attrs = {**(attrs or {}), "fastmath": "#arith.fastmath<afn,contract>"}
        self.count += 1
        if self.count > MAX_OPERATIONS:
            raise Problem(
                f"kernel has more than {MAX_OPERATIONS} operations with its loops unrolled: use range in place of "
                "dl.static_range"
            )
        try:
            results = self.builder.create(name, values, attrs, self.loc, None if result is None else [result])
        except self.ir_error as error:
            raise Problem(in_words(str(error))) from None
        if not results:
            return None
        return results[0] if len(results) == 1 else results

    def tile(
        self, name: str, operands: Sequence[Any], attrs: dict[str, Any] | None = None, result: str | None = None
    ) -> Tile:
        """An operation with one tile as its result."""
        return self.as_tile(self.op(name, operands, attrs, result))

    def as_tile(self, ir: Any) -> Tile:
        """Wraps a tensor."""
        return Tile(ir, types.dtype_from_mlir(ir.dtype), ir.shape)

    def like(self, name: str, operand: Tile | Scalar, dtype: DType) -> Any:
        """A unary operation whose result has the operand's shape and another element type."""
        if isinstance(operand, Scalar):
            return Scalar(self.op(name, [operand], None, dtype.mlir), dtype)
        return Tile(self.op(name, [operand], None, tile_type(operand.shape, dtype)), dtype, operand.shape)

    def elementwise(self, name: str, operands: Sequence[Any], attrs: dict[str, Any] | None = None) -> Any:
        """An operation on operands of one shape; its type is inferred."""
        ir = self.op(name, operands, attrs)
        dtype = types.dtype_from_mlir(ir.dtype)
        return Tile(ir, dtype, ir.shape) if ir.is_shaped else Scalar(ir, dtype)

    def added_argument(self, name: str, kind: TensorType) -> TensorArg:
        """An argument that the kernel has besides its own, once."""
        if name not in self.added:
            ir = self.builder.add_argument(name, kind.mlir(), argument_attributes(kind))
            self.added[name] = TensorArg(ir, name, kind)
        return self.added[name]

    # ---- constants

    def scalar(self, value: int | float, dtype: DType) -> Scalar:
        """A Python number as a scalar; one operation for all its uses in a block and inside."""
        key = (dtype, repr(value))
        for known in self.constants:
            if key in known:
                return known[key]
        result = Scalar(self._constant(dtype.mlir, value, dtype), dtype)
        self.constants[-1][key] = result
        return result

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """While operations go to a block inside: its constants are not known outside."""
        self.constants.append({})
        try:
            yield
        finally:
            self.constants.pop()

    def splat(self, shape: tuple[int, ...], value: int | float, dtype: DType) -> Tile:
        """A tile filled with a Python number."""
        return Tile(self._constant(tile_type(shape, dtype), value, dtype), dtype, shape)

    def _constant(self, text: str, value: int | float, dtype: DType) -> Any:
        if dtype.is_int and isinstance(value, float):
            raise Problem(f"found the float {value!r}, expected an integer for {dtype}")
        if dtype.is_int and not -1 << dtype.bits - 1 <= value < 1 << dtype.bits - 1:
            raise Problem(f"constant {value} does not fit {dtype}")
        if dtype.is_float:
            value = _as_double(value)
        if dtype is types.bool_:
            value = bool(value)
        try:
            return self.builder.constant(text, value, self.loc)
        except self.ir_error as error:
            raise Problem(in_words(str(error))) from None

    def index(self, value: Any) -> Any:
        """An integer as an IR value of type index."""
        if isinstance(value, bool) or not isinstance(value, (int, Scalar)):
            raise Problem(f"found {describe(value)}, expected an integer")
        if isinstance(value, int):
            return self.scalar(value, types.index).ir
        if not value.dtype.is_int:
            raise Problem(f"found {describe(value)}, expected an integer")
        return self.convert(value, types.index).ir

    # ---- conversions

    def convert(self, value: Any, dtype: DType) -> Any:
        """A tile or scalar in another data type; see Numbers in docs/architecture.md, section 5."""
        if value.dtype is dtype:
            return value
        source = value.dtype
        if dtype.is_float:
            return self._to_float(value, dtype)
        if dtype.is_narrow:
            if not source.is_float:
                raise Problem(f"found {describe(value)}, expected a float32 tile to encode as {dtype}")
            if isinstance(value, Scalar):
                raise Problem(f"found {describe(value)}, expected a tile to encode as {dtype}")
            return self.encode(value, dtype, None)
        if source.is_narrow or source.is_float:
            if dtype is types.bool_ and source.is_float:
                return self.compare("!=", self.widen(value), self.constant_like(self.widen(value), 0))
            what = f", expected its rounded bits: {ROUNDED_BITS}"
            if source.is_narrow:
                what = ": codes convert to float types alone, expected a float type here"
            raise Problem(f"{source} does not convert to {dtype}{what}")
        if dtype is types.bool_:
            return self.compare("!=", value, self.constant_like(value, 0))
        return self._to_int(value, dtype)

    def encode(self, value: Tile, dtype: DType, rounding: str | None) -> Tile:
        """f32 to codes, nearest even and saturating; E8M0 by `rounding` rceil or floor."""
        attrs = None
        if dtype is types.e8m0:
            if rounding not in ("rceil", "floor"):
                raise Problem(f"rounding is {rounding!r}, expected 'rceil' or 'floor' for e8m0", "rounding")
            attrs = {"mode": f"#quant.e8m0_mode<{rounding}>"}
        elif rounding is not None:
            raise Problem(f"rounding is for e8m0 only, found {dtype}", "rounding")
        return self.tile("quant.encode", [self.widen(value)], attrs, tile_type(value.shape, dtype))

    def _to_float(self, value: Any, dtype: DType) -> Any:
        source = value.dtype
        if source.is_narrow:
            value = self.like("quant.decode", value, types.float32)
        elif source is types.bool_:
            value = self.like("arith.uitofp", value, types.float32)
        elif source is types.index:
            value = self.like("arith.sitofp", self.convert(value, types.int64), types.float32)
        elif source.is_int:
            value = self.like("arith.sitofp", value, types.float32)
        elif source is not types.float32:
            value = self.like("arith.extf", value, types.float32)
        if dtype is types.float32:
            return value
        if isinstance(value, Scalar):  # 16-bit floats exist in tiles only
            value = self.broadcast(value, ())
        return self.like("arith.truncf", value, dtype)

    def _to_int(self, value: Any, dtype: DType) -> Any:
        source = value.dtype
        if types.index in (source, dtype):
            if source is types.bool_:  # index_cast takes i1 for a number with a sign
                value = self._to_int(value, types.int64)
            if isinstance(value, Tile):
                raise Problem(f"found {describe(value)}, expected a scalar to convert to {dtype}")
            return self.like("arith.index_cast", value, dtype)
        if source is types.bool_:
            return self.like("arith.extui", value, dtype)
        return self.like("arith.extsi" if dtype.bits > source.bits else "arith.trunci", value, dtype)

    def widen(self, value: Any) -> Any:
        """bfloat16 and float16 as float32; anything else as it is."""
        if value.dtype in (types.bfloat16, types.float16):
            return self.convert(value, types.float32)
        return value

    def constant_like(self, value: Any, number: int) -> Any:
        """A number in the type and shape of a tile or scalar."""
        if isinstance(value, Scalar):
            return self.scalar(number, value.dtype)
        return self.splat(value.shape, number, value.dtype)

    def compare(self, symbol: str, a: Any, b: Any) -> Any:
        """A comparison of operands of one type and shape; NaN compares unequal, like in Python."""
        if a.dtype.is_float:
            return self.elementwise("arith.cmpf", [a, b], {"predicate": FLOAT_PREDICATES[symbol]})
        if a.dtype is types.bool_ and symbol not in ("==", "!="):
            a, b = self.convert(a, types.int32), self.convert(b, types.int32)
        return self.elementwise("arith.cmpi", [a, b], {"predicate": INT_PREDICATES[symbol]})

    # ---- shapes

    def reshape(self, value: Tile, shape: tuple[int, ...]) -> Tile:
        """Inserts or drops dimensions of extent 1."""
        if value.shape == shape:
            return value
        return self.tile("quant.reshape", [value], None, tile_type(shape, value.dtype))

    def broadcast(self, value: Any, shape: tuple[int, ...]) -> Tile:
        """A tile, runtime scalar or rank-0 tile repeated to `shape`, aligned at the last dimension."""
        if isinstance(value, Scalar):
            if value.dtype is types.index:  # tiles hold no indices
                value = self.convert(value, types.int64)
            return self.tile("quant.broadcast", [value], None, tile_type(shape, value.dtype))
        if value.shape == shape:
            return value
        rank = len(shape)
        padded = (1,) * (rank - len(value.shape)) + value.shape
        if len(padded) > rank or any(have not in (1, want) for have, want in zip(padded, shape, strict=False)):
            raise Problem(f"shape {value.shape} does not broadcast to {shape}")
        if value.dtype.is_narrow:
            raise Problem(f"found {describe(value)}, expected float32 to broadcast: convert with .to(dl.float32)")
        if value.shape:
            value = self.reshape(value, padded)
        if value.shape == shape:
            return value
        if value.dtype in (types.bfloat16, types.float16):
            return self.convert(self.broadcast(self.widen(value), shape), value.dtype)
        return self.tile("quant.broadcast", [value], None, tile_type(shape, value.dtype))


def argument_attributes(kind: TensorType | ScalarType) -> dict[str, Any] | None:
    """What specialization knows of an argument; left out where it is the element's size."""
    if not isinstance(kind, TensorType):
        return None
    return {"quant.align": kind.align, "quant.stride_align": kind.stride_align}


def tile_type(shape: Sequence[int], dtype: DType) -> str:
    """`tensor<4x128xf32>`."""
    if math.prod(shape) > MOST_ELEMENTS:
        raise Problem(f"found a tile of shape {tuple(shape)}, expected at most {MOST_ELEMENTS} elements")
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype.mlir}>"


#: The int32 that a float rounds to: around 1.5 * 2^23 floats are a unit apart, and so are their bits.
ROUNDED_BITS = "dl.bitcast(dl.rint(x) + 12582912.0, dl.int32) - 0x4B400000 for magnitudes below 2^22"
#: Elements of a tile, as layouts count them.
MOST_ELEMENTS = 1 << 62
FLOAT_PREDICATES = {"==": 1, ">": 2, ">=": 3, "<": 4, "<=": 5, "!=": 13}
INT_PREDICATES = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


def _as_double(value: int | float) -> float:
    """A constant of a float type. By way of a double an integer that is none would be rounded twice."""
    try:
        double = float(value)
    except OverflowError:
        raise Problem(f"found an integer of {value.bit_length()} bits, past the largest float") from None  # type: ignore[union-attr]
    if isinstance(value, int) and int(double) != value:
        raise Problem(f"constant {value} is not exact in a double, expected a float such as {double!r}")
    return double
