"""The Triton kernels compile without a GPU; in Triton's interpreter and in dither's simulator they give the expected
bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

pytest.importorskip("triton")
pytest.importorskip("torch")

import numpy as np  # noqa: E402
from simulated import Out, run_defined  # noqa: E402

from benchmarks import triton_kernels  # noqa: E402
from benchmarks.operators import cases  # noqa: E402

INTERPRET = """
import sys
import ml_dtypes
import numpy as np
import torch
from triton.runtime import interpreter
from benchmarks import triton_kernels
from benchmarks.operators import cases

# Triton's interpreter rounds ties upwards and drops the carry out of the mantissa (triton-lang/triton#8322).
NARROW = {"fp8e4nv": (ml_dtypes.float8_e4m3fn, np.uint8), "bf16": (ml_dtypes.bfloat16, np.uint16)}
convert = interpreter._convert_float

def narrow(x, source, target, rounding):
    if str(source) == "fp32" and str(target) in NARROW:
        value, bits = NARROW[str(target)]
        return x.view(np.float32).astype(value).view(bits)
    return convert(x, source, target, rounding)

interpreter._convert_float = narrow
NAMES = {
    "quantize NVFP4": "nvfp4", "quantize MXFP8": "mxfp8", "quantize MXFP4": "mxfp4",
    "quantize MXFP8 row+col": "mxfp8_both", "RMSNorm + MXFP8": "rms_norm_mxfp8", "RMSNorm + NVFP4": "rms_norm_nvfp4",
}
for case in cases("bf16", 1 << 16, 512):
    kernel = triton_kernels.kernels(k=512)[NAMES[case.operator.name]]
    tensor = lambda a: torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    out = {name: torch.zeros(shape, dtype=torch.uint8) for name, shape in case.operator.outputs(case.rows, 512).items()}
    inputs = {"x": tensor(case.x), "gamma": tensor(case.gamma), "tensor_amax": torch.tensor([case.amax])}
    renamed = {"row_q": "q", "row_scale": "scale"}
    arguments = [inputs[n] if n in inputs else out[renamed.get(n, n)] for n in kernel.pointers]
    c = kernel.constants
    grid = (case.rows,) if "SPAN" in c else (case.rows // c["ROWS"], 512 // c["COLS"])
    kernel.function[grid](*arguments, case.rows, **c)
    for name, got in out.items():
        want = case.expected[name]
        differ = int((got.numpy() != want).sum())
        allowed = want.size // 1000 if case.operator.kind == "rms_norm" else 0
        print(kernel.name, name, differ, "of", want.size, flush=True)
        assert want.any()
        if differ > allowed:
            sys.exit(1)
"""


@pytest.mark.usefixtures("limit")
def test_interpreter_gives_the_bits() -> None:
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", INTERPRET], env=env, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("\n") == 14, result.stdout


@pytest.mark.parametrize(("capability", "target"), [(90, "sm_90a"), (100, "sm_100a")])
def test_compiles_without_a_gpu(tmp_path: Path, monkeypatch, capability: int, target: str) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compiled = triton_kernels.compile_kernel(triton_kernels.kernels()["nvfp4"], capability)
    assert f".target {target}" in compiled.asm["ptx"]
    assert len(compiled.asm["cubin"]) > 1000
    assert ("e2m1x2" in compiled.asm["ptx"]) == triton_kernels.has_e2m1(capability)


OPERATORS = {
    "nvfp4": "quantize NVFP4",
    "mxfp8": "quantize MXFP8",
    "mxfp4": "quantize MXFP4",
    "mxfp8_both": "quantize MXFP8 row+col",
    "rms_norm_mxfp8": "RMSNorm + MXFP8",
    "rms_norm_nvfp4": "RMSNorm + NVFP4",
}


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize(
    ("capability", "name"),
    # Triton has no E4M3 before sm_89, and the kernels for sm_120 are those for sm_100.
    [(80, "mxfp4"), *((90, name) for name in OPERATORS), *((100, name) for name in OPERATORS), (120, "nvfp4")],
)
def test_simulator_gives_the_bits(tmp_path: Path, monkeypatch, capability: int, name: str) -> None:
    """Another compiler's PTX, on a simulated GPU that knows neither compiler."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    case = next(case for case in cases("bf16", 1 << 16, 512) if case.operator.name == OPERATORS[name])
    kernel = triton_kernels.kernels(k=512)[name]
    compiled = triton_kernels.compile_kernel(kernel, capability)
    outputs = {"row_q": "q", "row_scale": "scale"}
    shapes = case.operator.outputs(case.rows, 512)
    inputs = {"x": case.x, "gamma": case.gamma, "tensor_amax": np.array([case.amax], np.float32)}
    written = [outputs.get(pointer, pointer) for pointer in kernel.pointers if pointer not in inputs]
    arguments = [inputs[p] if p in inputs else Out(shapes[outputs.get(p, p)]) for p in kernel.pointers]
    constants = kernel.constants
    grid = (case.rows // constants["ROWS"], 512 // constants["COLS"], 1) if "ROWS" in constants else (case.rows, 1, 1)
    # The last two are memory that Triton's runtime would give to kernels that ask for it.
    arguments += [case.rows, None, None]
    threads, shared = 32 * kernel.num_warps, compiled.metadata.shared
    got, undefined = run_defined(compiled.asm["ptx"], compiled.metadata.name, arguments, grid, threads, shared)
    assert undefined <= (7 if name == "rms_norm_nvfp4" else 0)
    assert len(got) == len(shapes)
    for output, array in zip(written, got, strict=True):
        want = case.expected[output]
        # Triton adds the squares of a norm in an order of its own.
        allowed = want.size // 1000 if case.operator.kind == "rms_norm" else 0
        assert want.any() and int((array != want).sum()) <= allowed, output
