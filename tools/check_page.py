#!/usr/bin/env python3
"""Runs pages of the documentation: what their code does is what they say.

- A fence that begins with ```LANGUAGE file=NAME is written to that file.
- In one that begins with ```console, lines that start with `$ ` are commands (one that ends with a backslash goes on in
  the next line), and the lines after each what it prints. The commands of a fence are run in one shell, in the
  directory of the files.
- All other ```python fences of a page are one program, which is run before the first of its consoles; an ```output
  fence is what the fence before it prints.

In what is printed a line of `...` stands for any lines, and `...` within a line for any text. Pictures are what the
program saves.

usage: check_page.py PAGE.md... [--pictures DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What stands between the outputs of two commands, or of two parts of a program.
MARK = "\1\n"


def pattern(expected: str) -> re.Pattern[str]:
    """A line of `...` is any lines, `...` within one is any text of the line."""
    text = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            text += r"(?:.*\n)*?"
        else:
            text += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\s*\n"
    return re.compile(text)


def commands(console: str) -> list[tuple[str, str]]:
    """Commands with what they should print."""
    result: list[tuple[str, str]] = []
    for line in console.splitlines(keepends=True):
        if line.startswith("$ "):
            result.append((line[2:].rstrip(), ""))
            continue
        command, expected = result.pop()
        if command.endswith("\\"):
            result.append((f"{command}\n{line.rstrip()}", expected))
        else:
            result.append((command, expected + line))
    return result


def program(page: str) -> list[tuple[str, str | None]]:
    """The parts of the page's Python program with what they should print, None where the page does not say."""
    result: list[tuple[str, str | None]] = []
    for language, name, body in FENCE.findall(page):
        if language == "python" and not name:
            result.append((body, None))
        elif language == "output":
            result.append((result.pop()[0], body))
    return result


class Page:
    """A page, run in a directory of its own."""

    def __init__(self, path: Path, directory: Path) -> None:
        self.text, self.directory = path.read_text(), directory
        self.count, self.problems = 0, 0
        # `python` is this one, with the modules that it finds; nothing opens a window.
        here = os.path.dirname(sys.executable)
        modules = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        path_ = os.pathsep.join([here, os.environ.get("PATH", "")])
        self.environment = {**os.environ, "PATH": path_, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(modules)}

    def run(self) -> None:
        """Runs everything, and prints what is not as the page says."""
        waiting = program(self.text)
        for language, name, body in FENCE.findall(self.text):
            if name:
                (self.directory / name).write_text(body)
            elif language == "console":
                self._python(waiting)
                waiting = []
                self._console(commands(body))
        self._python(waiting)

    def _console(self, steps: list[tuple[str, str]]) -> None:
        script = "\n".join(f"{command}\nprintf '\\1\\n'" for command, _ in steps)
        self._compare(["sh", "-c", script], [(f"$ {command}", expected) for command, expected in steps])

    def _python(self, parts: list[tuple[str, str | None]]) -> None:
        if not parts:
            return
        file = self.directory / "page.py"
        file.write_text("\n".join(f"{body}print(end={MARK!r})" for body, _ in parts))
        self._compare([sys.executable, "-u", "page.py"], parts)

    def _compare(self, command: list[str], steps: list[tuple[str, str]] | list[tuple[str, str | None]]) -> None:
        """Runs a command, and compares what it printed with what steps should print."""
        run = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        text = "".join(f"{line.rstrip()}\n" for line in run.stdout.split("\n")).removesuffix("\n")
        *printed, rest = text.split(MARK)
        # Where a program ends before its time, the rest is why.
        printed += [rest] if len(printed) < len(steps) else []
        for i, (step, expected) in enumerate(steps):
            self.count += 1
            found = printed[i] if i < len(printed) else "nothing"
            found += "\n" if found and not found.endswith("\n") else ""
            ended = text.count(MARK) > i
            if not ended or (expected is not None and not pattern(expected).fullmatch(found)):
                self.problems += 1
                print(f"{step}\nprinted\n{found}\nexpected\n{expected or ''}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", metavar="PAGE.md", nargs="+", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="where the pictures that pages make go")
    args = parser.parse_args()
    count, problems = 0, 0
    for path in args.pages:
        with tempfile.TemporaryDirectory() as directory:
            page = Page(path, Path(directory))
            page.run()
            if args.pictures:
                args.pictures.mkdir(parents=True, exist_ok=True)
                for picture in page.directory.glob("*.png"):
                    shutil.copy(picture, args.pictures)
        count, problems = count + page.count, problems + page.problems
        if not page.count:
            problems += 1
            print(f"{path}: nothing to run was found")
    print(f"{count} commands, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
