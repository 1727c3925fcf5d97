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
    ("layer_norm-bfloat16", "sm_90a"): 80,
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


#: Bytes of a thread in memory: half as many threads, each with twice the elements, are faster all the same, as are
#: parameters that are waited for once, and two programs, where registers keep two sums of a row.
SPILLED = {
    ("layer_norm-bfloat16", "sm_90a"): 32,
    ("layer_norm-mxfp8_e4m3-rowwise-linear-bfloat16", "sm_90a"): 16,
    ("rms_norm-mxfp8_e4m3-rowwise-128x4-bfloat16", "sm_100a"): 40,
    ("rms_norm_backward-bfloat16", "sm_90a"): 16,
    ("layer_norm_backward-bfloat16", "sm_90a"): 80,
    ("silu-nvfp4-both-linear-bfloat16", "sm_100a"): 20,
}


@pytest.mark.parametrize(("name", "target"), MOST)
@pytest.mark.parametrize("cols", [4096])
def test_registers_at_barriers(name, target, cols, tmp_path):
    row = ROWS[name.split("-")[0].removesuffix("_in_parts")]
    (entry,) = (entry for entry in entries(row, target, (4096, cols)) if entry.name == name)
    code = entry.compile(target)
    assert "bar.sync" in code.ptx
    registers, spilled, stack = assemble(code.ptx, target, tmp_path)
    assert max(spilled, stack) <= SPILLED.get((name, target), 0)
    assert registers <= MOST[name, target]
    blocks = int(re.search(r"^\.minnctapersm (\d+)", code.ptx, re.M)[1])
    assert registers * code.image.num_threads * blocks <= 65536
