"""The table of compile times, without the times: each operator is one that both compilers have."""

from __future__ import annotations

import pytest
from dither.ops.library import listing

from benchmarks import compile_latency


def test_operators_are_of_both_compilers() -> None:
    triton_fusions = pytest.importorskip("benchmarks.triton_fusions")
    names = [name.removesuffix("+mxfp8") for name in compile_latency.FUSIONS]
    assert set(names) == set(triton_fusions.KERNELS)
    known = {entry.name for entry in listing("sm_90a", (2048, 4096))}
    assert {f"{name}-mxfp8_e4m3-rowwise-linear-bfloat16" for name in names} <= known


def test_a_compilation() -> None:
    """In this process, without Triton: stages that add up to the total."""
    imported, compile = compile_latency.dither_compiler()
    stages = compile("gelu+mxfp8", "sm_90", False)
    assert imported["import"] >= 0 and stages["total"] == stages["to PTX"] > 0
    parts = [ms for name, ms in stages.items() if name not in ("total", "to PTX")]
    assert sum(parts) == pytest.approx(stages["total"])
