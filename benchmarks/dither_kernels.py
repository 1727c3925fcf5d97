"""The GPU kernels in dither's tile language: the same six as triton_kernels.py, tile for tile.

`lower(name, target)` gives the module, `compile(module, target)` PTX and times. This module is the only one of the
benchmarks that knows how dither's compiler is called.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import Unavailable

try:
    import dither
    import dither.language as dl

    if dither.__file__ is None:
        raise Unavailable("dither cannot be imported (it is not built)")
    from dither import _dither
    from dither.compiler import lower as lower_function
except ImportError as error:
    raise Unavailable(f"dither cannot be imported ({error})") from error

ROOT = Path(__file__).resolve().parent.parent
EPS = 1e-5


def quantize(x, tensor_amax, q, scale, fmt: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (i * ROWS, j * COLS), (ROWS, COLS)).to(dl.float32)
    amax = dl.load(tensor_amax)
    s = dl.block_scale(t, fmt, amax=amax)
    dl.store(q, (i * ROWS, j * COLS), dl.cast(t, s, fmt, amax=amax))
    dl.store(scale, (i * ROWS, j * (COLS // fmt.block)), s)


def quantize_mx(x, q, scale, fmt: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (i * ROWS, j * COLS), (ROWS, COLS)).to(dl.float32)
    s = dl.block_scale(t, fmt)
    dl.store(q, (i * ROWS, j * COLS), dl.cast(t, s, fmt))
    dl.store(scale, (i * ROWS, j * (COLS // fmt.block)), s)


def quantize_both(x, row_q, row_scale, col_q, col_scale, fmt: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (i * ROWS, j * COLS), (ROWS, COLS)).to(dl.float32)
    s = dl.block_scale(t, fmt)
    dl.store(row_q, (i * ROWS, j * COLS), dl.cast(t, s, fmt))
    dl.store(row_scale, (i * ROWS, j * (COLS // fmt.block)), s)
    s = dl.block_scale(t, fmt, axis=0)
    dl.store(col_q, (i * ROWS, j * COLS), dl.cast(t, s, fmt, axis=0))
    dl.store(col_scale, (i * (ROWS // fmt.block), j * COLS), s)


def rms_norm_mx(x, gamma, q, scale, fmt: dl.constexpr, eps: dl.constexpr):
    i = dl.program_id(0)
    t = dl.load(x, (i, 0), (1, x.shape[1])).to(dl.float32)
    y, _ = dl.rms_norm(t, dl.load(gamma, (0,), (x.shape[1],)), eps)
    y = y.to(x.dtype).to(dl.float32)
    s = dl.block_scale(y, fmt)
    dl.store(q, (i, 0), dl.cast(y, s, fmt))
    dl.store(scale, (i, 0), s)


def rms_norm(x, gamma, tensor_amax, q, scale, fmt: dl.constexpr, eps: dl.constexpr):
    i = dl.program_id(0)
    t = dl.load(x, (i, 0), (1, x.shape[1])).to(dl.float32)
    y, _ = dl.rms_norm(t, dl.load(gamma, (0,), (x.shape[1],)), eps)
    y = y.to(x.dtype).to(dl.float32)
    amax = dl.load(tensor_amax)
    s = dl.block_scale(y, fmt, amax=amax)
    dl.store(q, (i, 0), dl.cast(y, s, fmt, amax=amax))
    dl.store(scale, (i, 0), s)


@dataclass(frozen=True)
class Kernel:
    """A kernel with its argument types and constants; `elements` are those a program quantizes."""

    function: Any
    arguments: dict[str, Any]
    constants: dict[str, Any]
    elements: int


def _dense(dtype: Any, rows: int | None, cols: int) -> Any:
    """A dense matrix whose pointer and rows are aligned to 16 bytes."""
    return dither.TensorType(dtype, (rows, cols), (cols, 1), align=16)


def kernels(dtype: Any = None, k: int = 4096) -> dict[str, Kernel]:
    """All kernels for an input type (bf16 by default) and a row length."""
    dtype = dtype or dither.bfloat16
    x, gamma = _dense(dtype, None, k), dither.TensorType(dtype, (k,), align=16)
    tensor_amax = dither.TensorType(dither.float32, ())

    def outputs(fmt: Any) -> dict[str, Any]:
        return {"q": _dense(fmt.element, None, k), "scale": _dense(fmt.scale, None, k // fmt.block)}

    result = {}
    tile = {"ROWS": 4, "COLS": 512}
    nv, mx8, mx4 = dither.NVFP4, dither.MXFP8_E4M3, dither.MXFP4
    amax = {"tensor_amax": tensor_amax}
    result["nvfp4"] = Kernel(quantize, {"x": x, **amax, **outputs(nv)}, {"fmt": nv, **tile}, 2048)
    for name, fmt in (("mxfp8", mx8), ("mxfp4", mx4)):
        result[name] = Kernel(quantize_mx, {"x": x, **outputs(fmt)}, {"fmt": fmt, **tile}, 2048)
    data, scales = _dense(mx8.element, None, k), _dense(mx8.scale, None, k // 32)
    both = {"x": x, "row_q": data, "row_scale": scales, "col_q": data, "col_scale": _dense(mx8.scale, None, k)}
    result["mxfp8_both"] = Kernel(quantize_both, both, {"fmt": mx8, "ROWS": 32, "COLS": 128}, 32 * 128)
    norm = {"x": x, "gamma": gamma}
    result["rms_norm_mxfp8"] = Kernel(rms_norm_mx, norm | outputs(mx8), {"fmt": mx8, "eps": EPS}, k)
    result["rms_norm_nvfp4"] = Kernel(rms_norm, norm | amax | outputs(nv), {"fmt": nv, "eps": EPS}, k)
    return result


@dataclass
class Artifact:
    """PTX (or assembly) and milliseconds by stage."""

    text: str
    timings: dict[str, float] = field(default_factory=dict)


def lower(name: str, target: str) -> Any:
    """The module of quant IR of a kernel."""
    kernel = kernels()[name]
    return lower_function(kernel.function, kernel.arguments, kernel.constants, target)


def _tool() -> str | None:
    """dither-compile, from DITHER_COMPILE, the build tree or the path."""
    candidates = [os.environ.get("DITHER_COMPILE"), str(ROOT / "build" / "bin" / "dither-compile")]
    return next((c for c in candidates if c and os.access(c, os.X_OK)), shutil.which("dither-compile"))


def in_process() -> bool:
    """Whether modules compile in this process."""
    return hasattr(_dither, "compile_module")


def can_compile() -> bool:
    return in_process() or _tool() is not None


def compile(module: Any, target: str) -> Artifact:
    """PTX of a module, by the bindings, else by the tool, whose times are its own (its start is not counted)."""
    if in_process():
        artifact = _dither.compile_module(module, target=target)
        return Artifact(artifact.code, dict(artifact.timings))
    tool = _tool()
    if tool is None:
        raise Unavailable("dither-compile was not found, expected DITHER_COMPILE or build/bin")
    command = [tool, "-", f"--target={target}", "--emit=ptx", "--timings"]
    start = time.perf_counter()
    result = subprocess.run(command, input=module.text(), capture_output=True, text=True)
    total = 1e3 * (time.perf_counter() - start)
    if result.returncode != 0:
        raise Unavailable(f"dither-compile failed: {(result.stderr.strip().splitlines() or ['it died'])[0]}")
    timings = {
        name: float(ms) for name, ms in re.findall(r"^\s*([\w.]+)\s*:?\s+([\d.]+)\s*(?:ms)?$", result.stderr, re.M)
    }
    timings["process, parser, printer"] = total - sum(timings.values())
    return Artifact(result.stdout, timings)
