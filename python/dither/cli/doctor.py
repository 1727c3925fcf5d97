"""`dither doctor`: what dither is, what it found on this machine, and every setting."""

from __future__ import annotations

import argparse
import datetime
import functools
import mmap
import os
import pathlib
import platform
import re
from collections.abc import Callable
from typing import Any

from .. import ptxas
from ..version import __version__


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "doctor",
        help="what dither found on this machine, and every setting",
        description="Prints versions, devices, ptxas, the cache and every DITHER_* variable. "
        "Exits with 1 where a variable is malformed or unknown.",
    )
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the report."""
    from .. import _dither
    from ..devices import host_target, targets

    line("dither", f"{__version__}, {os.path.dirname(os.path.dirname(_dither.__file__))}")
    line("python", f"{platform.python_version()}, {platform.platform()}")
    about = compiler()
    line("compiler", about["build"])
    line("LLVM", about["llvm"])
    line("built with", about["built with"])
    guarded("host target", lambda: line("host target", f"{host_target()}, {_dither.num_threads()} threads"))
    line("targets", " ".join(targets()))
    guarded("devices", show_devices)
    guarded("ptxas", show_ptxas)
    guarded("cache", show_cache)
    print()
    wrong = show_variables()
    if wrong:
        print()
        for problem in wrong:
            print(f"error: {problem}")
    return 1 if wrong else 0


def line(name: str, text: str) -> None:
    """One row of the report."""
    print(f"{name:<12} {text}")


def guarded(name: str, show: Callable[[], None]) -> None:
    """Shows a part, or why it cannot be: a malformed variable does not end the report that explains it."""
    try:
        show()
    except (ValueError, RuntimeError, OSError) as error:
        line(name, f"unknown: {error}")


@functools.cache
def compiler() -> dict[str, str]:
    """The extension module: when it was built, LLVM's version, and the compilers whose code is in it.

    The versions are what those tools left in the file, so that they are of this very file.
    """
    from .. import _dither

    path = _dither.__file__
    about = os.stat(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        llvm = re.findall(rb"LLVM version (\d+\.\d+\.\d+)", data)
        tools = re.findall(rb"GCC: \([^()\0]*\) [\d.]+|clang version [\d.]+|LLD \d[\d.]+", data)
    when = datetime.datetime.fromtimestamp(about.st_mtime).strftime("%Y-%m-%d %H:%M:%S")
    return {
        "build": f"{os.path.basename(path)}, {about.st_size / 1e6:.1f} MB, {when}",
        "llvm": llvm[0].decode() if llvm else "unknown",
        "built with": ", ".join(dict.fromkeys(t.decode() for t in tools)) or "unknown",
    }


def show_devices() -> None:
    """Every device, and why there is no GPU."""
    from ..devices import devices, why_no_gpu

    for device in devices():
        line("device", f"{device.name}: {device.description}, {device.target}")
    if why_no_gpu():
        line("", why_no_gpu())


def show_ptxas() -> None:
    """Where ptxas is; nothing needs it."""
    path, where = ptxas.find()
    if path:
        line("ptxas", f"{path} {ptxas.version(path)} (from {where})")
    else:
        line("ptxas", f"none: {where}; registers are not reported")


def show_cache() -> None:
    """Where compiled kernels lie and how much there is."""
    from .. import cache, knobs

    place = pathlib.Path(cache.directory())
    sizes = [path.stat().st_size for path in place.glob("*.kernel")]
    state = {"off": ", switched off", "readonly": ", read only"}.get(knobs.get("cache"), "")
    writable = place if place.exists() else next(p for p in place.absolute().parents if p.exists())
    if not state and not os.access(writable, os.W_OK):
        state = ", not writable"
    limit = knobs.get("cache_size") / 1e6
    line("cache", f"{place}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} of {limit:.0f} MB{state}")


def show_variables() -> list[str]:
    """The table of variables; returns what is wrong with them."""
    from .. import _dither

    rows = _dither.environment()
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        text = row["value"] or "(empty)"
        if os.environ.get(row["name"]):
            text += f" (set; the default is {row['default'] or 'empty'})"
        print(f"{row['name']:<{width}} = {text}")
        print(f"{'':<{width}}   {row['help']}" + (f": {row['values'].replace(',', ', ')}" if row["values"] else ""))
    try:
        _dither.check_environment()
    except RuntimeError as error:
        return str(error).splitlines()
    return []
