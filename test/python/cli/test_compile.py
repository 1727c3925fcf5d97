"""`dither compile`."""

import json
import stat

import pytest
from dither.cli.compile import SUFFIXES

DOUBLE = ("x=bf16[?,64]", "y=bf16[?,64]", "ROWS=4")


def test_prints_ptx(dither, kernel_file):
    result = dither("compile", f"{kernel_file}:double", *DOUBLE, "--target", "sm_100a")
    assert (result.code, result.err) == (0, "")
    assert ".target sm_100a" in result.out
    assert ".visible .entry double(" in result.out


def test_prints_assembly_of_this_machine(dither, kernel_file):
    result = dither("compile", f"{kernel_file}:double", *DOUBLE)
    assert result.code == 0
    assert "double:" in result.out


def test_alignment_and_shape_reach_the_kernel(dither, kernel_file):
    out = dither("compile", f"{kernel_file}:double", *DOUBLE, "--emit", "quant").out
    assert "memref<?x64xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64}" in out
    out = dither(
        "compile", f"{kernel_file}:double", "x=bf16[?,24]", "y=bfloat16[8,24]", "ROWS=4", "--emit", "quant"
    ).out
    assert "memref<?x24xbf16> {quant.align = 32 : i64, quant.stride_align = 16 : i64}" in out
    assert "memref<8x24xbf16>" in out


def test_scalars_and_formats(dither, kernel_file):
    words = ("x=f32[4,64]", "y=e8m0[4,2]", "factor=f32", "FMT=mxfp4")
    out = dither("compile", f"{kernel_file}:scale", *words, "--emit", "quant").out
    assert ": memref<4x2xf8E8M0FNU> {" in out
    assert ": f32) attributes" in out
    assert "format <mxfp4>" in out


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Format(element=float8_e4m3, scale=e8m0, block=16)", "<f8E4M3FN, scale = f8E8M0FNU, block = [1, 16]>"),
        ("mxfp8_e5m2.with_(block=(4, 32))", "<f8E5M2, scale = f8E8M0FNU, block = [4, 32]>"),
        ("mxfp4.with_(scale_rounding='even')", "<mxfp4, scale_rounding = even>"),
    ],
)
def test_formats_of_ones_own(dither, kernel_file, text, printed):
    extents = {"<f8E4M3FN": "4,4", "<f8E5M2, ": "1,2"}.get(printed[:9], "4,2")
    words = ("x=f32[4,64]", f"y=e8m0[{extents}]", "factor=f32", f"FMT={text}")
    result = dither("compile", f"{kernel_file}:scale", *words, "--emit", "quant")
    assert result.code == 0, result.err
    assert f"format {printed}" in result.out


def test_writes_every_stage(dither, kernel_file, tmp_path):
    stages = [stage for stage in SUFFIXES if stage != "asm"]
    where = tmp_path / "out"
    words = ("--target", "sm_90a", "--emit", ",".join(stages), "--output", where)
    assert dither("compile", f"{kernel_file}:double", *DOUBLE, *words).code == 0
    assert sorted(p.name for p in where.iterdir()) == sorted(
        ["manifest.json", *(f"double{SUFFIXES[s]}" for s in stages)]
    )
    manifest = json.loads((where / "manifest.json").read_text())
    row = manifest["kernels"][0]
    assert row["files"] == {stage: f"double{SUFFIXES[stage]}" for stage in stages}
    assert (row["kernel"], row["target"], row["num_threads"] % 32) == ("double", "sm_90a", 0)
    assert row["params"] == ["ptr", "i64", "ptr", "i64"]
    assert row["arguments"]["x"] == "memref<?x64xbf16> align 32, rows 32"
    assert "define" in (where / "double.ll").read_text()


@pytest.fixture
def fake_ptxas(tmp_path, monkeypatch):
    """What ptxas prints of a kernel, without ptxas."""

    def install(text, code=0):
        path = tmp_path / "ptxas"
        path.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\nexit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("DITHER_PTXAS", str(path))

    return install


def manifest_of(dither, kernel_file, where):
    result = dither("compile", f"{kernel_file}:double", *DOUBLE, "--target", "sm_90a", "--output", where)
    assert result.code == 0
    return json.loads((where / "manifest.json").read_text())


def test_registers_are_those_of_ptxas(dither, kernel_file, tmp_path, fake_ptxas):
    fake_ptxas(
        "ptxas info    : Function properties for double\n"
        "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
        "ptxas info    : Used 37 registers, used 1 barriers"
    )
    row = manifest_of(dither, kernel_file, tmp_path / "out")["kernels"][0]
    assert (row["registers"], row["stack_bytes"], row["spill_bytes"]) == (37, 8, 16)


