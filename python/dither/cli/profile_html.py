"""The heat map: Python lines beside PTX lines, coloured by what was counted at each. One file that needs no other."""

from __future__ import annotations

import html
import json
import linecache
import os
from collections.abc import Sequence

from ..predict import Prediction
from ..profile import COUNTS, Summary
from . import predict_table, profile_table

#: Counts that one may colour by, and what they are.
METRICS = {
    "warps": "instructions",
    "lanes": "lanes' instructions",
    "bytes": "bytes of memory",
    "sectors": "sectors of global memory",
    "wavefronts": "wavefronts of shared memory",
    "conflicts": "bank conflicts",
    "divergent": "divergent branches",
}

STYLE = """
body { font: 14px system-ui, sans-serif; margin: 1.5em; }
pre, table { font: 12px ui-monospace, monospace; }
.panes { display: flex; gap: 1em; height: 75vh; }
.pane { flex: 1; overflow: auto; border: 1px solid #ccc; }
table { border-collapse: collapse; width: 100%; }
td { white-space: pre; padding: 0 .5em; }
td.n { text-align: right; color: #666; user-select: none; }
tr.file td { font-weight: bold; background: #eee; }
tr.marked td { box-shadow: inset 0 1px #06c, inset 0 -1px #06c; }
tr[data-at] { cursor: pointer; }
"""

SCRIPT = """
for (const section of document.querySelectorAll("section")) {
  const rows = [...section.querySelectorAll("tr[data-c]")];
  const counts = new Map(rows.map(row => [row, JSON.parse(row.dataset.c)]));
  const select = section.querySelector("select");
  function paint() {
    for (const pane of section.querySelectorAll(".pane")) {
      const own = rows.filter(row => pane.contains(row));
      const value = row => counts.get(row)[select.selectedIndex];
      const most = Math.max(1, ...own.map(value)), sum = own.reduce((a, row) => a + value(row), 0) || 1;
      for (const row of own) {
        const n = value(row);
        row.style.background = n ? `rgba(230, 60, 0, ${0.08 + 0.72 * n / most})` : "";
        row.cells[1].textContent = n ? (100 * n / sum).toFixed(1) + "%" : "";
        row.title = n.toLocaleString();
      }
    }
  }
  select.onchange = paint;
  paint();
  section.onclick = event => {
    const at = event.target.closest("tr")?.dataset.at;
    if (!at) return;
    for (const row of section.querySelectorAll("tr")) row.classList.toggle("marked", row.dataset.at === at);
    for (const pane of section.querySelectorAll(".pane"))
      if (!pane.contains(event.target)) pane.querySelector(".marked")?.scrollIntoView({block: "center"});
  };
}
"""


def page(launches: Sequence[Summary], predictions: Sequence[Sequence[Prediction]]) -> str:
    """A section for each kernel: its figures, what is predicted of it, its Python lines and its PTX lines."""
    sections = "\n".join(section(one, found) for one, found in zip(launches, predictions, strict=True))
    head = f'<meta charset="utf-8"><title>dither profile</title><style>{STYLE}</style>'
    body = f"<h1>dither profile</h1>\n{sections}\n<script>{SCRIPT}</script>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}</body></html>\n'


def section(one: Summary, predictions: Sequence[Prediction]) -> str:
    """One kernel."""
    tables = "\n\n".join(filter(None, (profile_table.render([one]), predict_table.render([(one.kernel, predictions)]))))
    options = "".join(f"<option>{name}</option>" for name in METRICS.values())
    return (
        f"<section><h2>{html.escape(one.kernel)}</h2>\n<pre>{html.escape(tables)}</pre>\n"
        f"<p>Colour by <select>{options}</select>; click a line to see where it comes from or what became of it.</p>\n"
        f'<div class="panes"><div class="pane"><table>\n{python_rows(one)}</table></div>\n'
        f'<div class="pane"><table>\n{ptx_rows(one)}</table></div></div></section>'
    )


def python_rows(one: Summary) -> str:
    """The functions that the kernel comes from: lines around those that have instructions."""
    sums: dict[str, dict[int, dict[str, int]]] = {}
    for line in one.lines:
        if line.file_line:
            total = sums.setdefault(line.file, {}).setdefault(line.file_line, dict.fromkeys(COUNTS, 0))
            for name, n in line.counts.items():
                total[name] += n
    rows = []
    for file, lines in sums.items():
        rows.append(f'<tr class="file"><td colspan="3">{html.escape(os.path.basename(file))}</td></tr>\n')
        for number in range(max(1, min(lines) - 2), max(lines) + 2):
            text = linecache.getline(file, number).rstrip("\n")
            rows.append(row(number, text, lines.get(number), f"{file}:{number}" if number in lines else ""))
    return "".join(rows)


def ptx_rows(one: Summary) -> str:
    """The PTX, without the positions."""
    counts: dict[int, dict[str, int]] = {}
    origins = {line.line: f"{line.file}:{line.file_line}" for line in reversed(one.lines) if line.file_line}
    for line in one.lines:
        total = counts.setdefault(line.line, dict.fromkeys(COUNTS, 0))
        for name, n in line.counts.items():
            total[name] += n
    rows = []
    for number, text in enumerate(one.ptx.splitlines(), 1):
        if text.strip() and not text.strip().startswith((".loc", "$L__tmp")):
            rows.append(row(number, text.expandtabs(4), counts.get(number), origins.get(number, "")))
    return "".join(rows)


def row(number: int, text: str, counts: dict[str, int] | None, at: str) -> str:
    """A line with its counts in the order of METRICS; `at` is the same for lines that belong together."""
    data = f' data-c="{json.dumps([counts[name] for name in METRICS], separators=(",", ":"))}"' if counts else ""
    where = f' data-at="{html.escape(at)}"' if at else ""
    cells = f'<td class="n">{number}</td><td class="n"></td><td>{html.escape(text)}</td>'
    return f"<tr{data}{where}>{cells}</tr>\n"
