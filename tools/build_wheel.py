#!/usr/bin/env python3
"""Builds self-contained wheels: one for each CPython at hand, stripped, in dist/.

As a script (`make wheel`) it builds for the configured interpreter and for every other CPython
of WANTED that is found with its headers. It is also the PEP 517 backend, so `pip install .` works.
Each module is checked before it is packed: it exports its init function alone, needs only libc and
libm, loads in its interpreter, and the wheel is under SIZE_LIMIT. The licenses of all that is linked into
it lie in its dist-info.
"""

from __future__ import annotations

import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import notices

ROOT = Path(__file__).resolve().parent.parent
WANTED = ("3.11", "3.12")
SIZE_LIMIT = 40_000_000  # bytes
RUNTIME = "libdither_runtime.so.1"
SYSTEM_LIBRARIES = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux-[\w-]+)\.so")
QUERY = (
    "import os, sys, sysconfig as s; assert os.path.exists(s.get_path('include') + '/Python.h');"
    "print(*sys.version_info[:2], s.get_config_var('EXT_SUFFIX'), sys.executable)"
)


class WheelError(Exception):
    """Why no wheel can be made: what was found and what was expected."""


def output(*command: object) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def describe(interpreter: str) -> tuple[str, str, str] | None:
    """(version such as '3.12', extension suffix, path) of a CPython with headers, else None."""
    try:
        major, minor, suffix, path = output(interpreter, "-c", QUERY).split()
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return f"{major}.{minor}", suffix, path


def find_interpreters(build: Path) -> dict[str, tuple[str, str]]:
    """{version: (suffix, path)}; the build's own first, then DITHER_WHEEL_PYTHONS, PATH and pyenv's."""
    cache = (build / "CMakeCache.txt").read_text()
    own = re.search(r"^Python3_EXECUTABLE:\w+=(.+)$", cache, re.M)
    candidates = [own.group(1)] if own else [sys.executable]
    candidates += os.environ.get("DITHER_WHEEL_PYTHONS", "").split()
    for version in WANTED:
        candidates += [f"python{version}", f"/usr/bin/python{version}"]
        candidates += sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")))
    found: dict[str, tuple[str, str]] = {}
    for candidate in candidates:
        answer = describe(candidate)
        if answer and answer[0] not in found:
            found[answer[0]] = answer[1:]
    return found


def check_module(module: Path, interpreter: str) -> None:
    """Checks a stripped extension module."""
    dynamic = output("readelf", "--dynamic", module)
    foreign = [lib for lib in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic) if not SYSTEM_LIBRARIES.match(lib)]
    if foreign:
        raise WheelError(f"{module.name} needs {', '.join(foreign)}: expected libc and libm alone")
    symbols = output("readelf", "--dyn-syms", "--wide", module)
    exported = re.findall(r"(?:GLOBAL|WEAK|UNIQUE)\s+\w+\s+(?!UND)\w+\s+(\S+)", symbols)
    init = f"PyInit_{module.name.split('.')[0]}"
    if exported != [init]:
        raise WheelError(
            f"{module.name} exports {len(exported)} symbols ({', '.join(exported[:4])}): expected {init} alone"
        )
    load = (
        "import importlib.util as u, sys;"
        f"s = u.spec_from_file_location({init.removeprefix('PyInit_')!r}, sys.argv[1]); u.module_from_spec(s)"
    )
    subprocess.run([interpreter, "-I", "-c", load, str(module)], check=True)


def platform_tag(libraries: list[Path]) -> str:
    """The manylinux tag of the oldest glibc that has all that the libraries take of it."""
    symbols = "".join(output("readelf", "--dyn-syms", "--wide", library) for library in libraries)
    glibc = max(tuple(map(int, v)) for v in re.findall(r"@GLIBC_(\d+)\.(\d+)", symbols))
    return f"manylinux_{glibc[0]}_{glibc[1]}_{os.uname().machine}"


def license_files(project: dict) -> dict[str, bytes]:
    """The files that [project] names as its licenses, by name."""
    found = [path for pattern in project["license-files"] for path in sorted(ROOT.glob(pattern))]
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in found}


