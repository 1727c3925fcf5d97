"""Arguments that hold tensors: tuples, NamedTuples and dataclasses, taken apart into one argument for each entry.

What is in one is called by its path: `xs[0]`, `weights.gamma`. The code of a kernel, its launch path and its messages
know these as they know plain parameters.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Mapping
from typing import Any

from .arrays import Array, Buffer, View
from .compiler.captures import is_passable
from .compiler.identity import is_namedtuple_class
from .scalars import constant_number
from .types import SameAs, ScalarType, Structure, TensorType

#: Described here, whatever they are made of.
_LEAVES = (Array, Buffer, View, TensorType, ScalarType, SameAs)


def take_apart(arguments: Mapping[str, Any]) -> tuple[dict[str, Structure], dict[str, Any]]:
    """The structures among the arguments of a call, by parameter, and all arguments by path."""
    structures: dict[str, Structure] = {}
    leaves: dict[str, Any] = {}
    for name, value in arguments.items():
        structure = _structure(name, value, kinds_of(value)) if may_hold_tensors(value) else None
        if structure is None:
            leaves[name] = value
        else:
            structures[name] = structure
            _collect(structure, value, leaves)
    return structures, leaves


def may_hold_tensors(value: Any) -> bool:
    """Whether a value is of a kind that can be a structure."""
    kind: Any = type(value)
    return kind is tuple or _labels(kind) is not None


#: Structures within one another, at most.
_DEEPEST = 32


def kinds_of(value: Any, depth: int = 0) -> Any:
    """The types of a value and of all that is in it: equal ones are structures of one kind, or none."""
    kind: Any = type(value)
    if depth > _DEEPEST:
        raise TypeError(f"found tuples and classes {depth} deep in an argument, expected at most {_DEEPEST}")
    if kind is tuple:
        return (None, *(kinds_of(item, depth + 1) for item in value))
    labels = _labels(kind)
    if labels is None:
        return weakref.ref(kind)
    missing = next((label for label in labels if not hasattr(value, label)), None)
    if missing is not None:
        raise TypeError(f"found a {kind.__name__} without '{missing}', expected a value for each of its fields")
    return (weakref.ref(kind), *(kinds_of(getattr(value, label), depth + 1) for label in labels))


#: Fields by class, which nothing here keeps.
_fields: weakref.WeakKeyDictionary[Any, tuple[str, ...] | None] = weakref.WeakKeyDictionary()


def _labels(kind: Any) -> tuple[str, ...] | None:
    """Fields of a NamedTuple or a dataclass; None of what is no structure."""
    if kind not in _fields:
        _fields[kind] = _read_labels(kind)
    return _fields[kind]


def _read_labels(kind: Any) -> tuple[str, ...] | None:
    if issubclass(kind, _LEAVES):
        return None
    if is_namedtuple_class(kind):
        return tuple(kind._fields)
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


#: Structures by path and kinds; None of values without a tensor.
_known: dict[tuple[str, Any], Any] = {}
_UNKNOWN = object()
_MOST_KNOWN = 4096


def _structure(path: str, value: Any, kinds: Any) -> Structure | None:
    """How a value is put together; None where there is no tensor in it."""
    key = path, kinds
    known = _known.get(key, _UNKNOWN)
    if known is _UNKNOWN:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[key] = _made(path, value) if _holds_tensors(value) else None
    return known


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Label and value of each entry; none of what is no structure."""
    if type(value) is tuple:
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    kind: Any = type(value)
    return [(f".{label}", getattr(value, label)) for label in _labels(kind) or ()]


def _holds_tensors(value: Any) -> bool:
    """Whether there is something in a value that exists only at run time."""
    return any(_holds_tensors(item) or _is_tensor(item) for _, item in _parts(value))


def _is_tensor(value: Any) -> bool:
    if isinstance(value, _LEAVES):
        return True
    return not is_passable(constant_number(value)) and not isinstance(value, (list, dict, set))


def _made(path: str, value: Any) -> Structure:
    entries: list[tuple[str, Structure | str]] = []
    for label, item in _parts(value):
        inner = path + label
        entries.append((label, _made(inner, item) if _holds_tensors(item) else inner))
    if type(value) is tuple:
        return Structure("tuple", tuple(entries))
    return Structure(type(value).__name__, tuple(entries), is_namedtuple_class(type(value)))


def _collect(structure: Structure, value: Any, leaves: dict[str, Any]) -> None:
    """The entries of a value that is such a structure, by path."""
    for i, (label, entry) in enumerate(structure.entries):
        item = value[i] if structure.kind == "tuple" else getattr(value, label[1:])
        if isinstance(entry, Structure):
            _collect(entry, item, leaves)
        else:
            leaves[entry] = item
