"""What is compiled for aarch64 (`host:neon`), run by libdither_runtime for aarch64 under qemu-user: the bits of this
machine's CPU. `tools/run_tests.py --only aarch64` builds the library."""

import functools
import json
import shutil
import subprocess

import dither
import numpy as np
import pytest
from cli.c_programs import PROGRAM, ROOT, compile_c
from dither.cli import main
from ops import check, data, modes

BUILD = ROOT / "build-aarch64"
LIBRARY = BUILD / "lib" / "libdither_runtime.so"
COMPILER, QEMU = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
pytestmark = pytest.mark.skipif(
    not (COMPILER and QEMU and LIBRARY.exists()), reason="libdither_runtime is not built for aarch64"
)


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """A C program for aarch64 that runs a program of dither on buffers in a file."""
    return compile_c(PROGRAM, tmp_path_factory.mktemp("aarch64"), COMPILER, library=LIBRARY)


def emulated(runner, *arguments):
    command = [QEMU, "-L", str(BUILD / "sysroot"), str(runner), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


#: Data types of dither, by what NumPy calls them.
KINDS = {"float32": dither.float32, "bfloat16": dither.bfloat16, "float16": dither.float16, "int32": dither.int32}


def described(array):
    return dither.TensorType(KINDS[array.dtype.name], array.shape)


def same(runner, directory, fn, *arrays, **options):
    """Records a call for both architectures, runs each, and compares every buffer."""
    types = [described(array) for array in arrays]
    here, there = (dither.record(fn, *types, **options, target=target) for target in (None, "host:neon"))
    assert [t.nbytes for t in here.outputs] == [t.nbytes for t in there.outputs]
    outputs = [np.full(t.nbytes, 0xFF, np.uint8) for t in here.outputs]
    here.run(arrays, outputs, data.aligned(np.full(max(here.workspace, 1), 0xFF, np.uint8)))
    code, source, target = (directory / name for name in ("code", "in", "out"))
    code.write_bytes(there.encode())
    source.write_bytes(b"".join(array.tobytes() for array in arrays))
    made = emulated(runner, "cpu", "-", code, source, target)
    count = len(arrays) + len(outputs)
    assert made.stdout == f"host:neon, {count} buffers\n", made.stdout + made.stderr
    found, at = target.read_bytes(), sum(array.nbytes for array in arrays)
    for tensor, want in zip(here.outputs, outputs, strict=True):
        one = np.frombuffer(found, np.uint8, tensor.nbytes, at)
        at += tensor.nbytes
        kind = {"float32": np.float32}.get(tensor.dtype, np.uint8)
        check.same_values(one.view(kind), want.view(kind), tensor)


#: Every fourth one, but squares of 128 that are transformed in both directions: code of 4 MB.
CASES = [case for case in modes.cases() if case.device == "cpu" and not case.format.startswith("fp8_128x128")][::4]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scaling_modes(case, runner, tmp_path):
    spec = modes.TRANSFORMS[case.transform]
    shape = (70, 200) if spec is None else (spec.size, spec.size * -(-96 // spec.size))
    options = {"layout": case.layout, "scale_layout": case.scales, "transform": spec, "repeat_scales": case.repeat}
    if case.rounding == "stochastic":
        options |= {"rounding": "stochastic", "seed": modes.SEED}
    x = modes.numbers(*shape, case.dtype)
    same(runner, tmp_path, dither.quantize, x, format=modes.FORMATS[case.format], **options)


ROWS, COLUMNS = 70, 200
X, Y, Z = (data.normal(ROWS, COLUMNS, "bfloat16", seed) for seed in range(3))
GAMMA, BETA = data.normal(2, COLUMNS, seed=3)
MEAN, RSIGMA = data.normal(2, ROWS, seed=4)
COS, SIN = np.cos(data.normal(ROWS, 50, seed=5)), np.sin(data.normal(ROWS, 50, seed=5))
#: Calls that take a format, and their arrays.
OPERATORS = {
    **{name: (getattr(dither, name), X) for name in ("gelu", "silu", "qgelu", "relu", "srelu", "softmax")},
    **{
        name: (getattr(dither, name), X, Y) for name in ("dgelu", "dsilu", "dbias_dgelu", "swiglu", "geglu", "dsoftmax")
    },
    "dswiglu": (dither.dswiglu, X, Y, Z),
    "layer_norm": (dither.layer_norm, X, GAMMA, BETA),
    "add_rms_norm": (dither.add_rms_norm, X, Y, GAMMA),
    "rms_norm_backward": (dither.rms_norm_backward, X, Y, RSIGMA, GAMMA),
    "layer_norm_backward": (dither.layer_norm_backward, X, Y, MEAN, RSIGMA, GAMMA),
    "rope": (dither.rope, X, COS, SIN),
    "add_dropout": (functools.partial(dither.add_dropout, dropout_seed=5), X, Y),
}


@pytest.mark.sample("values")
@pytest.mark.parametrize("fmt", [None, "mxfp8_e4m3", "nvfp4"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name, fmt, runner, tmp_path):
    options = {} if fmt is None else {"format": fmt, "layout": "both", "scale_layout": "128x4"}
    same(runner, tmp_path, *OPERATORS[name], **options)


def test_groups(runner, tmp_path):
    sizes = np.array([40, 0, 13, 17], np.int32)

    def call(x, group_sizes):
        return dither.grouped_quantize(x, "nvfp4", group_sizes=group_sizes, layout="both", scale_layout="128x4")

    same(runner, tmp_path, call, X, sizes)


@pytest.mark.parametrize("dtype", data.DTYPES)
def test_every_number_of_16_bits(dtype, runner, tmp_path):
    """All there are, of float32 their likes, with infinities and NaN: widened, computed with, and rounded again."""
    patterns = np.arange(65536, dtype=np.uint16)
    if dtype == "float32":
        x = (patterns.astype(np.uint32) << 16 | 0x8001).view(np.float32)
    else:
        x = patterns.view(data.DTYPES[dtype])
    x = data.aligned(x.reshape(256, 256))
    for fmt in ("mxfp8_e5m2", "mxfp6_e3m2", "nvfp4"):
        same(runner, tmp_path, dither.quantize, x, format=fmt, layout="both")
    same(runner, tmp_path, dither.gelu, x)
    same(runner, tmp_path, dither.cast_transpose, x)


def test_a_manifest_of_both_architectures(runner, tmp_path):
    """Of the files that were built the one that runs there is taken; what is for x86-64 alone is refused, by name."""
    build = ["build", "--operator", "softmax", "--signature", "x=f32[4,64]", "--output", str(tmp_path)]
    assert main([*build, "--target", "aarch64,x86-64-v3", "--name", "both"]) == 0
    assert main([*build, "--target", "x86-64-v3", "--name", "one"]) == 0
    programs = {row["name"]: row for row in json.loads((tmp_path / "manifest.json").read_text())["programs"]}
    assert [image["target"] for image in programs["both"]["images"]] == ["host:neon", "host:avx2"]
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(np.ones((4, 64), np.float32).tobytes())
    made = emulated(runner, "cpu", tmp_path / "manifest.json", "both", source, target)
    assert made.stdout == "host:neon, 2 buffers\n", made.stdout + made.stderr
    assert (np.frombuffer(target.read_bytes(), np.float32)[256:] == 1 / 64).all()
    made = emulated(runner, "cpu", tmp_path / "manifest.json", "one", source, target)
    assert "host:neon" in made.stdout and "host:avx2" in made.stdout, made.stdout
