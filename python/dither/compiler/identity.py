"""Which objects a kernel may read from outside, and the text that stands for each in the key of its code.

Objects are never asked who they are: `repr`, `==` and `hash` of a user's class say what its author liked. What counts
is written here from plain data: numbers with their type and bits, strings, tuples, and of a configuration (a member of
an enum, a NamedTuple, a frozen dataclass) its class, its fields, and whatever else the kernel reads of it.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
import struct
import types as python_types
from collections.abc import Callable, Mapping
from typing import Any

from ..data_classes import dataclass
from ..formats import FORMATS, Format, get_format
from ..language import Builtin, ScaleLayout
from ..scalars import constant_number
from ..types import DTYPES, DType
from .source import unwrap
from .values import Problem, describe

MISSING = object()
ATOMS = (bool, int, float, str, type(None))
#: Objects of ours, which are what they say.
OWN = (DType, Format, ScaleLayout, Builtin)
_NO_DATA = (python_types.FunctionType, python_types.ModuleType, python_types.BuiltinFunctionType, type, *OWN)


@dataclass(frozen=True, eq=False)
class Raised:
    """In place of an attribute: reading it raised."""

    error: Exception


def is_dataclass(value: Any) -> bool:
    """Whether a value is a frozen dataclass, and nothing else besides. One of ours is not meant."""
    return (
        dataclasses.is_dataclass(value)
        and not isinstance(value, (type, int, float, str, tuple, enum.Enum, *OWN))
        and getattr(value, "__dataclass_params__").frozen  # noqa: B009
    )


def is_namedtuple(value: Any) -> bool:
    """Whether a value is of a class that NamedTuple made."""
    return is_namedtuple_class(type(value))


def is_namedtuple_class(kind: Any) -> bool:
    """Whether NamedTuple made a class, or one that it derives from."""
    return issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple)


def is_elementary(value: Any) -> bool:
    """Whether a value is a number, text, a function, a class, a module or one of ours: most of what is asked about."""
    return type(value) in ATOMS or isinstance(value, _NO_DATA)


def is_configuration(value: Any) -> bool:
    """Whether a value is data with attributes that a user's class defines."""
    if is_elementary(value):
        return False
    return (isinstance(value, enum.Enum) and not isinstance(value, OWN)) or is_namedtuple(value) or is_dataclass(value)


def function_behind(value: Any) -> python_types.FunctionType | None:
    """As `unwrap`, of what is no class, module or configuration."""
    named = isinstance(value, (type, python_types.ModuleType)) or is_configuration(value)
    return None if named else unwrap(value)


def is_plain(value: Any) -> bool:
    """Whether a value is data that a kernel may capture or be passed."""
    return why_not_plain("it", value) is None


def why_not_plain(name: str, value: Any) -> str | None:
    """What is wrong with a value that kernels do not take; `name` is what the user calls it. Functions are no data,
    but configurations may hold them."""
    kind = type(value)
    if kind in ATOMS or isinstance(value, OWN):
        return None
    if kind is tuple:
        return _first_of(f"an entry of {name}", value, why_not_plain)
    if is_configuration(value):
        return _why_no_configuration(name, value)
    where = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__ == "builtins" and isinstance(value, (list, dict, set, bytearray)):
        hint = "a tuple" if isinstance(value, list) else "numbers, strings or tuples"
        return f"{name} is a {kind.__name__}, which can change: expected {hint}"
    base = next((base for base in (int, float, str, tuple) if isinstance(value, base)), None)
    if base is not None:
        return f"{name} is a {where}, a class derived from {base.__name__}: expected a plain {base.__name__}"
    return (
        f"{name} is a {where} from outside the kernel, "
        "expected a constexpr (number, string, tuple, format, data type): pass tensors as arguments"
    )


def _why_no_configuration(name: str, value: Any) -> str | None:
    for base in type(value).__mro__:
        for special in vars(base).keys() & _OPERATORS:
            home = getattr(vars(base)[special], "__module__", None)
            if base.__module__ in _SAFE or home in _SAFE or (special in _COMPARISONS and is_dataclass(value)):
                continue  # comparisons of dataclasses are refused where they are made
            found = f"{name} is a {base.__module__}.{base.__qualname__}, which defines {special}"
            return f"{found}: kernels run no operators of classes, expected plain data"
    if isinstance(value, enum.Enum):
        return None
    if isinstance(value, tuple):
        return _first_of(f"an entry of {name}", value, _why_not_held)
    for field in dataclasses.fields(value):
        why = _why_not_held(f"{name}.{field.name}", constant_number(getattr(value, field.name, MISSING)))
        if why:
            return why
    return None


def _why_not_held(name: str, value: Any) -> str | None:
    """What is wrong with a value of a configuration, or of a tuple in one."""
    if type(value) is tuple:
        return _first_of(f"an entry of {name}", value, _why_not_held)
    return None if function_behind(value) is not None else why_not_plain(name, value)


def _first_of(name: str, values: Any, why: Callable[[str, Any], str | None]) -> str | None:
    return next((found for item in values if (found := why(name, item))), None)


#: Modules whose classes and methods do what Python's documentation says.
_SAFE = ("builtins", "enum", "collections", "typing", "abc")
_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
#: What Python calls by itself when it computes with numbers, strings and tuples.
_OPERATORS = {name for kind in (int, float, str, tuple) for name in vars(kind) if name.startswith("__")} - {
    *("__new__", "__doc__", "__hash__", "__getattribute__", "__getnewargs__", "__sizeof__", "__getformat__"),
    "__class_getitem__",
    *("__repr__", "__str__", "__format__"),  # refused where they are asked for
}


# ---- Python's operations on data


