"""Knobs: the environment by name, and what they show of a compilation."""

from __future__ import annotations

import os

import dither
import dither.language as dl
import pytest
from dither import knobs

TYPES = (
    dither.TensorType(dither.bfloat16, (None, 64), (64, 1), 32),
    dither.TensorType(dither.float8_e4m3, (None, 64), (64, 1), 32),
    dither.TensorType(dither.e8m0, (None, 2), (2, 1), 32),
)


@dither.jit
def kernel(x, q, s, ROWS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, 64)).to(dl.float32)
    scale = dl.block_scale(t, "mxfp8_e4m3")
    dl.store(q, (r, 0), dl.cast(t, scale, "mxfp8_e4m3"))
    dl.store(s, (r, 0), scale)


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    for name in ("DUMP_DIR", "OVERRIDE_DIR", "REMARKS", "TIMING", "DUMP_STAGES"):
        monkeypatch.setenv(f"DITHER_{name}", "")  # what a test sets goes at its end
        monkeypatch.delenv(f"DITHER_{name}")


def compile_for(target: str = "sm_90a"):
    return kernel.compile(*TYPES, ROWS=4, target=target)


def test_get_and_set(monkeypatch):
    assert knobs.get("timing") is False
    knobs.set("timing", True)
    assert os.environ["DITHER_TIMING"] == "1" and knobs.get("timing") is True
    knobs.set("timing", None)
    assert "DITHER_TIMING" not in os.environ
    knobs.set("dump_stages", "ptx,llvm")
    assert knobs.get("dump_stages") == {"ptx", "llvm"}
    knobs.set("dump_stages", None)


def test_errors():
    with pytest.raises(ValueError, match=r"unknown knob 'dump_dri'.*did you mean 'dump_dir'"):
        knobs.get("dump_dri")
    with pytest.raises(ValueError, match=r"DITHER_CACHE.*expected"):
        knobs.set("cache", "sometimes")
    assert "DITHER_CACHE" not in os.environ or os.environ["DITHER_CACHE"] != "sometimes"


@pytest.mark.parametrize(
    ("target", "last"), [("sm_90a", {"llvmir.ll", "ptx.ptx"}), ("host:avx2", {"llvmir.ll", "asm.s"})]
)
def test_dump(tmp_path, target, last):
    knobs.set("dump_dir", str(tmp_path))
    compiled = compile_for(target)
    files = {path.name: path.read_text() for path in (tmp_path / "kernel").iterdir()}
    assert files.keys() == {"quant.mlir", "tiled.mlir", "distributed.mlir", "llvm.mlir"} | last
    assert files["tiled.mlir"] == compiled.stages["tiled"] and "quant.block_scale" in files["quant.mlir"]


def test_override_stage(tmp_path):
    before = compile_for()
    place = tmp_path / "kernel"
    place.mkdir()
    changed = before.stages["tiled"].replace("0.00223214296", "0.00446428591")
    assert changed != before.stages["tiled"]
    (place / "tiled.mlir").write_text(changed)
    knobs.set("override_dir", str(tmp_path))
    after = compile_for()
    assert after.ptx != before.ptx
    (place / "tiled.mlir").write_text(before.stages["tiled"])
    assert compile_for().ptx == before.ptx


def test_override_code(tmp_path):
    place = tmp_path / "kernel"
    place.mkdir()
    (place / "ptx.ptx").write_text("// other\n")
    knobs.set("override_dir", str(tmp_path))
    assert compile_for().ptx == "// other\n"


def test_override_malformed(tmp_path):
    place = tmp_path / "kernel"
    place.mkdir()
    (place / "tiled.mlir").write_text("module { oops }")
    knobs.set("override_dir", str(tmp_path))
    with pytest.raises(dither.CompileError, match=r"oops|expected"):
        compile_for()


def test_remarks(tmp_path):
    path = tmp_path / "remarks.yaml"
    knobs.set("remarks", str(path))
    compile_for()
    text = path.read_text()
    assert "kernel: kernel\ntarget: sm_90a\n" in text
    assert f'file: "{__file__}"' in text and "fragments of" in text


def test_timing(capfd):
    knobs.set("timing", "1")
    compile_for()
    assert "dither: kernel for sm_90a: frontend" in capfd.readouterr().err


@dither.jit
def row_by_row(x, y):
    for i in range(x.shape[0]):
        dl.store(y, (i, 0), dl.load(x, (i, 0), (1, 64)))


def test_remarks_say_why_a_kernel_is_slow(tmp_path):
    path = tmp_path / "remarks.yaml"
    knobs.set("remarks", str(path))
    x = dither.TensorType(dl.float32, (None, 64))
    row_by_row.lower(x, x, target="host").compile()
    assert "computed in fragments and not in phases, which take less time: it has loops or branches" in path.read_text()
