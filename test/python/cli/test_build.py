"""`dither build`, and what it writes run by C programs that know nothing of Python."""

import hashlib
import json
import os
import re
import subprocess
import sys

import pytest
from cli.c_programs import BUILD, CC, INCLUDE, LIBRARY, MUST, compile_c, needs_cc, run
from dither import ptxas

KERNELS = """
import dither, dither.language as dl

@dither.jit
def scale(x, y, factor, shift, ROWS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, x.shape[1]))
    dl.store(y, (r, 0), t * factor + shift.to(dl.float32))

@dither.jit
def empty(x):
    dl.store(x, (0, 0), dl.load(x, (0, 0), (1, 16)))
"""
SIGNATURE = ["x=f32[?,64]", "y=f32[?,64]", "factor=f32", "shift=i32", "ROWS=2"]

PROGRAM = (
    '#include "scale.h"\n'
    + MUST
    + r"""
/* scale DEVICE MANIFEST KERNEL: prints what is wrong, or how many elements were right. */
int main(int argc, char **argv) {
  enum { ROWS = 7, COLUMNS = 64, BYTES = ROWS * COLUMNS * 4 };
  float in[ROWS][COLUMNS], out[ROWS][COLUMNS];
  dither_device *device;
  dither_kernel *kernel;
  void *x, *y;
  int right = 0;
  if (dither_abi_version() >> 16 != DITHER_ABI_MAJOR) return 2;
  must(dither_device_open(argv[1], &device));
  must(dither_kernel_load(device, argv[2], argv[3], &kernel));
  printf("%s runs %s, %s has %d slots for %s\n", dither_device_name(device), dither_device_target(device), argv[3],
         (int)dither_kernel_num_slots(kernel), dither_kernel_target(kernel));
  must(dither_allocate(device, BYTES, &x));
  must(dither_allocate(device, BYTES, &y));
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS; ++j) in[i][j] = (float)(i * 100 + j);
  memset(out, 0, sizeof out);
  must(dither_copy_in(device, x, in, BYTES));
  must(dither_copy_in(device, y, out, BYTES));
  must(scale_launch(kernel, (ROWS + 1) / 2, 1, 1, NULL, x, ROWS, y, ROWS, 0.5f, -3));
  must(dither_synchronize(device, NULL));
  must(dither_copy_out(device, out, y, BYTES));
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS; ++j) right += out[i][j] == in[i][j] * 0.5f - 3;
  printf("%d of %d right\n", right, ROWS * COLUMNS);
  must(dither_release(device, x));
  must(dither_release(device, y));
  dither_kernel_unload(kernel);
  return 0;
}
"""
)

ERRORS = r"""
#include "scale.h"
#include <stdio.h>

#define SHOW(call) printf("%d: ", (int)(call)), printf("%s\n", dither_error_message())

int main(int argc, char **argv) {
  dither_device *device;
  dither_kernel *kernel;
  void *pointer;
  int64_t slots[6] = {0};
  SHOW(dither_device_open("tpu", &device));
  SHOW(dither_device_open("cpu", NULL));
  if (dither_device_open("cpu", &device) || dither_kernel_load(device, argv[1], "scale", &kernel)) return 1;
  SHOW(dither_allocate(NULL, 1, &pointer));
  SHOW(dither_kernel_load(device, argv[1], "scales", &kernel));
  SHOW(dither_kernel_load(device, "nowhere.json", "scale", &kernel));
  SHOW(dither_kernel_load(device, argv[2], "scale", &kernel));
  SHOW(dither_kernel_launch(kernel, slots, 5, 1, 1, 1, NULL));
  SHOW(dither_kernel_launch(kernel, slots, 6, 1, -1, 1, NULL));
  SHOW(dither_kernel_launch(kernel, NULL, 6, 1, 1, 1, NULL));
  dither_kernel_unload(NULL);
  dither_kernel_unload(kernel);
  return 0;
}
"""


@pytest.fixture
def built(dither, tmp_path):
    """The directory of `scale` for two CPUs and two GPUs."""
    source = tmp_path / "kernels.py"
    source.write_text(KERNELS)
    out = tmp_path / "out"
    targets = "x86-64-v4,host:avx2,x86-64-v3,sm_90a,sm_100a"
    result = dither("build", f"{source}:scale", "--signature", *SIGNATURE, "--target", targets, "--output", out)
    assert result.code == 0, result.err
    return out


