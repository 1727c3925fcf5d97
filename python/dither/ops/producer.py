"""What a fused operator computes before its output is quantized: a function on tiles, and what its parameters are.

def swiglu(gate, up):                       # tiles of (M, N) tensors, as float32
    return gate * dl.sigmoid(gate) * up

def scale_columns(x, by: dl.row):           # `by` has shape (N,): a tile of (1, columns)
    return x * by
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import keyword
import types as python_types
from collections.abc import Callable, Mapping
from typing import Any

from ..data_classes import dataclass
from ..errors import suggest
from .tiles import Tile, elementwise_tile, narrowed, round_up, row_tile

#: Roles of parameters, by the name of their annotation in `dither.language`; "tile" has none.
ROLES = (
    *("tile", "row", "column", "periodic", "scalar", "integer"),
    *("row_length", "period", "tile_dtype", "constexpr"),
)
#: Those that calls have no argument for: they follow from the first tile, or the first periodic operand.
IMPLIED = ("row_length", "period", "tile_dtype")
#: What a producer may save besides: a number for each row, a tile, or the sum of each column of a tile.
SAVED = ("column", "tile", "column_sum")


@dataclass(frozen=True, eq=False)
class Producer:
    """A function from tiles to a tile.

    Attributes:
        name: for kernels and messages.
        function: what is inlined in kernels. It returns the tile, or a tuple of the tile and what is saved.
        roles: what each of its parameters is, in order.
        whole_rows: whether it needs rows from end to end, as norms do.
        columns: what the width of tiles is a multiple of, a power of two: blocks in the function may be as long.
        saves: kind of each thing that is saved ("column": shape (M,), "tile": (M, N), "column_sum": (N,); float32), by
            name.
        optional: parameters that calls may leave out: the function gets None.
        halves: whether it returns a pair of tiles in the place of one: the left and the right half of the columns of
            the output, which has twice as many.
        output: what the output is called among results.
        like: the operand whose data type a result has by default, by the result's name: of what is saved float32 where
            there is none, of the output that of the first tile.
        periods: rows and tiles have a multiple of so many periods.
        whole_periods: whether tiles have whole periods: `columns` is a multiple of them then, and a tile has so many.
    """

    name: str
    function: Callable[..., Any]
    roles: Mapping[str, str]
    whole_rows: bool = False
    saves: Mapping[str, str] = dataclasses.field(default_factory=dict)
    columns: int = 1
    optional: frozenset[str] = frozenset()
    halves: bool = False
    output: str = "out"
    like: Mapping[str, str] = dataclasses.field(default_factory=dict)
    periods: int = 1
    whole_periods: bool = False

    @functools.cached_property
    def tile(self) -> str:
        """The first parameter that is a tile: what it is made of, and where, is that of the output."""
        return next(name for name, role in self.roles.items() if role == "tile")

    @functools.cached_property
    def sums(self) -> list[str]:
        """Names of the sums of columns that it saves."""
        return [name for name, kind in self.saves.items() if kind == "column_sum"]

    @functools.cached_property
    def periodic(self) -> list[str]:
        """Names of its periodic operands."""
        return [name for name, role in self.roles.items() if role == "periodic"]

    def of_period(self, k: int) -> Producer:
        """Itself for periodic operands of `k` columns: with tiles as narrow as blocks and periods allow, since what
        repeats, or changes places, in a tile is code for each period."""
        whole = k * self.periods
        return dataclasses.replace(self, columns=round_up(self.columns, whole), whole_periods=True)

    def given(self) -> list[str]:
        """Parameters that a call gives values for."""
        return [name for name, role in self.roles.items() if role not in IMPLIED]


def plain_tile(producer: Producer, n: int, cpu: bool) -> Tile:
    """The tile of a program whose output is not quantized."""
    if producer.whole_rows:
        return row_tile(n, (1, producer.columns), False, cpu, bool(producer.sums))
    tile = elementwise_tile(n, (1, max(32, producer.columns)), False, False, cpu, bool(producer.sums))
    return narrowed(tile, producer.columns) if producer.whole_periods else tile


def producer_of(
    fn: Any,
    taken: tuple[str, ...],
    whole_rows: bool,
    saves: Mapping[str, str] | None,
    halves: bool,
    output: str,
    like: Mapping[str, str] | None,
    periods: int,
) -> Producer:
    """The producer that a function is, checked; `taken` are names that its parameters may not have."""
    if not isinstance(fn, python_types.FunctionType):
        raise TypeError(f"found {fn!r}, expected a function on tiles")
    roles: dict[str, str] = {}
    optional = set()
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(f"'{fn.__name__}' has the parameter '{parameter}', expected one with a plain name")
        if name in taken:
            raise TypeError(f"'{fn.__name__}' has a parameter '{name}', which calls of fused operators use themselves")
        roles[name] = _role(fn, name, parameter.annotation)
        if parameter.default is None and roles[name] != "constexpr":
            optional.add(name)
    if "tile" not in roles.values():
        raise TypeError(f"'{fn.__name__}' has no tile among its parameters, expected one without an annotation")
    implied = next((name for name, role in roles.items() if role == "period"), None)
    if implied is not None and "periodic" not in roles.values():
        raise TypeError(f"'{implied}' of '{fn.__name__}' is annotated dl.period, expected one with dl.periodic, too")
    if saves is not None and not isinstance(saves, Mapping):
        raise TypeError(f"saves is {saves!r}, expected the kind of what is saved by name, as in {{'mean': 'column'}}")
    for what, flag in (("whole_rows", whole_rows), ("halves", halves)):
        if not isinstance(flag, bool):
            raise TypeError(f"{what} is {flag!r}, expected True or False")
    if isinstance(periods, bool) or not isinstance(periods, int) or periods < 1:
        raise ValueError(f"periods is {periods!r}, expected a positive integer")
    if next(name for name, role in roles.items() if role == "tile") in optional:
        raise ValueError(f"'{fn.__name__}' may be called without its first tile, expected it without a default")
    for name, kind in (saves or {}).items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"saves has the name {name!r}, expected one of letters and digits")
        if name in roles or name in taken or name in ("out", "amax"):
            raise ValueError(f"saves has the name {name!r}, which is taken")
        if kind not in SAVED:
            raise ValueError(f"saves has {name!r}: {kind!r}, expected {' or '.join(SAVED)}{suggest(str(kind), SAVED)}")
        if kind == "column" and not whole_rows:
            raise ValueError(f"saves has {name!r}: 'column', expected whole_rows=True: a program has parts of a row")
    return Producer(
        fn.__name__,
        fn,
        roles,
        whole_rows,
        dict(saves or {}),
        columns=128,
        optional=frozenset(optional),
        halves=halves,
        output=output,
        like=dict(like or {}),
        periods=periods,
    )


def _role(fn: Callable[..., Any], name: str, annotation: Any) -> str:
    if annotation in (inspect.Parameter.empty, Any):
        return "tile"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))
    role = text.rpartition(".")[2]
    if role in ("Any", *ROLES):
        return "tile" if role == "Any" else role
    expected = ", ".join(f"dl.{known}" for known in ROLES)
    raise TypeError(f"'{name}' of '{fn.__name__}' is annotated {text}, expected none, {expected}{suggest(role, ROLES)}")
