"""The support matrix: which combinations of the operators there are, and the page that says what tests found.

Each cell is one test (test_support_matrix.py), which fails where the committed page says anything else.
"""

import itertools
from pathlib import Path

from ops.check import FORMATS, LAYOUTS, SCALE_LAYOUTS
from ops.data import DTYPES

PATH = Path(__file__).resolve().parents[3] / "docs" / "support-matrix.md"
PRODUCERS = ("none", "rms_norm")
#: (producer, format, layout, scale layout, input type)
CELLS = list(itertools.product(PRODUCERS, FORMATS, LAYOUTS, SCALE_LAYOUTS, DTYPES))

HEAD = """# Support matrix

Written by `pytest --update-docs` from what `test/python/ops` found; a test fails where a cell says anything else.

`exact`: codes, scales, padding and amax have the bits of the NumPy reference (`test/python/oracle.py`), and so have
the values that `dequantize` gives, on inputs with ties, signed zeros, subnormals, Inf, NaN and ragged blocks.
Anything else is the error.

Layouts: blocks along rows, along columns, or both from one read. Scales: `linear`, or `128x4` as tensor cores take
them. The columns are the types of the input.
"""
TITLES = {"none": "quantize", "rms_norm": "rms_norm, fused with quantize"}


def render(cells):
    """The page for a dictionary from cells to what was found."""
    lines = [HEAD]
    for producer in PRODUCERS:
        lines += [f"## {TITLES[producer]}", "", f"| format | layout | scales | {' | '.join(DTYPES)} |"]
        lines += ["|---|---|---|" + "---|" * len(DTYPES)]
        for row in itertools.product(FORMATS, LAYOUTS, SCALE_LAYOUTS):
            found = " | ".join(cells[(producer, *row, dtype)] for dtype in DTYPES)
            lines.append(f"| {' | '.join(row)} | {found} |")
        lines.append("")
    return "\n".join(lines)


def parse(text):
    """The inverse of render: the cells of a page."""
    cells = {}
    producer = None
    for line in text.splitlines():
        if line.startswith("## "):
            producer = next((key for key, title in TITLES.items() if title == line[3:]), None)
        elif producer and line.startswith("| ") and not line.startswith("| format"):
            fmt, layout, scales, *found = line.strip("| ").split(" | ")
            for dtype, what in zip(DTYPES, found, strict=True):
                cells[(producer, fmt, layout, scales, dtype)] = what
    return cells
