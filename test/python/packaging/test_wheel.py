"""The wheel: what it holds, and that it is a good guest beside other LLVMs in one process."""

import ctypes.util
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

# one worker: a second one would build the same wheel
pytestmark = pytest.mark.xdist_group("wheel")

ROOT = Path(__file__).resolve().parents[3]

# Each guest loads and compiles something; run in one order, then in the other, in one process.
GUESTS = {
    "dither": """
import dither, numpy
x = numpy.linspace(-4, 4, 32 * 64, dtype=numpy.float32).reshape(32, 64)
codes = numpy.asarray(dither.quantize(x, dither.MXFP8_E4M3).data)
assert codes.view(numpy.uint8).any(), codes
""",
    "torch": """
import torch
scripted = torch.jit.script(torch.nn.GELU())
assert all(scripted(torch.ones(64)).sum() > 0 for _ in range(3))
""",
    "jax": """
import jax
assert jax.jit(lambda v: jax.numpy.tanh(v).sum())(jax.numpy.ones(8)) > 0
""",
    "triton": """
import triton
from triton.backends.compiler import GPUTarget
import triton_kernel
source = triton.compiler.ASTSource(triton_kernel.double, {"x": "*fp32", "n": "i32", "B": "constexpr"}, {"B": 128})
assert ".target sm_90" in triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
""",
    # Debian's LLVM with its symbols in sight of everything loaded later
    "llvm": """
import ctypes
ctypes.CDLL("libLLVM.so.22.1", ctypes.RTLD_GLOBAL)
""",
}
TRITON_KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the build tree that these tests import dither from."""
    spec = importlib.util.find_spec("dither")
    if spec is None or spec.origin is None:
        pytest.skip("the Python module is not built")
    package = Path(spec.origin).parent
    build = package.parents[1]
    if not (build / "CMakeCache.txt").exists():
        pytest.skip(f"dither is imported from {package}: expected a build tree")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, ROOT / "tools" / "build_wheel.py", "--own", "--build", build, "--out", out]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A directory that `import dither` finds the unpacked wheel in."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "triton_kernel.py").write_text(TRITON_KERNEL)
    return site


def run_guests(order, site, scratch):
    code = "\n".join(GUESTS[guest] for guest in [*order, *reversed(order)]) + "\nprint(dither.__file__)"
    env = dict(
        os.environ, PYTHONPATH=str(site), TRITON_CACHE_DIR=str(scratch), DITHER_CACHE_DIR=str(scratch / "dither")
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=scratch)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
    assert str(site) in done.stdout, "dither was not imported from the wheel"


def test_wheel_holds_sources_and_one_module(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "dither/__init__.py" in names and "dither/py.typed" in names
    assert len([name for name in names if name.endswith(".so")]) == 1
    assert "dither/lib/libdither_runtime.so.1" in names and "dither/include/dither-c/dither.h" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".cpp")]


def test_the_tag_is_the_oldest_glibc_that_both_libraries_run_on(wheel, installed):
    """What newer ones have is defined in runtime/Glibc: 2.34 is what the threads and dlopen of the builder are of."""
    newest = (0, 0)
    for library in (*installed.glob("dither/_dither*.so"), installed / "dither/lib/libdither_runtime.so.1"):
        symbols = subprocess.run(["readelf", "--dyn-syms", "--wide", library], capture_output=True, text=True).stdout
        versions = {tuple(map(int, found)) for found in re.findall(r"@GLIBC_(\d+)\.(\d+)", symbols)}
        assert versions
        newest = max(newest, *versions)
    assert newest <= (2, 34)
    assert wheel.name.endswith(f"-manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}.whl")


def test_licenses_of_all_that_is_within(wheel):
    archive = zipfile.ZipFile(wheel)
    (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
    metadata = archive.read(f"{info}/METADATA").decode()
    assert "License-Expression: Apache-2.0 WITH LLVM-exception" in metadata
    listed = re.findall(r"^License-File: (.+)$", metadata, re.M)
    within = [name.removeprefix(f"{info}/licenses/") for name in archive.namelist() if "/licenses/" in name]
    assert sorted(listed) == sorted(within)
    assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    notices = archive.read(f"{info}/licenses/THIRD_PARTY_NOTICES").decode()
    for text in (
        "APACHE-2-LLVM-EXCEPTIONS",
        "Copyright (C) 2012-2016, Yann Collet",  # xxHash, in LLVM's Support
        "1991-2015 Unicode, Inc.",
        "Henry Spencer",
        "Jean-loup Gailly",
        "Meta Platforms, Inc. and affiliates",
        "GCC Runtime Library Exception",
        "Wenzel Jakob",
    ):
        assert text in notices, text
    for library in ("libMLIR", "libLLVM", "libz.a", "libzstd.a", "libstdc++.a", "libgcc_eh.a", "libc_nonshared.a"):
        assert library in notices, library


def test_the_license_is_the_text_of_its_name():
    text = (ROOT / "LICENSE").read_text()
    common = Path("/usr/share/common-licenses/Apache-2.0")
    if common.exists():
        assert common.read_text().strip() in text
    assert "---- LLVM Exceptions to the Apache 2.0 License ----" in text
    assert text.rstrip().endswith("but only in their entirety and only with respect to the Combined\nSoftware.")


@pytest.fixture
def notices(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("notices")


def test_no_archive_goes_without_a_license(notices, tmp_path):
    unknown = tmp_path / "libforeign.a"
    unknown.write_bytes(b"!<arch>\n")
    build = tmp_path / "build"
    assert notices.static_archives(f"c++ -o x ours/libours.a {unknown} -lm", build) == [str(unknown)]
    with pytest.raises(notices.MissingNotice, match=r"the license of .*libforeign\.a was not found"):
        notices.gather([f"c++ -o x {unknown} -lm"], build, "c++", ROOT)
    with pytest.raises(notices.MissingNotice, match="found no archive in the command that links a library"):
        notices.gather(["c++ -o x ours/libours.a @other.rsp"], build, "c++", ROOT)


def test_pip_installs_it(wheel, tmp_path):
    target = tmp_path / "target"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", target, wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (target / "dither" / "__init__.py").exists()


HANDLERS = """
import dither, jax, numpy
from dither import _dither

