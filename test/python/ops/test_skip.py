"""Flags that leave an earlier result as it is."""

import dither
import numpy as np
import pytest
from ops import check, data

F32 = np.float32
FORMATS = {
    "nvfp4": dither.NVFP4,
    "nvfp4 rows": dither.NVFP4.with_(row_amax=True),
    "nvfp4 decode": dither.NVFP4.with_(tensor_scale_as="decode"),
    "mxfp8": dither.MXFP8_E4M3,
    "fp8 tensor": dither.FP8_TENSOR_E4M3,
    "fp8 row": dither.FP8_ROW_E4M3,
    "fp8 blocks": dither.FP8_128X128_E4M3,
}


def arrays(q):
    """The arrays of a result, copied."""
    parts = [(p.data, p.scale_inv, p.amax, p.tensor_scale) for p in check.parts(q)]
    return [None if a is None else np.array(a) for part in parts for a in part]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            check.same_bits(one, other)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_flag(name, layout, device):
    fmt = FORMATS[name]
    x, y = data.normal(70, 200, "bfloat16"), data.normal(70, 200, "bfloat16", seed=1)
    fresh = arrays(dither.quantize(y, fmt, layout, device=device))
    for kind in (F32, np.int32, np.int64):
        out = dither.quantize(x, fmt, layout, device=device)
        before = arrays(out)
        flag = np.ones(1, kind)
        kept = dither.quantize(y, fmt, layout, device=device, out=out, skip=flag)
        same(arrays(kept), before)
        check.same_values(check.parts(kept)[0].dequantize(), check.parts(out)[0].dequantize())
        flag[0] = 0
        same(arrays(dither.quantize(y, fmt, layout, device=device, out=kept, skip=flag)), fresh)


@pytest.mark.parametrize("scales", ["128x4", "8x4", "column_major"])
def test_padding_is_not_touched(scales):
    """Not even by zeros."""
    x = data.normal(33, 70)
    for shape in ((33, 70), (1, 16), (128, 128)):
        x = data.normal(*shape)
        out = dither.quantize(x, "nvfp4", "both", scales, device="sim:sm_100a")
        for part in check.parts(out):
            np.asarray(part.scale_inv).view(np.uint8)[...] = 0x5A
        kept = dither.quantize(x, "nvfp4", "both", scales, device="sim:sm_100a", out=out, skip=np.ones((), F32))
        for part in check.parts(kept):
            assert (np.asarray(part.scale_inv).view(np.uint8) == 0x5A).all()


def test_on_the_host():
    x = data.normal(4, 32)
    out = dither.quantize(x, "nvfp4")
    before = arrays(out)
    same(arrays(dither.quantize(x * 2, "nvfp4", out=out, skip=True)), before)
    assert (np.asarray(dither.quantize(x * 2, "nvfp4", out=out, skip=False).amax) == 2 * before[2]).all()


def test_wrong():
    x = data.normal(4, 32)
    out = dither.quantize(x, "nvfp4")
    with pytest.raises(ValueError, match="argument 'skip' was given, expected 'out' with it"):
        dither.quantize(x, "nvfp4", skip=True)
    with pytest.raises(TypeError, match=r"argument 'skip' is 1.5, expected True, False, or an array of one element"):
        dither.quantize(x, "nvfp4", out=out, skip=1.5)
    with pytest.raises(TypeError, match="argument 'skip' has data type float16, expected"):
        dither.quantize(x, "nvfp4", out=out, skip=np.ones(1, np.float16))
    with pytest.raises(ValueError, match=r"argument 'skip' has shape \(2,\), expected one element"):
        dither.quantize(x, "nvfp4", out=out, skip=np.ones(2, F32))
