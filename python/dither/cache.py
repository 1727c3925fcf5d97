"""Compiled kernels on disk.

One file for each kernel and each set of inputs that its code depends on, named by a hash of those. A file is
a JSON header line, the code, and a checksum over both; it is written under a temporary name and renamed, so that
readers see all of it or nothing. Whatever cannot be read is a miss, and what cannot be written is kept in memory only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import stat
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

from . import knobs

_MAGIC = "dither-kernel 1"
_DIGEST = 32


def directory() -> pathlib.Path:
    """Where entries lie: DITHER_CACHE_DIR, else dither under the user's cache directory."""
    asked = knobs.get("cache_dir")
    if asked:
        return pathlib.Path(asked)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "dither"


def key_of(fields: Mapping[str, str]) -> str:
    """The name of an entry: every field by name and length, the build of the compiler included."""
    digest = hashlib.sha256()
    for name, text in sorted({**fields, "build": build()}.items()):
        data = text.encode()
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()


_build: list[str] = []


def build() -> str:
    """Identifies the compiler: the version, and the file that it is in."""
    if not _build:
        from . import __version__, _dither

        about = os.stat(_dither.__file__)
        _build.append(f"{__version__} {about.st_size} {about.st_mtime_ns}")
    return _build[0]


def load(fields: Mapping[str, str]) -> dict[str, Any] | None:
    """The entry stored for these inputs; None where there is none that is whole."""
    if knobs.get("cache") == "off":
        return None
    path = directory() / f"{key_of(fields)}.kernel"
    try:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            data = file.read()
        body, digest = data[:-_DIGEST], data[-_DIGEST:]
        if hashlib.sha256(body).digest() != digest:
            return None
        head, _, code = body.partition(b"\n")
        entry = json.loads(head)
        if entry.pop("magic") != _MAGIC or entry.pop("fields") != dict(fields):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return {**entry, "code": code}
    except (OSError, ValueError, KeyError):
        return None


_warned: list[str] = []


def store(fields: Mapping[str, str], entry: Mapping[str, Any]) -> None:
    """Keeps an entry for these inputs. A directory that cannot be written gives one warning."""
    if knobs.get("cache") != "on":
        return
    place = directory()
    header = {"magic": _MAGIC, "fields": dict(fields), **{k: v for k, v in entry.items() if k != "code"}}
    body = json.dumps(header, sort_keys=True).encode() + b"\n" + entry["code"]
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(body + hashlib.sha256(body).digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, place / f"{key_of(fields)}.kernel")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        _prune(place, knobs.get("cache_size"))
    except OSError as error:
        if str(place) not in _warned:
            _warned.append(str(place))
            warnings.warn(f"compiled kernels are not kept: {error}", RuntimeWarning, stacklevel=2)


def _prune(place: pathlib.Path, limit: int) -> None:
    """Removes the least recently used entries above `limit` bytes."""
    entries = []
    for path in place.glob("*.kernel"):
        with contextlib.suppress(OSError):
            about = path.stat()
            entries.append((about.st_mtime_ns, about.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries, key=lambda entry: entry[0]):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