print(dither.__file__)
for platform in ("cpu", "CUDA"):
    print(platform, *sorted(_dither.xla_handlers(platform)))
x = numpy.linspace(-4, 4, 32 * 64, dtype=numpy.float32).reshape(32, 64)
quantize = lambda v: dither.quantize(v, dither.MXFP8_E4M3).data
lowered = jax.jit(quantize).lower(x).as_text()
assert "custom_call @dither_program" in lowered, lowered
want = numpy.asarray(quantize(x))
assert want.view(numpy.uint8).any()
assert numpy.asarray(jax.jit(quantize)(x)).tobytes() == want.tobytes()
"""


def test_handlers_of_xla_are_within(installed, tmp_path):
    env = dict(os.environ, PYTHONPATH=str(installed), JAX_PLATFORMS="cpu", DITHER_CACHE_DIR=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", HANDLERS], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    origin, *stages = done.stdout.splitlines()
    assert origin.startswith(str(installed))
    assert stages == ["cpu execute instantiate", "CUDA execute initialize instantiate"]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_c_programs_link_the_library_of_the_wheel(installed, tmp_path):
    """As `dither build` of the installed package says."""
    env = dict(os.environ, PYTHONPATH=str(installed))
    command = [sys.executable, "-m", "dither", "build", "k.py:k", "--signature", "x=f32[1,16]", "--target", "host"]
    (tmp_path / "k.py").write_text(
        "import dither, dither.language as dl\n@dither.jit\ndef k(x):\n    dl.store(x, (0, 0), dl.zeros((1, 16)))\n"
    )
    said = subprocess.run([*command, "--output", "out"], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    link = said.stdout.rsplit("C programs: ", 1)[1].replace("PROGRAM.c", "main.c").split()
    (tmp_path / "main.c").write_text(
        '#include "k.h"\nint main(void) {\n  dither_device *d;\n  dither_kernel *k;\n  float x[16] = {1};\n'
        '  return dither_device_open("cpu", &d) || dither_kernel_load(d, "out/manifest.json", "k", &k) ||\n'
        "         k_launch(k, 1, 1, 1, 0, x) || x[0] != 0;\n}\n"
    )
    subprocess.run([*link, "-o", "main"], cwd=tmp_path, check=True)
    assert str(installed) in link[-1]
    library = {"LD_LIBRARY_PATH": str(Path(link[-1]).parent)}
    assert subprocess.run(["./main"], env=library, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("other", ["torch", "jax", "triton"])
@pytest.mark.parametrize("dither_first", [True, False])
def test_compiles_beside(installed, tmp_path, other, dither_first):
    run_guests(["dither", other] if dither_first else [other, "dither"], installed, tmp_path)


@pytest.mark.parametrize("order", [("dither", "torch", "triton", "jax"), ("jax", "triton", "torch", "dither")])
def test_compiles_beside_all(installed, tmp_path, order):
    run_guests(order, installed, tmp_path)


@pytest.mark.parametrize("order", list(itertools.permutations(["dither", "llvm"])))
def test_compiles_beside_a_visible_llvm(installed, tmp_path, order):
    if not ctypes.util.find_library("LLVM-22") and not Path("/usr/lib/llvm-22/lib/libLLVM.so.22.1").exists():
        pytest.skip("needs Debian's libLLVM.so.22.1")
    run_guests(order, installed, tmp_path)
