"""Norms and their backward forms in whole-tensor programs, against their definition, on every kind of target."""

import re

import ml_dtypes
import numpy as np
import oracle
import pytest
from dither import _dither, arrays, types
from dither.compiled import Compiled
from dither.devices import get_device, host_target
from ops import data
from ops.check import same_bits

F32 = np.float32
LEVELS = ["base", "avx2", "avx512", "avx512vbmi", "avx512fp16"]
TARGETS = [f"host:{level}" for level in LEVELS[: LEVELS.index(host_target().partition(":")[2]) + 1]]
TARGETS += ["sm_80", "sm_90a"]
MLIR = {"float32": "f32", "bfloat16": "bf16"}
NORMS = {"rms_norm": ["rsigma"], "layer_norm": ["mean", "rsigma"]}


def run(text, target, given, results):
    """Compiles a whole-tensor program and launches its grid; its arguments and results have names, in order."""
    artifact, _ = _dither.compile(_dither.Module.parse(text), target, keep_stages=True)
    named = {name: arrays.describe_argument(name, x) for name, x in {**given, **results}.items()}
    kinds = {}
    for name, array in named.items():
        # Rows are dynamic, columns static: `memref<?xN>`.
        shape = (None, *array.shape[1:]) if len(array.shape) == 2 else array.shape
        kinds[name] = types.TensorType(array.dtype, shape, array.strides)
    written = frozenset(results)
    compiled = Compiled(
        artifact.kernels[0],
        tuple(kinds.items()),
        written,
        tuple((name, "swizzle_128x4") for name in written & {"swizzled"}),
        {},
        {},
    )
    grid = [1, 1, 1]
    entries = re.search(r"quant.grid = \[(.*?)\]", dict(artifact.stages)["tiled"]).group(1)
    for axis, entry in enumerate(re.findall(r"\{(.*?)\}", entries)):
        if entry:
            arg, dim, step = map(int, re.findall(r"= (\d+)", entry))
            grid[axis] = -(-list(named.values())[arg].shape[dim] // step)
    device = get_device("cpu" if target.startswith("host") else f"sim:{target}")
    compiled.launch(device, tuple(grid), named)


def inputs(norm, rows, columns, dtype, zero_centered=False):
    """dz, x and gamma, then the statistics of x as columns, by name. One row of x is zero."""
    dz, x = data.normal(rows, columns, dtype, 1), data.normal(rows, columns, dtype, 2)
    gamma = data.normal(1, columns, dtype, 3)[0]
    x[rows // 2] = 0
    forward = [x, gamma, gamma] if norm == "layer_norm" else [x, gamma]
    _, *statistics = getattr(oracle, norm)(*forward, 1e-5, zero_centered)
    named = {name: data.aligned(s[:, None]) for name, s in zip(NORMS[norm], statistics, strict=True)}
    return {"dz": dz, "x": x, "gamma": gamma, **named}


def program(norm, columns, dtype, attributes, more, results):
    """The backward form of tensors of any number of rows, and what follows: lines, and what is returned."""
    elem, tile = MLIR[dtype], f"tensor<?x{columns}xf32>"
    kinds = [f"tensor<?x{columns}x{elem}>"] * 2 + [f"tensor<{columns}x{elem}>"]
    kinds += ["tensor<?x1xf32>"] * len(NORMS[norm])
    names = ["dz", "x", "gamma", *NORMS[norm]]
    arguments = ", ".join(f"%{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    operands = ", ".join(f"%{name}" for name in names)
    found = ", ".join(results.values())
    return f"""
func.func @k({arguments}) -> ({found}) {{
  %dx, %terms = quant.{norm}_backward {operands} {{{attributes}}} : {", ".join(kinds)} -> {tile}, {tile}
  {more}
  return {", ".join(f"%{name}" for name in results)} : {found}
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", MLIR)
@pytest.mark.parametrize(("rows", "columns"), [(37, 100), (5, 1), (3, 2500)])
@pytest.mark.parametrize("norm", NORMS)
def test_gradients(norm, rows, columns, dtype, target):
    given = inputs(norm, rows, columns, dtype)
    tile = f"tensor<?x{columns}xf32>"
    text = program(norm, columns, dtype, "", "", {"dx": tile, "terms": tile})
    found = {name: data.empty((rows, columns), F32) for name in ("dx", "terms")}
    run(text, target, given, found)
    dx, terms = getattr(oracle, f"{norm}_backward")(**given)
    same_bits(found["dx"], dx, "dx")
    same_bits(found["terms"], terms, "terms")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", MLIR)
@pytest.mark.parametrize("columns", [96, 4096])
@pytest.mark.parametrize("norm", NORMS)
def test_quantized_gradients(norm, columns, dtype, target):
    """Codes and scales of dx, in the 128x4 order, which makes rows of 96 columns 128 wide, beside the terms."""
    rows, blocks = 37, columns // 32
    padded = -(-blocks // 4) * 4
    given = inputs(norm, rows, columns, dtype, zero_centered=True)
    tile, codes = f"tensor<?x{columns}xf32>", f"tensor<?x{columns}xf8E4M3FN>"
    scales, order = f"tensor<?x{blocks}xf8E8M0FNU>", f"tensor<?x{padded}xf8E8M0FNU>"
    more = f"""%s = quant.block_scale %dx axis 1 format <mxfp8_e4m3> : {tile} -> {scales}
  %q = quant.cast_fp8 %dx, %s axis 1 format <mxfp8_e4m3> : {tile}, {scales} -> {codes}
  %swizzled = quant.swizzle_scales %s : {scales} -> {order}"""
    text = program(norm, columns, dtype, "zero_centered_gamma", more, {"q": codes, "swizzled": order, "terms": tile})
    found = {
        "q": data.empty((rows, columns), ml_dtypes.float8_e4m3fn),
        "swizzled": data.empty((128, padded), ml_dtypes.float8_e8m0fnu),
        "terms": data.empty((rows, columns), F32),
    }
    run(text, target, given, found)
    dx, terms = getattr(oracle, f"{norm}_backward")(**given, zero_centered_gamma=True)
    want = oracle.quantize(dx, "mxfp8_e4m3")
    same_bits(found["q"].view(np.uint8), want.codes, "codes")
    scales = oracle.swizzle_128x4(oracle.padded_scale(want.scale, "mxfp8_e4m3", 1))
    same_bits(found["swizzled"].view(np.uint8).reshape(-1), scales, "scales")
    same_bits(found["terms"], terms, "terms")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [96, 4096])
@pytest.mark.parametrize("norm", NORMS)
def test_a_norm_and_what_it_is_of(norm, columns, target):
    """A residual is added, and the sum and its quantized norm are stored: they have the same rows and columns."""
    rows, blocks = 37, columns // 32
    padded = -(-blocks // 4) * 4
    given = {"x": data.normal(rows, columns, "bfloat16", 1), "r": data.normal(rows, columns, "bfloat16", 2)}
    parameters = ["gamma"] if norm == "rms_norm" else ["gamma", "beta"]
    given |= {name: data.normal(1, columns, "bfloat16", i)[0] for i, name in enumerate(parameters, 3)}
    half, tile = f"tensor<?x{columns}xbf16>", f"tensor<?x{columns}xf32>"
    codes, row = f"tensor<?x{columns}xf8E4M3FN>", f"tensor<{columns}xbf16>"
    scales, order = f"tensor<?x{blocks}xf8E8M0FNU>", f"tensor<?x{padded}xf8E8M0FNU>"
    taken = "".join(f", %{name}" for name in parameters)
    kinds = ", ".join([half, *[row] * len(parameters)])
    found = ", ".join([tile] + ["tensor<?x1xf32>"] * len(NORMS[norm]))
    rest = "".join(f", %{name}: {row}" for name in parameters)
    text = f"""
func.func @k(%x: {half}, %r: {half}{rest}) -> ({half}, {codes}, {order}) {{
  %a = arith.extf %x : {half} to {tile}
  %b = arith.extf %r : {half} to {tile}
  %c = arith.addf %a, %b : {tile}
  %h = arith.truncf %c : {tile} to {half}
  %y:{1 + len(NORMS[norm])} = quant.{norm} %h{taken} {{eps = 1.0e-5 : f32}} : {kinds} -> {found}
  %s = quant.block_scale %y#0 axis 1 format <mxfp8_e4m3> : {tile} -> {scales}
  %q = quant.cast_fp8 %y#0, %s axis 1 format <mxfp8_e4m3> : {tile}, {scales} -> {codes}
  %swizzled = quant.swizzle_scales %s : {scales} -> {order}
  return %h, %q, %swizzled : {half}, {codes}, {order}
}}"""
    results = {
        "h": data.empty((rows, columns), ml_dtypes.bfloat16),
        "q": data.empty((rows, columns), ml_dtypes.float8_e4m3fn),
        "swizzled": data.empty((128, padded), ml_dtypes.float8_e8m0fnu),
    }
    run(text, target, given, results)
    h = (given["x"].astype(F32) + given["r"].astype(F32)).astype(ml_dtypes.bfloat16)
    same_bits(results["h"].view(np.uint16), h.view(np.uint16), "h")
    y, *_ = getattr(oracle, norm)(h, *(given[name] for name in parameters), 1e-5)
    want = oracle.quantize(y, "mxfp8_e4m3")
    same_bits(results["q"].view(np.uint8), want.codes, "codes")
    scales = oracle.swizzle_128x4(oracle.padded_scale(want.scale, "mxfp8_e4m3", 1))
    same_bits(results["swizzled"].view(np.uint8).reshape(-1), scales, "scales")


@pytest.mark.parametrize("norm", NORMS)
def test_the_definition_is_the_derivative(norm):
    given = inputs(norm, 6, 40, "float32")
    dz, x, gamma = (given[name].astype(np.float64) for name in ("dz", "x", "gamma"))
    dx, _ = getattr(oracle, f"{norm}_backward")(**given)
    step = np.random.default_rng(4).standard_normal(x.shape) * 1e-5 * np.abs(x).mean(axis=1, keepdims=True)

    def loss(x):
        d = x - x.mean(axis=1, keepdims=True) if norm == "layer_norm" else x
        return (dz * gamma * d / np.sqrt((d * d).mean(axis=1, keepdims=True) + F32(1e-5))).sum(axis=1)

    slope = (loss(x + step) - loss(x - step)) / 2
    np.testing.assert_allclose((dx * step).sum(axis=1), slope, rtol=1e-3, atol=1e-12)
