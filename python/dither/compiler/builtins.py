"""What the functions of `dither.language` mean: program ids, memory, shapes, elementwise functions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from .. import types
from ..types import DType
from .arithmetic import (
    binary,
    broadcast_shape,
    common_dtype,
    float_operands,
    fold,
    number_dtype,
    promoted,
    reject_narrow,
    require_number,
    to_scalar,
    to_tile,
    unify,
)
from .emit import FUNCTIONS, Emitter, tile_type
from .parts import keep_zeros, reject_in_parts
from .values import Problem, Scalar, TensorArg, Tile, describe, is_constexpr

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}


def handles(name: str) -> Callable[[Handler], Handler]:
    """Registers the meaning of `dl.<name>`; parameters are those of its signature, after the emitter."""

    def register(handler: Handler) -> Handler:
        HANDLERS[name] = handler
        return handler

    return register


# ---- checks of arguments


def constexpr_int(value: Any, argument: str) -> int:
    """An integer known while compiling."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Problem(f"{argument} is {describe(value)}, expected a constexpr integer", argument)
    return value


def constexpr_shape(value: Any, argument: str = "shape") -> tuple[int, ...]:
    """A shape: a tuple of positive constexpr integers of length 0 to 2, or one integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,)
    if not isinstance(value, tuple):
        raise Problem(f"{argument} is {describe(value)}, expected a tuple of constexpr integers", argument)
    for d, extent in enumerate(value):
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise Problem(
                f"entry {d} of {argument} is {describe(extent)}, expected a constexpr integer", argument, entry=d
            )
        if extent <= 0:
            raise Problem(f"entry {d} of {argument} is {extent}, expected a positive integer", argument, entry=d)
    if len(value) > 2:
        raise Problem(f"{argument} has {len(value)} entries, expected at most 2: tiles have rank 0 to 2", argument)
    return value


def tensor(value: Any, argument: str, function: str) -> TensorArg:
    """A tensor argument of the kernel."""
    if not isinstance(value, TensorArg):
        raise Problem(f"{argument} of dl.{function} is {describe(value)}, expected a tensor argument", argument)
    return value


def tile(value: Any, argument: str, function: str) -> Tile:
    """A tile."""
    if not isinstance(value, Tile):
        hint = ": read it with dl.load" if isinstance(value, TensorArg) else ""
        raise Problem(f"{argument} of dl.{function} is {describe(value)}, expected a tile{hint}", argument)
    return value


def float_tile(value: Any, argument: str, function: str) -> Tile:
    """A tile of float32, bfloat16 or float16."""
    value = tile(value, argument, function)
    if not value.dtype.is_float:
        raise Problem(f"{argument} of dl.{function} is {describe(value)}, expected a float tile", argument)
    return value


def axis_of(value: Any, rank: int) -> int:
    """An axis, counted from the end where negative."""
    axis = constexpr_int(value, "axis")
    if not -rank <= axis < rank:
        allowed = f"{-rank} to {rank - 1}" if rank else "a tile of rank 1 or 2"
        raise Problem(f"axis is {axis}, expected {allowed}", "axis")
    return axis % rank


def coordinates(e: Emitter, value: Any, rank: int, argument: str) -> list[Any]:
    """Coordinates of a tensor as index values; a bare number for rank 1."""
    if not isinstance(value, tuple):
        value = (value,)
    if len(value) != rank:
        raise Problem(f"{argument} has {len(value)} entries, expected {rank}: one for each dimension", argument)
    result = []
    for d, entry in enumerate(value):
        try:
            result.append(e.index(entry))
        except Problem as problem:
            raise Problem(f"entry {d} of {argument}: {problem.message}", argument, entry=d) from None
    return result


# ---- programs


@handles("program_id")
def program_id(e: Emitter, axis: Any, backwards: Any = False) -> Scalar:
    reject_in_parts(e, "dl.program_id")
    if not isinstance(backwards, bool):
        raise Problem(f"backwards is {describe(backwards)}, expected True or False", "backwards")
    return program_index(e, "quant.program_id", axis, **({"backwards": "unit"} if backwards else {}))


@handles("num_programs")
def num_programs(e: Emitter, axis: Any) -> Scalar:
    reject_in_parts(e, "dl.num_programs")
    return program_index(e, "quant.num_programs", axis)


def program_index(e: Emitter, name: str, axis: Any, **attrs: str) -> Scalar:
    """An operation on an axis of the grid."""
    number = constexpr_int(axis, "axis")
    if not 0 <= number <= 2:
        raise Problem(f"axis is {number}, expected 0, 1 or 2", "axis")
    return Scalar(e.op(name, [], {"dim": f"#quant<dim {'xyz'[number]}>", **attrs}), types.index)


@handles("static_assert")
def static_assert(e: Emitter, condition: Any, message: Any) -> None:
    if not is_constexpr(condition):
        raise Problem(f"condition is {describe(condition)}, expected a constexpr", "condition")
    if not condition:
        raise Problem("static_assert failed" + (f": {message}" if message else ""))


# ---- shapes


@handles("arange")
def arange(e: Emitter, n: Any) -> Tile:
    reject_in_parts(e, "dl.arange")
    shape = constexpr_shape((constexpr_int(n, "n"),), "n")
    return e.tile("quant.iota", [], {"dim": 0}, tile_type(shape, types.int32))


@handles("full")
def full(e: Emitter, shape: Any, value: Any, dtype: Any) -> Tile:
    extents = constexpr_shape(shape)
    if not isinstance(dtype, DType) or dtype.is_narrow or dtype is types.index:
        raise Problem(f"dtype is {describe(dtype)}, expected float32, bfloat16, float16, int32, int64 or bool", "dtype")
    if isinstance(value, Tile) and value.shape == ():
        return e.convert(e.broadcast(e.convert(value, dtype), extents), dtype)
    if not isinstance(value, (int, float, Scalar)):
        raise Problem(f"value is {describe(value)}, expected a number", "value")
    if isinstance(value, Scalar) and dtype in (types.bfloat16, types.float16):
        return e.convert(to_tile(e, value, extents, types.float32), dtype)
    return to_tile(e, value, extents, dtype)


@handles("zeros")
def zeros(e: Emitter, shape: Any, dtype: Any) -> Tile:
    return full(e, shape, 0, dtype)


@handles("reshape")
def reshape(e: Emitter, t: Any, shape: Any) -> Tile:
    reject_in_parts(e, "dl.reshape")
    t = tile(t, "t", "reshape")
    extents = constexpr_shape(shape)
    if [n for n in extents if n != 1] != [n for n in t.shape if n != 1]:
        raise Problem(
            f"shape is {extents}, expected {t.shape} with dimensions of extent 1 inserted or dropped", "shape"
        )
    return e.reshape(t, extents)


@handles("broadcast_to")
def broadcast_to(e: Emitter, t: Any, shape: Any) -> Tile:
    extents = constexpr_shape(shape)
    if not isinstance(t, Tile):
        require_number(t, "t of dl.broadcast_to")
        dtype = number_dtype(t)
        if is_constexpr(t) and dtype is types.index:
            dtype = types.int32  # as beside any tile
        return to_tile(e, t, extents, dtype)
    return e.broadcast(t, extents)


@handles("repeat")
def repeat(e: Emitter, t: Any, count: Any, axis: Any) -> Tile:
    t = tile(t, "t", "repeat")
    axis, count = axis_of(axis, len(t.shape)), constexpr_int(count, "count")
    if axis != len(t.shape) - 1:
        reject_in_parts(e, "dl.repeat of rows")
    elif e.part is not None and e.part.shape[1] % (count * t.shape[axis]):
        reject_in_parts(e, "dl.repeat to other columns than a tile has, or a part of them,")
    if count < 1 or count & (count - 1):
        raise Problem(f"count is {count}, expected a power of two", "count")
    block = ", ".join(str(count if d == axis else 1) for d in range(len(t.shape)))
    if count == 1:
        return t
    result = e.tile("quant.block_broadcast", [t], {"block": f"array<i64: {block}>"})
    keep_zeros(e, t, result, along_rows=False)
    return result


@handles("hadamard")
def hadamard(e: Emitter, t: Any, axis: Any, size: Any, signs: Any) -> Tile:
    reject_in_parts(e, "dl.hadamard")
    t = e.widen(float_tile(t, "t", "hadamard"))
    axis, size = axis_of(axis, len(t.shape)), constexpr_int(size, "size")
    signs = constexpr_int(signs, "signs")
    if size not in (2, 4, 8, 16, 32, 64, 128):
        raise Problem(f"size is {size}, expected 2, 4, 8, 16, 32, 64 or 128", "size")
    if t.shape[axis] % size:
        raise Problem(f"axis {axis} of the tile has {t.shape[axis]} elements, expected a multiple of {size}", "t")
    if not 0 <= signs < 1 << size:
        raise Problem(f"signs is {signs}, expected at most {size} bits", "signs")
    if signs:
        t = _with_signs(e, t, axis, size, signs)
    t = e.tile("quant.hadamard", [t], {"axis": axis, "size": size})
    return e.elementwise("arith.mulf", [t, e.splat(t.shape, size**-0.5, types.float32)])


def _with_signs(e: Emitter, t: Tile, axis: int, size: int, signs: int) -> Tile:
    """Elements i of each `size` along the axis with the other sign where bit i of `signs` is set."""
    shape = tuple(n if d == axis else 1 for d, n in enumerate(t.shape))
    at = e.tile("quant.iota", [], {"dim": axis}, tile_type(shape, types.int32))
    place = binary(e, "&", at, size - 1)
    words = [e.splat(shape, signed32(signs >> first & 0xFFFFFFFF), types.int32) for first in range(0, size, 32)]
    word = words.pop()
    for last in range(32 * len(words), 0, -32):
        word = e.elementwise("arith.select", [binary(e, "<", place, last), words.pop(), word])
    place = binary(e, "&", place, 31)
    # The bit of each element becomes the sign bit.
    count = binary(e, "-", 31, place)
    flip = binary(e, "&", e.elementwise("arith.shli", [word, count]), -(2**31))
    bits = binary(e, "^", e.like("arith.bitcast", t, types.int32), e.broadcast(flip, t.shape))
    return e.like("arith.bitcast", bits, types.float32)


# ---- elementwise functions


def _float_function(name: str, op: str) -> None:
    def handler(e: Emitter, x: Any) -> Any:
        return e.elementwise(op, float_operands(e, [x], f"dl.{name}"))

    HANDLERS[name] = handler


_ROUNDINGS = {"floor": "math.floor", "ceil": "math.ceil", "rint": "math.roundeven"}
for _name, _op in {**FUNCTIONS, **_ROUNDINGS}.items():
    _float_function(_name, _op)


@handles("bitcast")
def bitcast(e: Emitter, x: Any, dtype: Any) -> Any:
    if not isinstance(x, (Tile, Scalar)) or x.dtype not in (types.float32, types.int32):
        raise Problem(f"x of dl.bitcast is {describe(x)}, expected float32 or int32", "x")
    if dtype not in (types.float32, types.int32):
        raise Problem(f"dtype is {describe(dtype)}, expected float32 or int32", "dtype")
    return x if dtype is x.dtype else e.like("arith.bitcast", x, dtype)


def _mulhi(name: str, unsigned: bool) -> None:
    def handler(e: Emitter, a: Any, b: Any) -> Any:
        return e.elementwise(
            "quant.mulhi",
            unify(e, [bits32(a, f"a of dl.{name}", "a"), bits32(b, f"b of dl.{name}", "b")], types.int32, f"dl.{name}"),
            {"is_unsigned": True} if unsigned else {},
        )

    HANDLERS[name] = handler


def signed32(word: int) -> int:
    """The lower 32 bits of an integer, as an int32."""
    return (word + 2**31) % 2**32 - 2**31


def bits32(x: Any, what: str, parameter: str) -> Any:
    """An int32, or a number of Python with as many bits as one."""
    if isinstance(x, (Tile, Scalar)) and x.dtype is types.int32:
        return x
    if isinstance(x, int) and not isinstance(x, builtins.bool) and -(2**31) <= x < 2**32:
        return signed32(x)
    raise Problem(f"{what} is {describe(x)}, expected int32, or an integer of 32 bits", parameter)


_mulhi("mulhi", unsigned=False)
_mulhi("umulhi", unsigned=True)


@handles("fma")
def fma(e: Emitter, a: Any, b: Any, c: Any) -> Any:
    return e.elementwise("math.fma", float_operands(e, [a, b, c], "dl.fma"))


@handles("abs")
def absolute(e: Emitter, x: Any) -> Any:
    require_number(x, "operand of dl.abs")
    if is_constexpr(x):
        return fold(builtins.abs, x)
    reject_narrow(x, "operand of dl.abs")
    x = promoted(e, x)
    if x.dtype.is_float:
        return e.elementwise("math.absf", [x])
    return e.elementwise("arith.maxsi", [x, e.elementwise("arith.subi", [e.constant_like(x, 0), x])])


def _by_sign(value: Any) -> tuple[Any, float]:
    """What orders numbers: of two zeros the one with a minus is the smaller one."""
    return value, math.copysign(1.0, value) if value == 0 else 0.0


def _extremum(name: str, chosen: Callable[..., Any], float_op: str, int_op: str) -> None:
    def function(a: Any, b: Any) -> Any:
        nan = next((value for value in (a, b) if value != value), None)
        return chosen(a, b, key=_by_sign) if nan is None else nan

    def handler(e: Emitter, a: Any, b: Any) -> Any:
        for value in (a, b):
            require_number(value, f"operand of dl.{name}")
        if is_constexpr(a) and is_constexpr(b):
            return fold(function, a, b)
        dtype = common_dtype(e, [a, b])
        if dtype is types.bool_:
            dtype = types.int32
        return e.elementwise(float_op if dtype.is_float else int_op, unify(e, [a, b], dtype, f"dl.{name}"))

    HANDLERS[name] = handler


_extremum("maximum", builtins.max, "arith.maximumf", "arith.maxsi")
_extremum("minimum", builtins.min, "arith.minimumf", "arith.minsi")


@handles("where")
def where(e: Emitter, condition: Any, a: Any, b: Any) -> Any:
    for what, value in (("condition", condition), ("a", a), ("b", b)):
        require_number(value, f"{what} of dl.where")
    if number_dtype(condition) is not types.bool_:
        raise Problem(f"condition of dl.where is {describe(condition)}, expected bool", "condition")
    dtype = common_dtype(e, [a, b])
    if all(is_constexpr(value) for value in (condition, a, b)):
        return a if condition else b
    tiles = [value.shape for value in (condition, a, b) if isinstance(value, Tile)]
    if not tiles:
        operands = [to_scalar(e, condition, types.bool_), to_scalar(e, a, dtype), to_scalar(e, b, dtype)]
        return e.elementwise("arith.select", operands)
    if dtype is types.index:  # tiles hold no indices
        dtype = types.int64 if any(isinstance(value, Scalar) for value in (a, b)) else types.int32
    shape = broadcast_shape(tiles, "dl.where")
    mask = to_tile(e, condition, shape, types.bool_)
    return e.elementwise("arith.select", [mask, to_tile(e, a, shape, dtype), to_tile(e, b, shape, dtype)])


@handles("cdiv")
def cdiv(e: Emitter, a: Any, b: Any) -> Any:
    for which, value in (("a", a), ("b", b)):
        require_number(value, f"{which} of dl.cdiv")
        if number_dtype(value).is_float:
            raise Problem(f"{which} of dl.cdiv is {describe(value)}, expected an integer", which)
    if is_constexpr(a) and is_constexpr(b):
        return fold(lambda: -(-a // b))
    if is_constexpr(b) and b > 0 and number_dtype(a) is types.index:  # extents are far from the largest number
        return binary(e, "//", binary(e, "+", a, b - 1), b)
    quotient, rest = binary(e, "//", a, b), binary(e, "%", a, b)
    return binary(e, "+", quotient, binary(e, "!=", rest, 0))
