"""Extents that may be others: numbers of a call that is recorded for tensors of any such extents.

The call computes with an `Extent` as with an integer. What it computes is a term, and what it asks, by comparing two
numbers, is a condition: under the same conditions it would go the same way with other extents, so that its terms say
what it would pass, allocate and return. `Terms` has both, for C++ to evaluate (python/src/ReplayTerms.cpp). A call that
needs the number itself, as a key or as a length, is not of that kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

#: What a term is, as in python/src/Replay.h: a constant and nothing; a row of the call, such as the shape of a tensor,
#: and a place in it; two terms.
_CONSTANT, _EXTENT, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _REMAINDER = range(7)
#: What a condition is, of two terms.
_EQUAL, _OTHER, _LESS, _AT_MOST = range(4)


class NotOfExtents(Exception):
    """A call needs the number that an extent is. No TypeError: nobody is to go on with something else."""


class Terms:
    """What a call computes from extents, and under which conditions.

    Attributes:
        rows: the terms, each of those before it: (what, first, second), as of the constants above.
        conditions: (what, term, term), which hold for the extents that the call was recorded with.
        failed: whether the call needed the number that an extent is.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self.conditions: dict[tuple[int, int, int], None] = {}
        self.failed = False
        self._places: dict[tuple[int, int, int], int] = {}

    def extent(self, row: int, place: int, number: int) -> Extent:
        """A number of the call: that of a row of numbers, such as the shape of a tensor, in a place; `number` is what
        it is now."""
        return Extent(self, self._place((_EXTENT, row, place)), number)

    def of(self, value: Any) -> int:
        """The place of an integer or an extent among the terms."""
        if isinstance(value, Extent):
            return value.place
        if not _fits(value):
            self.fail("a number of more than 64 bits beside the number")
        return self._place((_CONSTANT, operator.index(value), 0))

    def made(self, what: int, a: Any, b: Any, number: int) -> Extent:
        """A term of two others."""
        if not _fits(number):
            self.fail("more than 64 bits")
        return Extent(self, self._place((what, self.of(a), self.of(b))), number)

    def holds(self, what: int, a: Any, b: Any, answer: bool) -> bool:
        """Notes the answer to a question, and returns it."""
        if not (_fits(a) and _fits(b)):  # beyond all terms
            return answer
        a, b = self.of(a), self.of(b)
        if a != b:
            if not answer:  # not less is: the other is at most
                what, a, b = {_EQUAL: (_OTHER, a, b), _LESS: (_AT_MOST, b, a), _AT_MOST: (_LESS, b, a)}[what]
            self.conditions[what, a, b] = None
        return answer

    def fail(self, what: str) -> NoReturn:
        """Raises NotOfExtents."""
        self.failed = True
        raise NotOfExtents(f"found {what} of an extent that may be another")

    def _place(self, row: tuple[int, int, int]) -> int:
        if row not in self._places:
            self._places[row] = len(self.rows)
            self.rows.append(row)
        return self._places[row]


