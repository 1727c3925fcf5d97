"""Host arrays on a simulated GPU: each element goes there and back, and nothing between elements does."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.arrays import describe
from dither.devices import get_device
from dither.staging import staged

SIM = "sim:sm_90a"


@dither.jit
def two(x, y, z):
    r = dl.program_id(0)
    t = dl.load(x, (r, 0), (1, 8))
    dl.store(y, (r, 0), t * 2.0)
    dl.store(z, (r, 0), t * 3.0)


LAYOUTS = {
    "apart": lambda b: (b[0:8, :8], b[8:16, :8], b[16:24, :8]),
    "columns": lambda b: (b[:8, :8], b[:8, 8:16], b[:8, 16:24]),
    "an input between": lambda b: (b[:8, 8:16], b[:8, :8], b[:8, 16:24]),
    "every second row": lambda b: (b[:8, :8], b[8:24:2, :8], b[9:24:2, :8]),
    "rows upwards": lambda b: (b[7::-1, :8], b[15:7:-1, :8], b[:8, 8:16]),
    "an input that repeats a row": lambda b: (np.broadcast_to(b[0, :8], (8, 8)), b[8:16, :8], b[8:16, 8:16]),
    "one tensor": lambda b: (b[:8, :8], b[:8, :8], b[:8, 8:16]),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_elements_come_back_and_no_others(layout):
    found = {}
    for device in ("cpu", SIM):
        base = np.arange(24 * 40, dtype=np.float32).reshape(24, 40)
        two[8](*layout(base), device=device)
        found[device] = base
    np.testing.assert_array_equal(found[SIM], found["cpu"])
    assert (found[SIM] != np.arange(24 * 40).reshape(24, 40)).any()


def test_what_lies_between_elements_is_not_touched():
    """Another thread may write the other columns of a base meanwhile."""
    base = np.zeros((4, 16), np.float32)
    with staged(get_device(SIM), {"y": describe(base[:, :8])}, {"y"}, 0) as moved:
        assert moved["y"].device == SIM
        base[:] = 1
    assert not base[:, :8].any() and (base[:, 8:] == 1).all()


def test_inputs_do_not_come_back():
    x = np.zeros(8, np.float32)
    with staged(get_device(SIM), {"x": describe(x)}, (), 0):
        x[:] = 1
    assert (x == 1).all()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 8), (4, 0)])
def test_other_ranks(shape):
    x = np.ones(shape, np.float32)
    with staged(get_device(SIM), {"x": describe(x)}, {"x"}, 0):
        x[...] = 2
    assert (x == 1).all()


def test_codes_of_half_a_byte():
    """Rows of five FP4 codes are three bytes, in columns of bytes of one base."""
    memory = np.arange(64, dtype=np.uint8).reshape(4, 16)
    view = dither.view(memory[:, 2:5], dither.float4_e2m1, (4, 5))
    with staged(get_device(SIM), {"x": describe(view)}, {"x"}, 0):
        memory[:] = 255
    np.testing.assert_array_equal(memory[:, 2:5], np.arange(64).reshape(4, 16)[:, 2:5])
    assert (memory[:, 5:] == 255).all() and (memory[:, :2] == 255).all()


def test_alignment_is_kept():
    """Kernels are specialized by the alignment of what is copied."""
    memory = np.zeros(4096, np.uint8)
    start = -memory.ctypes.data % 64
    for offset in (0, 16, 48, 112):
        base = memory[start + offset :][: 32 * 32].view(np.float32).reshape(8, 32)
        arrays = {"a": describe(base[:, 4:8]), "b": describe(base[:, 8:16])}
        with staged(get_device(SIM), arrays, (), 0) as moved:
            for name, array in arrays.items():
                assert moved[name].pointer % 64 == array.pointer % 64
