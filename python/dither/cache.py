"""Compiled kernels on disk: what `dither.jit` looks for before it compiles.

Entries, their keys, locks and bundles are C++ (include/dither/Cache); here is where they lie and when they are asked.
Looking for a kernel never fails and never gives a wrong one: what is damaged, foreign or of another build is a miss,
and what cannot be written is kept in memory only, with one warning.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from . import knobs
from .version import __version__

#: The Python part of the compiler, within the package: code depends on its text.
COMPILER_SOURCES = ("compiler/", "language/", "compiled.py", "printing.py", "formats.py", "types.py")


_T = TypeVar("_T")


class NoDirectory(OSError):
    """There is no place for entries."""


def directory() -> str:
    """Where entries lie: DITHER_CACHE_DIR, else dither under the user's cache directory.

    Raises NoDirectory where the user has none: no HOME, and no entry in the table of users.
    """
    # pathlib takes milliseconds to import, which every process would wait for.
    asked = knobs.get("cache_dir")
    if asked:
        return os.path.normpath(asked)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return os.path.join(base, "dither")
    home = os.path.expanduser("~")
    if home == "~":
        raise NoDirectory("found no home directory of this user, expected HOME or DITHER_CACHE_DIR to be set")
    return os.path.join(home, ".cache", "dither")


def disk() -> Any:
    """The cache on disk, a `_dither.DiskCache`. Raises NoDirectory."""
    return _disk(directory(), knobs.get("cache_size"))


@functools.cache
def _disk(place: str, limit: int) -> Any:
    from . import _dither

    return _dither.DiskCache(place, limit)


@functools.cache
def build() -> str:
    """Identifies the compiler by content: the version, the extension module, and the sources of its Python part."""
    from . import _dither

    digest = hashlib.sha256()
    package = os.path.dirname(__file__)
    for name in sorted(_compiler_sources(package)):
        # Every first launch waits for this, hence no pathlib.
        with open(os.path.join(package, name), "rb", buffering=0) as file:
            text = file.read()
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return f"{__version__} {_dither.binary_id()} {digest.hexdigest()[:40]}"


def _compiler_sources(package: str) -> Iterator[str]:
    for name in COMPILER_SOURCES:
        if name.endswith(".py"):
            yield name
        else:
            yield from (name + file for file in os.listdir(os.path.join(package, name)) if file.endswith(".py"))


def _pairs(fields: Mapping[str, str]) -> list[tuple[str, bytes]]:
    given = {**fields, "build": build()}
    return [(name, text.encode("utf-8", "surrogatepass")) for name, text in given.items()]


def key_of(fields: Mapping[str, str]) -> str:
    """The name of an entry. `fields` are those of include/dither/Cache/KeyFields.def less "build", which is added."""
    from . import _dither

    return _dither.cache_key(_pairs(fields))


def load(fields: Mapping[str, str]) -> dict[str, Any] | None:
    """The entry made from these inputs, of a bundle or of the disk; None where there is none that is whole."""
    state = knobs.get("cache")
    pairs = _pairs(fields)
    for bundle in _bundles():
        try:
            found = bundle.load(pairs)
        except RuntimeError as error:
            _warn(f"{error}; it is compiled instead")
            continue
        if found is not None:
            return unpack(found)
    try:
        found = disk().load(pairs) if state != "off" else None
    except NoDirectory:
        return None
    return None if found is None else unpack(found)


@contextlib.contextmanager
def compiling(fields: Mapping[str, str], look: Callable[[], _T | None]) -> Iterator[_T | None]:
    """Around compiling after a miss: waits while another process compiles the same, and gives what `look` then finds.

    None says to compile. Processes wait at most DITHER_CACHE_LOCK_TIMEOUT seconds, and not at all where the file
    system has no locks.
    """
    if knobs.get("cache") != "on":
        yield None
        return
    try:
        lock = disk().lock(_pairs(fields), knobs.get("cache_lock_timeout"))
    except NoDirectory:
        yield None
        return
    try:
        yield look()
    finally:
        lock.release()


def store(fields: Mapping[str, str], entry: Mapping[str, Any]) -> None:
    """Keeps an entry for these inputs. A directory that cannot be written gives one warning."""
    if knobs.get("cache") != "on":
        return
    try:
        disk().store(pack(fields, entry))
    except NoDirectory as error:
        _warn(f"compiled kernels are not kept: {error}")
    except RuntimeError as error:
        _warn(f"compiled kernels are not kept: {error}", once=directory())


def pack(fields: Mapping[str, str], entry: Mapping[str, Any]) -> Any:
    """A `_dither.CacheEntry`: JSON for all of an entry but its code."""
    from . import _dither

    metadata = {name: value for name, value in entry.items() if name != "code"}
    return _dither.CacheEntry(_pairs(fields), json.dumps(metadata, sort_keys=True).encode(), entry["code"])


def unpack(entry: Any) -> dict[str, Any]:
    """The inverse of `pack`, less the fields."""
    return {**json.loads(entry.metadata), "code": entry.code}


@functools.cache
def _open_bundle(path: str) -> Any:
    """A bundle; None, with a warning, where it cannot be used."""
    from . import _dither

    try:
        bundle = _dither.CacheBundle(path)
        about = json.loads(bundle.about)
    except (RuntimeError, ValueError) as error:
        _warn(f"{error}; kernels are compiled instead")
        return None
    if about["build"] != build():
        _warn(f"bundle {path} was made by another build of dither; kernels are compiled instead")
        return None
    return bundle


def _bundles() -> list[Any]:
    paths = knobs.get("cache_bundle")
    bundles = [_open_bundle(path) for path in paths.split(":") if path] if paths else []
    return [bundle for bundle in bundles if bundle is not None]


_warned: set[str] = set()


def _warn(message: str, once: str = "") -> None:
    """One warning for each cause; no error, also under `-W error`: a kernel that is not kept is as good."""
    if (once or message) in _warned:
        return
    _warned.add(once or message)
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    except RuntimeWarning:
        print(f"RuntimeWarning: {message}", file=sys.stderr)
