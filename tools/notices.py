"""What a wheel must say of others' work that is linked into it: the licenses, gathered where they are installed."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

#: Archives that the compiler adds to each link, by -static-libstdc++ and -static-libgcc and of its own.
IMPLICIT = ("libstdc++.a", "libgcc.a", "libgcc_eh.a", "libc_nonshared.a")
#: Headers of LLVM whose code, in libLLVMSupport, has a license of its own at its top.
LLVM_HEADERS = ("llvm/Support/xxhash.h", "llvm/Support/ConvertUTF.h")
INTRODUCTION = """\
The extension module and libdither_runtime of this wheel hold, beside dither itself, code of the packages below, linked
statically. Their licenses follow, as they were installed on the machine that built the wheel. The Apache License 2.0,
which some name, is in LICENSE; licenses of GCC's libraries come with the GCC Runtime Library Exception, which is below.
"""


class MissingNotice(Exception):
    """A library without a license that could be found."""


def gather(links: Iterable[str], build: Path, cxx: str, root: Path) -> str:
    """The text, for the commands that link what the wheel holds."""
    archives = sorted({archive for link in links for archive in static_archives(link, build)})
    archives += [found for name in IMPLICIT if (found := compiler_library(cxx, name))]
    packages: dict[str, list[str]] = {}
    for archive in archives:
        packages.setdefault(owner(archive), []).append(Path(archive).name)
    sections: dict[Path, tuple[list[str], str]] = {}
    for package, names in sorted(packages.items()):
        path = Path("/usr/share/doc", package, "copyright")
        if not path.exists():
            raise MissingNotice(f"the license of {package} was not found, expected it in {path}")
        titles, _ = sections.setdefault(path.resolve(), ([], path.read_text()))
        titles.append(f"{package} {version(package)}: {shorten(names)}")
    text = [INTRODUCTION]
    for titles, body in sections.values():
        text.append(section("\n".join(titles), body))
    include = llvm_include(archives)
    for header in LLVM_HEADERS:
        text.append(section(f"LLVM, {header}", notice_of(include / header)))
    for path in sorted((root / "LICENSES").iterdir()):
        text.append(section(path.stem, path.read_text()))
    text.append(section("pybind11: headers", pybind11_license()))
    return "\n".join(text)


def static_archives(link: str, build: Path) -> list[str]:
    """The archives of a link, but for those of the build tree."""
    named = re.findall(r"(?<=\s)\S+\.a(?=\s|$)", link)
    outside = [str(path) for name in named if not (path := (build / name).resolve()).is_relative_to(build.resolve())]
    if not outside:
        raise MissingNotice(f"found no archive in the command that links a library: {link[:200]}")
    return outside


def compiler_library(cxx: str, name: str) -> str:
    """A library of the compiler; empty where it has none of that name."""
    path = run(cxx, f"-print-file-name={name}").strip()
    return str(Path(path).resolve()) if Path(path).is_absolute() else ""


def owner(archive: str) -> str:
    """The Debian package that a file is of."""
    if not shutil.which("dpkg-query"):
        raise MissingNotice(f"the license of {archive} was not found: expected dpkg, which says what package it is of")
    try:
        return run("dpkg-query", "--search", archive).split(":")[0]
    except subprocess.CalledProcessError:
        raise MissingNotice(f"the license of {archive} was not found: expected a file of a Debian package") from None


def version(package: str) -> str:
    """The version of a Debian package."""
    return run("dpkg-query", "--show", "--showformat=${Version}", package)


def shorten(names: list[str]) -> str:
    """Names of archives; of very many, how many."""
    return ", ".join(names) if len(names) < 6 else f"{len(names)} archives, {names[0]} to {names[-1]}"


def llvm_include(archives: Iterable[str]) -> Path:
    """The directory of LLVM's headers, beside its archives."""
    support = next((archive for archive in archives if archive.endswith("/libLLVMSupport.a")), None)
    if support is None:
        raise MissingNotice("found no libLLVMSupport.a among the archives of the wheel")
    return Path(support).parents[1] / "include"


def notice_of(header: Path) -> str:
    """The comments at the top of a header, down to the end of the one with the copyright."""
    comments = re.findall(r"/\*.*?\*/", header.read_text(), re.S)
    wanted = next((i for i, comment in enumerate(comments) if "opyright" in comment), None)
    if wanted is None:
        raise MissingNotice(f"found no copyright in {header}")
    return "\n".join(comments[: wanted + 1])


def pybind11_license() -> str:
    """The license of the installed pybind11."""
    try:
        files = importlib.metadata.files("pybind11") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for path in files:
        if path.name == "LICENSE":
            return Path(str(path.locate())).read_text()
    raise MissingNotice("the license of pybind11 was not found, expected it beside its metadata")


def section(title: str, body: str) -> str:
    """One license, under its title."""
    line = "=" * 100
    return f"{line}\n{title}\n{line}\n\n{body.strip()}\n"


def run(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
