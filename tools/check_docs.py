#!/usr/bin/env python3
"""Checks documentation that mlir-tblgen generated: every operation has a summary, a description and an
example, every pass a summary and a description.

usage: check_docs.py FILE.md...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# What follows the description of an operation or pass.
END = re.compile(r"^(#+ |Traits: |Interfaces: |Effects: )", re.MULTILINE)
SYNTAX = re.compile(r"^Syntax:\n\n```\n.*?^```\n", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```mlir\n.+?^```$", re.MULTILINE | re.DOTALL)


def check(text: str) -> tuple[int, list[str]]:
    """The number of operations and passes in a file, and what is missing."""
    problems = []
    entries = re.split(r"^### (?=`)", text, flags=re.MULTILINE)[1:]
    for entry in entries:
        heading, _, rest = entry.partition("\n")
        name = heading.split("`")[1]
        summary = re.match(r"\s*^_.+_$", rest, re.MULTILINE)
        if not summary:
            problems.append(f"{name} has no summary")
        else:
            rest = rest[summary.end() :]
        body = SYNTAX.sub("", rest, count=1)
        end = END.search(body)
        description = body[: end.start()].strip() if end else body.strip()
        if not description:
            problems.append(f"{name} has no description")
        elif not name.startswith("-") and not EXAMPLE.search(description):
            problems.append(f"{name} has no example")
    return len(entries), problems


def main() -> int:
    failed = False
    for path in map(Path, sys.argv[1:]):
        count, problems = check(path.read_text())
        if not count:
            problems.append("no operation and no pass was found")
        for problem in problems:
            print(f"{path.name}: {problem}")
        failed |= bool(problems)
        print(f"{path.name}: {count} documented" if not problems else f"{path.name}: {len(problems)} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
