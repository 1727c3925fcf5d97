"""Arguments that share memory: one tensor, elements apart, or an error, whether or not the launch is known."""

import dataclasses

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither.types import SameAs, TensorType, float32
from ops.data import aligned

SHARE = "arguments 'x' and 'y' share memory and the kernel writes 'y'"


@pytest.fixture
def double():
    @dither.jit
    def kernel(x, y):
        r = dl.program_id(0)
        dl.store(y, (r, 0), dl.load(x, (r, 0), (1, x.shape[1])) * 2.0)

    return kernel


@pytest.fixture
def two():
    @dither.jit
    def kernel(x, y, z):
        r = dl.program_id(0)
        t = dl.load(x, (r, 0), (1, 32))
        dl.store(y, (r, 0), t * 2.0)
        dl.store(z, (r, 0), t * 3.0)

    return kernel


def rows(m=8, n=16):
    return aligned(np.arange(m * n, dtype=np.float32).reshape(m, n))


def as_torch(x):
    return pytest.importorskip("torch").from_numpy(x)


def as_bytes(x):
    """The bytes of a dense array, with a view as its data type."""
    return dither.view(x.view(np.uint8).view(x.dtype), float32)


WAYS = {"numpy": lambda x: x, "torch": as_torch, "view": as_bytes}

OVERLAPS = {
    "a row on": lambda b: (b[:-1], b[1:]),
    "a column on": lambda b: (b[:, :8], b[:, 7:15]),
    "a part": lambda b: (b, b[2:4]),
    "other rows": lambda b: (b[:4, :8], b[2:6, :8]),
    "another shape": lambda b: (b[:4, :8], b.reshape(16, 8)[:4]),
}


@pytest.mark.parametrize("way", ["numpy", "torch"])
@pytest.mark.parametrize("views", OVERLAPS.values(), ids=OVERLAPS)
def test_a_written_tensor_that_shares_bytes(double, way, views):
    base = rows()
    x, y = (WAYS[way](v) for v in views(base))
    for _ in range(2):
        with pytest.raises(ValueError, match=SHARE):
            double[x.shape[0]](x, y)
    np.testing.assert_array_equal(base, rows())


@pytest.mark.parametrize("way", WAYS)
def test_a_known_launch_looks_again(double, way):
    """Tensors of one class: apart at first, then a row on."""
    base = rows(40, 16)
    wrap = WAYS[way]
    for _ in range(2):
        double[8](wrap(base[:8]), wrap(base[16:24]))
    assert double._launcher.hits == 1
    np.testing.assert_array_equal(base[16:24], 2 * base[:8])
    before = base.copy()
    with pytest.raises(ValueError, match=SHARE):
        double[8](wrap(base[:8]), wrap(base[2:10]))
    np.testing.assert_array_equal(base, before)


def test_inputs_may_overlap(two):
    base = np.arange(10 * 32, dtype=np.float32).reshape(10, 32)

    @dither.jit
    def add(a, b, out):
        r = dl.program_id(0)
        dl.store(out, (r, 0), dl.load(a, (r, 0), (1, 32)) + dl.load(b, (r, 0), (1, 32)))

    out = np.zeros((8, 32), np.float32)
    for a, b in ((base[:8], base[2:]), (base[:8], base[:8]), (base[:8], np.broadcast_to(base[0], (8, 32)))):
        for _ in range(2):
            add[8](a, b, out)
            np.testing.assert_array_equal(out, a + b)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_columns_of_one_base(two, device):
    x = aligned(np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32))
    for _ in range(2):
        base = aligned(np.full((8, 80), 7, np.float32))
        two[8](x, base[:, :32], base[:, 32:64], device=device)
        np.testing.assert_array_equal(base[:, :32], x * 2)
        np.testing.assert_array_equal(base[:, 32:64], x * np.float32(3))
        assert (base[:, 64:] == 7).all()
    assert two._launcher.hits == (device == "cpu")


