"""The choices of other libraries by name."""

import dither
import numpy as np
import pytest
from dither.formats import FORMATS
from ops import check, data

NVFP4, ONE_LEVEL = dither.NVFP4, dither.NVFP4.with_(tensor_scale=False)
FORMAT_OF = {
    ("te", "nvfp4"): NVFP4,
    ("te", "mxfp8_e4m3"): dither.MXFP8_E4M3,
    ("te", "fp8_128x128_e5m2"): dither.FP8_128X128_E5M2,
    ("torchao", "nvfp4"): NVFP4.with_(order="div6_div", tensor_scale_as="decode", nan_scales=True),
    ("torchao", "mxfp8_e5m2"): dither.MXFP8_E5M2.with_(scale_rounding="floor", nan_scales=True),
    ("torchao", "mxfp4"): dither.MXFP4.with_(nan_scales=True),
    ("torchao", "fp8_row_e4m3"): dither.FP8_ROW_E4M3.with_(epsilon=1e-12),
    ("nvfuser", "nvfp4"): NVFP4.with_(order="div6_mul", tensor_scale_as="encode"),
    ("nvfuser", "mxfp8_e4m3"): dither.MXFP8_E4M3,
    ("jax", "nvfp4"): NVFP4.with_(order="div6_mul", nan_scales=True),
    ("jax", "mxfp8_e4m3"): dither.MXFP8_E4M3.with_(inf_scale="FF"),
    ("ocp", "mxfp8_e4m3"): dither.MXFP8_E4M3.with_(scale_rounding="floor"),
    ("ocp", "mxint8"): dither.MXINT8,
}
#: What each has.
HAS = {
    "te": {"nvfp4", "mxfp8", "fp8_tensor", "fp8_1x128", "fp8_128x128"},
    "torchao": {"nvfp4", "mxfp4", "mxfp6", "mxfp8", "fp8_tensor", "fp8_row"},
    "nvfuser": {"nvfp4", "mxfp8"},
    "jax": {"nvfp4", "mxfp8", "fp8_tensor"},
    "ocp": {"mxfp4", "mxfp6", "mxfp8", "mxint8"},
}


@pytest.mark.parametrize(("numerics", "name"), FORMAT_OF)
def test_named(numerics, name):
    x = data.normal(40, 256)
    q = dither.quantize(x, name, numerics=numerics)
    assert q.format == FORMAT_OF[numerics, name]
    want = dither.quantize(x, FORMAT_OF[numerics, name])
    check.same_bits(q.data, want.data)
    check.same_bits(q.scale_inv, want.scale_inv)
    gamma = np.ones(256, np.float32)
    assert dither.rms_norm(x, gamma, format=name, numerics=numerics).out.format == q.format
    assert itself(x, format=name, numerics=numerics).format == q.format


@dither.fuse
def itself(t):
    return t


def test_one_level():
    assert dither.quantize(data.normal(4, 32), ONE_LEVEL, numerics="torchao").format.order == "div6_div"
    assert dither.quantize(data.normal(4, 32), ONE_LEVEL, numerics="nvfuser").format.order == "div6_mul"


@pytest.mark.parametrize("numerics", HAS)
@pytest.mark.parametrize("name", FORMATS)
def test_what_each_has(numerics, name):
    """A library that does not have a format is not made up."""
    x = data.normal(128, 128)
    if any(name == one or name.startswith(f"{one}_") for one in HAS[numerics]):
        fmt = dither.quantize(x, name, numerics=numerics).format
        assert dither.quantize(x, fmt, numerics=numerics).format == fmt
        return
    with pytest.raises(ValueError, match=f"numerics is '{numerics}', which has no {name}: "):
        dither.quantize(x, name, numerics=numerics)


def test_what_a_library_leaves_open_stays():
    fmt = NVFP4.with_(block=(16, 16), four_over_six="mse", largest_scale=256)
    assert dither.quantize(data.normal(32, 32), fmt, numerics="te").format == fmt


def test_one_library_after_another():
    """Whatever another one had chosen."""
    x = data.normal(32, 128)
    for name in ("nvfp4", "mxfp8_e4m3"):
        alone = {peer: dither.quantize(x, name, numerics=peer).format for peer in HAS if name[:5] in str(HAS[peer])}
        for first in alone.values():
            for peer, want in alone.items():
                assert dither.quantize(x, first, numerics=peer).format == want


def test_wrong():
    x = data.normal(4, 32)
    with pytest.raises(ValueError, match=r"numerics is 'torchoa', expected one of te, .*did you mean 'torchao'"):
        dither.quantize(x, "nvfp4", numerics="torchoa")
    with pytest.raises(TypeError, match="numerics is 1, expected one of te, torchao, nvfuser, jax, ocp"):
        dither.quantize(x, "nvfp4", numerics=1)
    with pytest.raises(ValueError, match="argument 'numerics' was given without a format"):
        itself(x, numerics="te")
