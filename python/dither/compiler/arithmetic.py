"""Operators: promotion of data types, NumPy's broadcasting, constants of Python folded by Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import types
from ..types import DType
from .emit import Emitter
from .hints import INSTEAD
from .identity import ATOMS, check_operation, is_other, is_same
from .values import Problem, Scalar, Tile, constant_dtype, describe, is_constexpr, is_number

FOLDS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "@": operator.matmul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "is": is_same,
    "is not": is_other,
}
UNARY_FOLDS: dict[str, Callable[..., Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not": operator.not_,
}
FLOAT_OPS = {"+": "arith.addf", "-": "arith.subf", "*": "arith.mulf", "/": "arith.divf"}
INT_OPS = {"+": "arith.addi", "-": "arith.subi", "*": "arith.muli"}
LOGIC_OPS = {"&": "arith.andi", "|": "arith.ori", "^": "arith.xori"}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
RUNTIME_SYMBOLS = {*FLOAT_OPS, *INT_OPS, *LOGIC_OPS, *COMPARISONS, "//", "%"}


def fold(function: Any, *operands: Any, **named: Any) -> Any:
    """Python's own result; its exceptions become errors of the kernel."""
    check_operation(function, (*operands, *named.values()))
    _check_size(function, operands)
    try:
        return function(*operands, **named)
    except Problem:
        raise
    except Exception as error:
        raise Problem(f"{type(error).__name__}: {error}") from None


#: Bits of an integer, and entries of a tuple or characters of a text, that constants may have.
MOST_BITS = 1 << 16
MOST_ENTRIES = 1 << 20


def _check_size(function: Any, operands: tuple[Any, ...]) -> None:
    """Raises Problem for powers, shifts and repetitions that Python would work on for minutes, or run out of memory."""
    if len(operands) != 2:
        return
    a, b = operands
    if isinstance(a, int) and isinstance(b, int):
        bits = 0
        if function in (operator.pow, pow):
            bits = abs(a).bit_length() * b if abs(a) > 1 else 1
        elif function is operator.lshift:
            bits = abs(a).bit_length() + b if a else 1
        elif function is operator.mul:
            bits = abs(a).bit_length() + abs(b).bit_length()
        if bits > MOST_BITS:
            raise Problem(f"found an integer of about {bits} bits, expected at most {MOST_BITS}")
    elif function is operator.mul:
        count, entries = (a, b) if isinstance(a, int) else (b, a)
        if isinstance(count, int) and isinstance(entries, (tuple, str, bytes)) and count * len(entries) > MOST_ENTRIES:
            raise Problem(f"found {count * len(entries)} entries, expected at most {MOST_ENTRIES}")


def binary(e: Emitter, symbol: str, a: Any, b: Any) -> Any:
    """`a symbol b` for any two values."""
    if symbol in ("is", "is not") and (a is None or b is None):
        return (a is b) == (symbol == "is")  # nothing known at run time only is None
    if symbol in ("==", "!=") and type(a) in ATOMS and type(b) in ATOMS:
        return FOLDS[symbol](a, b)  # which nothing can be wrong with
    if is_constexpr(a) and is_constexpr(b):
        return fold(FOLDS[symbol], a, b)
    if isinstance(a, tuple) and isinstance(b, tuple) and symbol == "+":
        return a + b
    if symbol == "@":
        what = f"'@' of {describe(a)} and {describe(b)}"
        raise Problem(f"{what}, expected an operator on elements: {INSTEAD['matmul']}")
    for which, value in (("left", a), ("right", b)):
        require_number(value, f"{which} operand of '{symbol}'")
    if symbol == "**":
        return _power(e, a, b)
    if symbol in ("<<", ">>"):
        return _shift(e, symbol, a, b)
    if symbol not in RUNTIME_SYMBOLS:
        raise Problem(f"'{symbol}' of {describe(a)} and {describe(b)}, expected constexprs")
    dtype = common_dtype(e, [a, b])
    if symbol in LOGIC_OPS:
        if dtype.is_float:
            raise Problem(f"'{symbol}' of {describe(a)} and {describe(b)}, expected bool or integers")
        return e.elementwise(LOGIC_OPS[symbol], unify(e, [a, b], dtype, f"'{symbol}'"))
    if symbol in COMPARISONS:
        a, b = unify(e, [a, b], dtype, f"'{symbol}'")
        return e.compare(symbol, a, b)
    if dtype is types.bool_:
        dtype = types.int32
    if dtype.is_float:
        if symbol not in FLOAT_OPS:
            raise Problem(f"'{symbol}' of {describe(a)} and {describe(b)}, expected integers")
        return e.elementwise(FLOAT_OPS[symbol], unify(e, [a, b], dtype, f"'{symbol}'"))
    if symbol == "/":
        return e.elementwise("arith.divf", unify(e, [a, b], types.float32, "'/'"))
    divisor = b
    a, b = unify(e, [a, b], dtype, f"'{symbol}'")
    if symbol not in ("//", "%"):
        return e.elementwise(INT_OPS[symbol], [a, b])
    if is_constexpr(divisor) and divisor not in (0, -1):
        return _floor_divide(e, symbol, a, b)
    if is_constexpr(divisor) and divisor == 0:
        raise Problem(f"'{symbol}' by zero")
    return _guarded_divide(e, symbol, a, b)


