"""What NVIDIA's assembler and disassembler say of PTX, where there are any."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile

from . import knobs
from .data_classes import dataclass

_TOOLKIT = "/usr/local/cuda/bin"
#: The first CUDA whose assembler takes what a target has beyond its chip.
_NEEDS = {"ptx91": (13, 1)}
_USAGE = re.compile(
    r"Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores.*\n"
    r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?"
)


@dataclass(frozen=True)
class Resources:
    """Of one kernel: registers of a thread, bytes of its stack and of spill stores, and shared memory of a block."""

    registers: int
    stack: int
    spills: int
    shared: int = 0


def find() -> tuple[str, str]:
    """(path, where it was found); ("", why not) where there is none. The order is that of the runtime."""
    asked = knobs.get("ptxas")
    if asked:
        found = shutil.which(asked)
        return (found, "DITHER_PTXAS") if found else ("", f"DITHER_PTXAS is '{asked}', which cannot be executed")
    found = shutil.which("ptxas")
    if found:
        return found, "PATH"
    toolkit = f"{_TOOLKIT}/ptxas"
    if os.access(toolkit, os.X_OK):
        return toolkit, "the CUDA toolkit"
    return "", "not in DITHER_PTXAS, PATH or /usr/local/cuda/bin"


def chip(target: str) -> str:
    """What ptxas calls a target: "sm_100a" for "sm_100a:ptx91"."""
    return target.partition(":")[0]


def name_in_wheel(target: str) -> str:
    """What Triton's wheel calls the assembler for a target: that for sm_100 and later has a name of its own."""
    return "ptxas-blackwell" if int(re.sub(r"\D", "", chip(target))) >= 100 else "ptxas"


def takes(path: str, target: str) -> bool:
    """Whether the assembler is new enough for a target's PTX."""
    needs = _NEEDS.get(target.partition(":")[2])
    return needs is None or tuple(int(part) for part in version(path).split(".") if part) >= needs


def find_tools(target: str) -> tuple[str, str] | None:
    """An assembler for a target and a disassembler: those of the toolkit, or of Triton's wheel where there is none or
    an older one. None where one of them is missing."""
    assembler = find()[0]
    if knobs.get("ptxas") and not assembler:
        return None
    folders = [os.path.dirname(assembler)] if assembler else []
    triton = importlib.util.find_spec("triton")  # imports nothing
    wheel = f"{os.path.dirname(triton.origin)}/backends/nvidia/bin" if triton and triton.origin else ""
    if wheel and not (assembler and (knobs.get("ptxas") or takes(assembler, target))):
        own = name_in_wheel(target)
        assembler = f"{wheel}/{own if os.access(f'{wheel}/{own}', os.X_OK) else 'ptxas'}"
    places = [*folders, *os.environ.get("PATH", "").split(os.pathsep), _TOOLKIT, *([wheel] if wheel else [])]
    disassembler = shutil.which("nvdisasm", path=os.pathsep.join(places))
    return (assembler, disassembler) if os.access(assembler, os.X_OK) and disassembler else None


@functools.cache
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
    return _resources(_run(path, ptx, target)[0])


def disassemble(tools: tuple[str, str], ptx: str, target: str) -> tuple[dict[str, Resources], str]:
    """Resources as of `assemble`, and nvdisasm's listing, which names the line of the PTX of each instruction; of tools
    as of `find_tools`. Raises ValueError with what a tool said where it refuses."""
    log, code = _run(tools[0], ptx, target, "-lineinfo")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        try:
            result = subprocess.run([tools[1], "-gp", "-c", file.name], capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ValueError(f"nvdisasm cannot be run: {error}") from None
    if result.returncode:
        raise ValueError(f"nvdisasm: {result.stderr.strip()}")
    return _resources(log), result.stdout


def _resources(log: str) -> dict[str, Resources]:
    return {
        name: Resources(int(registers), int(stack), int(spills), int(shared or 0))
        for name, stack, spills, registers, shared in _USAGE.findall(log)
    }


def _run(path: str, ptx: str, target: str, *options: str) -> tuple[str, bytes]:
    """(what ptxas said, the code)."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file, tempfile.NamedTemporaryFile(suffix=".cubin") as made:
        file.write(ptx)
        file.flush()
        command = [path, "-v", *options, f"-arch={chip(target)}", "-o", made.name, file.name]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ValueError(f"ptxas cannot be run: {error}") from None
        log = result.stdout + result.stderr
        if result.returncode:
            raise ValueError(f"ptxas: {log.strip()}")
        with open(made.name, "rb") as code:  # ptxas may have replaced the file
            return log, code.read()
