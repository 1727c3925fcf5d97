#!/usr/bin/env python3
"""Runs a page of the documentation: what its files and commands do is what it says.

A fence that begins with ```LANGUAGE file=NAME is written to that file. In one that begins with ```console, lines that
start with `$ ` are commands, run in the directory of the files, and the lines after each what it prints; a line of
`...` stands for any lines, and `...` within a line for any text.

usage: check_page.py PAGE.md
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pattern(expected: str) -> re.Pattern[str]:
    """A line of `...` is any lines, `...` within one is any text of the line."""
    text = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            text += r"(?:.*\n)*?"
        else:
            text += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\s*\n"
    return re.compile(text)


def steps(console: str) -> list[tuple[str, str]]:
    """Commands with what they should print."""
    result: list[tuple[str, str]] = []
    for line in console.splitlines(keepends=True):
        if line.startswith("$ "):
            result.append((line[2:].rstrip(), ""))
        else:
            command, expected = result.pop()
            result.append((command, expected + line))
    return result


def main() -> int:
    page = Path(sys.argv[1]).read_text()
    count, problems = 0, 0
    with tempfile.TemporaryDirectory() as directory:
        for language, name, body in FENCE.findall(page):
            if name:
                (Path(directory) / name).write_text(body)
            elif language == "console":
                for command, expected in steps(body):
                    run = subprocess.run(command, shell=True, cwd=directory, capture_output=True, text=True)
                    printed = "".join(f"{line.rstrip()}\n" for line in (run.stdout + run.stderr).splitlines())
                    count += 1
                    if not pattern(expected).fullmatch(printed):
                        problems += 1
                        print(f"$ {command}\nprinted\n{printed}\nexpected\n{expected}")
    print(f"{count} commands, {problems} problems")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