class Extent:
    """An integer of a call that is recorded: an extent of a tensor, or what was computed from some."""

    __slots__ = ("number", "place", "terms")

    def __init__(self, terms: Terms, place: int, number: int) -> None:
        self.terms, self.place, self.number = terms, place, number

    # -- what is computed --------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not is_integer(other):
            return NotImplemented
        return self if _is(other, 0) else self.terms.made(_ADD, self, other, self.number + number_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if not is_integer(other):
            return NotImplemented
        return self if _is(other, 0) else self.terms.made(_SUBTRACT, self, other, self.number - number_of(other))

    def __rsub__(self, other: Any) -> Any:
        if not is_integer(other):
            return NotImplemented
        return self.terms.made(_SUBTRACT, other, self, other - self.number)

    def __mul__(self, other: Any) -> Any:
        if not is_integer(other):
            return NotImplemented
        if isinstance(other, Extent):
            return self.terms.made(_MULTIPLY, self, other, self.number * other.number)
        base, factor = self._factor()
        factor *= other
        if factor in (0, 1):
            return base if factor else 0
        return self.terms.made(_MULTIPLY, base, factor, base.number * factor)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if not is_integer(other):
            return NotImplemented
        if not isinstance(other, Extent) and other:
            base, factor = self._factor()
            if factor % other == 0:
                return base * (factor // other)
        return self.terms.made(_DIVIDE, self, other, self.number // number_of(other))

    def __rfloordiv__(self, other: Any) -> Any:
        return self.terms.made(_DIVIDE, other, self, other // self.number) if is_integer(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        if not is_integer(other):
            return NotImplemented
        if not isinstance(other, Extent) and other and self._factor()[1] % other == 0:
            return 0
        return self.terms.made(_REMAINDER, self, other, self.number % number_of(other))

    def __rmod__(self, other: Any) -> Any:
        return self.terms.made(_REMAINDER, other, self, other % self.number) if is_integer(other) else NotImplemented

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Extent:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __lshift__(self, count: int) -> Any:
        return self * (1 << count)

    def __rshift__(self, count: int) -> Any:
        return self // (1 << count)

    def bit_length(self) -> int:
        """As that of an integer, which is asked for."""
        size, length = abs(self), self.number.bit_length()
        known = 2**length > size and (not length or size >= 2 ** (length - 1))
        assert known
        return length

    def _factor(self) -> tuple[Extent, int]:
        """A term, and the constant that it is to be multiplied by to be this one."""
        what, a, b = self.terms.rows[self.place]
        if what == _MULTIPLY and self.terms.rows[b][0] == _CONSTANT:
            factor = self.terms.rows[b][1]
            return Extent(self.terms, a, self.number // factor), factor
        return self, 1

    # -- what is asked -----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self._ask(_EQUAL, other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return self._ask(_LESS, other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._ask(_AT_MOST, other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self != 0

    def _ask(self, what: int, other: Any, compare: Callable[[int, int], bool]) -> Any:
        if isinstance(other, float):
            self.terms.fail("a comparison with a float")
        if not is_integer(other):
            return NotImplemented
        return self.terms.holds(what, self, other, compare(self.number, number_of(other)))

    # -- what it is not ----------------------------------------------------------------------

    def __index__(self) -> int:
        self.terms.fail("the number")

    def __hash__(self) -> int:
        self.terms.fail("the hash")

    def __repr__(self) -> str:
        self.terms.failed = True  # whatever the text is for
        return str(self.number)

    def __format__(self, spec: str) -> str:
        self.terms.failed = True
        return format(self.number, spec)


def _not_of_extents(name: str) -> Callable[..., NoReturn]:
    def fail(self: Extent, *_: Any) -> NoReturn:
        self.terms.fail(name)

    return fail


for _name in ("__int__", "__float__", "__complex__", "__round__", "__trunc__", "__floor__", "__ceil__", "__invert__"):
    setattr(Extent, _name, _not_of_extents(_name))
for _name in ("truediv", "pow", "and", "or", "xor", "matmul"):
    for _side in ("", "r"):
        setattr(Extent, f"__{_side}{_name}__", _not_of_extents(_name))
for _name in ("__rlshift__", "__rrshift__"):
    setattr(Extent, _name, _not_of_extents(_name))


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python's own, or an extent."""
    return isinstance(value, (int, Extent))


def integer(value: Any) -> Any:
    """An integer as Python's own, or an extent as it is. Raises TypeError for anything else."""
    return value if isinstance(value, Extent) else operator.index(value)


def number_of(value: Any) -> Any:
    """What an extent is now; anything else as it is."""
    return value.number if isinstance(value, Extent) else value


def _fits(value: Any) -> bool:
    """Whether a constant has 64 bits, as all terms have."""
    return isinstance(value, Extent) or -(2**63) <= value < 2**63


def _is(value: Any, number: int) -> bool:
    return not isinstance(value, Extent) and bool(value == number)