def test_what_ptxas_refuses_is_kept(dither, kernel_file, tmp_path, fake_ptxas):
    fake_ptxas("ptxas fatal: no", 255)
    manifest = manifest_of(dither, kernel_file, tmp_path / "out")
    assert manifest["kernels"][0]["ptxas_error"] == "ptxas: ptxas fatal: no"
    assert manifest["note"] == "ptxas refused double"


def test_without_ptxas(dither, kernel_file, tmp_path, monkeypatch):
    monkeypatch.setenv("DITHER_PTXAS", "/nowhere")
    manifest = manifest_of(dither, kernel_file, tmp_path / "out")
    assert "registers" not in manifest["kernels"][0]
    assert manifest["note"] == "no ptxas: DITHER_PTXAS is '/nowhere', which cannot be executed"


def test_library(dither, tmp_path):
    where = tmp_path / "lib"
    words = ("--target", "sm_100a", "--filter", "*quantize-mxfp4-rowwise-*16", "--output", where)
    result = dither("compile", "--library", *words)
    assert (result.code, result.err) == (0, "")
    names = {
        f"{op}-mxfp4-rowwise-{rest}"
        for op, rest in [
            ("quantize", "linear-bfloat16"),
            ("quantize", "linear-float16"),
            ("quantize", "128x4-bfloat16"),
            ("quantize", "128x4-float16"),
            ("quantize", "linear-stochastic-bfloat16"),
            ("quantize", "128x4-stochastic-bfloat16"),
            ("dequantize", "bfloat16"),
            ("dequantize", "float16"),
        ]
    }
    manifest = json.loads((where / "manifest.json").read_text())
    assert {row["name"] for row in manifest["kernels"]} == names
    assert {p.name for p in where.glob("*.ptx")} == {f"{name}.ptx" for name in names}
    assert manifest["failed"] == []
    assert result.out == f"8 kernels for sm_100a in {where}\n"


def test_a_list_of_the_library(dither):
    """Activations, gradients of both and of norms, and rows of any length; nothing is compiled."""
    result = dither("compile", "--library", "--list", "--target", "sm_100a")
    names = result.out.splitlines()
    assert result.code == 0 and len(names) > 3000
    assert {"gelu-bfloat16", "dbias_dgelu-nvfp4-both-128x4-bfloat16", "layer_norm_backward-float16"} <= set(names)
    assert {"dfactor_dswiglu-bfloat16", "add_rms_norm-float32", "transpose-int8", "column_sum"} <= set(names)
    chosen = ["compile", "--library", "--list", "--cols", "4100", "--filter"]
    assert dither(*chosen, "transpose-float4*", "--target", "sm_100a").out == ""
    found = dither(*chosen, "transpose-*int8", "--target", "sm_100a").out
    assert found.splitlines() == ["transpose-int8", "transpose-any-int8"]
    assert dither(*chosen, "transpose-*int8").out.splitlines() == ["transpose-int8"]


def test_rows_of_a_length(dither, tmp_path):
    words = ["--filter", "dsilu-bfloat16", "--cols", "96", "--target", "sm_90a", "--emit", "quant"]
    assert dither("compile", "--library", *words, "--output", tmp_path).code == 0
    (kernel,) = json.loads((tmp_path / "manifest.json").read_text())["kernels"]
    assert kernel["arguments"]["grad"].startswith("memref<?x96xbf16>")


def test_a_kernel_of_the_library_that_fails(dither, tmp_path, monkeypatch):
    from dither.ops.library import Entry

    real = Entry.lower

    def lower(self, target):
        if self.name == "amax-float16":
            raise ValueError("found this, expected that")
        return real(self, target)

    monkeypatch.setattr(Entry, "lower", lower)
    where = tmp_path / "lib"
    result = dither("compile", "--library", "--filter", "amax-*", "--emit", "quant", "--output", where)
    assert result.code == 1
    assert result.err == "error: amax-float16: found this, expected that\n"
    manifest = json.loads((where / "manifest.json").read_text())
    assert [row["name"] for row in manifest["kernels"]] == ["amax-float32", "amax-bfloat16"]
    assert [row["name"] for row in manifest["failed"]] == ["amax-float16"]


