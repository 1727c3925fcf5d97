"""Tables of what kernels did."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..profile import Summary


def names(launches: Sequence[Summary]) -> list[str]:
    """Of kernels, with numbers where there are several."""
    return [f"{n}: {one.kernel}" if len(launches) > 1 else one.kernel for n, one in enumerate(launches, 1)]


def render(launches: Sequence[Summary]) -> str:
    """Three tables: the kernels, their instructions by class, and the traffic of their arguments."""
    named = list(zip(names(launches), launches, strict=True))
    kernels = [kernel_row(name, one) for name, one in named]
    kinds = [kind for kind in launches[0].classes if any(one.classes[kind] for one in launches)]
    classes = [[name, *(share(one.classes[kind], one.counts["warps"]) for kind in kinds)] for name, one in named]
    parts = [
        table(KERNEL, kernels),
        "instructions by class",
        table(["kernel", *kinds], classes),
        "global memory by argument",
        table(TRAFFIC, [row for name, one in named for row in traffic_rows(name, one)]),
    ]
    notes = [f"{name}: {text} is approximate" for name, one in named for text in one.approximations]
    return "\n\n".join(parts) + ("\n\n" + "\n".join(notes) if notes else "")


KERNEL = ["kernel", "target", "grid", "threads", "launches", "instr", "lanes", "requests", "full", "moved", "/ min"]
KERNEL += ["wavefronts", "conflicts", "barriers", "divergent"]


def kernel_row(name: str, one: Summary) -> list[str]:
    """A kernel in the order of KERNEL."""
    c = one.counts
    return [
        name,
        one.target,
        "x".join(map(str, one.grid)),
        str(one.threads),
        str(one.launches),
        short(c["warps"]),
        f"{c['lanes'] / max(c['warps'], 1):.1f}",
        short(c["requests"]),
        share(c["full"], c["requests"]),
        short(one.moved) + "B",
        ratio(one.moved, one.minimum),
        short(c["wavefronts"]),
        short(c["conflicts"]),
        short(one.barriers),
        short(c["divergent"]),
    ]


#: Columns of texts beside the first.
_WORDS = ("target", "argument", "source", "gpu", "limited by", "by", "counted")
TRAFFIC = ["kernel", "argument", "size", "loaded", "stored", "atomic", "moved", "/ min", "requests", "full"]


def traffic_rows(name: str, one: Summary) -> list[list[str]]:
    """The arguments of a kernel in the order of TRAFFIC, the largest first."""
    rows = []
    for t in sorted(one.traffic, key=lambda t: -t.moved):
        sizes = [short(n) + "B" if n else "-" for n in (t.size, t.loaded, t.stored, t.updated, t.moved)]
        rows.append([name, t.name, *sizes, ratio(t.moved, t.minimum), short(t.requests), share(t.full, t.requests)])
        name = ""
    return rows


def hot_lines(launches: Sequence[Summary], count: int) -> str:
    """The lines of Python that most instructions come from, over all kernels."""
    found: Counter[tuple[str, int]] = Counter()
    for one in launches:
        for line in one.lines:
            found[(line.file, line.file_line) if line.file_line else ("", 0)] += line.counts["warps"]
    total = sum(found.values())
    rows = [
        [share(n, total), f"{file}:{number}" if file else "no line", linecache.getline(file, number).strip()]
        for (file, number), n in found.most_common(count)
    ]
    return "\n" + table(["instr", "line", "source"], rows, left=2)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Aligned columns: the first `left` ones and texts to the left, numbers to the right."""
    every = [head, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(head))]
    lines = []
    for row in every:
        cells = []
        for i, text in enumerate(row):
            words = (left > 1 and i > 0) or i < left or head[i] in _WORDS
            cells.append(text.ljust(widths[i]) if words else text.rjust(widths[i]))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def short(number: float) -> str:
    """Four digits or fewer, and k, M, G or T for powers of 1000."""
    for suffix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.4g}{suffix}" if number < 10 or not suffix else f"{number:.3g}{suffix}"
        number /= 1000
    return f"{number:.3g}T"


def share(part: float, whole: float) -> str:
    """A percentage; - of nothing."""
    if not whole:
        return "-"
    return "100%" if part == whole else f"{min(100 * part / whole, 99.9):.1f}%"


def ratio(part: float, whole: float) -> str:
    """A quotient; - by nothing."""
    return f"{part / whole:.3f}" if whole else "-"
