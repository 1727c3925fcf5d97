#!/usr/bin/env python3
"""Checks a page's picture of the parts of the tree: its arrows are the includes and imports of the files.

The picture is all fences that begin with ```parts. A line that is not indented is a part, its name and then its files:
directories end in a slash, and a file belongs to the part with the longest path that it begins with. Indented lines go
on with it, and `-->` begins the parts that it uses. `in DIRECTORY:` is where the paths of the rest of a fence begin,
and `#` begins a remark. A part uses only what stands below it, so there is no cycle.

Every source file below the picture's top directories belongs to a part. Includes of C, C++ and TableGen count, imports
of Python too, also those inside functions and for types alone.

usage: check_parts.py PAGE.md [--root DIRECTORY]
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PICTURE = re.compile(r"^```parts\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^\s*#?\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
NATIVE = {".h", ".cpp", ".c", ".def", ".td"}
PYTHON = {".py", ".pyi"}
#: Where includes, and the packages that are imported, are found.
HEADERS, PACKAGES = "include/", "python/"


@dataclasses.dataclass
class Part:
    """A part of the picture: the paths of its files, and what it says that it uses."""

    name: str
    paths: list[str] = dataclasses.field(default_factory=list)
    uses: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Use:
    """A line of a file that needs another file, or module, by path."""

    file: str
    line: int
    text: str
    path: str


def read_picture(page: str) -> list[Part]:
    """The parts of a page's picture, from top to bottom."""
    parts: list[Part] = []
    for fence in PICTURE.finditer(page):
        prefix = ""
        arrow = False
        for line in fence[1].splitlines():
            words = line.partition("#")[0].split()
            if words and not line[0].isspace():
                if words[0] == "in":
                    prefix = words[1].rstrip(":/") + "/"
                    continue
                parts.append(Part(words.pop(0)))
                arrow = False
            for word in words:
                if word == "-->":
                    arrow = True
                elif arrow:
                    parts[-1].uses.append(word)
                else:
                    parts[-1].paths.append(prefix + word)
    return parts


def problems_of(parts: list[Part]) -> Iterator[str]:
    """What is wrong with a picture before any file is read."""
    places = {part.name: i for i, part in enumerate(parts)}
    for i, part in enumerate(parts):
        if places[part.name] != i:
            yield f"{part.name} stands in the picture twice"
        for k, used in enumerate(part.uses):
            if used not in places:
                yield f"{part.name} --> {used}: there is no part {used} in the picture"
            elif places[used] <= i:
                yield f"{part.name} --> {used}: a part uses only what stands below it"
            elif used in part.uses[:k]:
                yield f"{part.name} --> {used} stands in the picture twice"


def sources(root: Path, top: str) -> Iterator[str]:
    """Source files below a directory, scripts of Python too, in order."""
    for directory, inner, names in os.walk(root / top):
        inner[:] = sorted(set(inner) - {"__pycache__"})
        for name in sorted(names):
            path = Path(directory) / name
            if kind_of(path) is not None:
                yield path.relative_to(root).as_posix()


def kind_of(path: Path) -> str | None:
    """Which language a file is in: "native" or "python", None of others."""
    if path.suffix in NATIVE:
        return "native"
    if path.suffix in PYTHON:
        return "python"
    if not path.suffix and path.is_file():
        with path.open("rb") as file:
            if re.match(rb"#!.*\bpython", file.readline()):
                return "python"
    return None


def owner(path: str, parts: list[Part]) -> Part | None:
    """The part that a file belongs to."""
    fits = [
        (len(prefix), part)
        for part in parts
        for prefix in part.paths
        if path == prefix or (prefix.endswith("/") and path.startswith(prefix))
    ]
    return max(fits, key=lambda fit: fit[0])[1] if fits else None


def includes(root: Path, file: str, files: set[str]) -> Iterator[Use]:
    """What a file of C, C++ or TableGen includes, of this tree."""
    text = (root / file).read_text()
    for match in INCLUDE.finditer(text):
        path = _included(match[1], file, files)
        if path is not None:
            line = text.count("\n", 0, match.start(1)) + 1
            yield Use(file, line, f"includes {match[1]}", path)


def _included(name: str, file: str, files: set[str]) -> str | None:
    beside = os.path.normpath(os.path.join(os.path.dirname(file), name))
    for path in (beside, HEADERS + name):
        if path in files:
            return path
    # A generated header has no file here, but a place; the rest is found by way of an include directory.
    if any(path.startswith(HEADERS + name.split("/")[0] + "/") for path in files):
        return HEADERS + name
    found = [path for path in sorted(files) if path.endswith("/" + name)]
    return max(found, key=lambda path: len(os.path.commonprefix([path, file])), default=None)


def imports(root: Path, file: str, files: set[str]) -> Iterator[Use]:
    """What a file of Python imports, of the packages in this tree."""
    inside = file.startswith(PACKAGES)
    package = os.path.dirname(file)[len(PACKAGES) :].split("/") if inside else []
    for node in ast.walk(ast.parse((root / file).read_text(), file)):
        names: list[tuple[str, str]] = []  # as it is written, and in full
        if isinstance(node, ast.Import):
            names = [(alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            written = "." * node.level + (node.module or "")
            for alias in node.names:
                # A name in a package is a module of it, or what its __init__.py has.
                full = f"{start}.{alias.name}"
                dot = "" if written.endswith(".") else "."
                if _module(full, files):
                    names.append((f"{written}{dot}{alias.name}", full))
                else:
                    names.append((written, start))
        for written, full in dict.fromkeys(names):
            path = _module(full, files)
            if path is not None:
                yield Use(file, node.lineno, f"imports {written}", path)  # type: ignore[attr-defined]


def _module(name: str, files: set[str]) -> str | None:
    stem = PACKAGES + name.replace(".", "/")
    candidates = (f"{stem}.py", f"{stem}.pyi", f"{stem}/__init__.py")
    return next((path for path in candidates if path in files), None)


def check(parts: list[Part], root: Path) -> tuple[int, list[str]]:
    """The number of arrows in the picture, and how the files contradict it."""
    problems = list(problems_of(parts))
    tops = sorted({path.split("/")[0] + "/" for part in parts for path in part.paths})
    files = {file for top in tops for file in sources(root, top)}
    drawn = {(part.name, used) for part in parts for used in part.uses}
    found: set[tuple[str, str]] = set()
    for part in parts:
        for path in part.paths:
            if not any(file == path or (path.endswith("/") and file.startswith(path)) for file in files):
                problems.append(f"{part.name}: there is no source file at {path}")
    for file in sorted(files):
        source = owner(file, parts)
        if source is None:
            problems.append(f"{file} belongs to no part of the picture")
            continue
        uses = imports if kind_of(root / file) == "python" else includes
        for use in sorted(uses(root, file, files), key=lambda use: use.line):
            target = owner(use.path, parts)
            if target is None or target is source:
                continue
            arrow = (source.name, target.name)
            if arrow not in drawn and arrow not in found:
                problems.append(f"{use.file}:{use.line} {use.text}, but the picture lacks {' --> '.join(arrow)}")
            found.add(arrow)
    for arrow in sorted(drawn - found):
        places = " ".join(next((part.paths for part in parts if part.name == arrow[0]), []))
        problems.append(f"the picture shows {' --> '.join(arrow)}, but no file of {places} includes or imports it")
    return len(drawn), problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    count, problems = check(read_picture(args.page.read_text()), args.root)
    if not count:
        problems.append("the page has no picture of parts")
    for problem in problems:
        print(f"{args.page.name}: {problem}")
    print(f"{args.page.name}: {count} arrows, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
