"""Settings: the DITHER_* environment variables, by name.

    dither.knobs.set("dump_dir", "/tmp/dump")       # the same as DITHER_DUMP_DIR=/tmp/dump
    dither.knobs.get("timing")

There is one table (`python -m dither doctor` prints it); what is not in it is an error.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .errors import suggest

_SUFFIX = {"quant": "mlir", "tiled": "mlir", "distributed": "mlir", "llvm": "mlir", "llvmir": "ll", "ptx": "ptx"}


def _rows() -> dict[str, dict[str, str]]:
    from . import _dither

    return {row["name"].removeprefix("DITHER_").lower(): row for row in _dither.environment()}


def _row(name: str) -> dict[str, str]:
    rows = _rows()
    if name not in rows:
        raise ValueError(f"unknown knob {name!r}, expected {', '.join(rows)}{suggest(name, rows)}")
    return rows[name]


def get(name: str) -> Any:
    """The value of a knob: bool, int, str, or a set of names. Raises ValueError for a malformed variable."""
    # Launches ask, and the table takes microseconds to read.
    variable = f"DITHER_{name.upper()}"
    text = os.environ.get(variable)
    if (name, text) in _known:
        return _known[name, text]
    value = _read(name)
    if os.environ.get(variable) == text:  # no other thread has set it meanwhile
        _known[name, text] = value
    return value


#: Values by knob, and by the text of the variable, None where it is not set.
_known: dict[tuple[str, str | None], Any] = {}


def _read(name: str) -> Any:
    row = _row(name)
    if "error" in row:
        raise ValueError(row["error"])
    text = row["value"]
    if row["kind"] == "flag":
        return text.lower() in ("1", "on", "true", "yes")
    if row["kind"] == "count":
        return int(text)
    if row["kind"] == "bytes":
        scale = {"K": 10, "M": 20, "G": 30, "T": 40}.get(text[-1:].upper(), 0)
        return int(text[:-1] if scale else text) << scale
    if row["kind"] == "set":
        allowed = row["values"].split(",")
        names = allowed if text == "all" else [] if text in ("", "none") else text.split(",")
        return frozenset(names)
    return text


def set(name: str, value: Any) -> None:
    """Gives a knob a value, for this process and those it starts; None returns to the default."""
    variable = _row(name)["name"]
    if value is None:
        os.environ.pop(variable, None)
        return
    text = str(int(value)) if isinstance(value, bool) else value if isinstance(value, str) else str(value)
    before = os.environ.get(variable)
    os.environ[variable] = text
    row = _row(name)
    if "error" in row:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
        raise ValueError(row["error"])


def dump(directory: str, kernel: str, stages: dict[str, str]) -> None:
    """Writes the stages of a compilation to `directory`/`kernel`, a file each."""
    wanted = get("dump_stages")
    place = os.path.join(directory, kernel)
    os.makedirs(place, exist_ok=True)
    for stage, text in stages.items():
        if stage in wanted:
            with open(os.path.join(place, f"{stage}.{_SUFFIX.get(stage, 's')}"), "w") as file:
                file.write(text)


def override(kernel: str) -> tuple[str, str]:
    """The latest stage whose text DITHER_OVERRIDE_DIR replaces, and the text: ("quant", "") where it replaces none."""
    for stage in ("llvm", "distributed", "tiled", "quant"):
        text = _overriding(kernel, f"{stage}.mlir")
        if text is not None:
            return stage, text
    return "quant", ""


def _overriding(kernel: str, name: str) -> str | None:
    """The text of a file of DITHER_OVERRIDE_DIR; None where it is not there."""
    directory = get("override_dir")
    path = os.path.join(directory, kernel, name)
    if not directory or not os.path.isfile(path):
        return None
    with open(path) as file:
        return file.read()


def override_code(kernel: str) -> str:
    """The PTX that DITHER_OVERRIDE_DIR puts in the place of what is compiled; empty for none."""
    return _overriding(kernel, "ptx.ptx") or ""


def report(file: str, kernel: str, target: str, remarks: list[Any]) -> None:
    """Appends what passes chose to a YAML file, a document each; "-" is stderr."""
    import json

    text = "".join(
        f"--- !Remark\nkernel: {kernel}\ntarget: {target}\n"
        f"where: {{file: {json.dumps(r.file)}, line: {r.line}, column: {r.col}}}\nmessage: {json.dumps(r.message)}\n"
        for r in remarks
    )
    if file == "-":
        sys.stderr.write(text)
        return
    with open(file, "a") as out:
        out.write(text)
