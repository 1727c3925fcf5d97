"""What the code of a function says without its text: what it reads from outside, and what stands for it in a key.

Keys of compiled code are made in each process, and most processes find their kernels on disk: code objects are there
anyway, and a syntax tree takes as long to make as the launch takes. Only what is compiled is parsed (source.py).
"""

from __future__ import annotations

import dis
import hashlib
import opcode
import struct
import sys
import types as python_types
import weakref
from typing import Any, Generic, TypeVar

from ..data_classes import dataclass

Code = python_types.CodeType


@dataclass(frozen=True, eq=False)
class CodeFacts:
    """What a function's code reads from outside, and what it does.

    Attributes:
        chains: names from outside with the attributes that follow, sorted: ("config", "ROWS").
        attributes: attributes that are read of anything else, sorted.
        digest: hexadecimal, the same for code that does the same, whatever file and line it comes from.
    """

    chains: tuple[tuple[str, ...], ...]
    attributes: tuple[str, ...]
    digest: str


_T = TypeVar("_T")


class CodeMemory(Generic[_T]):
    """What is known of code objects, for as long as they live. By identity: equal ones may be of different files."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Code], _T]] = {}

    def get(self, code: Code) -> _T | None:
        """What `put` was given for this very object."""
        found = self._known.get(id(code))
        return found[1] if found is not None and found[0]() is code else None

    def put(self, code: Code, value: _T) -> None:
        """Remembers a value."""
        key, known = id(code), self._known

        def forget(ref: weakref.ref[Code]) -> None:
            # No lock: this may run anywhere.
            if (found := known.get(key)) is not None and found[0] is ref:
                known.pop(key, None)

        known[key] = weakref.ref(code, forget), value


_facts: CodeMemory[CodeFacts] = CodeMemory()


def code_facts(code: Code) -> CodeFacts:
    """The facts of a function's code, those of the functions and comprehensions in it included."""
    known = _facts.get(code)
    if known is not None:
        return known
    chains: set[tuple[str, ...]] = set()
    attributes: set[str] = set()
    _read(code, chains, attributes)
    facts = CodeFacts(tuple(sorted(chains)), tuple(sorted(attributes)), _digest(code))
    _facts.put(code, facts)
    return facts


# ---- what is read


#: Bits below the index of a name, which say whether a call or a method follows.
_CALL_BITS = {
    "LOAD_GLOBAL": 1,
    "LOAD_ATTR": 1 if sys.version_info >= (3, 12) else 0,
    "LOAD_SUPER_ATTR": 2,
}
_SKIP, _EXTEND, _NAME, _CELL, _ATTRIBUTE, _JUMP, _DROP, _OTHER = range(8)
#: What an operation is here, and the bits below its index. CACHE is 0, where there is one; NOP stands where Python's
#: compiler took something out.
_OPERATIONS = {
    opcode.opmap[name]: (kind, _CALL_BITS.get(name, 0))
    for kind, names in (
        (_JUMP, [opcode.opname[jump] for jump in (*opcode.hasjrel, *opcode.hasjabs)]),
        (_DROP, ("POP_TOP", "NOT_TAKEN")),
        (_SKIP, ("CACHE", "NOP")),
        (_EXTEND, ("EXTENDED_ARG",)),
        (_NAME, ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")),
        (_CELL, ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")),
        (_ATTRIBUTE, ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")),
    )
    for name in names
    if name in opcode.opmap
}
_NOTHING = _OTHER, 0


def _read(code: Code, chains: set[tuple[str, ...]], attributes: set[str]) -> None:
    """Adds what a piece of code reads, and the pieces in it."""
    chain: tuple[str, ...] = ()
    # Where two ways meet, an attribute is read of what either leaves, (a if c else b).x: then a jump is before `b`.
    jumped = meets = False
    meetings: frozenset[int] = frozenset()
    # Of a number of more than a byte, and where the operation begins that it is for.
    extended, begin = 0, -1
    text = code.co_code
    for unit, (operation, argument) in enumerate(zip(text[::2], text[1::2], strict=True)):
        kind, bits = _OPERATIONS.get(operation, _NOTHING)
        if kind == _SKIP:
            continue
        begin = unit if begin < 0 else begin
        if kind == _EXTEND:
            extended = (extended | argument) << 8
            continue
        number, place = (extended | argument) >> bits, 2 * begin
        extended, begin = 0, -1
        if kind == _ATTRIBUTE:
            name = code.co_names[number]
            if chain and meets:
                meetings = meetings or _meetings(text)
            if chain and not (meets and place in meetings):
                chain = (*chain, name)
                continue
            attributes.add(name)
        if chain:
            chains.add(chain)
            chain = ()
        if kind == _NAME:
            chain = (code.co_names[number],)
        elif kind == _CELL and (name := _cell_name(code, number)) in code.co_freevars:
            chain = (name,)
        meets = jumped
        jumped = kind == _JUMP or (jumped and kind == _DROP)
    for constant in code.co_consts:
        if isinstance(constant, Code):
            _read(constant, chains, attributes)


def _meetings(text: bytes) -> frozenset[int]:
    """The places that jumps lead to."""
    return frozenset(dis.findlabels(text))  # type: ignore[arg-type]


def _cell_name(code: Code, number: int) -> str:
    """The variable that an operation on cells is about."""
    return str(code._varname_from_oparg(number))  # type: ignore[attr-defined]


# ---- what it does

_NAMES = ("co_names", "co_varnames", "co_freevars", "co_cellvars")
_COUNTS = ("co_argcount", "co_kwonlyargcount", "co_posonlyargcount")
#: What code does is these, its constants and these flags; the rest says where it comes from.
_FACTS = ("co_code", *_NAMES, *_COUNTS)
_VARIADIC = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS


def same_code(a: Code, b: Code) -> bool:
    """Whether two pieces of code do the same: all but where they come from and what tools keep in them."""
    return a.co_code == b.co_code and repr(_plain(a)) == repr(_plain(b))


def _digest(code: Code) -> str:
    text = repr((sys.implementation.cache_tag, _plain(code)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    """What has a `repr` that differs where two constants do, and is the same in every process."""
    if isinstance(value, Code):
        facts = [getattr(value, name) for name in _FACTS]
        return [value.co_flags & _VARIADIC, *facts, _plain(value.co_consts)]
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, frozenset):
        return sorted(repr(_plain(item)) for item in value)
    if isinstance(value, float) and value != value:
        return [struct.pack("d", value)]
    return value
