"""How commands fail."""

import traceback
from pathlib import Path


class Failure(Exception):
    """The input or the machine is at fault: exit code 1."""


class UsageError(Exception):
    """The command line is at fault: exit code 2."""


def cannot_run(path: Path, error: BaseException) -> Failure:
    """The failure of a user's file: what it raised, and the lines of the file and below that led there."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if _is(path, frame.filename)), len(frames))
    lines = [f"{path} cannot be run: {type(error).__name__}: {error}"]
    if isinstance(error, SyntaxError) and error.filename and error.text:
        text = error.text.rstrip("\n")
        lines += [f"    {error.filename}:{error.lineno}", f"        {text.lstrip()}"]
        if error.offset:
            lines.append(" " * (8 + error.offset - 1 - len(text) + len(text.lstrip())) + "^")
    for frame in frames[first:]:
        lines.append(f"    {frame.filename}:{frame.lineno}, in {frame.name}")
        if frame.line:
            lines.append(f"        {frame.line}")
    return Failure("\n".join(lines))


def _is(path: Path, name: str) -> bool:
    try:
        return path.samefile(name)
    except OSError:
        return False
