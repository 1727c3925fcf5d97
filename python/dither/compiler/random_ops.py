"""What random bits mean: Philox4x32-10, in the operations of tiles.

J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any

from .. import types
from .arithmetic import binary, unify
from .builtins import axis_of, bits32, constexpr_shape, handles, signed32
from .emit import Emitter, tile_type
from .parts import reject_in_parts
from .values import Problem, Scalar, Tile, describe

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
#: Elements that share a block of random words, a byte each.
_GROUP = 16
#: Elements that share one, a word each, and the bit of the counter's last word that it has then: groups of 16 are far
#: below 2^62.
_QUAD = 4
_UNIFORM = 1 << 30


@handles("philox")
def philox(e: Emitter, seed: Any, counter: Any) -> tuple[Any, ...]:
    words = counter if isinstance(counter, tuple) else (counter,)
    if not 1 <= len(words) <= 4:
        raise Problem(f"counter has {len(words)} words, expected one to four", "counter")
    words = tuple(bits32(word, f"word {i} of counter of dl.philox", "counter") for i, word in enumerate(words))
    return _words(e, _two_words(e, seed, "seed"), words)


def _words(e: Emitter, key: tuple[Any, Any], counter: tuple[Any, ...]) -> tuple[Any, ...]:
    """The four words of each counter."""
    c = unify(e, [*counter, *[0] * (4 - len(counter))], types.int32, "dl.philox")
    for i in range(_ROUNDS):
        if i:
            key = (_sum(e, key[0], _KEY_STEPS[0]), _sum(e, key[1], _KEY_STEPS[1]))
        (low0, high0), (low1, high1) = (_product(e, c[j], m) for j, m in zip((0, 2), _MULTIPLIERS, strict=True))
        c = [_xor(e, high1, c[1], key[0]), low1, _xor(e, high0, c[3], key[1]), low0]
    return tuple(c)


@handles("random_bits")
def random_bits(
    e: Emitter, seed: Any, at: Any, shape: Any, groups: Any, axis: Any, offset: Any, columnwise: Any
) -> Tile:
    reject_in_parts(e, "dl.random_bits")
    extents = constexpr_shape(shape)
    if len(extents) != 2:
        raise Problem(f"shape is {extents}, expected two extents", "shape")
    axis = axis_of(axis, 2)
    if extents[axis] % _GROUP:
        raise Problem(f"axis {axis} of shape has {extents[axis]} elements, expected whole groups of {_GROUP}", "shape")
    if not isinstance(at, tuple) or len(at) != 2:
        raise Problem(f"at is {describe(at)}, expected a line and a group", "at")
    if not isinstance(columnwise, bool):
        raise Problem(f"columnwise is {describe(columnwise)}, expected a constexpr bool", "columnwise")
    mark = -(2**31) if columnwise else 0
    word = _word_of_each(e, seed, offset, at, extents, groups, axis, _GROUP, mark)
    shift = e.broadcast(binary(e, "*", binary(e, "&", _iota(e, extents, axis), 3), 8), extents)
    return binary(e, "&", e.elementwise("arith.shrui", [word, shift]), 0xFF)


@handles("uniform")
def uniform(e: Emitter, seed: Any, offset: Any) -> Tile:
    if e.part is None:
        raise Problem("dl.uniform outside of a function of dither.fuse, expected dl.philox in a kernel")
    shape, (row, column) = e.part.shape, e.part.at
    if shape[1] % _QUAD:
        raise Problem(f"dl.uniform of tiles of {shape[1]} columns, expected a multiple of {_QUAD}")
    at = (row, binary(e, "//", column, _QUAD))
    groups = binary(e, "//", binary(e, "+", e.part.columns, _QUAD - 1), _QUAD)
    word = _word_of_each(e, seed, offset, at, shape, groups, 1, _QUAD, _UNIFORM)
    return binary(e, "*", e.convert(binary(e, "&", word, 0xFFFFFF), types.float32), 2.0**-24)


def _word_of_each(
    e: Emitter,
    seed: Any,
    offset: Any,
    at: tuple[Any, Any],
    extents: tuple[int, ...],
    groups: Any,
    axis: int,
    size: int,
    mark: int,
) -> Tile:
    """For each element of a part of a tensor one of the four words of its group, which is `size` elements along an
    axis: the first quarter has the first word. `mark` are bits of the counter's last word."""
    key = _two_words(e, seed, "seed")
    low, high = _groups(e, at, tuple(n // size if d == axis else n for d, n in enumerate(extents)), groups, axis)
    if mark:
        high = binary(e, "|", high, mark)
    words = _words(e, key, tuple(_as_word(w) for w in (*_two_words(e, offset, "offset"), low, high)))
    block = f"array<i64: {', '.join(str(size) if d == axis else '1' for d in range(2))}>"
    w0, w1, w2, w3 = (_repeated(e, word, block) for word in words)
    place, quarter = _iota(e, extents, axis), size // 4
    second, upper = (
        e.broadcast(binary(e, "!=", binary(e, "&", place, bit), 0), extents) for bit in (quarter, 2 * quarter)
    )
    lower_half = e.elementwise("arith.select", [second, w1, w0])
    upper_half = e.elementwise("arith.select", [second, w3, w2])
    return e.elementwise("arith.select", [upper, upper_half, lower_half])


def _repeated(e: Emitter, word: Tile, block: str) -> Tile:
    """A word for each group as one for each element. What blocks have is f32 wherever it is kept."""
    wide = e.tile("quant.block_broadcast", [e.like("arith.bitcast", word, types.float32)], {"block": block})
    return e.like("arith.bitcast", wide, types.int32)


def _iota(e: Emitter, extents: tuple[int, ...], axis: int) -> Tile:
    """The index along an axis, with extent 1 along the others."""
    shape = tuple(n if d == axis else 1 for d, n in enumerate(extents))
    return e.tile("quant.iota", [], {"dim": axis}, tile_type(shape, types.int32))


def _groups(e: Emitter, at: tuple[Any, Any], counts: tuple[int, ...], groups: Any, axis: int) -> tuple[Tile, Tile]:
    """The words of (line + i) * groups + group + j for line i and group j of a part: `counts` of them."""
    line, group = _integer(e, at[0], "line", "at"), _integer(e, at[1], "group", "at")
    per_line = _integer(e, groups, "groups", "groups")
    first = e.elementwise("arith.addi", [e.elementwise("arith.muli", [line, per_line]), group])
    low, high = _split(e, first)
    # Lines of a part times groups of a line are more than a word has.
    step, _ = _split(e, per_line)
    lines = _iota(e, counts, 1 - axis)
    steps = e.broadcast(step, lines.shape)
    low, high = _carry(
        e,
        (e.broadcast(low, lines.shape), e.broadcast(high, lines.shape)),
        (
            e.elementwise("arith.muli", [lines, steps]),
            e.elementwise("quant.mulhi", [lines, steps], {"is_unsigned": True}),
        ),
    )
    along = e.broadcast(_iota(e, counts, axis), counts)
    return _carry(e, (e.broadcast(low, counts), e.broadcast(high, counts)), (along, e.splat(counts, 0, types.int32)))


def _carry(e: Emitter, x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Tile, Tile]:
    """The sum of two numbers of two words."""
    low, high = (e.elementwise("arith.addi", list(pair)) for pair in zip(x, y, strict=True))
    carries = e.elementwise("arith.cmpi", [low, x[0]], {"predicate": 6})
    more = e.elementwise("arith.addi", [high, e.splat(high.shape, 1, types.int32)])
    return low, e.elementwise("arith.select", [carries, more, high])


def _integer(e: Emitter, value: Any, what: str, parameter: str) -> Scalar:
    """An integer as an int64."""
    if isinstance(value, int) and not isinstance(value, bool):
        return e.scalar(value, types.int64)
    if not isinstance(value, Scalar) or value.dtype not in (types.int32, types.int64, types.index):
        raise Problem(f"{what} is {describe(value)}, expected an integer", parameter)
    return e.convert(value, types.int64)


def _split(e: Emitter, wide: Any) -> tuple[Any, Any]:
    """The two words of an int64, the low one first."""
    by = e.splat((), 32, types.int64) if isinstance(wide, Tile) else e.scalar(32, types.int64)
    high = e.elementwise("arith.shrsi", [wide, by])
    return e.convert(wide, types.int32), e.convert(high, types.int32)


def _as_word(word: Any) -> Any:
    return signed32(word) if isinstance(word, int) else word


def _two_words(e: Emitter, value: Any, what: str) -> tuple[Any, Any]:
    """The two words of an integer of 64 bits, low one first; integers where they are known."""
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64:
        return value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF
    if isinstance(value, Tile) and value.shape == () and value.dtype is types.int64:
        return _split(e, value)
    if not isinstance(value, Scalar) or value.dtype not in (types.int32, types.int64, types.index):
        raise Problem(f"{what} is {describe(value)}, expected an integer of 64 bits, or a tile of rank 0 of one", what)
    return _split(e, e.convert(value, types.int64))


def _sum(e: Emitter, word: Any, step: int) -> Any:
    if isinstance(word, int):
        return word + step
    return e.elementwise("arith.addi", unify(e, [word, signed32(step)], types.int32, "dl.philox"))


def _product(e: Emitter, word: Any, factor: int) -> tuple[Any, Any]:
    """The lower and the upper half."""
    operands = unify(e, [word, signed32(factor)], types.int32, "dl.philox")
    return e.elementwise("arith.muli", operands), e.elementwise("quant.mulhi", operands, {"is_unsigned": True})


def _xor(e: Emitter, *words: Any) -> Any:
    result, *rest = unify(e, [signed32(w) if isinstance(w, int) else w for w in words], types.int32, "dl.philox")
    for word in rest:
        result = e.elementwise("arith.xori", [result, word])
    return result
