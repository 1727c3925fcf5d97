"""What a name can stand for while a kernel is compiled.

Everything that is none of these classes is a constexpr: an ordinary Python object.
"""

from __future__ import annotations

from typing import Any

from .. import types
from ..data_classes import dataclass
from ..formats import Format
from ..types import DType, TensorType


class Problem(Exception):
    """An error without a position yet: the walker adds that of the expression it is at.

    `argument` names the parameter of the call that is to blame (`entry` the element, where a tuple is
    passed), and `node` the syntax.
    """

    def __init__(self, message: str, argument: str | None = None, node: Any = None, entry: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument
        self.entry = entry
        self.node = node


@dataclass(frozen=True, eq=False)
class Tile:
    """A tensor of rank 0 to 2 with a static shape; `ir` is the compiler's value."""

    ir: Any
    dtype: DType
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scalar:
    """A number known only at run time: index, int32, int64, float32 or bool."""

    ir: Any
    dtype: DType


@dataclass(frozen=True, eq=False)
class TensorArg:
    """A tensor argument of the kernel."""

    ir: Any
    name: str
    type: TensorType


@dataclass(frozen=True, eq=False)
class Struct:
    """An argument of a class with fields, some of which are tensors: its fields and nothing else."""

    kind: str
    fields: dict[str, Any]
    #: A NamedTuple: its fields have places, too.
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class Method:
    """`t.to`: a method before its call."""

    receiver: Tile | Scalar
    name: str


@dataclass(frozen=True)
class Undefined:
    """A variable that not every path assigns; `why` completes the error of reading it."""

    why: str


RUNTIME = (Tile, Scalar, TensorArg, Struct, Method, Undefined)


def as_sequence(value: Any) -> Any:
    """The entries of a NamedTuple; other values as they are."""
    return tuple(value.fields.values()) if isinstance(value, Struct) and value.ordered else value


def is_constexpr(value: Any) -> bool:
    """Whether a value is known while compiling (of a tuple, all of it)."""
    if isinstance(value, tuple):
        return all(is_constexpr(item) for item in value)
    return not isinstance(value, RUNTIME)


def is_number(value: Any) -> bool:
    """Whether arithmetic takes the value."""
    return isinstance(value, (Tile, Scalar, int, float))


def describe(value: Any) -> str:
    """The value in an error message: `a float32 tile of shape (4, 128)`, `an int32 scalar`, `'abc'`."""
    match value:
        case Tile():
            return f"{_article(value.dtype)} tile of shape {value.shape}"
        case Scalar():
            return f"{_article(value.dtype)} scalar"
        case TensorArg():
            return f"tensor '{value.name}'"
        case Struct():
            return f"a {value.kind} of tensors"
        case Method():
            return f"method '{value.name}'"
        case Undefined():
            return "nothing"
        case tuple():
            return f"a tuple of {len(value)}"
        case bool() | int() | float() | str() | None | DType() | Format():
            return repr(value)
        case _ if callable(value) and hasattr(value, "__name__"):
            return f"function '{value.__name__}'"
        case _:
            return f"an object of type {type(value).__name__}"


def _article(dtype: DType) -> str:
    return f"an {dtype}" if dtype.name[0] in "aeiou" else f"a {dtype}"


def constant_dtype(value: int | float) -> DType:
    """The type that a Python number has where it must have one: integers are indices."""
    if isinstance(value, bool):
        return types.bool_
    return types.index if isinstance(value, int) else types.float32
