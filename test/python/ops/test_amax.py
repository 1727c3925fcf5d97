"""The amax of a tensor that the caller gives: copied, checked where it is on the host, defined where it is not."""

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from dither.language import linear
from dither.ops.quantize import QUANTIZE
from ops import data
from ops.check import bits, same_bits, same_values

torch = pytest.importorskip("torch")

M, N = 5, 64


def given(x, kind):
    """Ways to give the amax of x on the host."""
    value = float(np.abs(x).max())
    return {
        "number": value,
        "scalar": np.float32(value),
        "numpy": np.array(value, np.float32),
        "one element": np.array([[value]], np.float32),
        "torch": torch.tensor(value),
        "with gradient": torch.tensor(value, requires_grad=True),
        "view": dither.view(np.array([value], np.float32), dither.float32),
    }[kind]


KINDS = ["number", "scalar", "numpy", "one element", "torch", "with gradient", "view"]


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_has_an_amax_of_its_own(library, kind, request):
    x = data.normal(M, N)
    amax = given(x, kind)
    source = torch.from_numpy(x) if library == "torch" else x
    if kind == "with gradient":
        with pytest.raises(TypeError, match="argument 'amax' requires a gradient, which quantize with these argum"):
            dither.quantize(source, "nvfp4", amax=amax)
        torch.set_grad_enabled(False)
        request.addfinalizer(lambda: torch.set_grad_enabled(True))
    for q in (
        dither.quantize(source, "nvfp4", amax=amax),
        dither.rms_norm(source, source[0], format="nvfp4", amax=amax).out,
    ):
        assert type(q.amax) is type(source) and q.amax.shape == ()
        before = bits(q.dequantize()).copy()
        base = amax.base if isinstance(amax, dither.arrays.View) else amax
        with torch.no_grad():
            if hasattr(base, "fill_"):
                base.fill_(1000)
            elif isinstance(base, np.ndarray):
                base[...] = 1000
        same_bits(q.dequantize(), before.view(np.float32))
        amax = given(x, kind)
    q = dither.quantize(source, "nvfp4", amax=amax)
    same_bits(q.amax, np.float32(np.abs(x).max()))
    same_bits(q.data, oracle.quantize(x, "nvfp4").data)


def test_both_directions_of_a_result_share_theirs():
    x = data.normal(32, N)
    q = dither.quantize(x, "nvfp4", "both", amax=np.float32(9))
    assert q.rowwise.amax is q.colwise.amax


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -1e-45])
@pytest.mark.parametrize("wrap", [float, np.float32, np.float64, np.array, torch.tensor], ids=lambda w: w.__name__)
def test_no_largest_magnitude_is_refused_on_the_host(value, wrap):
    amax = wrap(value) if wrap is not np.array else np.array(value, np.float32)
    x = data.normal(M, N)
    text = r"argument 'amax' is (nan|-?inf|-1\.0|-1(\.4.*)?e-45), expected a finite number that is not negative"
    for call in (
        lambda: dither.quantize(x, "nvfp4", amax=amax),
        lambda: dither.rms_norm(x, x[0], format="nvfp4", amax=amax),
    ):
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize(
    ("amax", "error", "text"),
    [
        (1e39, ValueError, r"argument 'amax' is 1e\+39, expected a float32, at most"),
        (2**70, ValueError, "argument 'amax' is 1180591620717411303424, expected an integer from"),
        ("a", TypeError, "argument 'amax' is a str, expected a number or a float32 array"),
        ([1.0], TypeError, "argument 'amax' is a list, expected a number or a float32 array"),
        (True, TypeError, "argument 'amax' is a bool, expected a number or a float32 array"),
        (np.True_, TypeError, "argument 'amax' is a bool, expected a number or a float32 array"),
        (np.array(3.0), TypeError, "argument 'amax' has data type float64, expected float32"),
        (np.ones(2, np.float32), ValueError, r"argument 'amax' has shape \(2,\), expected one element"),
        (np.ones(0, np.float32), ValueError, r"argument 'amax' has shape \(0,\), expected one element"),
    ],
)
def test_what_is_no_amax_is_named(amax, error, text):
    with pytest.raises(error, match=text):
        dither.quantize(data.normal(M, N), "nvfp4", amax=amax)


