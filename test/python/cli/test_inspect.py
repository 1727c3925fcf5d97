"""`dither inspect` and `dither cache`."""

import json
import os

import dither as package
import numpy as np
import pytest
from dither.ops.quantize import QUANTIZE

MODULE = """
module {{
  func.func @copy(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {{quant.kernel}} {{
    %i = quant.program_id x
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
    quant.store %t, %y[%i, %{index}] : tensor<1x64xf32>, memref<?x64xf32>
    return
  }}
}}
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "copy.mlir"
    path.write_text(MODULE.format(index="c0"))
    return path


@pytest.fixture
def cached(cache_dir):
    """Kernels on disk: (key, path) of each."""
    package.quantize(np.ones((8, 64), np.float32), "mxfp4")
    package.quantize(np.ones((8, 128), np.float32), "mxfp4")
    # What was just compiled may be in the memory of this process alone.
    QUANTIZE.kernel.clear()
    package.quantize(np.ones((8, 64), np.float32), "mxfp4")
    package.quantize(np.ones((8, 128), np.float32), "mxfp4")
    paths = sorted(cache_dir.glob("*.kernel"))
    assert len(paths) >= 2
    return paths


def test_all_stages_of_a_module(dither, module):
    result = dither("inspect", module, "--target", "sm_90a")
    assert result.code == 0
    heads = [line for line in result.out.splitlines() if " ---- " in line]
    names = ("quant", "tiled", "distributed", "llvm", "llvmir", "ptx", "launch")
    assert heads == [f"// ---- {name} ----" for name in names]
    assert "// copy for sm_90a: " in result.out


def test_one_stage(dither, module):
    out = dither("inspect", module, "--stage", "llvmir").out
    assert "----" not in out
    assert "define" in out


def test_the_target_of_a_module(dither, module):
    module.write_text(module.read_text().replace("module {", 'module attributes {quant.target = "sm_80"} {'))
    assert ".target sm_80" in dither("inspect", module, "--stage", "ptx").out


def test_a_module_with_an_error(dither, module):
    module.write_text(MODULE.format(index="c1"))
    result = dither("inspect", module)
    assert result.code == 1
    assert result.err.startswith(f"error: {module}:7:")
    assert "undeclared" in result.err


def test_ptx(dither, module, tmp_path):
    text = dither("inspect", module, "--target", "sm_90a", "--stage", "ptx").out
    path = tmp_path / "copy.ptx"
    path.write_text(text)
    out = dither("inspect", path).out
    assert "target     sm_90a" in out
    assert "copy: params (ptr, u64, ptr, u64)" in out
    assert "threads    32" in out
    assert "registers" in out


def test_not_ptx(dither, tmp_path):
    path = tmp_path / "no.ptx"
    path.write_text("hello")
    assert dither("inspect", path) == (1, "", "error: found no .version and .target, expected a PTX module\n")


def test_an_entry(dither, cached):
    for name in (cached[0], cached[0].stem[:16]):
        result = dither("inspect", name)
        assert result.code == 0
        assert "kernel     quantize_kernel" in result.out
        assert "  x: f32[?," in result.out
        assert "(written)" in result.out
        assert "dither.MXFP4" in result.out


def test_a_damaged_entry(dither, cached):
    data = cached[0].read_bytes()
    cached[0].write_bytes(data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    result = dither("inspect", cached[0])
    assert result.code == 1
    assert "is damaged" in result.err
    assert "(damaged)" in dither("cache", "ls").out


@pytest.mark.parametrize(
    "name, message",
    [
        ("gone.mlir", "gone.mlir was not found"),
        ("gone.ptx", "gone.ptx was not found"),
        ("abcd", "no kernel in "),
        ("what?", "'what?' is neither a file nor the start of a key"),
    ],
)
def test_nothing_to_inspect(dither, name, message):
    result = dither("inspect", name)
    assert result.code == 2
    assert result.err.startswith(f"error: {message}")


def test_a_file_of_another_kind(dither, kernel_file):
    result = dither("inspect", kernel_file)
    assert result.code == 1
    assert "is not a compiled kernel" in result.err


def test_ls(dither, cached, cache_dir):
    lines = dither("cache", "ls").out.splitlines()
    assert lines[-1].startswith(f"{len(cached)} kernels, ")
    assert {line[:12] for line in lines[:-1]} == {path.stem[:12] for path in cached}
    assert all("quantize_kernel" in line and str(path_size(cache_dir, line)) in line for line in lines[:-1])


def path_size(cache_dir, line):
    return next(cache_dir.glob(f"{line[:12]}*")).stat().st_size


def test_ls_of_nothing(dither, cache_dir):
    assert dither("cache", "ls") == (0, f"0 kernels, 0.0 MB in {cache_dir}\n", "")


def test_prune_keeps_what_was_used_last(dither, cached, cache_dir):
    for age, path in enumerate(cached):
        os.utime(path, (10**9 - age, 10**9 - age))
    result = dither("cache", "prune", "--size", cached[0].stat().st_size)
    assert result.code == 0
    assert result.out.startswith(f"removed {len(cached) - 1} of {len(cached)} kernels")
    assert list(cache_dir.glob("*.kernel")) == [cached[0]]


def test_prune_everything(dither, cached, cache_dir):
    assert dither("cache", "prune").out.startswith(f"removed 0 of {len(cached)} kernels")
    assert dither("cache", "prune", "--all").out.startswith(f"removed {len(cached)} of {len(cached)} kernels")
    assert not list(cache_dir.glob("*.kernel"))


def test_prune_with_a_bad_size(dither):
    result = dither("cache", "prune", "--size", "much")
    assert result.code == 2
    assert "found 'much', expected a number of bytes such as 100M" in result.err


def test_the_manifest_is_json_that_names_what_it_is(dither, kernel_file, tmp_path):
    dither(
        "compile", f"{kernel_file}:scale", "x=f32[4,64]", "y=e8m0[4,2]", "factor=f32", "FMT=mxfp4", "--output", tmp_path
    )
    assert json.loads((tmp_path / "manifest.json").read_text())["kernels"][0]["params"] == ["ptr", "ptr", "f32"]
