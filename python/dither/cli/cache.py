"""`dither cache ls | explain | prune | export | import`: the kernels kept on disk."""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import re
from typing import Any

from .. import cache, knobs
from .compile import resolve
from .entry import describe, find_entry, read_entry, read_raw
from .failure import Failure


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser("cache", help="list, explain, remove or pack the kernels kept on disk")
    actions = p.add_subparsers(metavar="ACTION", required=True)

    ls = actions.add_parser("ls", help="the kernels, last used first")
    ls.set_defaults(run=list_entries)

    explain = actions.add_parser("explain", help="what a kernel was made from; with two, what differs")
    explain.add_argument("key", metavar="KEY", help="the start of a key, as 'ls' prints it, or a file")
    explain.add_argument("other", metavar="KEY", nargs="?")
    explain.set_defaults(run=explain_entries)

    prune = actions.add_parser("prune", help="remove the least recently used kernels, and what killed processes left")
    prune.add_argument("--size", metavar="BYTES", type=size, help="keep this much (K, M, G); default DITHER_CACHE_SIZE")
    prune.add_argument("--all", action="store_true", help="remove every kernel")
    prune.set_defaults(run=prune_entries)

    export = actions.add_parser("export", help="pack the kernels of this build into one file, for DITHER_CACHE_BUNDLE")
    export.add_argument("file", metavar="FILE", type=pathlib.Path)
    export.add_argument("--target", metavar="TARGET", action="append", help="only those for this target (repeatable)")
    export.add_argument("keys", metavar="KEY", nargs="*", help="only these: the starts of their keys")
    export.set_defaults(run=export_entries)

    import_ = actions.add_parser("import", help="add the kernels of a bundle to those on disk")
    import_.add_argument("file", metavar="FILE", type=pathlib.Path)
    import_.set_defaults(run=import_entries)


def size(text: str) -> int:
    """Bytes, with K, M or G for powers of 1024."""
    found = re.fullmatch(r"(\d+)([KMG]?)", text, re.IGNORECASE)
    if not found:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a number of bytes such as 100M")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]


def list_entries(args: argparse.Namespace) -> int:
    """Prints a line for each kernel: the start of its key, when it was last used, bytes, target and name."""
    files = cache.disk().files()
    for path, bytes_, used_ns in files:
        used = datetime.datetime.fromtimestamp(used_ns / 1e9).strftime("%Y-%m-%d %H:%M:%S")
        try:
            entry = read_entry(pathlib.Path(path))
            old = "" if entry["fields"].get("build") == cache.build() else "  (of another build)"
            what = f"{entry['target']:<12} {entry['name']}{old}"
        except (Failure, ValueError):
            what = "(damaged)"
        print(f"{pathlib.Path(path).stem[:12]}  {used}  {bytes_:>9}  {what}")
    print(f"{len(files)} kernels, {sum(row[1] for row in files) / 1e6:.1f} MB in {cache.directory()}")
    return 0


def explain_entries(args: argparse.Namespace) -> int:
    """Prints the fields of a key, each after what it stands for; of two keys, those that differ."""
    from .. import _dither

    first = read_entry(find_entry(args.key))
    meaning = dict(_dither.cache_fields())
    if args.other is None:
        print(f"{first['key']}  {first['name']} for {first['target']}")
        for name, text in first["fields"].items():
            print(f"\n{name}: {meaning.get(name, 'a field of another build')}")
            print("\n".join(f"  {line}" for line in text.splitlines()))
        return 0
    second = read_entry(find_entry(args.other))
    names = [*first["fields"], *(name for name in second["fields"] if name not in first["fields"])]
    different = [name for name in names if first["fields"].get(name) != second["fields"].get(name)]
    print(f"{first['key'][:12]} and {second['key'][:12]} differ in {', '.join(different) or 'nothing'}")
    for name in different:
        print(f"\n{name}: {meaning.get(name, 'a field of another build')}")
        before, after = (side["fields"].get(name, "").splitlines() for side in (first, second))
        print("\n".join(f"  - {line}" for line in before if line not in after))
        print("\n".join(f"  + {line}" for line in after if line not in before))
    return 0


def prune_entries(args: argparse.Namespace) -> int:
    """Removes kernels, least recently used first, until the rest fits."""
    limit = 0 if args.all else knobs.get("cache_size") if args.size is None else args.size
    before = len(cache.disk().files())
    removed, bytes_, temporary = cache.disk().prune(limit)
    print(f"removed {removed} of {before} kernels, {bytes_ / 1e6:.1f} MB, from {cache.directory()}")
    if temporary:
        print(f"removed {temporary} files of processes that were killed")
    return 0


def export_entries(args: argparse.Namespace) -> int:
    """Writes a bundle of kernels that this build of the compiler has made."""
    from .. import _dither

    wanted = [resolve(target) for target in args.target or ()]
    chosen = []
    for path in [find_entry(key) for key in args.keys] or [pathlib.Path(row[0]) for row in cache.disk().files()]:
        try:
            raw = read_raw(path, is_run=True)
        except Failure as error:
            if args.keys:
                raise
            print(f"left out: {error}")
            continue
        fields = describe(raw)["fields"]
        if fields.get("build") != cache.build():
            if args.keys:
                raise Failure(f"{path} was made by another build of dither")
        elif not wanted or fields["target"] in wanted:
            chosen.append(raw)
    if not chosen:
        raise Failure(
            f"no kernel in {cache.directory()} is of this build{' and for ' if wanted else ''}"
            f"{' or '.join(wanted)}: compile some first"
        )
    targets = sorted({describe(raw)["target"] for raw in chosen})
    about = {"build": cache.build(), "targets": targets}
    _dither.write_bundle(str(args.file), json.dumps(about, sort_keys=True).encode(), chosen)
    print(f"{len(chosen)} kernels for {', '.join(targets)} in {args.file}, {args.file.stat().st_size / 1e6:.1f} MB")
    return 0


def import_entries(args: argparse.Namespace) -> int:
    """Stores every entry of a bundle; a damaged one stops it."""
    from .. import _dither

    try:
        bundle = _dither.CacheBundle(str(args.file))
        entries = [bundle[i] for i in range(len(bundle))]
        for entry in entries:
            cache.disk().store(entry)
    except RuntimeError as error:
        raise Failure(str(error)) from None
    print(f"{len(entries)} kernels added to {cache.directory()}")
    if any(describe(entry)["fields"].get("build") != cache.build() for entry in entries):
        print("they were made by another build of dither, which this one does not use")
    return 0
