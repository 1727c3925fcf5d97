"""Operators compile nothing for a new batch size: a class of alignments at most, in every format and layout."""

import collections
import functools
import re

import dither
import numpy as np
import pytest
from dither import profile
from dither.jit import Kernel
from dither.ops.library import orders_of

FORMATS = tuple(dither.formats.FORMATS)
#: Every residue that alignment depends on, and both sides of each power of two.
BATCHES = sorted({*range(1, 66), *(2**k + d for k in range(7, 13) for d in (-1, 0, 1, 16, 32, 64) if 2**k + d <= 4096)})
N = 64


@pytest.fixture
def classes(monkeypatch):
    """classes(call) -> for each kernel, how many specializations `call(m)` asks for over the batches; runs none."""

    def count(call, batches=BATCHES):
        seen = collections.defaultdict(set)

        def launch(self, grid, *args, device=None, stream=None, shapes=None, **kwargs):
            bound = self.signature.bind(args, kwargs, shapes)
            seen[self.__name__].add((*bound.types.items(), *map(repr, bound.constexprs.items())))

        with monkeypatch.context() as m:
            m.setattr(Kernel, "launch", property(lambda self: functools.partial(launch, self)))
            # Calls run in Python while somebody looks at launches.
            m.setattr(profile, "_runs", [])
            for batch in batches:
                call(batch)
        return {name: len(keys) for name, keys in seen.items()}

    return count


CASES = [(name, scales) for name, fmt in dither.formats.FORMATS.items() for scales in orders_of(fmt)]


@pytest.mark.parametrize("layout", ["rowwise", "colwise", "both"])
@pytest.mark.parametrize(("fmt", "scales"), CASES)
def test_quantize_and_dequantize(classes, fmt, layout, scales):
    # Rows of codes and of scales that are as long as the batch begin at multiples of 32, 16 or fewer bytes, in
    # five combinations (nine where those of scales are padded); scales alone in three.
    about = dither.formats.FORMATS[fmt]
    transposed = about.transposed and layout != "rowwise"
    padded = scales != "linear"
    most = (9 if padded or about.scale.bits == 32 else 5) if transposed else 3 if layout != "rowwise" and padded else 1
    if scales == "column_major" and layout != "colwise":
        most *= 3
    # Of one scale for the tensor, or a row, the amax is taken first, and rows are apart from columns.
    given = 1.0 if about.tensor_scale or about.block == "tensor" else None
    most += about.block == "row" and layout != "rowwise"
    buffer = np.zeros((4096, N), np.float32)
    results = {}

    def quantize(m):
        results[m] = dither.quantize(buffer[:m], fmt, layout, scales, amax=given)

    assert classes(quantize)["quantize_kernel"] <= most
    parts = 1 + (layout == "both")
    tiles = 2 if transposed and layout == "colwise" else 1
    found = classes(lambda m: dither.dequantize(results[m], dither.bfloat16))["dequantize_kernel"]
    assert found <= parts * tiles * (5 if transposed and layout == "colwise" else 1)


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
@pytest.mark.parametrize("layout", ["rowwise", "both"])
def test_rms_norm(classes, fmt, layout):
    buffer, gamma = np.zeros((4096, N), np.float32), np.ones(N, np.float32)
    amax = 1.0 if fmt == "nvfp4" else None
    found = classes(lambda m: dither.rms_norm(buffer[:m], gamma, format=fmt, layout=layout, amax=amax))
    assert found["rms_norm_kernel"] <= (5 if (fmt, layout) == ("nvfp4", "both") else 1)


def test_every_batch_size(classes):
    buffer = np.zeros((4096, N), np.float32)
    amax = np.float32(1).reshape(())
    found = classes(lambda m: dither.quantize(buffer[:m], "nvfp4", "both", "128x4", amax=amax), range(1, 4097))
    assert found["quantize_kernel"] <= 9


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("layout", ["colwise", "both"])
def test_wide_stores_survive_a_batch_that_is_not_known(target, layout):
    from dither.ops.library import library

    entry = next(e for e in library(target) if e.name == f"quantize-nvfp4-{layout}-linear-bfloat16")
    assert entry.arguments["col_data"].shape == (None, None)
    # Codes of a column are 32 bytes, a sector: four lanes have 8 each.
    assert re.search(r"st\.global\.v[24]\.b32", entry.compile(target).ptx)
