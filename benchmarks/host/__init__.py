"""Peers of the launch path: what a call from Python costs at least, and what Triton's costs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.peers import Unavailable

SOURCE = Path(__file__).parent / "calls.cpp"


def build(folder: Path) -> Any:
    """Compiles and imports `calls.cpp`. Raises Unavailable where there is no compiler or no pybind11."""
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("clang++-22", "clang++", "g++", "c++")), None)
    if compiler is None:
        raise Unavailable("no C++ compiler was found, expected clang++, g++ or CXX")
    try:
        import pybind11
    except ImportError as error:
        raise Unavailable("pybind11 is not installed") from error
    library = folder / f"calls{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = [f"-I{path}" for path in (pybind11.get_include(), sysconfig.get_paths()["include"])]
    command = [compiler, "-O2", "-std=c++17", "-shared", "-fPIC", *includes, str(SOURCE), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{compiler} failed: {done.stderr.strip().splitlines()[0]}")
    spec = importlib.util.spec_from_file_location("calls", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class HostDriver:
    """A Triton driver without a GPU: kernels are compiled and bound as ever, and launched into nothing."""

    def __init__(self, capability: int = 90) -> None:
        from triton.backends.compiler import GPUTarget

        target = GPUTarget("cuda", capability, 32)
        self.get_current_target = lambda: target
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device: 0
        self.utils = self
        self.launcher_cls = lambda source, metadata: lambda *arguments: None

    def is_active(self) -> bool:
        return True

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 1 << 20, "multiprocessor_count": 1}

    def load_binary(self, name: str, code: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        return 1, 1, 32, 0, 1024

    def unload_module(self, module: int) -> None:
        """Triton calls it when a kernel goes away: where it is missing, the garbage collector raises in other code."""


def triton_jit(with_gpu: bool) -> Any:
    """`triton.jit`; on a machine without a GPU, with a driver that takes its place. Raises Unavailable."""
    try:
        import triton
        import triton.runtime
    except ImportError as error:
        raise Unavailable("triton is not installed") from error
    if not with_gpu:
        triton.runtime.driver.set_active(HostDriver())
    return triton.jit


def module_of(folder: Path, name: str, text: str) -> Any:
    """A module with this source, in a file: compilers read it."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