def metadata(project: dict, licenses: Iterable[str]) -> str:
    """The core metadata of [project] in pyproject.toml."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}"]
    lines += [f"License-Expression: {project['license']}", *(f"License-File: {name}" for name in licenses)]
    lines += [f"Requires-Dist: {dependency}" for dependency in project["dependencies"]]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
    return "\n".join(lines)


def pack(module: Path, runtime: Path, notes: str, version: str, directory: Path) -> Path:
    """Writes the wheel: Python sources, a module, the library for C, and the licenses of all that is in them (`notes`
    those of others). The same inputs give the same bytes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tag = f"cp{version.replace('.', '')}"
    tags = f"{tag}-{tag}-{platform_tag([module, runtime])}"
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    source = ROOT / "python" / "dither"
    files: dict[str, bytes] = {}
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[f"dither/{path.relative_to(source)}"] = path.read_bytes()
    files[f"dither/{module.name}"] = module.read_bytes()
    files[f"dither/lib/{runtime.name}"] = runtime.read_bytes()
    files["dither/include/dither-c/dither.h"] = (ROOT / "include" / "dither-c" / "dither.h").read_bytes()
    licenses = {**license_files(project), "THIRD_PARTY_NOTICES": notes.encode()}
    files |= {f"{info}/licenses/{name}": data for name, data in licenses.items()}
    files[f"{info}/METADATA"] = metadata(project, licenses).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: dither\nRoot-Is-Purelib: false\nTag: {tags}\n".encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{stem}-{tags}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(entry, data)
    if wheel.stat().st_size >= SIZE_LIMIT:
        raise WheelError(f"{wheel.name} has {wheel.stat().st_size} bytes: expected under {SIZE_LIMIT}")
    return wheel


def third_party_notices(build: Path, module: Path) -> str:
    """The licenses of what the module and the library for C were linked with."""
    outputs = (str(module.relative_to(build)), f"lib/{(build / 'lib' / RUNTIME).resolve().name}")
    links = [output("ninja", "-C", build, "-t", "commands", "-s", name).strip() for name in outputs]
    cxx = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    assert cxx
    return notices.gather(links, build, cxx.group(1), ROOT)


def make_wheel(build: Path, module: Path, version: str, interpreter: str, directory: Path) -> Path:
    """Strips, checks and packs one built module, and the library for C of the build tree."""
    notes = third_party_notices(build, module)
    with tempfile.TemporaryDirectory() as scratch:
        stripped, runtime = Path(scratch) / module.name, Path(scratch) / RUNTIME
        subprocess.run(["strip", "--strip-all", "-o", str(stripped), str(module)], check=True)
        subprocess.run(["strip", "--strip-unneeded", "-o", str(runtime), str(build / "lib" / RUNTIME)], check=True)
        check_module(stripped, interpreter)
        return pack(stripped, runtime, notes, version, directory)


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """PEP 517: a wheel for the running interpreter, from a build tree of its own."""
    answer = describe(sys.executable)
    if answer is None:
        raise WheelError(
            f"'{sys.executable}' has no headers (Python.h): install them with 'apt-get install python3-dev'"
        )
    version, suffix, path = answer
    build = ROOT / "build-pip"
    configure = [
        "cmake",
        "--preset",
        "release",
        "-B",
        build,
        f"-DPython3_EXECUTABLE={path}",
        "-DDITHER_ENABLE_TESTS=OFF",
    ]
    subprocess.run([str(part) for part in configure], check=True, cwd=ROOT)
    subprocess.run(["ninja", "-C", str(build), f"-j{os.cpu_count()}", "dither-python", "dither_runtime"], check=True)
    return make_wheel(
        build, build / "python" / "dither" / f"_dither{suffix}", version, path, Path(wheel_directory)
    ).name


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--own", action="store_true", help="for the configured interpreter alone")
    args = parser.parse_args()
    if not shutil.which("strip") or not shutil.which("readelf"):
        raise WheelError("strip or readelf was not found: install them with 'apt-get install binutils'")

    found = find_interpreters(args.build)
    own = next(iter(found))
    if args.own:
        found = {own: found[own]}
    extra = [path for version, (_, path) in found.items() if version != own]
    targets = ["dither-python", "dither_runtime", *(f"_dither-{n}" for n in range(1, len(extra) + 1))]
    if extra:
        listed = ";".join(extra)
        subprocess.run(["cmake", str(args.build), f"-DDITHER_EXTRA_PYTHONS={listed}"], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", str(args.build), f"-j{args.jobs}", "--quiet", *targets], check=True)
    for version, (suffix, path) in found.items():
        where = args.build / ("python/dither" if version == own else f"wheel/_dither-{1 + extra.index(path)}")
        wheel = make_wheel(args.build, where / f"_dither{suffix}", version, path, args.out)
        print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")
    for version in WANTED:
        if version not in found and not args.own:
            print(
                f"no wheel for Python {version}: no CPython {version} with headers; DITHER_WHEEL_PYTHONS can name one"
            )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (WheelError, notices.MissingNotice, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