LIBRARY_PROGRAM = r"""
#include "gelu.h"
#include "rms_norm_backward.h"
#include "column_sum.h"
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 37, COLUMNS = 96, COUNT = ROWS * COLUMNS };

static void must(dither_status status) {
  if (status == DITHER_SUCCESS) return;
  printf("error %d: %s\n", (int)status, dither_error_message());
  exit(1);
}

/* Memory of a device with the next floats of a file, or zeros where there is none. */
static void *load(dither_device *device, FILE *file, size_t count) {
  float *host = (float *)calloc(count, sizeof(float));
  void *memory;
  if (!host || (file && fread(host, sizeof(float), count, file) != count)) exit(3);
  must(dither_allocate(device, count * sizeof(float), &memory));
  must(dither_copy_in(device, memory, host, count * sizeof(float)));
  free(host);
  return memory;
}

static void save(dither_device *device, FILE *file, void *memory, size_t count) {
  float *host = (float *)calloc(count, sizeof(float));
  if (!host) exit(3);
  must(dither_copy_out(device, host, memory, count * sizeof(float)));
  if (fwrite(host, sizeof(float), count, file) != count) exit(3);
  free(host);
}

/* library DEVICE MANIFEST IN OUT: dz, x, rsigma and gamma to gelu(x), dx and dgamma. */
int main(int argc, char **argv) {
  FILE *in = fopen(argv[3], "rb"), *out = fopen(argv[4], "wb");
  dither_device *device;
  dither_kernel *gelu, *backward, *sums;
  void *dz, *x, *rsigma, *gamma, *y, *dx, *parts, *dgamma;
  int64_t grid[3], programs;
  if (argc != 5 || !in || !out) return 2;
  must(dither_device_open(argv[1], &device));
  must(dither_kernel_load(device, argv[2], "gelu", &gelu));
  must(dither_kernel_load(device, argv[2], "rms_norm_backward", &backward));
  must(dither_kernel_load(device, argv[2], "column_sum", &sums));
  dz = load(device, in, COUNT), x = load(device, in, COUNT);
  rsigma = load(device, in, ROWS), gamma = load(device, in, COLUMNS);
  y = load(device, NULL, COUNT), dx = load(device, NULL, COUNT);
  gelu_grid(gelu, ROWS, grid);
  must(gelu_launch(gelu, grid[0], grid[1], grid[2], NULL, x, ROWS, y, ROWS));
  rms_norm_backward_grid(backward, ROWS, grid);
  programs = grid[0];
  parts = load(device, NULL, (size_t)programs * COLUMNS), dgamma = load(device, NULL, COLUMNS);
  must(rms_norm_backward_launch(backward, grid[0], grid[1], grid[2], NULL, dz, ROWS, x, ROWS, rsigma, ROWS, gamma,
                                COLUMNS, parts, programs, dx, ROWS));
  column_sum_grid(sums, programs, grid);
  must(column_sum_launch(sums, grid[0], grid[1], grid[2], NULL, parts, programs, dgamma, COLUMNS));
  must(dither_synchronize(device, NULL));
  save(device, out, y, COUNT), save(device, out, dx, COUNT), save(device, out, dgamma, COLUMNS);
  fclose(out);
  printf("%s\n", dither_kernel_target(gelu));
  return 0;
}
"""


@needs_cc
def test_kernels_of_the_library(dither, tmp_path):
    """An activation and the gradient of a norm, launched by a program in C, give the bits of calls from Python."""
    import dither as library
    import numpy as np

    names = {
        "gelu": "gelu-float32",
        "rms_norm_backward": "rms_norm_backward-float32",
        "column_sum": "column_sum-last-float32",
    }
    for name, entry in names.items():
        words = ["--library", entry, "--cols", "96", "--name", name, "--target", "host,sm_90a"]
        result = dither("build", *words, "--output", tmp_path)
        assert result.code == 0, result.err
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert [(row["name"], row["library"]) for row in manifest["kernels"]] == list(names.items())
    assert all(image["grid"][0] is None for row in manifest["kernels"] for image in row["images"])
    rng = np.random.default_rng(0)
    dz, x = (rng.standard_normal((37, 96), np.float32) for _ in range(2))
    rsigma, gamma = rng.uniform(0.5, 2, 37).astype(np.float32), rng.standard_normal(96, np.float32)
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"".join(part.tobytes() for part in (dz, x, rsigma, gamma)))
    dx, dgamma = library.rms_norm_backward(dz, x, rsigma, gamma)
    expected = b"".join(part.tobytes() for part in (library.gelu(x), dx, dgamma))
    program = compile_c(LIBRARY_PROGRAM, tmp_path)
    for device, what in (("cpu", "host"), ("sim:sm_90a", "sm_90a")):
        result = run(program, device, tmp_path / "manifest.json", source, target)
        assert result.stdout.startswith(what), result.stdout + result.stderr
        assert target.read_bytes() == expected


