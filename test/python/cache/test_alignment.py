"""On the CPU a kernel is one, wherever malloc puts its tensors: what a process kept, or put in a bundle, serves all."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import cache

RUN = """
memory = np.zeros(4096, np.uint8)
first = -memory.ctypes.data % 64
for shift in {shifts}:
    x = memory[first + shift : first + shift + 256].view(np.float32).reshape(4, 16)
    scale[2](x, x, ROWS=2, FACTOR=1.0, device="cpu")
print(scale.stats.compiles, scale.stats.disk_hits)
"""


def test_one_compilation_serves_every_alignment(python):
    assert python(RUN.format(shifts=[0, 4, 8, 16, 32, 48])) == "1 0\n"
    for shift in (4, 16, 0):
        assert python(RUN.format(shifts=[shift])) == "0 1\n"


def test_a_job_with_a_bundle_never_compiles(python, tmp_path):
    bundle = str(tmp_path / "model.bundle")
    python(RUN.format(shifts=[32]))
    python(f"import dither.cli; dither.cli.main(['cache', 'export', {bundle!r}])\nimport os; os.dup2(2, 2)").strip()
    for shift in range(4, 64, 12):
        out = python(RUN.format(shifts=[shift]), DITHER_CACHE_BUNDLE=bundle, DITHER_CACHE_DIR=str(tmp_path / "other"))
        assert out == "0 1\n"


def test_launches_at_every_alignment_stay_in_cpp():
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * 7.0)

    memory = np.zeros(256, np.uint8)
    first = -memory.ctypes.data % 64
    for shift in range(0, 64, 4):
        x = memory[first + shift : first + shift + 32].view(np.float32)
        x[:] = 1
        kernel[1](x, x)
        assert (x == 7).all()
    assert kernel._launcher.hits == 15


@pytest.mark.parametrize("target", ["host:base", "host:avx2", "host:avx512", "host:avx512vbmi", "host:avx512fp16"])
def test_code_for_the_cpu_is_the_same_for_every_alignment(target):
    @dither.jit
    def kernel(x, y, z):
        t = dl.load(x, (dl.program_id(0), 0), (1, 96)).to(dl.float32)
        dl.store(y, (dl.program_id(0), 0), (t * 2.0).to(dl.bfloat16))
        dl.store(z, (dl.program_id(0), 0), dl.max(t, 1))

    codes = set()
    for align in (4, 16, 32, 64):
        x = dither.TensorType(dl.bfloat16, (None, 96), align=align, stride_align=align)
        z = dither.TensorType(dl.float32, (None, 1), align=align, stride_align=4)
        codes.add(kernel.lower(x, x, z, target=target).compile().image.code)
    assert len(codes) == 1


def test_a_tensor_between_elements_is_refused():
    @dither.jit
    def kernel(x):
        dl.store(x, (0,), dl.load(x, (0,), (8,)))

    memory = np.zeros(64, np.uint8)
    start = -memory.ctypes.data % 4 + 1
    kernel[1](np.zeros(8, np.float32))
    with pytest.raises(ValueError, match="expected a multiple of 4"):
        kernel[1](np.frombuffer(memory.data, np.float32, 8, start))
    assert cache.build()