def test_a_kernel_that_cannot_be_compiled(dither, kernel_file):
    result = dither("compile", f"{kernel_file}:double", "x=bf16[?,64]", "y=f32[?,64]", "ROWS=4")
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert "kernels.py:10:" in result.err
    assert "^~~" in result.err


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "found no kernel, expected FILE.py:KERNEL or --library"),
        (("nothing.py:double",), "nothing.py was not found"),
        (("{file}",), "found '{file}', expected FILE.py:KERNEL"),
        (("{file}:double",), "kernel 'double' also needs x=TYPE y=TYPE ROWS=VALUE"),
        (("{file}:double", "x"), "found 'x', expected NAME=TYPE or NAME=VALUE"),
        (("{file}:double", "x=f32", "x=f32"), "parameter 'x' is given twice"),
        (("{file}:double", "row=4"), "kernel 'double' has no parameter 'row'"),
        (("{file}:double", "x=bf17[4]"), "found data type 'bf17' in 'bf17[4]'; did you mean 'bf16'?"),
        (
            ("{file}:double", "x=bf16[4,,4]"),
            "found shape '[4,,4]' in 'bf16[4,,4]', expected numbers and ?, separated by",
        ),
        (("{file}:double", "ROWS=four"), "found 'four', expected a type, a Python literal or one of linear,"),
        (
            ("{file}:double", "ROWS=Format(element=float8_e4m3, scale=e8m0, block=48)"),
            "found 'Format(element=float8_e4m3, scale=e8m0, block=48)': block is 48, expected positive powers of two",
        ),
        (("{file}:double", "ROWS=nvfp4.with_(3)"), "found 'nvfp4.with_(3)', expected keywords with values"),
        (("{file}:double", "ROWS=print(3)"), "found 'print(3)', expected a type, a Python literal or one of linear,"),
        (("{file}:double", "--target", "sm_100"), "unknown target 'sm_100', expected host,"),
        (("{file}:double", "--emit", "cubin"), "unknown stage 'cubin', expected quant, tiled"),
        (("{file}:double", "--emit", "ptx"), "found stage 'ptx' for host"),
        (("--list",), "found --list without --library, expected both"),
        (("{file}:double", "--cols", "8"), "found --cols without --library, expected both"),
        (("--library",), "found --library without --output, expected a directory"),
        (("{file}:double", "--library", "--output", "x"), "found both '{file}:double' and --library, expected one"),
        (("--library", "--output", "x", "--num-warps", "4"), "found --num-warps with --library"),
        (("--library", "--output", "x", "--filter", "no"), "no kernel of the library matches 'no'"),
    ],
)
def test_mistakes_on_the_command_line(dither, kernel_file, words, message):
    result = dither("compile", *(word.format(file=kernel_file) for word in words))
    assert result.code == 2
    assert result.err.startswith("error: " + message.format(file=kernel_file))


@pytest.mark.parametrize(
    "text, message",
    [
        ("raise RuntimeError('not today')", "cannot be run: RuntimeError: not today"),
        ("def broken(:", "cannot be run: SyntaxError: "),
        (
            "import dither\n@dither.jit\ndef doubles(x): pass",
            "has no kernel 'double' made by dither.jit, found doubles; did",
        ),
    ],
)
def test_files_without_the_kernel(dither, tmp_path, text, message):
    path = tmp_path / "k.py"
    path.write_text(text)
    result = dither("compile", f"{path}:double")
    assert result.code == 1
    assert result.err.startswith(f"error: {path} {message}")


def test_a_file_that_cannot_be_run_shows_the_lines_that_led_there(dither, tmp_path):
    path = tmp_path / "k.py"
    path.write_text("import helpers\n\n\ndef load():\n    return helpers.read('no')\n\n\nload()\n")
    (tmp_path / "helpers.py").write_text("def read(name):\n    return {}[name]\n")
    assert dither("compile", f"{path}:double").err == (
        f"error: {path} cannot be run: KeyError: 'no'\n"
        f"    {path}:8, in <module>\n        load()\n"
        f"    {path}:5, in load\n        return helpers.read('no')\n"
        f"    {tmp_path / 'helpers.py'}:2, in read\n        return {{}}[name]\n"
    )
    path.write_text("x = 1\nif x:\n    def broken(:\n")
    lines = dither("compile", f"{path}:double").err.splitlines()
    assert lines[0].startswith(f"error: {path} cannot be run: SyntaxError: ")
    assert lines[1:] == [f"    {path}:3", "        def broken(:", "                   ^"]


def test_no_command(dither):
    assert dither().code == 2


def test_version(dither):
    import dither as package

    result = dither("--version")
    assert (result.code, result.out) == (0, f"dither {package.__version__}\n")


def test_a_reader_that_goes_away(kernel_file, process):
    import os
    import subprocess
    import sys

    command = [sys.executable, "-m", "dither", "compile", f"{kernel_file}:double", *DOUBLE]
    reader, writer = os.pipe()
    os.close(reader)
    made = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (made.returncode, made.stderr) == (1, "")