def test_a_quantized_kernel_of_the_library(dither, tmp_path):
    """By its own name; the header has the grid that padded scales ask for, of each kind of device."""
    entry = "dswiglu-mxfp8_e4m3-rowwise-128x4-bfloat16"
    result = dither("build", "--library", entry, "--cols", "256", "--target", "host,sm_90a", "--output", tmp_path)
    assert result.code == 0, result.err
    (row,) = json.loads((tmp_path / "manifest.json").read_text())["kernels"]
    assert row["name"] == entry.replace("-", "_")
    assert {image["rows"][0] for image in row["images"]} == {128}
    assert [argument["name"] for argument in row["arguments"]] == ["grad", "gate", "up", "row_data", "row_scale"]
    assert "(rows + 127) / 128 * 128" in (tmp_path / f"{row['name']}.h").read_text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "found no kernel, expected FILE.py:KERNEL or --library NAME"),
        (["k.py:k", "--library", "gelu-float32"], "found both 'k.py:k' and --library, expected one"),
        (["--library", "gelu-float3"], "the library has no kernel 'gelu-float3' for host"),
        (["--library", "gelu-float32", "--signature", "x=f32[]"], "found --signature with --library"),
        (["--library", "gelu-float32", "--num-warps", "4"], "found --num-warps with --library"),
        (["--library", "gelu-float32", "--cols", "0"], "found '0', expected a number of columns above 0"),
        (["k.py:k", "--cols", "8"], "found --cols without --library"),
    ],
)
def test_usage_of_the_library(dither, tmp_path, arguments, message):
    result = dither("build", *arguments, "--target", "host", "--output", tmp_path)
    assert result.code == 2
    assert message in result.err


def test_what_is_written(built):
    manifest = json.loads((built / "manifest.json").read_text())
    assert manifest["manifest"] == 1
    (kernel,) = manifest["kernels"]
    names = [slot["name"] for slot in kernel["slots"]]
    assert names == ["x", "x_size0", "y", "y_size0", "factor", "shift"]
    assert [slot["kind"] for slot in kernel["slots"]] == ["ptr", "i64", "ptr", "i64", "f32", "i32"]
    assert [argument.get("written") for argument in kernel["arguments"]] == [False, True, None, None]
    found = {(image["target"], image["format"]) for image in kernel["images"]}
    wanted = {
        ("host:avx512", "object"),
        ("host:avx2", "object"),
        ("sm_90a", "ptx"),
        ("sm_100a", "ptx"),
    }
    assert found - {("sm_90a", "cubin"), ("sm_100a", "cubin")} == wanted
    for image in kernel["images"]:
        code = (built / image["file"]).read_bytes()
        assert hashlib.sha256(code).hexdigest() == image["sha256"]
        if image["format"] == "ptx":
            assert f".target {image['target']}".encode() in code
        else:
            assert code.startswith(b"\x7fELF")


@pytest.mark.skipif(not ptxas.find()[0], reason="no ptxas")
def test_cubins_where_ptxas_is(built):
    images = json.loads((built / "manifest.json").read_text())["kernels"][0]["images"]
    assert ("sm_90a", "cubin") in {(image["target"], image["format"]) for image in images}


@needs_cc
@pytest.mark.parametrize("compiler, standard", [(CC, "c99"), ("c++", "c++11")])
def test_a_c_program_launches_it(built, compiler, standard):
    program = compile_c(PROGRAM, built, compiler, standard)
    result = run(program, "cpu", built / "manifest.json", "scale")
    assert result.stderr == ""
    assert re.fullmatch(r"cpu runs host\S*, scale has 6 slots for host\S*\n448 of 448 right\n", result.stdout)


@needs_cc
def test_a_c_program_launches_it_on_a_simulated_gpu(built):
    program = compile_c(PROGRAM, built)
    for target in ("sm_90a", "sm_100a"):
        result = run(program, f"sim:{target}", built / "manifest.json", "scale")
        assert result.stdout == f"sim:{target} runs {target}, scale has 6 slots for {target}\n448 of 448 right\n"
    result = run(program, "sim:sm_80", built / "manifest.json", "scale")
    assert result.stdout.startswith(f"error 3: {built / 'manifest.json'}: ")
    assert "sm_90a" in result.stdout