def test_codes_of_one_byte(double):
    """FP4 columns that begin in the middle of a byte have it in common with those before."""

    @dither.jit
    def codes(x, y):
        dl.store(y, (0, 0), dl.load(x, (0, 0), (4, 4)))

    memory = np.arange(64, dtype=np.uint8).reshape(4, 16)
    fp4 = dither.float4_e2m1
    x = dither.view(memory[:, :3], fp4, (4, 5))
    codes[1](x, dither.view(memory[:, 8:11], fp4, (4, 5)))
    np.testing.assert_array_equal(memory[:, 8:10], memory[:, :2])
    with pytest.raises(ValueError, match=SHARE):
        codes[1](x, dither.view(memory[:, 2:5], fp4, (4, 5)))


@pytest.mark.parametrize("way", WAYS)
def test_the_same_tensor_is_one(double, way):
    x = rows()
    for factor in (2, 4):
        double[8](WAYS[way](x), WAYS[way](x))
        np.testing.assert_array_equal(x, factor * rows())
    assert double._launcher.hits == 1
    y = np.zeros_like(x)
    double[8](WAYS[way](x), WAYS[way](y))
    np.testing.assert_array_equal(y, 2 * x)
    assert "identity of 'y' is absent, was the same tensor as 'x'" in double.stats().builds[1].reason


def test_a_load_sees_what_the_same_tensor_got():
    @dither.jit
    def twice(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (x.shape[0],)) + 1.0)
        dl.store(y, (0,), dl.load(x, (0,), (x.shape[0],)) + 1.0)

    one = np.zeros(8, np.float32)
    twice.launch(1, one, one, shapes="static")
    assert (one == 2).all()
    x, y = np.zeros(8, np.float32), np.zeros(8, np.float32)
    twice.launch(1, x, y, shapes="static")
    assert (x == 0).all() and (y == 1).all()


def test_what_is_known_of_one_is_known_of_the_other():
    @dither.jit(shapes={"y": "static"})
    def fill(x, y, z):
        dl.store(x, (0, 0), dl.zeros((y.shape[0], y.shape[1])))
        dl.store(z, (0, 0), dl.zeros((4, 4)))

    x, z = rows(), rows(4, 4)
    for _ in range(2):
        x[:], z[:] = 1, 1
        fill[1](x, x, z)
        assert not x.any() and not z.any()
    assert "?" not in fill.lower(x, x, z).text.split("memref<")[1].split(">")[0]


def test_types_instead_of_tensors(double):
    kind = TensorType(float32, (None, 16), (16, 1))
    text = double.lower(kind, SameAs("x")).text
    assert text.count("memref<?x16xf32>") >= 1 and "%arg1" not in text
    compiled = double.compile(kind, SameAs("x"))
    assert compiled.written == {"x", "y"}
    for other in ("y", "z"):
        with pytest.raises(
            dither.CompileError, match=f"argument 'y' is the same as '{other}', expected a tensor before"
        ):
            double.lower(kind, SameAs(other))


def test_one_kept_on_disk(double, monkeypatch):
    x = rows()
    double[8](x, x)
    double.clear()
    double._compiled.clear()
    double[8](x, x)
    np.testing.assert_array_equal(x, 4 * rows())
    assert double.stats().disk_hits >= 1


def test_the_same_memory_that_may_not_be_written(double):
    x = rows()
    view = x[:]
    view.flags.writeable = False
    with pytest.raises(ValueError, match=SHARE):
        double[8](view, x)
    with pytest.raises(ValueError, match="argument 'x' is read-only"):
        double[8](view, view)


def test_outputs_whose_rows_are_the_same(double):
    torch = pytest.importorskip("torch")
    strided = np.lib.stride_tricks.as_strided
    double[8](rows(), np.zeros((8, 17), np.float32)[:, :16])
    for y in (
        torch.zeros(16).expand(8, 16),
        strided(np.zeros(16, np.float32), (8, 16), (0, 4)),
        strided(np.zeros(64, np.float32), (8, 16), (16, 4)),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match="argument 'y' has elements that share memory"):
                double[8](rows(), y)
    y = np.zeros((8, 16), np.float32)
    double[8](np.broadcast_to(rows()[1], (8, 16)), y)
    np.testing.assert_array_equal(y, np.broadcast_to(2 * rows()[1], (8, 16)))


