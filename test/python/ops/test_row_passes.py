"""Operators on whole rows whose codes follow columns go in two passes on a GPU: what each launches, and the bits."""

import dither
import ml_dtypes
import numpy as np
import pytest
from dither import profile
from ops import check, data

ROWS, COLUMNS = 70, 520
X, D = (data.normal(ROWS, COLUMNS, "bfloat16", seed) for seed in (1, 2))
GAMMA, BETA = data.normal(2, COLUMNS, seed=3)
MEAN, RSIGMA = data.normal(2, ROWS, seed=4)
NORMS = {
    "rms_norm": lambda **o: dither.rms_norm(X, GAMMA, **o),
    "zero_centered": lambda **o: dither.rms_norm(X, GAMMA, zero_centered_gamma=True, **o),
    "layer_norm": lambda **o: dither.layer_norm(X, GAMMA, BETA, **o),
    "add_rms_norm": lambda **o: dither.add_rms_norm(X, D, GAMMA, **o),
    "add_layer_norm": lambda **o: dither.add_layer_norm(X, D, GAMMA, BETA, **o),
    "rms_norm_backward": lambda **o: dither.rms_norm_backward(D, X, RSIGMA, GAMMA, add=D, **o),
    "layer_norm_backward": lambda **o: dither.layer_norm_backward(D, X, MEAN, RSIGMA, GAMMA, **o),
}
LONG = data.normal(33, 4128, "bfloat16", seed=5)
SOFTMAX = {
    "softmax": lambda **o: dither.softmax(LONG, 0.5, mask=LONG, **o),
    "dsoftmax": lambda **o: dither.dsoftmax(LONG, LONG, 0.5, **o),
}
CALLS = {**NORMS, **SOFTMAX}
FORMATS = {
    "mxfp8": {"format": "mxfp8_e4m3", "layout": "both", "scale_layout": "128x4"},
    "nvfp4": {"format": "nvfp4", "layout": "both"},
    "columns": {"format": "nvfp4", "layout": "colwise", "round_intermediate": False},
    "tensor": {"format": "fp8_tensor_e5m2", "layout": "both"},
    "squares": {"format": dither.MXFP8_E4M3.with_(block=(32, 32)), "repeat_scales": True},
    "tall": {"format": dither.FP8_128X128_E4M3, "layout": "both"},
    "random": {"format": "nvfp4", "layout": "both", "rounding": "stochastic", "seed": 3},
    "transformed": {"format": "nvfp4", "layout": "both", "transform": dither.RandomHadamard()},
}


def arrays(result):
    """All arrays of a result."""
    if result is None:
        return []
    if isinstance(result, (dither.ScaledTensor1x, dither.ScaledTensor2x)):
        return [a for part in check.parts(result) for a in (part.data, part.scale_inv, part.amax) if a is not None]
    return [a for one in result for a in arrays(one)] if isinstance(result, tuple) else [result]


