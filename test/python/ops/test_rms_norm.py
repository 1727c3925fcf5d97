"""dither.rms_norm against the reference, alone and in front of every format."""

import dither
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import FORMATS, array, check_quantized, expected_norm, same_bits, same_values


def check(x, gamma, eps=1e-5, zero_centered=False, fmt=None, layout="rowwise", scales="linear", rounded=True):
    y, rsigma = expected_norm(x, gamma, eps, zero_centered, rounded)
    result = dither.rms_norm(
        x, gamma, eps, zero_centered, fmt, layout, scales, return_amax=True, round_intermediate=rounded
    )
    same_values(result.rsigma, rsigma, "rsigma")
    same_bits(result.amax, oracle.amax(y), "amax")
    if fmt is None:
        with np.errstate(all="ignore"):
            same_values(result.out, y.astype(array(x).dtype), "y")
    else:
        check_quantized(result.out, y, layout, scales)


def gamma_of(n, dtype="float32"):
    return data.normal(1, n, dtype, seed=1)[0]


@pytest.mark.parametrize("n", [1, 15, 17, 33, 100, 255, 256, 257, 1023, 2048, 2049, 4097, 8192, 20000])
def test_order_of_sums(n):
    """Every shape of the tree: part of a chain, one, two, four and eight chains, and rows that end inside of one."""
    for dtype in data.DTYPES if n in (100, 4097) else ("bfloat16",):
        for m in (1, 15, 33) if n < 4097 else (1, 6):
            check(data.normal(m, n, dtype), gamma_of(n, dtype))


@pytest.mark.parametrize(("n", "zero_centered"), [(100, True), (2080, False)])
@pytest.mark.parametrize("fmt", [None, *FORMATS])
def test_formats(fmt, n, zero_centered):
    """The other layouts and input types are cells of the support matrix."""
    x = data.adversarial(37, n, "bfloat16")
    check(x, gamma_of(n, "bfloat16"), zero_centered=zero_centered, fmt=fmt, layout="both" if fmt else "rowwise")


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (33, 17), (130, 257)])
def test_ragged(fmt, m, n):
    check(data.normal(m, n, "float16"), gamma_of(n, "float16"), fmt=fmt, layout="both", scales="128x4")


@pytest.mark.parametrize("layout", ["colwise", "both"])
@pytest.mark.parametrize("n", [128, 129, 160, 192, 256, 272])
def test_columns_of_rows_that_a_gpu_holds(n, layout):
    """Tiles of 64 rows, which were more than shared memory has where lanes change from rows to columns."""
    x, gamma = data.normal(70, n, "bfloat16"), gamma_of(n)
    y, _ = expected_norm(x, gamma)
    found = dither.rms_norm(x, gamma, format="nvfp4", layout=layout, device="sim:sm_90a").out
    check_quantized(found, y, layout)


@pytest.mark.parametrize("dtype", data.DTYPES)
@pytest.mark.parametrize("fmt", [None, "nvfp4", "mxfp8_e4m3"])
def test_without_rounding_in_between(fmt, dtype):
    x = data.adversarial(37, 100, dtype)
    check(x, gamma_of(100, dtype), fmt=fmt, rounded=False)
    check(x, gamma_of(100, dtype), fmt=fmt, rounded=True)


def test_rounding_in_between_shows():
    """Not so in the test above if the data hid it."""
    x, gamma = data.normal(37, 100, "bfloat16"), gamma_of(100, "bfloat16")
    one, other = (
        dither.rms_norm(x, gamma, format="nvfp4", return_amax=True, round_intermediate=r) for r in (True, False)
    )
    assert one.amax != other.amax
    assert (array(one.out.scale_inv).view(np.uint8) != array(other.out.scale_inv).view(np.uint8)).any()


def test_fused_is_one_after_the_other():
    for dtype in data.DTYPES:
        x, gamma = data.normal(37, 100, dtype), gamma_of(100, dtype)
        fused = dither.rms_norm(x, gamma, format="nvfp4").out
        alone = dither.quantize(dither.rms_norm(x, gamma).out, "nvfp4")
        same_bits(fused.data, alone.data)
        same_bits(fused.scale_inv, alone.scale_inv)
        same_bits(fused.amax, alone.amax)


@pytest.mark.parametrize("amax", [0.0, 1e-40, 1.5, 3.4e38])
def test_amax_given(amax):
    x = data.normal(37, 100, "bfloat16")
    y, _ = expected_norm(x, gamma_of(100, "bfloat16"))
    result = dither.rms_norm(x, gamma_of(100, "bfloat16"), format="nvfp4", layout="both", amax=amax, return_amax=True)
    check_quantized(result.out, y, "both", amax=np.float32(amax))
    same_bits(result.amax, oracle.amax(y), "what the norm found, beside what the caller said")


def test_optional_amax():
    x, gamma = data.normal(37, 100), gamma_of(100)
    assert dither.rms_norm(x, gamma).amax is None
    assert dither.rms_norm(x, gamma, format="mxfp4").amax is None


@pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-5, 1.0, 1e30])
def test_eps(eps):
    check(data.adversarial(37, 100), gamma_of(100), eps=eps)


@pytest.mark.parametrize("scale", [1e-38, 1e-23, 1e-19, 1e18, 1e19, 3e38])
def test_squares_out_of_range(scale):
    """Squares that are subnormal, zero or infinite."""
    x = data.normal(37, 100)
    with np.errstate(over="ignore"):
        check(data.aligned(x / np.abs(x).max() * np.float32(scale)), gamma_of(100))


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, np.inf, 1e-45])
def test_rows_of_one_value(value):
    x = data.normal(37, 100)
    x[5] = value
    x[9, 50] = value
    check(x, gamma_of(100))
    check(x, gamma_of(100), fmt="mxfp8_e4m3")


def test_special_gamma():
    gamma = gamma_of(100)
    gamma[:6] = [0, -0.0, np.inf, np.nan, 1e-45, -1]
    check(data.adversarial(37, 100), gamma)
    check(data.adversarial(37, 100), gamma, zero_centered=True)


@pytest.mark.parametrize("gamma_dtype", data.DTYPES)
def test_gamma_of_another_type(gamma_dtype):
    for dtype in data.DTYPES:
        check(data.normal(37, 100, dtype), gamma_of(100, gamma_dtype))


def test_no_rows():
    result = dither.rms_norm(data.empty((0, 100), np.float32), gamma_of(100), format="nvfp4", layout="both")
    assert result.rsigma.shape == (0,)
    assert result.out.shape == (0, 100)
