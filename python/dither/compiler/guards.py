"""Places that hold what a kernel's code depends on, for the launch path to look at."""

from __future__ import annotations

import types as python_types
from typing import Any

from .identity import MISSING


class Guards:
    """Places and the objects that they held: while each still does, what was read of them is what it was.

    `rows` are (kind, container, name, object), the kinds those of Guard in python/src/Launch.h; Ellipsis stands
    for a place that held nothing.
    """

    ITEM, CELL, CODE, DEFAULTS, KEYWORD_DEFAULTS, ATTRIBUTE = range(6)

    def __init__(self) -> None:
        self.rows: list[tuple[int, Any, str, Any]] = []
        self._seen: set[tuple[int, int, str]] = set()

    def add(self, kind: int, container: Any, name: str, value: Any) -> None:
        """Once for each place."""
        if (kind, id(container), name) not in self._seen:
            self._seen.add((kind, id(container), name))
            self.rows.append((kind, container, name, ... if value is MISSING else value))

    def hold(self) -> bool:
        """Whether each place still has the object that it had."""
        try:
            return all(_held(kind, container, name) is value for kind, container, name, value in self.rows)
        except Exception:  # of a property
            return False

    def item(self, container: dict[str, Any], name: str) -> Any:
        """An entry of a dictionary; MISSING where there is none."""
        value = container.get(name, MISSING)
        self.add(self.ITEM, container, name, value)
        return value

    def cell(self, cell: python_types.CellType, name: str) -> Any:
        """What a cell of a closure holds; MISSING for nothing."""
        try:
            value = cell.cell_contents
        except ValueError:
            value = MISSING
        self.add(self.CELL, cell, name, value)
        return value

    def attribute(self, container: Any, name: str) -> Any:
        """An attribute of a module or a class."""
        value = getattr(container, name, MISSING)
        if isinstance(container, python_types.ModuleType) and vars(container).get(name, MISSING) is value:
            self.add(self.ITEM, vars(container), name, value)
        else:
            self.add(self.ATTRIBUTE, container, name, value)
        return value

    def function(self, function: python_types.FunctionType, code: python_types.CodeType) -> dict[str, Any]:
        """The code of a function, and its defaults, which are the result."""
        self.add(self.CODE, function, "", code)
        positional, named = function.__defaults__, function.__kwdefaults__
        self.add(self.DEFAULTS, function, "", MISSING if positional is None else positional)
        self.add(self.KEYWORD_DEFAULTS, function, "", MISSING if named is None else named)
        names = code.co_varnames[: code.co_argcount]
        values = positional or ()
        found = dict(zip(names[len(names) - len(values) :], values, strict=False))
        for name in list(named or ()):
            assert named is not None
            found[name] = self.item(named, name)
        return {name: value for name, value in found.items() if value is not MISSING}


def _held(kind: int, container: Any, name: str) -> Any:
    """What a place holds; Ellipsis for nothing."""
    if kind == Guards.ITEM:
        return container.get(name, ...)
    if kind == Guards.CELL:
        try:
            return container.cell_contents
        except ValueError:
            return ...
    if kind == Guards.CODE:
        return container.__code__
    if kind == Guards.ATTRIBUTE:
        return getattr(container, name, ...)
    value = container.__defaults__ if kind == Guards.DEFAULTS else container.__kwdefaults__
    return ... if value is None else value
