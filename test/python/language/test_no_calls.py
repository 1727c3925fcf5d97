"""Compiled CPU code calls nothing: every builtin on every type at every level of CPUs."""

import importlib.util

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither.errors import CompileError

LEVELS = [name for name in dither.targets() if name.startswith("host:")]
FLOATS = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
INTEGERS = {"int32": np.int32, "int64": np.int64}

# Of a tile t of 8x64, a scalar n, and a type to store in.
FLOAT_EXPRESSIONS = [
    "t + n * t - t / n",
    "-t",
    "dl.abs(t)",
    *(f"dl.{name}(t)" for name in ("exp", "exp2", "log", "log2", "tanh", "sigmoid", "erf", "sin", "cos")),
    "dl.sqrt(t)",
    "dl.rsqrt(t)",
    "dl.floor(t) + dl.ceil(t) - dl.rint(t)",
    "t ** 5 + t ** -2",
    "dl.bitcast(dl.bitcast(t + 0.0, dl.int32) & 0x7F800000, dl.float32)",
    "dl.fma(t, t, n)",
    "dl.maximum(t, 0.0)",
    "dl.minimum(t, dl.abs(t))",
    "dl.where(t > 0.0, t, n)",
    "dl.where((t < n) & (t >= -1.0) | (t == t), t, 0.0)",
    "t - dl.sum(t, 1)",
    "t - dl.sum(t, 0)",
    "t - dl.max(t, 1)",
    "t - dl.max(t, 0)",
    "t - dl.min(t, 1)",
    "t - dl.min(t, 0)",
    "t - dl.amax(t, 1)",
    "t * dl.arange(64)[None, :].to(dl.float32)",
    "dl.rms_norm(t, dl.full((64,), 1.0), 1e-5)[0]",
    "dl.dequantize(dl.cast(t, dl.block_scale(t, 'mxfp8_e4m3'), 'mxfp8_e4m3'), dl.block_scale(t, 'mxfp8_e4m3'), 'mxfp8_e4m3')",
    "dl.dequantize(dl.cast(t, dl.block_scale(t, 'mxfp4'), 'mxfp4'), dl.block_scale(t, 'mxfp4'), 'mxfp4')",
    "dl.reshape(dl.broadcast_to(dl.max(t, 1), (8, 64)), (8, 64))",
]
INTEGER_EXPRESSIONS = [
    "t + t * t - t",
    "t // 3",
    "dl.mulhi(t.to(dl.int32), n.to(dl.int32)) + dl.umulhi(t.to(dl.int32), 0xD2511F53)",
    "t % 7",
    "-t",
    "dl.maximum(t, 3)",
    "dl.minimum(t, t * 2)",
    "dl.where(t > 4, t, 0)",
    "t & 5 | ~t",
    "(t << 3) + (t >> t)",
    "t ** 3",
    "t.to(dl.float32) * 0.5",
]


def kernel_of(expression, directory, count):
    """A kernel that stores an expression; source must lie in a file."""
    path = directory / f"kernel{count}.py"
    path.write_text(
        "import dither\nimport dither.language as dl\n\n\n@dither.jit\ndef k(x, y, n, OUT: dl.constexpr):\n"
        "    t = dl.load(x, (0, 0), (8, 64))\n"
        f"    v = {expression}\n"
        "    dl.store(y, (0, 0), v.to(OUT))\n"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


def combinations():
    """(type, level): all types at the level with the fewest instructions and on aarch64, one at each other level."""
    for dtype in (*FLOATS, *INTEGERS):
        for level in LEVELS:
            always = dtype == "float32" or level in ("host:base", "host:neon")
            yield pytest.param(dtype, level, marks=[] if always else [pytest.mark.exhaustive])


@pytest.mark.parametrize(("dtype", "level"), combinations())
def test_every_builtin(dtype, level, tmp_path):
    """What a level has no instructions for is computed in those it has."""
    kind = {**FLOATS, **INTEGERS}[dtype]
    x, out = np.zeros((8, 64), kind), getattr(dl, dtype)
    refused = {}
    for count, expression in enumerate(FLOAT_EXPRESSIONS if dtype in FLOATS else INTEGER_EXPRESSIONS):
        number = np.float32(2) if dtype in FLOATS else np.int32(2)
        to = dl.float32 if dtype in INTEGERS and "float32" in expression else out
        y = np.zeros((8, 64), np.float32 if to == dl.float32 else kind)
        try:
            kernel_of(expression, tmp_path, count).compile(x, y, number, OUT=to, target=level)
        except CompileError as error:
            refused[expression] = str(error).partition("\n")[0]
    assert not refused


@dither.jit
def extremes(x, most, least, top):
    t = dl.load(x, (0, 0), (8, 64))
    dl.store(most, (0, 0), dl.max(t, 1).to(dl.float16))
    dl.store(least, (0, 0), dl.min(t, 1).to(dl.float16))
    dl.store(top, (0, 0), dl.maximum(t, dl.max(t, 0)).to(dl.float16))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_maxima_of_halves(device):
    """LLVM narrows a maximum of widened halves, for which x86 has no instruction; reductions skip NaNs all the same."""
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float16)
    x[1, ::3], x[2, 5], x[3, 7] = np.nan, np.inf, -np.inf
    most, least, top = np.zeros((8, 1), np.float16), np.zeros((8, 1), np.float16), np.zeros((8, 64), np.float16)
    extremes[1,](x, most, least, top, device=device)
    np.testing.assert_array_equal(most[:, 0], np.fmax.reduce(x, axis=1))
    np.testing.assert_array_equal(least[:, 0], np.fmin.reduce(x, axis=1))
    np.testing.assert_array_equal(top, np.maximum(x, np.fmax.reduce(x, axis=0)))