#: Factors of a power, at most.
MAX_EXPONENT = 1024
#: What there is in place of powers, by the exponent, and by the base.
_ROOTS = {0.5: "dl.sqrt", -0.5: "dl.rsqrt"}
_EXPONENTIALS = {2: "dl.exp2", math.e: "dl.exp"}


def _power(e: Emitter, base: Any, exponent: Any) -> Any:
    """`base ** exponent`, a product: from the highest bit of the exponent down, squared at each, and times the base
    where it is set. The reciprocal of that for a negative one."""
    if isinstance(exponent, bool) or not isinstance(exponent, int) or abs(exponent) > MAX_EXPONENT:
        known = _ROOTS.get(exponent) if isinstance(exponent, float) else None
        if isinstance(base, (int, float)):
            known = _EXPONENTIALS.get(base)
        instead = known or "dl.exp2(y * dl.log2(x)) for x ** y with x > 0"
        raise Problem(
            f"'**' of {describe(base)} and {describe(exponent)}, expected a constexpr integer from {-MAX_EXPONENT} to "
            f"{MAX_EXPONENT} as the exponent: use {instead}"
        )
    reject_narrow(base, "left operand of '**'")
    base = promoted(e, base)
    if exponent < 0:
        if not base.dtype.is_float:
            raise Problem(f"'**' of {describe(base)} and {exponent}, expected a float or a positive exponent")
        return binary(e, "/", 1.0, _power(e, base, -exponent))
    if exponent == 0:
        return e.constant_like(base, 1)
    result = base
    for bit in bin(exponent)[3:]:
        result = binary(e, "*", result, result)
        if bit == "1":
            result = binary(e, "*", result, base)
    return result


def _shift(e: Emitter, symbol: str, a: Any, b: Any) -> Any:
    """`a << b` and `a >> b` of integers, as NumPy has them: a count that is not below the width shifts all bits out."""
    dtype = common_dtype(e, [a, b])
    if dtype.is_float:
        raise Problem(f"'{symbol}' of {describe(a)} and {describe(b)}, expected integers")
    if dtype is types.bool_:
        dtype = types.int32
    a, b = unify(e, [a, b], dtype, f"'{symbol}'")
    bits = 32 if dtype is types.int32 else 64
    # A negative count is a large one.
    count = e.elementwise("arith.minui", [b, e.constant_like(b, bits - 1)])
    if symbol == ">>":
        return e.elementwise("arith.shrsi", [a, count])  # the sign, where the count is larger
    outside = e.compare("!=", count, b)
    return e.elementwise("arith.select", [outside, e.constant_like(a, 0), e.elementwise("arith.shli", [a, count])])


def _floor_divide(e: Emitter, symbol: str, a: Any, b: Any) -> Any:
    """Quotient or remainder of a divisor that is not 0 or -1. The remainder has the sign of the divisor."""
    quotient = e.elementwise("arith.floordivsi", [a, b])
    if symbol == "//":
        return quotient
    return e.elementwise("arith.subi", [a, e.elementwise("arith.muli", [quotient, b])])


def _guarded_divide(e: Emitter, symbol: str, a: Any, b: Any) -> Any:
    """As `_floor_divide`, of any divisor: by 0 the quotient and the remainder are 0, by -1 the quotient is -a.

    Processors differ in these two, where a quotient does not exist or does not fit.
    """
    zero, one = e.constant_like(b, 0), e.constant_like(b, 1)
    is_zero, is_minus = e.compare("==", b, zero), e.compare("==", b, e.constant_like(b, -1))
    safe = e.elementwise("arith.select", [e.elementwise("arith.ori", [is_zero, is_minus]), one, b])
    result = _floor_divide(e, symbol, a, safe)
    if symbol == "//":
        result = e.elementwise("arith.select", [is_minus, e.elementwise("arith.subi", [zero, a]), result])
        result = e.elementwise("arith.select", [is_zero, zero, result])
    return result  # a remainder by 1 is 0


