"""Accesses of one tensor happen in the order of the source, whichever threads and loops they become."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither.devices import get_device

HOSTS = ["host", "host:avx2", "host:avx512", "host:avx512vbmi", "host:avx512fp16"]
DEVICES = ["cpu", "host", "host:avx2", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
SHAPES = [(64, 64), (128, 32), (8, 16), (3, 128), (1, 512), (48, 40), (256, 8)]


def launch(kernel, grid, device, *args, **constants):
    """Runs a kernel on a device, or compiled for a level of the CPU."""
    if not device.startswith("host"):
        return kernel[grid](*args, **constants, device=device)
    cpu = get_device("cpu")
    if HOSTS.index(device) > HOSTS.index(cpu.target):
        pytest.skip(f"code for {device} does not run on this machine")
    compiled = kernel.lower(*args, **constants, target=device).compile()
    return compiled.launch(cpu, (grid, 1, 1), kernel.signature.bind(args, constants).arguments)


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


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shift", [(1, 0), (0, 1), (2, 3), (0, 0)])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_overlapping_tiles(kernel, shift, device):
    for rows, cols in SHAPES:
        x, y = numbers(rows, cols), numbers(rows, cols, seed=1)
        u, v = x.copy(), y.copy()
        launch(kernel, 1, device, x, y, R=rows, C=cols, DR=shift[0], DC=shift[1])
        reference(kernel, u, v, rows, cols, *shift)
        assert (x == u).all(), (rows, cols)
        assert (y == v).all(), (rows, cols)


@dither.jit
def transpose(x, N: dl.constexpr):
    i = dl.program_id(0) * N
    dl.store(x, (i, 0), dl.load(x, (i, 0), (N, N)).T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_transpose_in_place(dtype, device):
    for n in (8, 32, 48, 64, 96) if "sim" not in device else (8, 32, 64):
        x = numbers(2 * n, n).astype(dtype)
        u = np.concatenate([x[:n].T, x[n:].T])
        launch(transpose, 2, device, x, N=n)
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
    launch(ladder, 1, device, x, 5, STEP=step, C=cols)
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
    launch(swap_halves, 1, device, x, 5, R=rows, C=cols)
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
    launch(carried, 1, device, x, y, 4, R=rows, C=cols)
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
    launch(statistics, 1, device, x, s, R=n, C=n)
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
    launch(maximum_in_memory, 1, device, x, m, y, R=16, C=256)
    assert m == np.abs(x).max()
    assert (y == x + m).all()


@dither.jit
def neighbours(x):
    i = dl.program_id(0)
    dl.store(x, (i, 0), dl.load(x, (i + 1, 0), (1, 128)))


def test_programs_have_no_order():
    with pytest.raises(RuntimeError, match="blocks have no order"):
        neighbours[8](numbers(8, 128), device="sim:sm_90a")


@dither.jit
def center(x, y, AXIS: dl.constexpr, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    dl.store(x, (0, 0), t - dl.max(t, AXIS))
    dl.store(y, (0, 0), t * 2.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_reduced_in_place(axis, device):
    for rows, cols in SHAPES:
        x, y = numbers(rows, cols), numbers(rows, cols, seed=1)
        u, v = x - x.max(axis, keepdims=True), x * 2
        launch(center, 1, device, x, y, AXIS=axis, R=rows, C=cols)
        assert (x == u).all(), (rows, cols)
        assert (y == v).all(), (rows, cols)


@dither.jit
def three_tensors(x, y, z, n, N: dl.constexpr):
    a = dl.load(x, (0, 0), (N, N))
    b = dl.load(y, (0, 0), (N, N))
    dl.store(x, (0, 0), b.T)
    if n > 2:
        dl.store(y, (0, 0), a + b)
    dl.store(z, (0, 0), a.T)
    dl.store(y, (1, 0), dl.load(z, (0, 0), (N, N)) + dl.load(y, (0, 0), (N, N)))
    dl.store(z, (0, 0), dl.load(x, (0, 0), (N, N)) * 2.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("side", [16, 64])
def test_stores_and_loads_of_several_tensors(side, n, device):
    x, y, z = (numbers(side, side, seed=seed) for seed in range(3))
    a, b = x.copy(), y.copy()
    u = b.T
    v = a + b if n > 2 else b.copy()
    put(v, 1, 0, a.T + v)
    launch(three_tensors, 1, device, x, y, z, n, N=side)
    assert (x == u).all()
    assert (y == v).all()
    assert (z == u * 2).all()


@dither.jit
def read_before_a_loop(x, y, n, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(x, (0, 0), (R, C))
    for i in range(n):
        dl.store(x, (i, 0), t + dl.load(y, (i, 0), (R, C)))


@dither.jit
def read_in_a_loop(x, y, n, R: dl.constexpr, C: dl.constexpr):
    for i in range(n):
        t = dl.load(x, (i, 0), (R, C))
        dl.store(x, (0, 0), dl.load(y, (0, 0), (R, C)))
        if i % 2 == 1:
            dl.store(y, (0, 0), t)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("rows", "cols"), [(8, 32), (64, 48), (1, 600)])
def test_loops_that_overwrite_what_was_loaded(rows, cols, device):
    for kernel in (read_before_a_loop, read_in_a_loop):
        x, y = numbers(rows + 8, cols), numbers(rows + 8, cols, seed=1)
        u, v = x.copy(), y.copy()
        t = window(u, 0, 0, rows, cols)
        for i in range(5):
            if kernel is read_before_a_loop:
                put(u, i, 0, t + window(v, i, 0, rows, cols))
                continue
            t = window(u, i, 0, rows, cols)
            put(u, 0, 0, window(v, 0, 0, rows, cols))
            if i % 2 == 1:
                put(v, 0, 0, t)
        launch(kernel, 1, device, x, y, 5, R=rows, C=cols)
        assert (x == u).all(), kernel
        assert (y == v).all(), kernel


@dither.jit
def take_and_clear(x, m, y, R: dl.constexpr, C: dl.constexpr):
    factor = dl.load(m)
    dl.store(m, (), 0.0)
    dl.store(y, (0, 0), dl.load(x, (0, 0), (R, C)) * factor)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("rows", "cols"), [(8, 32), (128, 128)])
def test_number_that_is_cleared_before_it_is_used(rows, cols, device):
    x, m, y = numbers(rows, cols), np.array(3.0, np.float32), np.zeros((rows, cols), np.float32)
    launch(take_and_clear, 1, device, x, m, y, R=rows, C=cols)
    assert m == 0
    assert (y == x * 3).all()


@dither.jit
def pile(x, y, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(y, (0, 0), (R, C))
    dl.store(x, (0, 0), t)
    dl.store(x, (0, 8), t.T)
    dl.store(x, (R // 2, 0), dl.broadcast_to(dl.max(t, 1), (R, C)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [16, 64])
def test_the_last_store_stays(n, device):
    x, y = numbers(n, n + 8), numbers(n, n, seed=1)
    u = x.copy()
    put(u, 0, 0, y)
    put(u, 0, 8, y.T)
    put(u, n // 2, 0, np.broadcast_to(y.max(1, keepdims=True), (n, n)))
    launch(pile, 1, device, x, y, R=n, C=n)
    assert (x == u).all()


def test_tiles_that_no_block_can_hold_are_refused():
    with pytest.raises(dither.CompileError, match="the program overwrites what it has loaded"):
        transpose[1](numbers(192, 192), N=192, device="sim:sm_90a")


@dither.jit
def load_for_a_branch(x, z, y, out, w):
    p = dl.program_id(0)
    dl.store(y, (p, 0), dl.max(dl.load(x, (0, 0), (32, 1)), axis=0))
    t = dl.load(y, (p, 0), (1, 1))
    dl.store(w, (p * 32,), dl.load(z, (p * 32,), (32,)))
    if p != 0:
        dl.store(out, (p, 0), t)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
def test_what_a_branch_uses_is_loaded_after_the_stores_before_it(device):
    """Stores of one shape share a loop, which may not end after such a load."""
    x, z = numbers(32, 3, seed=1), numbers(64, seed=2)
    y, out, w = np.full((3, 2), -5, np.float32), np.full((2, 1), -6, np.float32), np.zeros(64, np.float32)
    load_for_a_branch[2,](x, z, y, out, w, device=device)
    most = x[:, 0].max()
    assert y[:2, 0].tolist() == [most, most] and out[:, 0].tolist() == [-6, most]
    assert (w == z).all()


@dither.jit
def carry_both_ways(x, z, y, out):
    across = dl.load(x, (0, 0), (2, 64))
    along = dl.load(z, (0, 0), (64, 2))
    for i in range(3):
        across = across + dl.load(x, (i * 2, 0), (2, 64))
        along = along * 0.5
    dl.store(y, (0, 0), across)
    dl.store(out, (0, 0), along)


@dither.jit
def transpose_beside_rows(x, y, z):
    t = dl.load(x, (0, 0), (32, 32))
    dl.store(x, (0, 0), t.T)
    row = dl.load(y, (0, 0), (2, 288)) * 2.0
    dl.store(y, (0, 0), row)
    dl.store(z, (0, 0), t)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
def test_small_tiles_are_kept_whatever_their_shapes(device, warps):
    """They fit in registers, though a fragment has fewer rows or columns than one of them."""
    x, z = numbers(6, 64, seed=1), numbers(64, 2, seed=2)
    y, out = np.zeros((2, 64), np.float32), np.zeros((64, 2), np.float32)
    carry_both_ways[1,](x, z, y, out, device=device, num_warps=warps)
    assert (y == x[:2] + x[:2] + x[2:4] + x[4:]).all() and (out == z * 0.125).all()
    x, y = numbers(32, 32, seed=3), numbers(2, 288, seed=4)
    turned, doubled, out = x.T.copy(), y * 2, np.zeros((32, 32), np.float32)
    before = x.copy()
    transpose_beside_rows[1,](x, y, out, device=device, num_warps=warps)
    assert (x == turned).all() and (y == doubled).all() and (out == before).all()
