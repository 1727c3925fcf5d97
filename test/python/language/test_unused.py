"""What a kernel computes and does not use leaves no trace in its code."""

import dither
import dither.language as dl
import pytest
from dither import TensorType

ARGS = {"x": TensorType(dl.float32, (64, 96)), "y": TensorType(dl.bfloat16, (64, 96))}


@dither.jit
def kernel(x, y):
    t = dl.load(x, (0, 0), (64, 96))
    dl.store(y, (0, 0), (t * 2.0).to(dl.bfloat16))


def mentions_much(x, y):
    ramp = dl.arange(2048)[:, None]
    t = dl.load(x, (0, 0), (64, 96))
    wide = dl.broadcast_to(ramp, (2048, 96)).to(dl.float32) + 1.0
    dl.sum(wide, 1)
    t.to(dl.float8_e4m3)
    dl.block_scale(t, "mxfp8_e4m3", axis=0)
    row = dl.load(x, (0, 0), (1, 96))
    if x.shape[1] > 3:
        dl.max(row, 1)
    for i in range(4):
        row.to(dl.bfloat16)
        dl.load(x, (i, 0), (8, 96))
    dl.store(y, (0, 0), (t * 2.0).to(dl.bfloat16))


@pytest.mark.parametrize("target", ["host:avx512", "host:avx2", "sm_90a"])
def test_unused_values_change_nothing(target):
    from dither.compiled import Lowered
    from dither.compiler import captures_of
    from dither.options import UNSAID

    def stages(function):
        text = (
            Lowered(function, ARGS, {}, target, UNSAID, captures_of(function)).compile(keep_stages=True).stages["llvm"]
        )
        return text.replace(function.__name__, "kernel")

    assert stages(mentions_much) == stages(kernel.fn)
