"""`dither build --operator`, and what it writes run by C programs that know nothing of Python."""

import hashlib
import json
import math
import subprocess

import dither as library
import ml_dtypes
import numpy as np
import pytest
from cli.c_programs import BUILD, CC, PROGRAM, compile_c, needs_cc, run

BF16 = ml_dtypes.bfloat16
ROWS, COLS = 96, 256


def numbers(*shape, dtype=BF16, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def angles(tokens, count):
    return np.random.default_rng(9).uniform(-1, 1, (tokens, count)).astype(np.float32)


X = numbers(ROWS, COLS)
CODES = ["format=mxfp8_e4m3", "layout=both", "scale_layout=128x4"]
SETTINGS = {"format": "mxfp8_e4m3", "layout": "both", "scale_layout": "128x4"}
#: Words of the command line, arrays, and the call from Python.
CALLS = {
    "grouped_quantize": (
        [f"x=bf16[{ROWS},{COLS}]", "group_sizes=i32[4]", *CODES],
        [X, np.array([40, 0, 33, 23], np.int32)],
        lambda x, sizes: library.grouped_quantize(x, group_sizes=sizes, **SETTINGS),
    ),
    "rope": (
        [f"x=bf16[{ROWS},{COLS}]", f"cos=f32[{ROWS},32]", f"sin=f32[{ROWS},32]", *CODES],
        [X, angles(ROWS, 32), angles(ROWS, 32)],
        lambda x, cos, sin: library.rope(x, cos, sin, **SETTINGS),
    ),
    "softmax": (
        [f"x=bf16[{ROWS},{COLS}]", "scale=0.5", "format=nvfp4"],
        [X],
        lambda x: library.softmax(x, 0.5, format="nvfp4"),
    ),
    "add_dropout": (
        [
            f"x=bf16[{ROWS},{COLS}]",
            f"residual=bf16[{ROWS},{COLS}]",
            "p=0.25",
            "dropout_seed=i64[]",
            "format=mxfp8_e4m3",
        ],
        [X, numbers(ROWS, COLS, seed=1), np.array(7, np.int64)],
        lambda x, residual, seed: library.add_dropout(x, residual, 0.25, seed, format="mxfp8_e4m3"),
    ),
    "quantize_dbias": (
        [f"x=bf16[{ROWS},{COLS}]", "format=fp8_tensor_e4m3", "layout=both"],
        [X],
        lambda x: library.quantize_dbias(x, format="fp8_tensor_e4m3", layout="both"),
    ),
    "rms_norm_backward": (
        [f"dz=bf16[{ROWS},{COLS}]", f"x=bf16[{ROWS},{COLS}]", f"rsigma=f32[{ROWS}]", f"gamma=bf16[{COLS}]", *CODES],
        [X, numbers(ROWS, COLS, seed=2), np.abs(angles(1, ROWS)[0]) + 0.5, numbers(COLS, seed=3)],
        lambda dz, x, rsigma, gamma: library.rms_norm_backward(dz, x, rsigma, gamma, **SETTINGS),
    ),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A directory with every call for the CPU and a GPU, and the C program."""
    from dither.cli import main

    out = tmp_path_factory.mktemp("programs")
    for name, (words, _, _) in CALLS.items():
        command = ["build", "--operator", name, "--signature", *words, "--target", "host,sm_90a", "--output", str(out)]
        assert main(command) == 0
    compile_c(PROGRAM, out)
    return out


def row_of(directory, name):
    (row,) = [
        each for each in json.loads((directory / "manifest.json").read_text())["programs"] if each["name"] == name
    ]
    return row


def leaf(value, names):
    """What names of fields, joined by underscores, lead to in a result."""
    if isinstance(value, np.ndarray) or value is None:
        assert names in ("", "out")
        return value
    fields = getattr(value, "_fields", None) or vars(value)
    (field,) = [each for each in fields if names == each or names.startswith(each + "_")]
    return leaf(getattr(value, field), names[len(field) + 1 :])


def check(directory, name, device, *arguments):
    """Runs it in C, and compares every buffer with the call from Python."""
    _, arrays, call = CALLS[name]
    source, target = directory / f"{name}.in", directory / f"{name}.out"
    source.write_bytes(b"".join(array.tobytes() for array in arrays))
    made = run(directory / "main", device, *(arguments or (directory / "manifest.json", name)), source, target)
    row = row_of(directory, name)
    assert made.stdout.endswith(f", {len(row['buffers'])} buffers\n"), made.stdout + made.stderr
    found, result, at = target.read_bytes(), call(*arrays), 0
    for place, buffer in enumerate(row["buffers"]):
        bytes_of = found[at : at + buffer["bytes"]]
        at += buffer["bytes"]
        want = arrays[place] if place < len(arrays) else np.asarray(leaf(result, buffer["name"]))
        assert bytes_of == want.tobytes(), buffer["name"]
        assert buffer["written"] == (place >= len(arrays))
    assert at == len(found)
    return made.stdout


@needs_cc
@pytest.mark.parametrize("name", CALLS)
def test_calls_from_c(programs, name):
    assert check(programs, name, "cpu").startswith("host")


@needs_cc
@pytest.mark.parametrize("name", CALLS)
def test_calls_from_c_on_a_simulated_gpu(programs, name):
    assert check(programs, name, "sim:sm_90a").startswith("sm_90a")


@needs_cc
def test_a_program_from_bytes(programs):
    (image,) = [each for each in row_of(programs, "softmax")["images"] if each["target"] == "sm_90a"]
    check(programs, "softmax", "sim:sm_90a", "-", programs / image["file"])


@needs_cc
def test_programs_through_the_cuda_driver(programs):
    """Every launch is one that the driver takes: it runs none, so that buffers stay as they were."""
    fake = BUILD / "fakecuda" / "libcuda.so.1"
    if not fake.exists():
        pytest.skip(f"{fake} is not built")
    source, target = programs / "driver.in", programs / "driver.out"
    for name, (_, arrays, _) in CALLS.items():
        source.write_bytes(b"".join(array.tobytes() for array in arrays))
        command = [programs / "main", "cuda:0", programs / "manifest.json", name, source, target]
        made = subprocess.run(command, env={"DITHER_LIBCUDA": str(fake)}, capture_output=True, text=True, timeout=60)
        assert made.stdout.startswith("sm_90a, "), made.stdout + made.stderr
        assert target.read_bytes()[: source.stat().st_size] == source.read_bytes()


def test_what_is_written(programs):
    row = row_of(programs, "quantize_dbias")
    assert [buffer["name"] for buffer in row["buffers"]] == [
        "x",
        "out_rowwise_data",
        "out_rowwise_scale_inv",
        "out_colwise_data",
        "out_colwise_scale_inv",
        "dbias",
    ]
    x = row["buffers"][0]
    assert x == {"name": "x", "dtype": "bfloat16", "shape": [ROWS, COLS], "bytes": X.nbytes, "written": False}
    for image in row["images"]:
        code = (programs / image["file"]).read_bytes()
        assert hashlib.sha256(code).hexdigest() == image["sha256"]
        # Of FP8 with one scale for the tensor, the amax comes first: two passes, and what lies between them.
        assert image["launches"] > 1 and image["workspace"] > 0
    for name, (_, arrays, _) in CALLS.items():
        sizes = [buffer["bytes"] for buffer in row_of(programs, name)["buffers"]]
        assert sizes[: len(arrays)] == [array.nbytes for array in arrays]


HEADER_PROGRAM = r"""
#include "experts.h"
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  static uint16_t x[8 * 64];
  static uint16_t y[8 * 64];
  static unsigned char data[EXPERTS_OUT0_DATA_BYTES], scale[EXPERTS_OUT0_SCALE_INV_BYTES];
  static int32_t sizes[2] = {3, 5}, wrong = -1;
  static int64_t table[EXPERTS_OUT0_TABLE_BYTES / 8];
  dither_device *device;
  dither_program *program;
  size_t bytes, i;
  void *workspace;
  if (dither_device_open("cpu", &device) || dither_program_load(device, argv[1], "experts", &program)) return 1;
  for (i = 0; i < 8 * 64; ++i) x[i] = 0x3f80;
  bytes = dither_program_workspace_bytes(program);
  workspace = malloc(bytes);
  if (experts_run(program, NULL, x, sizes, data, scale, table, &wrong, y, workspace, bytes)) return 2;
  for (i = 0; i < sizeof data; ++i)
    if (data[i] != data[0] || !data[i]) return 3;
  for (i = 0; i < sizeof scale; ++i)
    if (scale[i] != scale[0]) return 4;
  for (i = 0; i < 8 * 64; ++i)
    if (y[i] != 0x3f3b) return 5; /* silu(1) in bfloat16 */
  if (wrong || EXPERTS_OUT0_WRONG_BYTES != sizeof wrong) return 6;
  free(workspace);
  dither_program_unload(program);
  return 0;
}
"""


@needs_cc
@pytest.mark.parametrize("compiler, standard", [(None, "c99"), ("c++", "c++11")])
def test_a_function_of_a_file_and_its_header(dither, tmp_path, compiler, standard):
    """What a function of the user launches, with arguments that are made of tensors."""
    source = tmp_path / "model.py"
    source.write_text(
        "import dither\n"
        "def experts(x, groups):\n"
        "    y = dither.silu(x, groups=groups)\n"
        "    return dither.silu(y, format='mxfp8_e4m3', groups=groups), y\n"
    )
    words = ["x=bf16[8,64]", "groups=Groups(sizes=i32[2])"]
    command = ["--operator", f"{source}:experts", "--signature", *words, "--target", "host", "--output", tmp_path]
    result = dither("build", *command)
    assert result.code == 0, result.err
    names = [buffer["name"] for buffer in row_of(tmp_path, "experts")["buffers"]]
    parts = ("data", "scale_inv", "table", "wrong")
    assert names == ["x", "groups_sizes", *(f"out0_{part}" for part in parts), "out1"]
    program = compile_c(HEADER_PROGRAM, tmp_path, compiler or CC, standard)
    assert run(program, tmp_path / "manifest.json").returncode == 0


def test_kernels_and_programs_share_a_manifest(dither, programs, tmp_path):
    kernel = ["--library", "gelu-float32", "--name", "gelu", "--target", "host", "--output", tmp_path]
    program = ["--operator", "gelu", "--signature", "x=f32[4,64]", "--target", "host", "--output", tmp_path]
    assert dither("build", *program, "--name", "whole").code == 0
    assert dither("build", *kernel).code == 0
    assert dither("build", *program, "--name", "whole").code == 0
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert [row["name"] for row in manifest["kernels"]] == ["gelu"]
    assert [row["name"] for row in manifest["programs"]] == ["whole"]
    assert math.prod(manifest["programs"][0]["buffers"][1]["shape"]) == 256


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (
            ["--operator", "sofmax"],
            2,
            "found operator 'sofmax', expected a function of dither or FILE.py:FUNCTION; did you",
        ),
        (["--operator", "gelu", "--cols", "8"], 2, "found both --cols and --operator, expected one"),
        (["--operator", "gelu", "--library", "x"], 2, "found both --library and --operator, expected one"),
        (["--operator", "gelu", "--name", "a b", "--signature", "x=f32[4,64]"], 2, "found name 'a b', expected"),
        (["--operator", "gelu", "--signature", "x"], 2, "found 'x', expected NAME=TYPE or NAME=VALUE"),
        (["--operator", "gelu", "--signature", "x=f32[4,64]", "x=f32[4,64]"], 2, "parameter 'x' is given twice"),
        (["--operator", "gelu", "--signature", "x=f9[4,64]"], 2, "found data type 'f9'"),
        (["--operator", "gelu", "--signature", "x=f32[4,64]", "format=nvfp5"], 1, "unknown format 'nvfp5'"),
        (["--operator", "gelu", "--signature", "x=f32[4,64]", "y=1"], 1, "y"),
        (["--operator", "gelu", "--signature", "x=i32[4,64]"], 1, "int32"),
        (["--operator", "none.py:f"], 2, "none.py was not found"),
    ],
)
def test_usage(dither, tmp_path, arguments, code, message):
    result = dither("build", *arguments, "--target", "host", "--output", tmp_path)
    assert (result.code, message in result.err) == (code, True), result.err
