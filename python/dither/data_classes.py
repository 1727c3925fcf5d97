"""Dataclasses that take a fifth of the time to define.

`dataclasses.dataclass` writes and compiles up to seven functions for each class, which took more than half of the time
to import dither. Here `__init__` is written for a class, and the others are the same for all of them.
"""

from __future__ import annotations

import dataclasses
import reprlib
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(of=None, /, *, frozen=False, eq=True, repr=True, kw_only=False):
        """The class as `dataclasses.dataclass` makes it, whose `fields`, `replace` and `asdict` take it as one.

        What derives from a dataclass is left to it: it knows whose fields come first.
        """
        if of is None:
            return lambda kind: dataclass(kind, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        if hasattr(of, "__dataclass_fields__"):
            return dataclasses.dataclass(of, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        made = dataclasses.dataclass(of, init=False, repr=False, eq=False, kw_only=kw_only)
        fields = dataclasses.fields(made)
        _add(made, __init__=_initializer(made, fields, frozen))
        if frozen:
            _add(made, **_refusals(made, {field.name for field in fields}))
        if repr:
            _add(made, __repr__=_repr)
        if eq:
            _add(made, __eq__=_equality(fields))
            # None is what Python has put there beside an `__eq__`, or nothing.
            if made.__dict__.get("__hash__") is None:
                made.__hash__ = _hash(fields) if frozen else None
        for name, value in {"init": True, "repr": repr, "eq": eq, "frozen": frozen}.items():
            setattr(made.__dataclass_params__, name, value)
        return made


class _Factory:
    """The default of a field whose value is made, as `inspect` and `help` show it."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _add(made: type, **functions: Callable[..., Any]) -> None:
    """Gives a class the functions that it does not define itself."""
    for name, function in functions.items():
        if name not in made.__dict__:
            setattr(made, name, function)


def _initializer(made: type, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """The `__init__` of a class, in the form of `dataclasses`, which torch.compile traces: globals are those of the
    module, and what else it needs is in a closure."""
    needs: dict[str, Any] = {"_object": object, "_factory": _FACTORY}
    positional: list[str] = ["self"]
    keywords: list[str] = []
    lines: list[str] = []
    for field in fields:
        name = value = parameter = field.name
        if field.default is not dataclasses.MISSING:
            needs[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            needs[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_factory"
            value = f"_make_{name}() if {name} is _factory else {name}"
        (keywords if field.kw_only else positional).append(parameter)
        lines.append(f"  _object.__setattr__(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("  self.__post_init__()")
    parameters = ", ".join([*positional, "*", *keywords] if keywords else positional)
    text = [
        f"def create({', '.join(needs)}):",
        f" def __init__({parameters}):",
        *(lines or ["  pass"]),
        " return __init__",
    ]
    local: dict[str, Any] = {}
    exec("\n".join(text), vars(sys.modules[made.__module__]), local)
    function = local["create"](**needs)
    function.__qualname__ = f"{made.__qualname__}.__init__"
    function.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return function


def _values(names: list[str]) -> Callable[[Any], Any]:
    """What gives the values of fields of an object."""
    return attrgetter(*names) if names else lambda _: ()


def _equality(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any, Any], Any]:
    values = _values([field.name for field in fields if field.compare])

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any], int]:
    values = _values([field.name for field in fields if (field.compare if field.hash is None else field.hash)])

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def _refusals(made: Any, names: set[str]) -> dict[str, Callable[..., None]]:
    """What refuses to change objects of a class, and fields of those that derive from it."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
