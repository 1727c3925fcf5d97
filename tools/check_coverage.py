#!/usr/bin/env python3
"""Checks a page of what is covered: every row that says `yes` names a test, and every test that is named exists.

Rows are those of the page's tables whose first cell is a number, which count up from 1. The second to last cell is
`yes`, `part` or `no`, alone or before a remark; the last has the tests, each as `path/to/test_file.py::test_name` in
backticks, from test/python; `::test_name` is in the file before it, and a file alone stands for all of its tests.

usage: check_coverage.py PAGE.md
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "test" / "python"
ANSWERS = ("yes", "part", "no")


def tests_of(path: Path) -> set[str]:
    """The names of the test functions of a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    functions = (node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return {node.name for node in functions if node.name.startswith("test_")}


def check(page: str, tests: Path) -> tuple[int, list[str]]:
    """How many rows a page has, and what is wrong with them."""
    problems = []
    rows = 0
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or not cells[0].isdigit():
            continue
        rows += 1
        if int(cells[0]) != rows:
            problems.append(f"row {cells[0]}: expected row {rows} here")
        answer = cells[-2].split()[0].rstrip(":,") if cells[-2] else ""
        if answer not in ANSWERS:
            problems.append(f"row {cells[0]}: found {answer!r}, expected one of {', '.join(ANSWERS)}")
        named = re.findall(r"`([^`]*)`", cells[-1])
        if answer == "yes" and not named:
            problems.append(f"row {cells[0]}: says yes and names no test")
        file = ""
        for name in named:
            before, _, test = name.partition("::")
            file = before or file
            if not file or not (tests / file).is_file():
                problems.append(f"row {cells[0]}: there is no file {file or name} in test/python")
            elif test and test not in tests_of(tests / file):
                problems.append(f"row {cells[0]}: there is no {test} in {file}")
            elif not test and not tests_of(tests / file):
                problems.append(f"row {cells[0]}: there is no test in {file}")
    return rows, problems


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    page = Path(sys.argv[1])
    rows, problems = check(page.read_text(), TESTS)
    for problem in problems:
        print(f"{page.name}: {problem}")
    print(f"{page.name}: {rows} rows, {len(problems)} problems")
    return 1 if problems or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
