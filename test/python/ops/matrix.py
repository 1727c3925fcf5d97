"""The support matrix: which combinations of the operators there are, and the page that says what tests found.

Each cell is one test (test_support_matrix.py), which fails where the committed page says anything else.
"""

import dataclasses
import itertools
from pathlib import Path

import dither
from dither.ops.library import formats_of
from dither.ops.library_rows import OPERATORS
from ops.check import FORMATS, LAYOUTS, SCALE_LAYOUTS
from ops.data import DTYPES
from ops.reference import orders
from simulated import TARGETS

PATH = Path(__file__).resolve().parents[3] / "docs" / "support-matrix.md"
#: What backward passes end in, in one layout each: the first of both halves in one kernel.
GRADIENTS = ("dswiglu", "dbias_dgelu", "rms_norm_backward", "layer_norm_backward")
FEW_TARGETS = ("sm_80", "sm_90a", "sm_100a")

HEAD = """# Support matrix

Written by `pytest --update-docs` from what `test/python/ops` found; a test fails where a cell says anything else: of
some cells, among which is each pair of two choices, in `make test`, of all with `pytest --exhaustive`.

`exact`: codes, scales, padding and amax have the bits of the NumPy reference (`test/python/oracle.py`), and so have
the values that `dequantize` gives, on inputs with ties, signed zeros, subnormals, Inf, NaN and ragged blocks.
Anything else is the error.

Layouts: blocks along rows, along columns, or both from one read. Scales: `linear`, `128x4` as tensor cores take them,
or `column_major` as Hopper's products of 1 x 128 blocks do. Columns: on the CPU the type of the input; on GPUs the
target, whose PTX runs in the simulator (`device="sim:TARGET"`) on bfloat16.
"""


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of the page; a cell is (producer, format, layout, scale layout, column)."""

    title: str
    producer: str
    layouts: tuple[str, ...]
    columns: tuple[str, ...]
    formats: tuple[str, ...] = FORMATS

    def rows(self):
        for name in self.formats:
            scales = SCALE_LAYOUTS if name in FORMATS else orders(dither.formats.FORMATS[name])
            yield from itertools.product([name], self.layouts, scales)

    def cells(self):
        return [(self.producer, *row, column) for row in self.rows() for column in self.columns]


def _tables():
    """Two for each operator of the library: on the CPU, and on GPUs, all of them for the two oldest operators."""
    cpu, gpus = [], []
    for row in OPERATORS:
        name = row.operator.producer.name
        title = name if not row.plain else f"{name}, fused with quantize"
        targets = TARGETS if name in ("quantize", "rms_norm") else FEW_TARGETS
        cpu.append(Table(title, name, LAYOUTS, tuple(DTYPES)))
        gpus.append(Table(f"{title}, on GPUs" if row.plain else f"{title} on GPUs", name, LAYOUTS, targets))
        of_f32 = tuple(fmt.name for fmt in formats_of(row) if fmt.name not in FORMATS)
        cpu.append(Table(f"{title}, float32 scales", name, LAYOUTS, tuple(DTYPES), of_f32))
        gpus.append(Table(f"{title}, float32 scales, on GPUs", name, LAYOUTS, FEW_TARGETS, of_f32))
    formats = (*FORMATS, "fp8_tensor_e4m3", "fp8_1x128_e4m3")
    gradients = (
        Table(f"{name}, fused with quantize", name, ("both",), ("bfloat16", "sm_100a"), formats) for name in GRADIENTS
    )
    return (*cpu, *gpus, *gradients)


TABLES = _tables()
CELLS = [cell for table in TABLES for cell in table.cells()]


def render(cells):
    """The page for a dictionary from cells to what was found."""
    lines = [HEAD]
    for table in TABLES:
        lines += [f"## {table.title}", "", f"| format | layout | scales | {' | '.join(table.columns)} |"]
        lines += ["|---|---|---|" + "---|" * len(table.columns)]
        for row in table.rows():
            found = " | ".join(cells[(table.producer, *row, column)] for column in table.columns)
            lines.append(f"| {' | '.join(row)} | {found} |")
        lines.append("")
    return "\n".join(lines)


def parse(text):
    """The inverse of render: the cells of a page."""
    cells = {}
    table = None
    for line in text.splitlines():
        if line.startswith("## "):
            table = next((t for t in TABLES if t.title == line[3:]), None)
        elif table and line.startswith("| ") and not line.startswith("| format"):
            fmt, layout, scales, *found = line.strip("| ").split(" | ")
            for column, what in zip(table.columns, found, strict=True):
                cells[(table.producer, fmt, layout, scales, column)] = what
    return cells