def check_operation(function: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    """Raises Problem where an operation on constexprs would run a method of a user's class."""
    if function is isinstance and len(operands) == 2:
        for kind in operands[1] if isinstance(operands[1], tuple) else (operands[1],):
            if isinstance(kind, type) and type(kind).__instancecheck__ is not type.__instancecheck__:
                raise Problem(f"isinstance of '{kind.__name__}', which decides itself: expected an ordinary class")
        return
    if function in _BLIND:
        return
    text = function in (str, repr, format)
    for operand in (*operands, getattr(function, "__self__", None)):
        found = _find(operand, is_configuration if text else is_dataclass)
        if found is not None:
            what = "the text" if text else "an operation"
            raise Problem(f"{what} of a {type(found).__name__}, expected its fields")


def _find(value: Any, wanted: Callable[[Any], bool]) -> Any:
    if type(value) in ATOMS:
        return None
    if wanted(value):
        return value
    items = value if isinstance(value, tuple) else ()
    return next((found for item in items if (found := _find(item, wanted)) is not None), None)


def is_same(a: Any, b: Any) -> bool:
    """`a is b`, for objects that there is one of. Raises Problem for numbers, strings and the like."""
    for value in (a, b):
        one_of = isinstance(value, (bool, type(None), enum.Enum, DType, Builtin, type, python_types.FunctionType))
        if one_of or (isinstance(value, Format) and FORMATS.get(value.name) is value):
            return a is b
    raise Problem(f"'is' of {describe(a)} and {describe(b)}, expected '=='")


def is_other(a: Any, b: Any) -> bool:
    """`a is not b`."""
    return not is_same(a, b)


#: What does not look at what is in a tuple.
_BLIND = frozenset(
    (
        *(operator.getitem, operator.add, operator.mul, operator.not_, is_same, is_other),
        *(len, tuple, bool, reversed, enumerate, zip, range),
    )
)


# ---- text

_TO_BASE: dict[type, Callable[[Any], Any]] = {int: int.__int__, float: float.__float__, str: str.__str__}


class Writer:
    """Writes values as text that differs where anything that a kernel can read of them does.

    `functions` has the number of each function that is lowered, by identity; `attributes` what was read of
    configurations. What is an object (a class, a function) is numbered, so that two are told apart.
    """

    def __init__(self, functions: Mapping[int, int], attributes: Mapping[int, Mapping[str, Any]]) -> None:
        self._functions = functions
        self._attributes = attributes
        self._numbers: dict[int, int] = {}

    def copy(self) -> Writer:
        """One that has written the same, for text that goes on from there."""
        other = Writer(self._functions, self._attributes)
        other._numbers = dict(self._numbers)
        return other

    def write(self, value: Any) -> str:
        """The text of a value."""
        kind = type(value)
        if value is None or kind is bool:
            return str(value)
        if kind is int:
            return f"int {value}"
        if kind is float:
            return f"float {value!r}" if value == value else f"float nan {struct.pack('>d', value).hex()}"
        if kind is str:
            return f"str {value!r}"
        if kind is tuple:
            return self._items(value)
        if isinstance(value, (DType, Format)):
            if value is FORMATS.get(value.name) or any(value is known for known in DTYPES):
                return repr(value)
            fields = (getattr(value, field.name) for field in dataclasses.fields(value))
            return f"{value!r} {self._items(fields)}"
        if isinstance(value, ScaleLayout):
            return f"layout {value.name}"
        if isinstance(value, Builtin):
            return f"language {value.name}"
        if value is get_format:
            return "get_format"
        if is_configuration(value):
            return self._configuration(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, python_types.ModuleType):
            return f"module {value.__name__!r}"
        if isinstance(value, python_types.MethodType):
            return f"method {self.write(value.__func__)} of {self.write(value.__self__)}"
        function = unwrap(value)
        if function is not None and id(function) in self._functions:
            return f"function {self._functions[id(function)]}"
        if isinstance(value, python_types.BuiltinFunctionType):
            owner = value.__self__
            if owner is None or isinstance(owner, python_types.ModuleType):
                return f"builtin {value.__module__}.{value.__qualname__}"
            if is_plain(owner):
                return f"builtin {value.__name__!r} of {self.write(owner)}"
        # Nothing that a kernel can do anything with; enough that two are two.
        return f"object {kind.__module__}.{kind.__qualname__} {self._number(value)[0]}"

    def _items(self, values: Any) -> str:
        return f"({', '.join(map(self.write, values))})"

    def _configuration(self, value: Any) -> str:
        number, known = self._number(value)
        if known:
            return f"configuration {number}"
        parts = [f"configuration {number} {self._class(type(value))}"]
        if isinstance(value, enum.Enum):
            parts.append(repr(value.name))
            parts += [self.write(convert(value)) for base, convert in _TO_BASE.items() if isinstance(value, base)]
        if isinstance(value, tuple):
            parts.append(self._items(value))
        read = self._attributes.get(id(value), {})
        parts += [f"{name!r}: {self.write(read[name])}" for name in sorted(read) if is_readable(read[name])]
        return f"{{{', '.join(parts)}}}"

    def _class(self, value: type) -> str:
        number, known = self._number(value)
        if known:
            return f"class {number}"
        return f"class {number} {[f'{base.__module__}.{base.__qualname__}' for base in value.__mro__]}"

    def _number(self, value: Any) -> tuple[int, bool]:
        known = id(value) in self._numbers
        return self._numbers.setdefault(id(value), len(self._numbers)), known


def is_readable(value: Any) -> bool:
    """Whether reading an attribute that gave this is no error."""
    return value is not MISSING and not isinstance(value, Raised)
