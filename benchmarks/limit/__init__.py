"""The hand-written AVX-512 kernels, through ctypes. `load()` builds them first where CMake has not."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "benchmarks"

# What CMakeLists.txt says, for a compiler called directly.
FLAGS = [
    "-O3",
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fno-exceptions",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-march=x86-64-v4",
    "-mavx512vbmi",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-uninitialized",
]

FORMATS = {"nvfp4": 0, "mxfp8_e4m3": 1, "mxfp4": 2, "mxfp4_rceil": 3}
BLOCK = {"nvfp4": 16, "mxfp8_e4m3": 32, "mxfp4": 32, "mxfp4_rceil": 32}
INPUTS = {np.dtype(ml_dtypes.bfloat16): 0, np.dtype(np.float32): 1}
STATUS = {-1: "unknown format", -2: "unknown input type", -3: "shape is not whole blocks"}


class LimitError(RuntimeError):
    """The library cannot be built or loaded here, or refused its arguments."""


def empty(shape: tuple[int, ...], dtype: np.dtype | type = np.uint8, align: int = 4096) -> np.ndarray:
    """An uninitialized array whose first byte is aligned: non-temporal stores need 64 bytes."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    storage = np.empty(size + align, np.uint8)
    start = -storage.ctypes.data % align
    return storage[start : start + size].view(dtype).reshape(shape)


def build() -> Path:
    """The library's path: CMake's if newer than the sources, else one built here and kept by the hash of its input.

    clang first: its code is a tenth faster than that of g++ 12.
    """
    sources = sorted(HERE.glob("*.cpp"))
    inputs = sources + sorted(HERE.glob("*.h"))
    by_cmake = BUILD / "libdither-limit.so"
    if by_cmake.exists() and by_cmake.stat().st_mtime >= max(f.stat().st_mtime for f in inputs):
        return by_cmake
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("clang++-22", "clang++", "g++", "c++")), None)
    if compiler is None:
        raise LimitError("no C++ compiler was found, expected clang++, g++ or CXX")
    flags = list(FLAGS)
    if "clang" not in Path(compiler).name:
        flags.append("-Wno-maybe-uninitialized")  # g++ 12 warns inside its own AVX-512 header
    digest = hashlib.sha256(" ".join([compiler, *flags]).encode())
    for file in inputs:
        digest.update(file.read_bytes())
    library = BUILD / f"limit-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            fresh = Path(folder) / library.name
            command = [compiler, *flags, *map(str, sources), "-o", str(fresh)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                raise LimitError(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
            os.replace(fresh, library)
    return library


@dataclass(frozen=True)
class Limit:
    """The library. Arrays are C-contiguous, 2-D; outputs are uint8 and are written in place."""

    library: ctypes.CDLL

    def memcpy(self, to: np.ndarray, source: np.ndarray, threads: int) -> None:
        """Copies `source` over the first bytes of `to`."""
        assert to.nbytes >= source.nbytes
        self.library.limit_memcpy(_pointer(to), _pointer(source), ctypes.c_int64(source.nbytes), threads)

    def quantize(
        self, x: np.ndarray, format: str, amax: float, q: np.ndarray, scale: np.ndarray, threads: int = 1
    ) -> None:
        """Rowwise quantize; `amax` is that of the tensor, used by NVFP4 alone."""
        rows, cols = x.shape
        _check(
            self.library.limit_quantize(
                FORMATS[format],
                INPUTS[x.dtype],
                _pointer(x),
                ctypes.c_int64(rows),
                ctypes.c_int64(cols),
                ctypes.c_float(amax),
                _output(q, rows * cols // (1 if format == "mxfp8_e4m3" else 2)),
                _output(scale, rows * cols // BLOCK[format]),
                threads,
            )
        )

    def quantize_both(
        self,
        x: np.ndarray,
        row_q: np.ndarray,
        row_scale: np.ndarray,
        col_q: np.ndarray,
        col_scale: np.ndarray,
        threads: int = 1,
    ) -> None:
        """MXFP8 rowwise and columnwise."""
        rows, cols = x.shape
        _check(
            self.library.limit_quantize_both(
                INPUTS[x.dtype],
                _pointer(x),
                ctypes.c_int64(rows),
                ctypes.c_int64(cols),
                _output(row_q, rows * cols),
                _output(row_scale, rows * cols // 32),
                _output(col_q, rows * cols),
                _output(col_scale, rows * cols // 32),
                threads,
            )
        )

    def rms_norm(
        self,
        x: np.ndarray,
        gamma: np.ndarray,
        format: str,
        eps: float,
        amax: float,
        q: np.ndarray,
        scale: np.ndarray,
        rsigma: np.ndarray | None = None,
        round_intermediate: bool = False,
        threads: int = 1,
    ) -> None:
        """RMSNorm, then rowwise quantize of the result, rounded to the type of x first if `round_intermediate`."""
        rows, cols = x.shape
        assert gamma.shape == (cols,) and gamma.dtype == x.dtype
        _check(
            self.library.limit_rms_norm(
                FORMATS[format],
                INPUTS[x.dtype],
                _pointer(x),
                _pointer(gamma),
                ctypes.c_int64(rows),
                ctypes.c_int64(cols),
                ctypes.c_float(eps),
                ctypes.c_float(amax),
                int(round_intermediate),
                _output(q, rows * cols // (1 if format == "mxfp8_e4m3" else 2)),
                _output(scale, rows * cols // BLOCK[format]),
                _output(rsigma, 4 * rows) if rsigma is not None else None,
                threads,
            )
        )


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _output(array: np.ndarray, size: int) -> ctypes.c_void_p:
    assert array.nbytes == size and array.flags.writeable, (array.nbytes, size)
    return _pointer(array)


def _check(status: int) -> None:
    if status != 0:
        raise LimitError(STATUS[status])


@cache
def load() -> Limit:
    """The library, built where needed. Raises LimitError where it cannot run."""
    try:
        cpu = Path("/proc/cpuinfo").read_text()
    except OSError as error:
        raise LimitError("the hand-written kernels need Linux on x86-64") from error
    if "avx512_vbmi" not in cpu and "avx512vbmi" not in cpu:
        raise LimitError("the hand-written kernels need AVX-512 with VBMI, which this CPU lacks")
    library = ctypes.CDLL(str(build()))
    if not library.limit_supported():
        raise LimitError("the hand-written kernels need AVX-512 with VBMI, which this CPU lacks")
    return Limit(library)
