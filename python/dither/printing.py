"""What `dl.print` writes: the arguments that a launch adds for it, and their lines of text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from .arrays import Array, describe_argument
from .data_classes import dataclass
from .types import TensorType, int32, int64

#: The arguments that a kernel with dl.print has after its own.
COUNTER, LOG = "(rows printed)", "(printed)"
TYPES = {COUNTER: TensorType(int64, ()), LOG: TensorType(int32, (None, None))}
#: Rows of a record before its elements.
HEADER = 1
#: Words of such a row: the site, and the program's indices.
_HEADER_WORDS = 4
#: Of the log, in bytes.
_ROOM = 64 << 20


@dataclass(frozen=True)
class Site:
    """A call of dl.print: its label, the shape of its value, what its elements are ("float32", "int8" as float32,
    "int32", "int64" or "bool"), and whether a condition chooses elements."""

    label: str
    shape: tuple[int, ...]
    kind: str
    chosen: bool

    @property
    def rows(self) -> int:
        """Of a record."""
        words = 1 + (self.kind == "int64") + self.chosen
        return HEADER + words * (1, 1, *self.shape)[-2]


class Printed:
    """The log of one launch."""

    def __init__(self, kernel: str, sites: tuple[Site, ...], grid: tuple[int, int, int]) -> None:
        import numpy

        self._kernel = kernel
        #: Of the grid, without those at the end that have one program.
        self._dims = max([1, *(d + 1 for d, extent in enumerate(grid) if extent > 1)])
        self._sites = sites
        width = max(_HEADER_WORDS, *((1, *site.shape)[-1] for site in sites))
        self._count = numpy.zeros((), numpy.int64)
        self._log = numpy.zeros((_ROOM // (4 * width), width), numpy.int32)

    def arguments(self) -> dict[str, Array]:
        """To launch with."""
        arrays = {COUNTER: self._count, LOG: self._log}
        described = {name: describe_argument(name, array) for name, array in arrays.items()}
        return {name: array for name, array in described.items() if array is not None}

    def write(self) -> None:
        """Writes to stdout what the programs printed, each in its order, one after the other."""
        records = sorted(self._records(), key=lambda record: record[0][::-1])
        lines = [
            f"{self._kernel}({', '.join(map(str, program[: self._dims]))}): {line}\n"
            for program, texts in records
            for line in texts
        ]
        lost = int(self._count) - len(self._log)
        if lost > 0:
            lines.append(f"{self._kernel}: {lost} more rows were printed than fit into {_ROOM >> 20} MiB\n")
        sys.stdout.write("".join(lines))

    def _records(self) -> Iterator[tuple[tuple[int, ...], list[str]]]:
        """The program and the lines of each record, in the order in which they were begun."""
        row, end = 0, min(int(self._count), len(self._log))
        while row < end:
            number, *program = self._log[row, :_HEADER_WORDS].tolist()
            site = self._sites[number]
            if row + site.rows > end:
                return
            yield tuple(program), list(self._lines(site, row + HEADER))
            row += site.rows

    def _lines(self, site: Site, row: int) -> Iterator[str]:
        import numpy

        rows, columns = (1, 1, *site.shape)[-2:]
        parts = [self._log[at : at + rows, :columns] for at in range(row, row + site.rows - HEADER, rows)]
        values = _values(site.kind, parts).reshape(site.shape)
        chosen = parts[-1].reshape(site.shape) if site.chosen else numpy.ones(site.shape, bool)
        for at in map(tuple, numpy.argwhere(chosen)):
            place = f"[{', '.join(map(str, at))}]" if site.shape else ""
            yield f"{site.label}{place} = {values[at]}"


def _values(kind: str, words: list[Any]) -> Any:
    """Elements from the arrays of their words."""
    import numpy

    match kind:
        case "float32":
            return words[0].view(numpy.float32)
        case "int8":
            return words[0].view(numpy.float32).astype(numpy.int8)
        case "int64":
            return words[0].view(numpy.uint32) + (words[1].astype(numpy.int64) << 32)
        case "bool":
            return words[0].astype(bool)
    return words[0]
