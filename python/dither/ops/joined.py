"""Two passes over rows in one launch of a GPU, where its L2 has the rows between them."""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, Any

from ..arrays import describe_argument
from ..data_classes import dataclass
from ..devices import Device, fast_memory
from ..jit import Kernel
from ..torch_tensors import is_symbol
from ..types import Structure
from .fused_kernel import fused_kernel
from .joined_kernel import joined_kernel
from .kernels import FILLED, fill_each_kernel
from .tiles import MOST_DOWN, power_of_two

if TYPE_CHECKING:
    from .operator import Operator, Step
    from .producer import Producer
    from .request import Wanted

#: Elements of the smallest tensor that is worth it: of smaller ones L2 has much between two launches, too.
LEAST = 1 << 24
#: Bytes of rows by which the first pass is ahead: enough for the programs that run at once, and a part of what L2 has.
_AHEAD = 6 << 20
#: Elements of a lane in either pass, at most: of the first all loads are on their way at once.
_EACH = 64
#: Elements of the longest row that has a program's lanes where its second pass would do with fewer. Of longer ones two
#: launches are faster.
_ROW = 8192
_LANES, _MOST_WARPS = 32, 8
_PARAMETERS = list(inspect.signature(fused_kernel).parameters)
#: Constexprs that kernels are told, and arguments that exist at run time.
_NUMBERS = [name for name in _PARAMETERS if name.isupper()]
_ARGUMENTS = [name for name in _PARAMETERS if not name.isupper() and name not in ("of_program", "constants")]


def joins(first: Producer, wanted: Wanted, shape: tuple[int, int], where: Device) -> bool:
    """Whether a GPU is to take both passes over a tensor in one launch. The first saves numbers of rows alone, in
    arrays of the call's own."""
    m, n = shape
    if where.is_cpu or not fast_memory(where.target) or where.shard is not None or is_symbol(m):
        return False
    columns = all(kind == "column" for kind in first.saves.values()) and not wanted.saved.keys() & first.saves.keys()
    return columns and m * n >= LEAST


@dataclass(frozen=True)
class Joined:
    """A step of a call: launches of two passes as one. The first's arguments are operands and what it saves."""

    first: Step
    second: Step

    @staticmethod
    def of(first: Step, second: Step) -> Joined | None:
        """None where the passes have no programs that fit together."""
        joined = Joined(first, second)
        whole = second.arguments["ACROSS"] and second.arguments["ROWS"] % joined._rows == 0
        held = joined._lanes * _EACH >= first.arguments["COLS"]
        return joined if whole and held and joined._grid[1] <= MOST_DOWN else None

    @functools.cached_property
    def _lanes(self) -> int:
        """Threads of a program: as many as hold a tile of the second pass, and a row of the first."""
        tile = self.second.arguments["ROWS"] * self.second.arguments["COLS"]
        warps = -(-max(tile, min(self.first.arguments["COLS"], _ROW)) // (_LANES * _EACH))
        return _LANES * power_of_two(2 * warps - 1, 1, _MOST_WARPS)

    @functools.cached_property
    def _rows(self) -> int:
        """Rows of a program of the first pass."""
        return power_of_two(self._lanes * _EACH // self.first.arguments["COLS"], 1, self.second.arguments["ROWS"])

    @functools.cached_property
    def _ahead(self) -> int:
        """Bands of rows by which the first pass is ahead."""
        second = self.second.arguments
        read = sum(
            second["ROWS"] * array.row_bytes
            for name, role in self.second.operator.producer.roles.items()
            if role == "tile" and (array := describe_argument(name, second[name])) is not None
        )
        return min(max(_AHEAD // read, 1), self.second.grid[1])

    @functools.cached_property
    def _grid(self) -> tuple[int, int]:
        across, bands = self.second.grid
        return self.second.arguments["ROWS"] // self._rows + across, bands + self._ahead

    def run(self) -> None:
        """Launches it, after what makes room for what the first pass saves."""
        operators = {"first": self.first.operator, "second": self.second.operator}
        first, second = {**self.first.arguments, "ROWS": self._rows}, self.second.arguments
        where = {name: second[name] for name in ("device", "stream")}
        saved = tuple(first[name] for name in self.first.operator.producer.saves)
        (length,) = _shape(saved[0])
        fill_each_kernel.launch(-(-length // FILLED), saved, math.nan, **where)
        given = {
            f"{which}.{name}": of[name]
            for which, of in (("first", first), ("second", second))
            for name in _names(operators[which], which == "first")
        }
        _kernel(*operators.values()).launch(
            self._grid,
            **given,
            NOTHING=(None,) * (len(_ARGUMENTS) - 2),
            FIRST=tuple(first[name] for name in _NUMBERS),
            SECOND=tuple(second[name] for name in _NUMBERS),
            EACH=second["ROWS"] // self._rows,
            AHEAD=self._ahead,
            num_warps=self._lanes // _LANES,
            **where,
        )


def _shape(x: Any) -> tuple[int, ...]:
    array = describe_argument("x", x)
    assert array is not None
    return array.shape


def _names(operator: Operator, first: bool) -> list[str]:
    """Arguments of an operator's kernel, its numbers apart; of the first pass operands, constants and what is saved."""
    producer = operator.producer
    named = [*producer.roles, *producer.saves, *(() if first else _ARGUMENTS)]
    return [name for name in operator.kernel.signature.parameters if name in named]


@functools.cache
def _kernel(first: Operator, second: Operator) -> Kernel:
    """The kernel of two operators, whose arguments go by their names after "first." and "second."."""
    of_first, of_second = (one.kernel.signature.structures for one in (first, second))
    entries = [
        (f"[{i}]", _renamed(of_second[name], "second") if name in of_second else f"second.{name}")
        for i, name in enumerate(_ARGUMENTS)
    ]
    structures = {
        "operands": _renamed(of_first["operands"], "first"),
        "saved": _renamed(of_first["saved"], "first"),
        "second": Structure("tuple", tuple(entries)),
        "first_constants": _renamed(of_first["constants"], "first"),
        "second_constants": _renamed(of_second["constants"], "second"),
    }
    name = f"{first.producer.name.removesuffix('_of_rows')}_joined_kernel"
    return Kernel(joined_kernel, second.options, name=name, structures=structures)


def _renamed(structure: Structure, which: str) -> Structure:
    return Structure("tuple", tuple((label, f"{which}.{name}") for label, name in structure.entries))
