"""What random bits mean: Philox4x32-10, in the operations of tiles.

J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any

from .. import types
from .arithmetic import unify
from .builtins import bits32, handles, signed32
from .emit import Emitter
from .values import Problem, Scalar, describe

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


@handles("philox")
def philox(e: Emitter, seed: Any, counter: Any) -> tuple[Any, ...]:
    words = counter if isinstance(counter, tuple) else (counter,)
    if not 1 <= len(words) <= 4:
        raise Problem(f"counter has {len(words)} words, expected one to four", "counter")
    words = tuple(bits32(word, f"word {i} of counter of dl.philox", "counter") for i, word in enumerate(words))
    key = _key(e, seed)
    c = unify(e, [*words, *[0] * (4 - len(words))], types.int32, "dl.philox")
    for i in range(_ROUNDS):
        if i:
            key = tuple(_sum(e, k, step) for k, step in zip(key, _KEY_STEPS, strict=True))
        (low0, high0), (low1, high1) = (_product(e, c[j], m) for j, m in zip((0, 2), _MULTIPLIERS, strict=True))
        c = [_xor(e, high1, c[1], key[0]), low1, _xor(e, high0, c[3], key[1]), low0]
    return tuple(c)


def _key(e: Emitter, seed: Any) -> tuple[Any, Any]:
    """The two words of a seed, low one first; integers where they are known."""
    if isinstance(seed, int) and not isinstance(seed, bool) and -(2**63) <= seed < 2**64:
        return seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    if not isinstance(seed, Scalar) or seed.dtype not in (types.int32, types.int64, types.index):
        raise Problem(f"seed is {describe(seed)}, expected an integer of 64 bits", "seed")
    wide = e.convert(seed, types.int64)
    high = e.elementwise("arith.shrsi", [wide, e.scalar(32, types.int64)])
    return e.convert(wide, types.int32), e.convert(high, types.int32)


def _sum(e: Emitter, word: Any, step: int) -> Any:
    if isinstance(word, int):
        return word + step
    return e.elementwise("arith.addi", [word, e.scalar(signed32(step), types.int32)])


def _product(e: Emitter, word: Any, factor: int) -> tuple[Any, Any]:
    """The lower and the upper half."""
    operands = unify(e, [word, signed32(factor)], types.int32, "dl.philox")
    return e.elementwise("arith.muli", operands), e.elementwise("quant.mulhi", operands, {"is_unsigned": True})


def _xor(e: Emitter, *words: Any) -> Any:
    result, *rest = unify(e, [signed32(w) if isinstance(w, int) else w for w in words], types.int32, "dl.philox")
    for word in rest:
        result = e.elementwise("arith.xori", [result, word])
    return result
