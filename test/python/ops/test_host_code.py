"""How long the code of kernels for CPUs is, which is what most of their compilation takes time for.

Instructions, labels and directives of the assembly, measured and a tenth more. What grows past that is a part that is
unrolled where a loop would do.
"""

from __future__ import annotations

import pytest
from dither.ops.library import listing

LINES = {
    # Before rows were turned to columns eight at a time: 5105, 3764, 6269, 7503, 2233 and 1793.
    "host:avx512": {
        "quantize-nvfp4-both-linear-bfloat16": 3400,
        "quantize-fp8_tensor_e4m3-colwise-linear-bfloat16": 1290,
        "gelu-nvfp4-both-linear-bfloat16": 3810,
        "dequantize-nvfp4-colwise-bfloat16": 1840,
        "transpose-bfloat16": 740,
        "transpose-int8": 1140,
    },
    # 8870, 5849, 8217, 8914, 4496 and 3680.
    "host:avx2": {
        "quantize-nvfp4-both-linear-bfloat16": 4940,
        "quantize-fp8_tensor_e4m3-colwise-linear-bfloat16": 1890,
        "gelu-nvfp4-both-linear-bfloat16": 5300,
        "dequantize-nvfp4-colwise-bfloat16": 2550,
        "transpose-bfloat16": 1120,
        "transpose-int8": 2090,
    },
}


@pytest.mark.parametrize("target", LINES)
def test_code_is_short(target):
    entries = {entry.name: entry for entry in listing(target, (2048, 4096))}
    lines = {
        name: len(entries[name].lower(target).compile(keep_stages=True).stages["asm"].splitlines())
        for name in LINES[target]
    }
    longer = {name: count for name, count in lines.items() if count > 1.1 * LINES[target][name]}
    assert not longer, f"expected {LINES[target]}"
