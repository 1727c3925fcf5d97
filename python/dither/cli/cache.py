"""`dither cache ls | prune`: the kernels kept on disk."""

from __future__ import annotations

import argparse
import datetime
import pathlib
import re
from typing import Any

from .. import cache, knobs
from .entry import read_entry
from .failure import Failure


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser("cache", help="list or remove the kernels kept on disk")
    actions = p.add_subparsers(metavar="ACTION", required=True)
    ls = actions.add_parser("ls", help="the kernels, last used first")
    ls.set_defaults(run=list_entries)
    prune = actions.add_parser("prune", help="remove the least recently used kernels")
    prune.add_argument("--size", metavar="BYTES", type=size, help="keep this much (K, M, G); default DITHER_CACHE_SIZE")
    prune.add_argument("--all", action="store_true", help="remove every kernel")
    prune.set_defaults(run=prune_entries)


def size(text: str) -> int:
    """Bytes, with K, M or G for powers of 1024."""
    found = re.fullmatch(r"(\d+)([KMG]?)", text, re.IGNORECASE)
    if not found:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a number of bytes such as 100M")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]


def entries() -> list[pathlib.Path]:
    """Files of the cache, last used first."""
    paths = list(cache.directory().glob("*.kernel"))
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def list_entries(args: argparse.Namespace) -> int:
    """Prints a line for each kernel: the start of its key, when it was last used, bytes, target and name."""
    paths = entries()
    total = 0
    for path in paths:
        about = path.stat()
        total += about.st_size
        used = datetime.datetime.fromtimestamp(about.st_mtime).strftime("%Y-%m-%d %H:%M:%S")
        try:
            entry = read_entry(path)
            what = f"{entry['target']:<12} {entry['name']}"
        except Failure:
            what = "(damaged)"
        print(f"{path.stem[:12]}  {used}  {about.st_size:>9}  {what}")
    print(f"{len(paths)} kernels, {total / 1e6:.1f} MB in {cache.directory()}")
    return 0


def prune_entries(args: argparse.Namespace) -> int:
    """Removes kernels, least recently used first, until the rest fits."""
    limit = 0 if args.all else knobs.get("cache_size") if args.size is None else args.size
    before = {path: path.stat().st_size for path in entries()}
    cache._prune(cache.directory(), limit)
    gone = [bytes_ for path, bytes_ in before.items() if not path.exists()]
    print(f"removed {len(gone)} of {len(before)} kernels, {sum(gone) / 1e6:.1f} MB, from {cache.directory()}")
    return 0