def same(found, expected):
    found, expected = arrays(found), arrays(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        check.same_values(one, other)


@pytest.mark.sample("values")
@pytest.mark.parametrize("of", FORMATS)
@pytest.mark.parametrize("name", CALLS)
def test_the_bits_of_one_pass(name, of):
    call, options = CALLS[name], FORMATS[of]
    with profile.record() as runs:
        found = call(**options, device="sim:sm_90a")
    kernels = {run.kernel for run in runs}
    assert any(kernel.endswith("_in_parts_kernel") for kernel in kernels), kernels
    same(found, call(**options))


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("name", ["add_layer_norm", "layer_norm_backward"])
def test_on_other_targets(name, target):
    same(CALLS[name](**FORMATS["mxfp8"], device=f"sim:{target}"), CALLS[name](**FORMATS["mxfp8"]))


def launched(call, target="sm_90a", **options):
    with profile.record() as runs:
        call(**options, device=f"sim:{target}")
    return runs


def test_each_pass_reads_rows_once():
    runs = launched(NORMS["rms_norm"], **FORMATS["mxfp8"])
    assert [run.kernel for run in runs] == ["rms_norm_kernel", "rms_norm_in_parts_kernel"]
    for run in runs:
        (x,) = [one for one in run.traffic if one.name == "x"]
        assert x.loaded == X.nbytes
    stored = [sum(one.stored for one in run.traffic) for run in runs]
    assert stored[0] == 4 * ROWS


def test_the_amax_is_found_with_what_rows_need():
    """NVFP4's amax of the output takes no pass of its own, and none where it is given."""
    kernels = [run.kernel for run in launched(NORMS["layer_norm"], **FORMATS["nvfp4"])]
    assert [one for one in kernels if "norm" in one] == ["layer_norm_kernel", "layer_norm_in_parts_kernel"]
    given = launched(NORMS["layer_norm"], **FORMATS["nvfp4"], amax=np.float32(5))
    assert [run.kernel for run in given] == ["layer_norm_kernel", "layer_norm_in_parts_kernel"]


@pytest.mark.parametrize(
    ("columns", "target", "passes"),
    [(128, "sm_90a", 1), (256, "sm_90a", 1), (288, "sm_90a", 2), (4096, "sm_120a", 1), (4128, "sm_120a", 2)],
)
def test_rows_that_fit_take_one_pass(columns, target, passes):
    x = data.normal(32, columns, "bfloat16")

    def norm(**options):
        return dither.rms_norm(x, np.ones(columns, np.float32), **options)

    assert len(launched(norm, target, **FORMATS["mxfp8"])) == passes


def test_rows_alone_take_one_pass():
    assert len(launched(NORMS["rms_norm"], format="mxfp8_e4m3")) == 1


def test_what_is_written_is_given():
    """`out=` of all that the call gives."""
    first = dither.add_layer_norm(X, D, GAMMA, BETA, **FORMATS["mxfp8"])
    again = dither.add_layer_norm(D, X, GAMMA, BETA, **FORMATS["mxfp8"], out=first, device="sim:sm_90a")
    assert again.sum is first.sum and again.mean is first.mean and again.rsigma is first.rsigma
    same(first, dither.add_layer_norm(D, X, GAMMA, BETA, **FORMATS["mxfp8"]))
    dgamma = np.empty(COLUMNS, ml_dtypes.bfloat16)
    options = {**FORMATS["mxfp8"], "grad_dtype": dither.bfloat16}
    before = dither.rms_norm_backward(D, X, RSIGMA, GAMMA, **options)
    out = before._replace(dgamma=dgamma)
    found = dither.rms_norm_backward(D, X, RSIGMA, GAMMA, **options, out=out, device="sim:sm_90a")
    assert found.dgamma is dgamma
    same(found, before)


@pytest.mark.parametrize("of", ["mxfp8", "nvfp4"])
def test_amaxes(of):
    recorded = np.zeros((), np.float32)
    for more in ({"return_amax": True}, {"amax": np.float32(3)}, {"record_amax": recorded}):
        if (of == "nvfp4") == ("record_amax" in more) or (of == "mxfp8" and "amax" in more):
            continue
        found, wanted = (NORMS["layer_norm"](**FORMATS[of], **more, **on) for on in ({"device": "sim:sm_90a"}, {}))
        same(found, wanted)


def test_no_rows():
    found = dither.rms_norm(X[:0], GAMMA, **FORMATS["mxfp8"], device="sim:sm_90a")
    same(found, dither.rms_norm(X[:0], GAMMA, **FORMATS["mxfp8"]))


def test_rows_of_infinities():
    """0 times an infinity is no zero at the edge either."""
    x = np.array(X)
    x[3, 7], x[5, 9] = np.inf, np.nan
    for target in ("sm_90a", "sm_100a"):
        on = {"device": f"sim:{target}"}
        for call in (
            lambda **o: dither.rms_norm(x, GAMMA, **o),
            lambda **o: dither.layer_norm(x, GAMMA, BETA, **o),
            lambda **o: dither.layer_norm_backward(D, x, MEAN, RSIGMA, GAMMA, **o),
        ):
            same(call(**FORMATS["mxfp8"], **on), call(**FORMATS["mxfp8"]))


@pytest.mark.parametrize("of", ["nvfp4", "tensor"])
@pytest.mark.parametrize("norm", ["rms_norm", "layer_norm"])
def test_an_amax_that_is_infinite(norm, of):
    """The first pass may find one that a caller may not give: it raised "argument 'amax' is inf" on GPUs."""
    gamma = np.array(GAMMA)
    gamma[7] = np.inf
    operands = (X, gamma) if norm == "rms_norm" else (X, gamma, BETA)
    found, wanted = (getattr(dither, norm)(*operands, **FORMATS[of], **on) for on in ({"device": "sim:sm_90a"}, {}))
    same(found, wanted)


@pytest.mark.parametrize(
    ("fmt", "target", "backwards"), [("nvfp4", "sm_90a", 1), ("nvfp4", "host", 0), ("mxfp8_e4m3", "sm_90a", 0)]
)
def test_passes_over_a_tensor_that_was_read_begin_with_its_last_rows(fmt, target, backwards):
    from dither.ops.library import SHAPE, listing

    (entry,) = [one for one in listing(target, SHAPE) if one.name == f"quantize-{fmt}-rowwise-linear-bfloat16"]
    assert entry.lower(target).text.count("quant.program_id x backwards") == backwards
    assert entry.constexprs["BACKWARDS"] == backwards


GRADIENTS = ("rms_norm_backward", "layer_norm_backward")


@pytest.mark.sample("values")
@pytest.mark.parametrize(
    ("columns", "target", "passes"),
    [
        # Programs of 16 rows; of the two sums of four, and of longer rows, what is stored is as large as what is read.
        (2048, "sm_80", (1, 1)),
        (4096, "sm_80", (1, 2)),
        (4096, "sm_90a", (1, 1)),
        (8192, "sm_90a", (1, 2)),
        (16384, "sm_90a", (2, 2)),
        (16384, "sm_120a", (2, 2)),
    ],
)
def test_sums_that_are_as_large_as_the_tensors(columns, target, passes):
    x, column, gamma = data.normal(4, columns, "bfloat16"), data.normal(1, 4)[0], data.normal(1, columns)[0]
    calls = {
        "rms_norm_backward": lambda **o: dither.rms_norm_backward(x, x, column, gamma, **o),
        "layer_norm_backward": lambda **o: dither.layer_norm_backward(x, x, column, column, gamma, **o),
    }
    for name, expected in zip(GRADIENTS, passes, strict=True):
        for options in ({}, {"format": "mxfp8_e4m3"}):
            runs = launched(calls[name], target, **options)
            norms = [run.kernel for run in runs if "norm" in run.kernel]
            assert len(norms) == expected, (name, norms)
            same(calls[name](**options, device=f"sim:{target}"), calls[name](**options))


def test_plain_gradients_with_an_amax():
    """Of a residual, too, and the amax of the output: they are of the second pass."""
    x, column, gamma = data.normal(33, 4096, "bfloat16"), data.normal(1, 33)[0], data.normal(1, 4096)[0]
    on = {"device": "sim:sm_80"}
    for options in ({"return_amax": True}, {"add": x}, {"format": "nvfp4"}, {"dtype": dither.float32}):
        found = dither.rms_norm_backward(x, x, column, gamma, **options, **on)
        same(found, dither.rms_norm_backward(x, x, column, gamma, **options))
