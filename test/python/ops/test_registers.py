"""Registers that ptxas gives a thread of kernels that wait at barriers, and that (next to) nothing is spilled.

A compiler chooses how many blocks a multiprocessor has room for by an estimate; ptxas keeps to that at any price, which
must not be memory.
"""

import re

import pytest
from dither.ops.library import entries
from dither.ops.library_rows import MORE, OPERATORS
from ops.test_ptx import assemble

ROWS = {row.producer.name: row for row in (*OPERATORS, *MORE)}
#: Most registers, by operator and target; rows of 4096 bfloat16.
MOST = {
    ("rms_norm-bfloat16", "sm_90a"): 80,
    ("rms_norm-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 96,
    ("rms_norm-mxfp8_e4m3-rowwise-128x4-bfloat16", "sm_100a"): 96,
    ("rms_norm-nvfp4-rowwise-linear-bfloat16", "sm_90a"): 96,
    ("rms_norm-nvfp4-rowwise-128x4-bfloat16", "sm_100a"): 96,
    ("rms_norm-fp8_tensor_e4m3-rowwise-linear-bfloat16", "sm_80"): 128,
    ("layer_norm-bfloat16", "sm_90a"): 96,
    ("layer_norm-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 96,
    ("layer_norm-nvfp4-rowwise-linear-bfloat16", "sm_120a"): 96,
    ("rms_norm_backward-bfloat16", "sm_90a"): 128,
    ("layer_norm_backward-bfloat16", "sm_90a"): 128,
    ("rms_norm_backward_in_parts-mxfp8_e4m3-both-linear-bfloat16", "sm_90a"): 96,
    ("rms_norm_backward_in_parts-mxfp8_e4m3-both-linear-bfloat16", "sm_100a"): 96,
    ("layer_norm_backward_in_parts-mxfp8_e4m3-both-linear-bfloat16", "sm_90a"): 96,
    ("dgelu-nvfp4-both-linear-bfloat16", "sm_90a"): 80,
    ("dgelu-mxfp8_e4m3-both-linear-bfloat16", "sm_100a"): 96,
    ("silu-nvfp4-both-linear-bfloat16", "sm_100a"): 96,
    ("softmax-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 80,
    ("dsoftmax-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 72,
}


#: Bytes of a thread in memory: room for another block is predicted to be worth them, half as many threads, each with
#: twice the elements, are faster all the same, as are parameters that are waited for once, and two programs, where
#: registers keep two sums of a row.
SPILLED = {
    ("layer_norm-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 16,
    ("rms_norm-mxfp8_e4m3-rowwise-128x4-bfloat16", "sm_100a"): 40,
    ("rms_norm_backward-bfloat16", "sm_90a"): 16,
    ("layer_norm_backward-bfloat16", "sm_90a"): 80,
    ("rms_norm_backward_in_parts-mxfp8_e4m3-both-linear-bfloat16", "sm_100a"): 16,
    ("layer_norm_backward_in_parts-mxfp8_e4m3-both-linear-bfloat16", "sm_90a"): 24,
    ("silu-nvfp4-both-linear-bfloat16", "sm_100a"): 112,
}


def _compiled(name, target):
    row = ROWS[name.split("-")[0].removesuffix("_in_parts")]
    (entry,) = (entry for entry in entries(row, target, (4096, 4096)) if entry.name == name)
    return entry.compile(target)


@pytest.mark.parametrize(("name", "target"), MOST)
def test_registers_at_barriers(name, target, tmp_path):
    code = _compiled(name, target)
    assert "bar.sync" in code.ptx
    registers, spilled, stack = assemble(code.ptx, target, tmp_path)
    assert max(spilled, stack) <= SPILLED.get((name, target), 0)
    assert registers <= MOST[name, target]
    blocks = int(re.search(r"^\.minnctapersm (\d+)", code.ptx, re.M)[1])
    assert registers * code.image.num_threads * blocks <= 65536


#: Kernels that compute so much for each element that ptxas, left alone, gives a thread 140 to 255 registers: with
#: room for 16 warps they have 128, and keep next to nothing in memory. By bytes of a thread. Quotients by a constant
#: (SiTU) are computed together: more is alive at once, and the kernels are predicted at 0.7 to 0.98 of the time.
MUCH = {
    ("situglu-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 112,
    ("dsituglu-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_100a"): 408,
    ("dsituglu-nvfp4-both-linear-bfloat16", "sm_90a"): 176,
    ("dbias_dgeglu-nvfp4-both-linear-bfloat16", "sm_90a"): 0,
    ("dclamped_swiglu-fp8_1x128_e4m3-rowwise-linear-bfloat16", "sm_90a"): 0,
    ("dbias_dclamped_swiglu-mxfp8_e4m3-both-linear-bfloat16", "sm_100a"): 32,
    ("swiglu-mxfp4-both-linear-bfloat16", "sm_90a"): 0,
    ("gelu-fp8_1x128_e4m3-colwise-column_major-bfloat16", "sm_90a"): 0,
}


@pytest.mark.parametrize(("name", "target"), MUCH)
def test_warps(name, target, tmp_path):
    code = _compiled(name, target)
    _, spilled, stack = assemble(code.ptx, target, tmp_path)
    assert max(spilled, stack) <= MUCH[name, target]
    blocks = int(re.search(r"^\.minnctapersm (\d+)", code.ptx, re.M)[1])
    assert code.image.num_threads * blocks >= 16 * 32


def test_blocks_of_columns_with_scales_in_their_order():
    """Scales that are stored in the order of columns do not keep elements from moving before columns combine, in words,
    so that each is computed by one lane: by two it was."""
    kernel = "gelu-fp8_1x128_e4m3-colwise-{}-bfloat16"
    lines = {
        order: len(_compiled(kernel.format(order), "sm_90a").ptx.splitlines()) for order in ("linear", "column_major")
    }
    assert lines["column_major"] < 1.1 * lines["linear"]
