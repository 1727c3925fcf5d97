"""Accesses of one tensor happen in the order of the source, whichever threads and loops they become."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither.devices import get_device

HOSTS = ["host", "host:avx2", "host:avx512"]
DEVICES = ["sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
SHAPES = [(64, 64), (128, 32), (8, 16), (3, 128), (1, 512), (48, 40), (256, 8)]


def runs(device, kernel, *args, **constants):
    """Runs a program on a device, or compiled for a level of the CPU, which refuses some whose tiles it computes in parts."""
    if not device.startswith("host"):
        kernel[1](*args, **constants, device=device)
        return True
    cpu = get_device("cpu")
    if HOSTS.index(device) > HOSTS.index(cpu.target):
        pytest.skip(f"code for {device} does not run on this machine")
    try:
        compiled = kernel.lower(*args, **constants, target=device).compile()
    except dither.CompileError as error:
        assert "overwrites a tensor that the kernel also loads from or stores to at another place" in str(error)
        return False
    compiled.launch(cpu, (1, 1, 1), kernel.signature.bind(args, constants).arguments)
    return True


@dither.jit
def store_then_load(x, y, R: dl.constexpr, C: dl.constexpr, DR: dl.constexpr, DC: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    dl.store(x, (0, 0), t * 2.0)
    dl.store(y, (0, 0), dl.load(x, (DR, DC), (R, C)) + 1.0)


@dither.jit
def move(x, y, R: dl.constexpr, C: dl.constexpr, DR: dl.constexpr, DC: dl.constexpr):
    dl.store(x, (DR, DC), dl.load(x, (0, 0), (R, C)))


@dither.jit
def store_twice(x, y, R: dl.constexpr, C: dl.constexpr, DR: dl.constexpr, DC: dl.constexpr):
    t = dl.load(y, (0, 0), (R, C))
    dl.store(x, (0, 0), t + 1.0)
    dl.store(x, (DR, DC), t * 3.0)


@dither.jit
def load_around_a_store(x, y, R: dl.constexpr, C: dl.constexpr, DR: dl.constexpr, DC: dl.constexpr):
    before = dl.load(x, (0, 0), (R, C))
    dl.store(x, (DR, DC), dl.load(y, (0, 0), (R, C)))
    after = dl.load(x, (0, 0), (R, C))
    dl.store(y, (0, 0), before - after)


@dither.jit
def store_before_what_is_used_later(x, y, R: dl.constexpr, C: dl.constexpr, DR: dl.constexpr, DC: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    dl.store(x, (DR, DC), dl.zeros((R, C)))
    dl.store(y, (0, 0), t + 1.0)
    dl.store(x, (0, 0), t * 2.0)


def window(a, r, c, rows, cols):
    """A tile as dl.load gives it."""
    out = np.zeros((rows, cols), np.float32)
    part = a[r : r + rows, c : c + cols]
    out[: part.shape[0], : part.shape[1]] = part
    return out


def put(a, r, c, tile):
    part = a[r : r + tile.shape[0], c : c + tile.shape[1]]
    part[:] = tile[: part.shape[0], : part.shape[1]]


def reference(kernel, x, y, rows, cols, dr, dc):
    t = window(x, 0, 0, rows, cols)
    if kernel is store_then_load:
        put(x, 0, 0, t * 2)
        put(y, 0, 0, window(x, dr, dc, rows, cols) + 1)
    elif kernel is move:
        put(x, dr, dc, t)
    elif kernel is store_twice:
        u = window(y, 0, 0, rows, cols)
        put(x, 0, 0, u + 1)
        put(x, dr, dc, u * 3)
    elif kernel is load_around_a_store:
        put(x, dr, dc, window(y, 0, 0, rows, cols))
        put(y, 0, 0, t - window(x, 0, 0, rows, cols))
    elif kernel is store_before_what_is_used_later:
        put(x, dr, dc, np.zeros((rows, cols), np.float32))
        put(y, 0, 0, t + 1)
        put(x, 0, 0, t * 2)
    else:
        raise AssertionError(kernel)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-1000, 1000, shape).astype(np.float32)


KERNELS = [store_then_load, move, store_twice, load_around_a_store, store_before_what_is_used_later]


@pytest.mark.parametrize("device", [*HOSTS, *DEVICES])
@pytest.mark.parametrize("shift", [(1, 0), (0, 1), (2, 3), (0, 0)])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_overlapping_tiles(kernel, shift, device):
    for rows, cols in SHAPES:
        x, y = numbers(rows, cols), numbers(rows, cols, seed=1)
        u, v = x.copy(), y.copy()
        if not runs(device, kernel, x, y, R=rows, C=cols, DR=shift[0], DC=shift[1]):
            assert rows * cols > 256
            continue
        reference(kernel, u, v, rows, cols, *shift)
        assert (x == u).all(), (rows, cols)
        assert (y == v).all(), (rows, cols)


@dither.jit
def transpose(x, N: dl.constexpr):
    i = dl.program_id(0) * N
    dl.store(x, (i, 0), dl.load(x, (i, 0), (N, N)).T)


@pytest.mark.parametrize("device", [*HOSTS, *DEVICES])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_transpose_in_place(dtype, device):
    for n in (8, 32, 64):
        x = numbers(n, n).astype(dtype)
        u = x.T.copy()
        if not runs(device, transpose, x, N=n):
            assert n > 16
            continue
        assert x.tobytes() == u.tobytes(), n


@dither.jit
def ladder(x, n, STEP: dl.constexpr, C: dl.constexpr):
    for i in range(n):
        t = dl.load(x, (i * STEP, 0), (STEP, C))
        dl.store(x, (i * STEP + STEP, 0), t + dl.load(x, (i * STEP + STEP, 1), (STEP, C)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("step", "cols"), [(1, 256), (4, 64), (16, 128)])
def test_loop_that_reads_what_it_stored(step, cols, device):
    x = numbers(6 * step, cols)
    u = x.copy()
    for i in range(5):
        t = window(u, i * step, 0, step, cols)
        put(u, (i + 1) * step, 0, t + window(u, (i + 1) * step, 1, step, cols))
    ladder[1](x, 5, STEP=step, C=cols, device=device)
    assert (x == u).all()


@dither.jit
def swap_halves(x, n, R: dl.constexpr, C: dl.constexpr):
    for i in range(n):
        low = dl.load(x, (0, 0), (R, C))
        if i % 2 == 0:
            dl.store(x, (0, 0), dl.load(x, (R, 0), (R, C)))
            dl.store(x, (R, 0), low)
        else:
            dl.store(x, (1, 0), low)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("rows", "cols"), [(16, 64), (64, 32), (2, 512)])
def test_stores_in_branches_of_a_loop(rows, cols, device):
    x = numbers(2 * rows, cols)
    u = x.copy()
    for i in range(5):
        low = window(u, 0, 0, rows, cols)
        if i % 2 == 0:
            put(u, 0, 0, window(u, rows, 0, rows, cols))
            put(u, rows, 0, low)
        else:
            put(u, 1, 0, low)
    swap_halves[1](x, 5, R=rows, C=cols, device=device)
    assert (x == u).all()


@dither.jit
def carried(x, y, n, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    for _ in range(n):
        dl.store(x, (0, 0), t + 1.0)
        t = t + dl.load(x, (1, 0), (R, C))
    dl.store(y, (0, 0), t)
    dl.store(x, (0, 0), t)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("rows", "cols"), [(8, 32), (64, 32)])
def test_tile_carried_past_stores(rows, cols, device):
    x, y = numbers(rows, cols), numbers(rows, cols, seed=1)
    u = x.copy()
    t = u.copy()
    for _ in range(4):
        u[:] = t + 1
        t = t + window(u, 1, 0, rows, cols)
    carried[1](x, y, 4, R=rows, C=cols, device=device)
    assert (x == t).all()
    assert (y == t).all()


@dither.jit
def statistics(x, s, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    dl.store(s, (0, 0), dl.max(t, 1))
    dl.store(x, (0, 0), t - dl.load(s, (0, 0), (R, 1)))
    dl.store(s, (0, 0), dl.max(dl.load(x, (0, 0), (R, C)).T, 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [16, 64])
def test_what_a_program_leaves_for_itself(n, device):
    x, s = numbers(n, n), np.zeros((n, 1), np.float32)
    u = x - x.max(1, keepdims=True)
    statistics[1](x, s, R=n, C=n, device=device)
    assert (x == u).all()
    assert (s[:, 0] == u.max(0)).all()


@dither.jit
def maximum_in_memory(x, m, y, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    dl.atomic_max(m, (), dl.reshape(dl.amax(dl.amax(t, 1), 0), ()))
    dl.store(y, (0, 0), t + dl.load(m))


@pytest.mark.parametrize("device", DEVICES)
def test_load_after_an_atomic(device):
    x, m, y = numbers(16, 256), np.zeros((), np.float32), np.zeros((16, 256), np.float32)
    maximum_in_memory[1](x, m, y, R=16, C=256, device=device)
    assert m == np.abs(x).max()
    assert (y == x + m).all()


@dither.jit
def neighbours(x):
    i = dl.program_id(0)
    dl.store(x, (i, 0), dl.load(x, (i + 1, 0), (1, 128)))


def test_programs_have_no_order():
    with pytest.raises(RuntimeError, match="blocks have no order"):
        neighbours[8](numbers(8, 128), device="sim:sm_90a")