def unary(e: Emitter, symbol: str, value: Any) -> Any:
    """`-x`, `+x`, `~x`, `not x`."""
    if is_constexpr(value):
        return fold(UNARY_FOLDS[symbol], value)
    require_number(value, f"operand of '{symbol}'")
    reject_narrow(value, f"operand of '{symbol}'")
    if symbol == "not":
        if isinstance(value, Tile):
            raise Problem(f"'not' of {describe(value)}, expected a scalar: use '~' for tiles")
        return unary(e, "~", e.convert(value, types.bool_))
    if symbol == "~":
        if value.dtype.is_float:
            raise Problem(f"'~' of {describe(value)}, expected bool or integers")
        return e.elementwise("arith.xori", [value, e.constant_like(value, -1)])
    value = promoted(e, value)
    if symbol == "+":
        return value
    if value.dtype.is_float:
        return e.elementwise("arith.negf", [value])
    return e.elementwise("arith.subi", [e.constant_like(value, 0), value])


def promoted(e: Emitter, value: Any) -> Any:
    """A tile or scalar in a type that arithmetic has: float32 or integers."""
    return e.widen(e.convert(value, types.int32) if value.dtype is types.bool_ else value)


def require_number(value: Any, what: str) -> None:
    """Raises unless arithmetic takes the value."""
    if not is_number(value):
        hint = ": read it with dl.load" if describe(value).startswith("tensor ") else ""
        raise Problem(f"{what} is {describe(value)}, expected a tile or a number{hint}")


def reject_narrow(value: Any, what: str) -> None:
    """Raises for codes."""
    if isinstance(value, Tile) and value.dtype.is_narrow:
        raise Problem(
            f"{what} is {describe(value)}, expected float32: "
            "convert with .to(dl.float32), or use dl.dequantize for values under their scales"
        )


def common_dtype(e: Emitter, values: Sequence[Any]) -> DType:
    """The type that operands meet in.

    Floats of any kind meet in float32. Integers take the widest type: int64, index, int32 in this order.
    Tiles hold no indices: beside a tile an index is an int64. Python's numbers have no type of their own
    beyond int, float, bool.
    """
    for value in values:
        reject_narrow(value, "operand")
    if any(_is_float(value) for value in values):
        return types.float32
    tiles = [value.dtype for value in values if isinstance(value, Tile)]
    scalars = [value.dtype for value in values if isinstance(value, Scalar)]
    for dtype in (types.int64, types.index, types.int32):
        if dtype in tiles or dtype in scalars:
            return types.int64 if tiles and dtype is types.index else dtype
    # Booleans only, perhaps beside Python's integers.
    if any(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return types.int32 if tiles or scalars else types.index
    return types.bool_


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, (Tile, Scalar)) and value.dtype.is_float)


def unify(e: Emitter, values: Sequence[Any], dtype: DType, what: str) -> list[Any]:
    """All operands in one type and one shape (or all scalars)."""
    tiles = [value for value in values if isinstance(value, Tile)]
    if not tiles:
        return [to_scalar(e, value, dtype) for value in values]
    shape = broadcast_shape([tile.shape for tile in tiles], what)
    return [to_tile(e, value, shape, dtype) for value in values]


def to_scalar(e: Emitter, value: Any, dtype: DType) -> Scalar:
    """A number as a runtime scalar."""
    return e.convert(value, dtype) if isinstance(value, Scalar) else e.scalar(value, dtype)


def to_tile(e: Emitter, value: Any, shape: tuple[int, ...], dtype: DType) -> Tile:
    """A number, scalar or tile as a tile of this shape and type."""
    if not isinstance(value, (Tile, Scalar)):
        return e.splat(shape, value, dtype)
    return e.broadcast(e.convert(value, dtype), shape)


def broadcast_shape(shapes: Sequence[tuple[int, ...]], what: str) -> tuple[int, ...]:
    """NumPy's rule: aligned at the last dimension, extents are equal or 1."""
    result: list[int] = []
    for d in range(1, max(len(shape) for shape in shapes) + 1):
        extents = {shape[-d] for shape in shapes if len(shape) >= d} - {1}
        if len(extents) > 1:
            found = " and ".join(str(shape) for shape in shapes)
            raise Problem(f"operands of {what} have shapes {found}, expected shapes that broadcast")
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def float_operands(e: Emitter, values: Sequence[Any], what: str) -> list[Any]:
    """Operands of a float function: float32, one shape. Numbers of Python become constants."""
    for value in values:
        require_number(value, f"operand of {what}")
        reject_narrow(value, f"operand of {what}")
    return unify(e, values, types.float32, what)


def number_dtype(value: Any) -> DType:
    """The data type of a number, scalar or tile."""
    return value.dtype if isinstance(value, (Tile, Scalar)) else constant_dtype(value)