@needs_cc
def test_a_c_program_launches_it_through_the_cuda_driver(built):
    fake = BUILD / "fakecuda" / "libcuda.so.1"
    if not fake.exists():
        pytest.skip(f"{fake} is not built")
    program = compile_c(PROGRAM, built)
    for cubin in built.glob("*.cubin"):  # the fake driver reads PTX alone
        cubin.write_bytes(cubin.with_suffix(".ptx").read_bytes())
    manifest = json.loads((built / "manifest.json").read_text())
    for image in manifest["kernels"][0]["images"]:
        image["sha256"] = hashlib.sha256((built / image["file"]).read_bytes()).hexdigest()
    (built / "manifest.json").write_text(json.dumps(manifest))
    env = {"DITHER_LIBCUDA": str(fake)}
    command = [str(program), "cuda:0", str(built / "manifest.json"), "scale"]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert result.stdout.startswith("cuda:0 runs sm_"), result.stdout + result.stderr


@needs_cc
def test_errors_of_the_c_interface(built):
    bad = built / "bad.json"
    bad.write_text('{"manifest": 7, "kernels": []}')
    program = compile_c(ERRORS, built)
    result = run(program, built / "manifest.json", bad)
    lines = result.stdout.replace(str(built), "OUT").splitlines()
    assert lines == [
        "4: unknown device 'tpu': expected cpu, cuda, cuda:N or sim:TARGET",
        "1: argument 'device' is a null pointer",
        "1: argument 'device' is a null pointer",
        "3: OUT/manifest.json: no kernel 'scales', found scale",
        "2: cannot read nowhere.json: No such file or directory",
        "2: OUT/bad.json: found a manifest of version 7, expected 1",
        "1: found 5 slots, expected 6",
        "1: grid is 1x-1x1, expected no negative extent",
        "1: argument 'slots' is a null pointer",
    ]


@needs_cc
def test_a_damaged_file_is_not_run(built):
    for path in built.glob("*.o"):
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    result = run(compile_c(PROGRAM, built), "cpu", built / "manifest.json", "scale")
    assert result.returncode == 1
    assert re.match(r"error 2: .*\.o is damaged: found another checksum than the manifest has", result.stdout)


@needs_cc
@pytest.mark.parametrize("pattern", ["*.json", "*.o"])
def test_files_that_others_can_write_are_not_run(built, pattern):
    program = compile_c(PROGRAM, built)
    for path in built.glob(pattern):
        path.chmod(0o666)
    result = run(program, "cpu", built / "manifest.json", "scale")
    assert result.returncode == 1
    assert re.match(r"error 2: .* can be written by everybody: the code in it would run as you", result.stdout)


def test_what_is_written_is_its_owners_whatever_the_umask(dither, tmp_path):
    source, out = tmp_path / "kernels.py", tmp_path / "out"
    source.write_text(KERNELS)
    command = ["build", f"{source}:empty", "--signature", "x=f32[1,16]", "--target", "host,sm_90a", "--output", out]
    before = os.umask(0)
    try:
        assert dither(*command).code == 0
        for path in out.iterdir():
            path.chmod(0o666)
        assert dither(*command).code == 0
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o644}


def test_the_library_exports_its_header_and_needs_libc_alone():
    header = (INCLUDE / "dither-c" / "dither.h").read_text()
    declared = set(
        re.findall(r"^(?:dither_status|uint32_t|size_t|void|const char \*) ?\*?(dither_\w+)\(", header, re.M)
    )
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    exported = re.findall(r"(?:GLOBAL|WEAK|UNIQUE)\s+\w+\s+(?!UND|ABS)\w+\s+(\S+)", symbols)
    assert {name.split("@@")[0] for name in exported} == declared
    assert {name.split("@@")[1] for name in exported} == {"DITHER_1.0"}
    dynamic = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.+)\]", dynamic)
    assert all(re.match(r"(libc|libm|ld-linux-x86-64|libdl|libpthread)\.so", name) for name in needed), needed
    assert "[libdither_runtime.so.1]" in dynamic


