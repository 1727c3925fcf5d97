"""Two passes over rows in one launch: programs of the second wait for what those of the first hand on. The simulator
checks that blocks access nothing else of each other, and that what is waited for comes first."""

import dither
import numpy as np
import pytest
from dither import profile
from dither.ops import joined
from ops import check, data
from runtime.test_programs import run

ROWS = 100
FORMATS = {
    "mxfp8": {"format": "mxfp8_e4m3", "layout": "both", "scale_layout": "128x4"},
    "nvfp4": {"format": "nvfp4", "layout": "both", "amax": np.float32(5)},
    "mxfp4": {"format": "mxfp4", "layout": "both"},
    "columns": {"format": "nvfp4", "layout": "colwise", "amax": np.float32(5), "round_intermediate": False},
    "fp8": {"format": "fp8_tensor_e5m2", "layout": "both", "encode_scale": np.float32(3)},
    "random": {"format": "nvfp4", "layout": "both", "rounding": "stochastic", "seed": 3, "amax": np.float32(5)},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Tensors of any size."""
    monkeypatch.setattr(joined, "LEAST", 1)


def calls(rows, columns, dtype="bfloat16"):
    x, d = (data.normal(rows, columns, dtype, seed) for seed in (1, 2))
    gamma, beta = data.normal(2, columns, seed=3)
    (rsigma,) = data.normal(1, rows, seed=4)
    return {
        "rms_norm": lambda **o: dither.rms_norm(x, gamma, **o),
        "layer_norm": lambda **o: dither.layer_norm(x, gamma, beta, zero_centered_gamma=True, **o),
        "rms_norm_backward": lambda **o: dither.rms_norm_backward(d, x, rsigma, gamma, add=d, **o),
    }


NAMES = list(calls(1, 1))
CALLS = calls(ROWS, 1000)


def arrays(result):
    """All arrays of a result."""
    if isinstance(result, (dither.ScaledTensor1x, dither.ScaledTensor2x)):
        return [array for part in check.parts(result) for array in (part.data, part.scale_inv)]
    return [array for one in result for array in arrays(one)] if isinstance(result, tuple) else [result]


def same(found, expected):
    found, expected = ([one for one in arrays(result) if one is not None] for result in (found, expected))
    assert len(found) == len(expected) > 2
    for one, other in zip(found, expected, strict=True):
        check.same_values(one, other)


def kernels(call, target="sm_90a", **options):
    """What a call launches, but for sums of columns; it is compared with the CPU's."""
    with profile.record() as runs:
        found = call(**options, device=f"sim:{target}")
    same(found, call(**options))
    return [run.kernel for run in runs if not run.kernel.startswith("column_sum")]


def one(name):
    return ["fill_each_kernel", f"{name}_joined_kernel"]


@pytest.mark.parametrize("of", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_bits_of_two_launches(name, of):
    assert kernels(CALLS[name], **FORMATS[of]) == one(name)


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("name", NAMES)
def test_on_other_targets(name, target):
    assert kernels(CALLS[name], target, **FORMATS["mxfp8"]) == one(name)


@pytest.mark.sample("values")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 4096), (33, 288), (300, 520), (65, 5120), (40, 8192)])
def test_shapes(rows, columns, dtype):
    for name, call in calls(rows, columns, dtype).items():
        assert kernels(call, **FORMATS["mxfp8"]) == one(name)


@pytest.mark.parametrize(
    ("of", "columns", "threads"),
    [("mxfp8", 520, 64), ("mxfp8", 4096, 64), ("mxfp8", 8192, 128), ("nvfp4", 520, 128), ("nvfp4", 8192, 128)],
)
def test_lanes_hold_64_elements(of, columns, threads):
    """Of a tile of the second pass, or of a row of the first."""
    with profile.record() as runs:
        calls(ROWS, columns)["rms_norm"](**FORMATS[of], device="sim:sm_90a")
    assert [run.threads for run in runs] == [128, threads]


def test_rows_of_infinities_and_nan():
    """NaN of a row is handed on, too: no program waits for it."""
    x = np.array(data.normal(70, 520, "bfloat16"))
    x[3, 7], x[5, 9], x[40] = np.inf, np.nan, -np.inf
    gamma = np.ones(520, np.float32)
    for call in (lambda **o: dither.rms_norm(x, gamma, **o), lambda **o: dither.layer_norm(x, gamma, gamma, **o)):
        assert len(kernels(call, **FORMATS["mxfp8"])) == 2


def test_bands_in_turn():
    """More bands than the first pass is ahead."""
    ahead = joined._AHEAD // (32 * 4096 * 2)
    rows = 32 * (ahead + 2)
    x, gamma = data.normal(rows, 4096, "bfloat16"), np.ones(4096, np.float32)
    assert kernels(lambda **o: dither.rms_norm(x, gamma, **o), **FORMATS["mxfp8"]) == one("rms_norm")


@pytest.mark.parametrize("name", NAMES)
def test_recorded(name):
    """As calls that are run again, and those of JAX, are: the arrays hold anything before."""
    x = dither.TensorType(dither.bfloat16, (ROWS, 1000))
    line, column = (dither.TensorType(dither.float32, (n,)) for n in (1000, ROWS))
    types = {
        "rms_norm": (x, line),
        "layer_norm": (x, line, line),
        "rms_norm_backward": (x, x, column, line),
    }[name]
    options = {"format": "mxfp8_e4m3", "layout": "both"}
    program = dither.record(getattr(dither, name), *types, target="sm_90a", **options)
    assert program.launches == 2 + (name == "rms_norm_backward")
    inputs = [data.normal(*(1, *each.shape)[-2:], str(each.dtype), seed=i) for i, each in enumerate(types)]
    inputs = [array.reshape(each.shape) for array, each in zip(inputs, types, strict=True)]
    expected = [array for array in arrays(getattr(dither, name)(*inputs, **options)) if array is not None]
    for found, wanted in zip(run(program, inputs, "sim:sm_90a"), expected, strict=True):
        check.same_values(found, wanted)


def test_what_takes_two_launches(monkeypatch):
    norm = CALLS["rms_norm"]
    two = ["rms_norm_kernel", "rms_norm_in_parts_kernel"]
    # The amax of all rows is found with their sums; what is given to write to holds what it holds.
    assert [k for k in kernels(norm, format="nvfp4", layout="both") if "norm" in k] == two
    out = norm(**FORMATS["mxfp8"])
    assert kernels(norm, **FORMATS["mxfp8"], out=out) == two
    # Rows that the lanes of a program do not hold, and small tensors.
    x, gamma = data.normal(32, 16384, "bfloat16"), np.ones(16384, np.float32)
    for of in ("mxfp8", "nvfp4"):
        assert kernels(lambda **o: dither.rms_norm(x, gamma, **o), **FORMATS[of]) == two
    monkeypatch.setattr(joined, "LEAST", ROWS * 1000 + 1)
    assert kernels(norm, **FORMATS["mxfp8"]) == two


def test_what_stands_for_nothing():
    """Programs wait for NaN, whatever fills with it, but for that which is handed on."""
    from dither.ops.kernels import fill_each_kernel

    for device in ("cpu", "sim:sm_90a"):
        ys = tuple(np.zeros(5000, np.float32) for _ in range(2))
        fill_each_kernel.launch(2, ys, float("nan"), device=device)
        for y in ys:
            assert np.isnan(y).all() and not (y.view(np.uint32) == 0x7FFFFFFF).any()
