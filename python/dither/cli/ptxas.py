"""What NVIDIA's assembler says of PTX, where there is one."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import tempfile

from .. import knobs

_USAGE = re.compile(
    r"Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores.*\n.*Used (\d+)"
)


@dataclasses.dataclass(frozen=True)
class Resources:
    """Of one kernel: registers of a thread, and bytes of its stack and of spill stores."""

    registers: int
    stack: int
    spills: int


def find() -> tuple[str, str]:
    """(path, where it was found); ("", why not) where there is none. The order is that of the runtime."""
    asked = knobs.get("ptxas")
    if asked:
        found = shutil.which(asked)
        return (found, "DITHER_PTXAS") if found else ("", f"DITHER_PTXAS is '{asked}', which cannot be executed")
    found = shutil.which("ptxas")
    if found:
        return found, "PATH"
    toolkit = "/usr/local/cuda/bin/ptxas"
    if os.access(toolkit, os.X_OK):
        return toolkit, "the CUDA toolkit"
    return "", "not in DITHER_PTXAS, PATH or /usr/local/cuda/bin"


def version(path: str) -> str:
    """Such as "13.0"; empty where it does not say."""
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"release ([\d.]+)", text)
    return found[1] if found else ""


def cubin(path: str, ptx: str, target: str) -> bytes:
    """Machine code of a PTX text. Raises ValueError with what ptxas said where it refuses."""
    return _run(path, ptx, target)[1]


def assemble(path: str, ptx: str, target: str) -> dict[str, Resources]:
    """Resources of the kernels of a PTX text by name. Raises ValueError with what ptxas said where it refuses."""
    log, _ = _run(path, ptx, target)
    return {
        name: Resources(int(registers), int(stack), int(spills))
        for name, stack, spills, registers in _USAGE.findall(log)
    }


def _run(path: str, ptx: str, target: str) -> tuple[str, bytes]:
    """(what ptxas said, the code)."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file, tempfile.NamedTemporaryFile(suffix=".cubin") as made:
        file.write(ptx)
        file.flush()
        command = [path, "-v", f"-arch={target}", "-o", made.name, file.name]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ValueError(f"ptxas cannot be run: {error}") from None
        log = result.stdout + result.stderr
        if result.returncode:
            raise ValueError(f"ptxas: {log.strip()}")
        with open(made.name, "rb") as code:  # ptxas may have replaced the file
            return log, code.read()