def test_several_kernels_in_one_manifest(dither, built, tmp_path):
    source = tmp_path / "kernels.py"
    command = ["build", f"{source}:empty", "--signature", "x=f32[1,16]", "--target", "x86-64-v3", "--output", built]
    assert dither(*command, "--name", "nothing").code == 0
    assert dither(*command, "--name", "nothing").code == 0
    kernels = json.loads((built / "manifest.json").read_text())["kernels"]
    assert [(k["name"], k["symbol"]) for k in kernels] == [("scale", "scale"), ("nothing", "empty")]
    assert "nothing_launch(" in (built / "nothing.h").read_text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--target", "sm_91"], "unknown target 'sm_91', expected"),
        (["--target", ","], "found no target"),
        (["--target", "host", "--name", "a b"], "found name 'a b', expected an identifier of C"),
        (["--target", "host", "--signature", "x=f32[1,16]", "z=1"], "has no parameter 'z'"),
    ],
)
def test_usage(dither, tmp_path, arguments, message):
    source = tmp_path / "kernels.py"
    source.write_text(KERNELS)
    result = dither("build", f"{source}:empty", "--signature", "x=f32[1,16]", *arguments, "--output", tmp_path / "o")
    assert result.code == 2
    assert message in result.err


def test_a_manifest_of_another_version(dither, tmp_path):
    source = tmp_path / "kernels.py"
    source.write_text(KERNELS)
    (tmp_path / "manifest.json").write_text('{"manifest": 2, "kernels": []}')
    arguments = ["--signature", "x=f32[1,16]", "--target", "host", "--output", tmp_path]
    result = dither("build", f"{source}:empty", *arguments)
    assert (result.code, result.err) == (
        1,
        f"error: {tmp_path}/manifest.json is not a manifest of version 1, expected one or none\n",
    )
    assert os.path.exists(source)


NAMES = """
from __future__ import annotations
import dataclasses
import dither, dither.language as dl

@dataclasses.dataclass(frozen=True)
class Config:
    rows: int = 2

CONFIG = Config()

@dither.jit
def Scale(friend, true, x, x_size0, int_):
    dl.store(x, (0, 0), dl.load(friend, (0, 0), (CONFIG.rows, 64)) * (true + x_size0 + int_))

@dither.jit
def scale(x, int64_t):
    dl.store(x, (0, 0), dl.load(x, (0, 0), (2, 64)) * int64_t)
"""


@needs_cc
def test_names_that_c_has_itself(dither, tmp_path):
    """Keywords, names of headers, those of sizes, and two that differ in case alone: each header compiles, beside the
    other. The file has a dataclass, whose annotations are text."""
    (tmp_path / "names.py").write_text(NAMES)
    first = ["friend=f32[?,64]", "true=f32", "x=f32[?,64]", "x_size0=f32", "int_=f32"]
    for kernel, signature in (("Scale", first), ("scale", ["x=f32[?,64]", "int64_t=f32"])):
        result = dither(
            "build", f"{tmp_path}/names.py:{kernel}", "--signature", *signature, "--target", "host:base",
            "--output", str(tmp_path / "out"),
        )  # fmt: skip
        assert result.code == 0, result.err
    text = '#include "Scale.h"\n#include "scale.h"\nint main(void) { return !Scale_launch || !scale_launch; }\n'
    for suffix, standard in ((".c", "c99"), (".cpp", "c++17")):
        program = tmp_path / f"program{suffix}"
        program.write_text(text)
        command = [CC, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-Wno-address", "-fsyntax-only"]
        command += [f"-I{INCLUDE}", f"-I{tmp_path}/out", str(program)]
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr


def test_names_of_the_runtime_are_its_own(dither, tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    arguments = ["--signature", *SIGNATURE, "--target", "host:base", "--output", str(tmp_path / "out")]
    result = dither("build", f"{tmp_path}/kernels.py:scale", *arguments, "--name", "dither_kernel")
    assert result.code == 2 and "does not begin with 'dither_'" in result.err


def test_builds_into_one_directory_at_once(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    arguments = ["--signature", *SIGNATURE, "--target", "host:base", "--output", str(tmp_path / "out")]
    command = [sys.executable, "-m", "dither", "build", f"{tmp_path}/kernels.py:scale", *arguments]
    builds = [subprocess.Popen([*command, "--name", f"scale{i}"], stdout=subprocess.DEVNULL) for i in range(4)]
    assert [build.wait() for build in builds] == [0] * 4
    rows = json.loads((tmp_path / "out" / "manifest.json").read_text())["kernels"]
    assert sorted(row["name"] for row in rows) == [f"scale{i}" for i in range(4)]
