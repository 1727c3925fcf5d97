"""The vectors of dialect/Quant/Semantics.md, on every kind of target."""

import pathlib
import re

import dither
import dither.language as dl
import numpy as np
import pytest
from ops import check

SEMANTICS = pathlib.Path(__file__).parents[3] / "dialect" / "Quant" / "Semantics.md"
FORMATS = {
    "mxint8": dither.MXINT8,
    "i8, scale = f32, block = [1, ?]": dither.Format(element=dl.int8, scale=dl.float32, block="row"),
}
VECTORS = SEMANTICS.read_text().split("## Vectors")[1]
ROWS = re.findall(r"^\| `(.+)` \| (.+) \| (\S+) \| ([0-9A-F ]+) \|$", VECTORS, re.M)


def test_there_are_vectors_of_each_format():
    assert {row[0] for row in ROWS} == set(FORMATS)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_vector(row, device):
    name, block, scale, codes = row
    fmt = FORMATS[name]
    assert name in fmt.mlir()
    x = np.array([[float(v) for v in block.split(",")]], np.float32)
    want = np.array([[int(c, 16) for c in codes.split()]], np.uint8)
    stored = np.array([[float.fromhex(scale)]], np.float32) if "x" in scale else np.array([[int(scale, 16)]], np.uint8)
    for layout in ("rowwise", "colwise"):
        given = x if layout == "rowwise" else np.ascontiguousarray(x.T)
        result = dither.quantize(given, fmt, layout, device=device)
        check.same_bits(np.asarray(result.data).reshape(1, -1), want, layout)
        check.same_bits(np.asarray(result.scale_inv), stored, layout)