def test_a_negative_zero_is_the_positive_one():
    x = data.normal(M, N)
    q = dither.quantize(x, "nvfp4", amax=-0.0)
    same_bits(q.amax, np.float32(0))
    same_bits(q.data, dither.quantize(x, "nvfp4", amax=0).data)


DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
#: What a kernel may find on a GPU, where nobody looks before it.
VALUES = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, -1.0, -3.3e-36, 1e-45, -1e-45, 1e-36, 3.4e38, -3.4e38]


def quantized(x, amax, kind, device):
    """Codes and scales of the library's kernel, which gets the amax unseen."""
    m, n = x.shape
    codes, scales = data.empty((m, n // 2), np.uint8), data.empty((m, n // 16), ml_dtypes.float8_e4m3fn)
    view = dither.view(codes, dither.float4_e2m1)
    outputs = {**QUANTIZE.absent, "amax": amax, "row_data": view, "row_scale": scales}
    choices = QUANTIZE.choices({"x": x}, FMT=kind)
    QUANTIZE.kernel.launch((1, 1), x=x, **outputs, **choices, ROWS=64, COLS=64, device=device)
    return codes, scales


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["te", "div6_mul", "div6_div"])
def test_kernels_compute_the_formula_of_any_amax(order, device):
    x = data.adversarial(37, N)
    for value in VALUES:
        amax = data.aligned(np.array(value, np.float32))
        with np.errstate(all="ignore"):
            expected = oracle.quantize(x, "nvfp4", tensor_amax=np.float32(value), order=order)
        codes, scales = quantized(x, amax, dither.NVFP4.with_(order=order), device)
        same_bits(scales, expected.scale, f"scales, amax {value}")
        same_bits(codes, expected.data, f"codes, amax {value}")
        q = dither.ops.ScaledTensor1x(codes, scales, amax, dither.NVFP4, x.shape, dither.float32, False, linear)
        with np.errstate(all="ignore"):
            values = oracle.dequantize(expected.codes, expected.scale, "nvfp4", 1, np.float32(value))
        same_values(dither.dequantize(q, device=device), values, f"values, amax {value}")


def test_a_negative_amax_negates_scales_and_keeps_codes_and_values():
    x = data.normal(37, N)
    amax = data.aligned(np.abs(x).max())
    negative = data.aligned(-amax)
    codes, scales = quantized(x, amax, dither.NVFP4, "cpu")
    same, negated = quantized(x, negative, dither.NVFP4, "cpu")
    same_bits(same, codes)
    nonzero = bits(scales) != 0
    assert ((bits(negated) ^ bits(scales)) == 0x80)[nonzero].all()


def test_a_negative_amax_gives_the_order_div6_div_its_smallest_scale():
    scales = quantized(data.normal(37, N), data.aligned(np.float32(-3)), dither.NVFP4.with_(order="div6_div"), "cpu")[1]
    assert (scales.astype(np.float32) == 2.0**-6).all()


@pytest.mark.parametrize(("amax", "finite"), [(np.inf, False), (np.nan, False), (3.4e38, True)])
def test_values_of_an_amax_that_is_none(amax, finite):
    x = data.normal(37, N)
    given = data.aligned(np.array(amax, np.float32))
    codes, scales = quantized(x, given, dither.NVFP4, "cpu")
    q = dither.ScaledTensor1x(codes, scales, given, dither.NVFP4, x.shape, dither.float32, False, linear)
    assert (np.isfinite(dither.dequantize(q)) == finite).all()
