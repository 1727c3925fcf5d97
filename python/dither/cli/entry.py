"""Entries of the cache for people: found by path or by the start of a key, whatever build made them."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from .. import cache
from .failure import Failure, UsageError


def find_entry(text: str) -> pathlib.Path:
    """The file of an entry, named by path or by the start of its key."""
    path = pathlib.Path(text)
    if path.is_file():
        return path
    if re.fullmatch(r"[0-9a-f]{4,64}", text) is None:
        raise UsageError(f"'{text}' is neither a file nor the start of a key: expected .mlir, .ptx or an entry")
    found = sorted(pathlib.Path(cache.directory()).glob(f"{text}*.kernel"))
    if not found:
        raise UsageError(f"no kernel in {cache.directory()} has a key that starts with {text}")
    if len(found) > 1:
        raise UsageError(f"{len(found)} kernels in {cache.directory()} have keys that start with {text}, expected one")
    return found[0]


def read_raw(path: pathlib.Path, is_run: bool = False) -> Any:
    """A `_dither.CacheEntry`. Raises Failure for a file that is damaged or is none, and of others where its code
    is to be run."""
    from .. import _dither

    try:
        return _dither.read_entry(str(path), is_run)
    except RuntimeError as error:
        what = str(error)
    if "not a compiled kernel" in what:
        raise Failure(f"{path} is not a compiled kernel")
    raise Failure(f"{path} is {what}" if what.startswith("damaged") else what)


def read_entry(path: pathlib.Path) -> dict[str, Any]:
    """What is kept with a kernel, its "code", and "fields", the text of each input by name."""
    return describe(read_raw(path))


def describe(entry: Any) -> dict[str, Any]:
    """A `_dither.CacheEntry` as `read_entry` gives it."""
    fields = {name: data.decode("utf-8", "backslashreplace") for name, data in entry.fields}
    return {**cache.unpack(entry), "fields": fields, "key": entry.key}