def test_empty_tensors_share_nothing(double):
    x = np.zeros((0, 16), np.float32)
    for _ in range(2):
        double[1](x, x)
        double[1](x, rows())


def test_prepared_launches(double):
    base = rows(40)
    launch = double.prepare(8, base[:8], base[16:24])
    launch(base[8:16], base[24:32])
    np.testing.assert_array_equal(base[24:32], 2 * base[8:16])
    before = base.copy()
    for x, y in ((base[:8], base[2:10]), (base[:8], base[:8])):
        with pytest.raises(ValueError, match=SHARE):
            launch(x, y)
    with pytest.raises(ValueError, match=SHARE):
        double.prepare(8, base[:8], base[2:10])
    np.testing.assert_array_equal(base, before)


def test_prepared_launches_of_one_tensor(double):
    x, y = rows(), rows()
    launch = double.prepare(8, x, x)
    launch()
    launch(y, y)
    np.testing.assert_array_equal(x, 2 * rows())
    np.testing.assert_array_equal(y, 2 * rows())
    with pytest.raises(ValueError, match="argument 'y' is another tensor than 'x', expected the same, as was prepared"):
        launch(x, y)


# -- operators -----------------------------------------------------------------------------------


def quantized(**options):
    x = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float32)
    return x, dither.quantize(x, "mxfp8_e4m3", **options)


@pytest.mark.parametrize("offset", [0, 8192, 49152])
def test_results_over_the_input(offset):
    x, want = quantized()
    memory = x.copy().view(np.uint8).reshape(-1)
    again = memory.view(np.float32).reshape(64, 256)
    data = memory[offset : offset + 64 * 256].view(ml_dtypes.float8_e4m3fn).reshape(64, 256)
    out = dataclasses.replace(want, data=data)
    for call in (
        lambda: dither.quantize(again, "mxfp8_e4m3", out=out),
        lambda: dither.rms_norm(again, np.ones(256, np.float32), format="mxfp8_e4m3", out=out),
    ):
        with pytest.raises(ValueError, match="data of argument 'out' shares memory with argument 'x'"):
            call()
    np.testing.assert_array_equal(again, x)


def test_results_over_each_other():
    x, want = quantized(layout="both")
    torn = dataclasses.replace(want, colwise=dataclasses.replace(want.colwise, data=want.rowwise.data))
    with pytest.raises(ValueError, match="data of argument 'out' shares memory with data of argument 'out'"):
        dither.quantize(x, "mxfp8_e4m3", "both", out=torn)
    memory = np.zeros(64 * 256 + 64 * 8, np.uint8)
    _, one = quantized()
    shared = dataclasses.replace(
        one,
        data=memory[: 64 * 256].view(ml_dtypes.float8_e4m3fn).reshape(64, 256),
        scale_inv=memory[64 * 256 - 8 :][: 64 * 8].view(ml_dtypes.float8_e8m0fnu).reshape(64, 8),
    )
    with pytest.raises(ValueError, match="scale_inv of argument 'out' shares memory with data of argument 'out'"):
        dither.quantize(x, "mxfp8_e4m3", out=shared)


def test_results_over_other_inputs():
    x = np.ones((16, 256), np.float32)
    out = dither.quantize(x, "nvfp4")
    memory = np.zeros((16, 128), np.uint8)
    gamma = memory.reshape(-1)[:1024].view(np.float32)
    with pytest.raises(ValueError, match="data of argument 'out' shares memory with argument 'gamma'"):
        dither.rms_norm(x, gamma, format="nvfp4", out=dataclasses.replace(out, data=memory))


def test_results_beside_the_input():
    """Codes and scales as columns of one buffer, and codes behind x in one allocation."""
    x, want = quantized()
    buffer = np.zeros((64, 256 + 8), np.uint8)
    out = dataclasses.replace(want, data=buffer[:, :256], scale_inv=buffer[:, 256:])
    found = dither.quantize(x, "mxfp8_e4m3", out=out)
    np.testing.assert_array_equal(found.data, want.data.view(np.uint8))
    np.testing.assert_array_equal(found.scale_inv, want.scale_inv.view(np.uint8))
