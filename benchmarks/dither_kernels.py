"""The kernels in dither's tile language: the same six as triton_kernels.py, tile for tile.

dither_functions.py compiles them.
"""

# mypy: disable-error-code="no-untyped-def, attr-defined"
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.operators import EPS, ROUND_INTERMEDIATE
from benchmarks.peers import Unavailable

try:
    import dither
    import dither.language as dl

    if dither.__file__ is None:
        raise Unavailable("dither cannot be imported (it is not built)")
    if not hasattr(dither, "jit"):
        raise Unavailable("this build of dither has no dither.jit")
except ImportError as error:
    raise Unavailable(f"dither cannot be imported ({error})") from error


@dither.jit
def quantize(x, tensor_amax, q, scale, fmt: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (i * ROWS, j * COLS), (ROWS, COLS)).to(dl.float32)
    amax = dl.load(tensor_amax)
    s = dl.block_scale(t, fmt, amax=amax)
    dl.store(q, (i * ROWS, j * COLS), dl.cast(t, s, fmt, amax=amax))
    dl.store(scale, (i * ROWS, j * (COLS // fmt.block)), s)


@dither.jit
def quantize_mx(x, q, scale, fmt: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (i * ROWS, j * COLS), (ROWS, COLS)).to(dl.float32)
    s = dl.block_scale(t, fmt)
    dl.store(q, (i * ROWS, j * COLS), dl.cast(t, s, fmt))
    dl.store(scale, (i * ROWS, j * (COLS // fmt.block)), s)


@dither.jit
def quantize_both(x, row_q, row_scale, col_q, col_scale, fmt: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0), dl.program_id(1)
    t = dl.load(x, (i * ROWS, j * COLS), (ROWS, COLS)).to(dl.float32)
    s = dl.block_scale(t, fmt)
    dl.store(row_q, (i * ROWS, j * COLS), dl.cast(t, s, fmt))
    dl.store(row_scale, (i * ROWS, j * (COLS // fmt.block)), s)
    s = dl.block_scale(t, fmt, axis=0)
    dl.store(col_q, (i * ROWS, j * COLS), dl.cast(t, s, fmt, axis=0))
    dl.store(col_scale, (i * (ROWS // fmt.block), j * COLS), s)


@dither.jit
def rms_norm_mx(x, gamma, q, scale, fmt: dl.constexpr, eps: dl.constexpr, ROUND: dl.constexpr):
    i = dl.program_id(0)
    t = dl.load(x, (i, 0), (1, x.shape[1])).to(dl.float32)
    y, _ = dl.rms_norm(t, dl.load(gamma, (0,), (x.shape[1],)), eps)
    if ROUND:
        y = y.to(x.dtype).to(dl.float32)
    s = dl.block_scale(y, fmt)
    dl.store(q, (i, 0), dl.cast(y, s, fmt))
    dl.store(scale, (i, 0), s)


@dither.jit
def rms_norm(x, gamma, tensor_amax, q, scale, fmt: dl.constexpr, eps: dl.constexpr, ROUND: dl.constexpr):
    i = dl.program_id(0)
    t = dl.load(x, (i, 0), (1, x.shape[1])).to(dl.float32)
    y, _ = dl.rms_norm(t, dl.load(gamma, (0,), (x.shape[1],)), eps)
    if ROUND:
        y = y.to(x.dtype).to(dl.float32)
    amax = dl.load(tensor_amax)
    s = dl.block_scale(y, fmt, amax=amax)
    dl.store(q, (i, 0), dl.cast(y, s, fmt, amax=amax))
    dl.store(scale, (i, 0), s)


@dataclass(frozen=True)
class Kernel:
    """A kernel with the types of its arguments and its constants; `elements` are those a program quantizes."""

    function: Any
    arguments: dict[str, Any]
    constants: dict[str, Any]
    elements: int


def _dense(dtype: Any, rows: int | None, cols: int) -> Any:
    """A dense matrix whose pointer and rows are aligned to 32 bytes, as frameworks allocate."""
    return dither.TensorType(dtype, (rows, cols), (cols, 1), align=32)


def kernels(dtype: Any = None, k: int = 4096) -> dict[str, Kernel]:
    """All kernels for an input type (bf16 by default) and a row length."""
    dtype = dtype or dither.bfloat16
    x, gamma = _dense(dtype, None, k), dither.TensorType(dtype, (k,), align=32)
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
    choices = {"eps": EPS, "ROUND": ROUND_INTERMEDIATE}
    result["rms_norm_mxfp8"] = Kernel(rms_norm_mx, norm | outputs(mx8), {"fmt": mx8, **choices}, k)
    result["rms_norm_nvfp4"] = Kernel(rms_norm, norm | amax | outputs(nv), {"fmt": nv, **choices}, k)
    return result
