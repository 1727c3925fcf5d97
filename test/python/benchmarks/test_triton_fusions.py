"""Triton's fused operators do what dither's do: their codes, in the simulator, but where functions or orders of sums
are others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")

import dither
import ml_dtypes
from simulated import Out, run_defined

from benchmarks import triton_fusions, triton_kernels

ROWS, COLS = 32, 512
TYPES = {"*bf16": ml_dtypes.bfloat16, "*fp32": np.float32, "*u8": np.uint8}
WRITTEN = {"q", "scale", "col_q", "col_scale", "up_q", "up_scale", "up_col_q", "up_col_scale"}
WRITTEN |= {"sums", "mean", "rsigma", "total", "dgamma"}

CALLS = {
    "quantize": lambda a, **to: dither.quantize(a["x"], to.pop("format"), **to),
    "quantize_dbias": lambda a, **to: dither.quantize_dbias(a["x"], **to)[0],
    "gelu": lambda a, **to: dither.gelu(a["x"], **to),
    "silu": lambda a, **to: dither.silu(a["x"], **to),
    "dgelu": lambda a, **to: dither.dgelu(a["grad"], a["x"], **to),
    "dbias_dgelu": lambda a, **to: dither.dbias_dgelu(a["grad"], a["x"], **to)[0],
    "swiglu": lambda a, **to: dither.swiglu(a["gate"], a["up"], **to),
    "dswiglu": lambda a, **to: dither.dswiglu(a["grad"], a["gate"], a["up"], **to),
    "rms_norm": lambda a, **to: dither.rms_norm(a["x"], a["gamma"], eps=triton_fusions.EPS, **to).out,
    "layer_norm": lambda a, **to: dither.layer_norm(a["x"], a["gamma"], a["gamma"], **to)[0],
    "add_rms_norm": lambda a, **to: dither.add_rms_norm(a["x"], a["residual"], a["gamma"], **to)[0],
    "softmax": lambda a, **to: dither.softmax(a["x"], **to),
    "rms_norm_backward": lambda a, **to: dither.rms_norm_backward(a["dz"], a["x"], a["rsigma"], a["gamma"], **to)[0],
    "rope": lambda a, **to: dither.rope(a["x"], a["cos"], a["sin"], **to),
}
CASES = [(name, "mxfp8", False) for name in CALLS] + [(name, "mxfp8", True) for name in ("gelu", "dswiglu")]
CASES += [(name, "nvfp4", False) for name in ("quantize", "rope")]


@pytest.mark.parametrize(("name", "word", "both"), CASES)
def test_codes(tmp_path: Path, monkeypatch, name: str, word: str, both: bool) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = triton_fusions.kernel(name, word, both, COLS)
    assert kernel is not None
    compiled = triton_kernels.compile_kernel(kernel, 100)
    rng = np.random.default_rng(0)
    arguments: dict[str, np.ndarray | Out] = {}
    for key, shape in triton_fusions.shapes(kernel, ROWS).items():
        dtype = TYPES[kernel.pointers[key]]
        written = key in WRITTEN and shape != (1,) and (name, key) != ("rms_norm_backward", "rsigma")
        arguments[key] = Out(shape, dtype) if written else rng.standard_normal(shape).astype(dtype)
    arguments["tensor_amax"] = np.array([4], np.float32)
    where = triton_fusions.grid(kernel, ROWS), 32 * kernel.num_warps, compiled.metadata.shared
    slots = [*arguments.values(), ROWS, None, None]
    found, _ = run_defined(compiled.asm["ptx"], compiled.metadata.name, slots, *where)
    outputs = dict(zip((key for key, value in arguments.items() if isinstance(value, Out)), found, strict=True))
    options = {"amax": 4.0} if word == "nvfp4" else {}
    fmt, layout = {"mxfp8": "mxfp8_e4m3", "nvfp4": "nvfp4"}[word], "both" if both else "rowwise"
    result = CALLS[name](arguments, format=fmt, layout=layout, **options)
    parts = [("", result.rowwise), ("col_", result.colwise)] if both else [("", result)]
    for prefix, part in parts:
        got = outputs[f"{prefix}q"], outputs[f"{prefix}scale"]
        if name == "dswiglu":
            got = np.hstack([got[0], outputs[f"up_{prefix}q"]]), np.hstack([got[1], outputs[f"up_{prefix}scale"]])
        for one, want in zip(got, (part.data, part.scale_inv), strict=True):
            assert one.size == want.size and one.any()
            assert (one != want.view(np.uint8)).mean() < 0.01
