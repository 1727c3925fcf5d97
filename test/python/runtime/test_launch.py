"""Launches: the steady state in C++ must do, and refuse, what Python does."""

import dataclasses
import gc
import traceback

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither.arrays import describe

torch = pytest.importorskip("torch")


def make_kernels():
    """Kernels of their own for each test: counts start at zero."""

    @dither.jit
    def scale(x, y, factor, ROWS: dl.constexpr = 4, TAG: dl.constexpr = None):
        r = dl.program_id(0) * ROWS
        t = dl.load(x, (r, 0), (ROWS, x.shape[1]))
        dl.store(y, (r, 0), t.to(dl.float32) * factor)

    return scale


@pytest.fixture
def scale():
    return make_kernels()


def fast(kernel, call):
    """Calls twice; whether the second stayed in C++."""
    call()
    before = kernel._launcher.hits
    call()
    return kernel._launcher.hits == before + 1


def rows(m, n=16, seed=0):
    return np.random.default_rng(seed).standard_normal((m, n)).astype(np.float32)


SOURCES = {
    "numpy": lambda a: a,
    "torch": torch.from_numpy,
    "parameter": lambda a: torch.nn.Parameter(torch.from_numpy(a), requires_grad=False),
    "view": lambda a: dither.view(a.view(np.uint8).view(np.float32), shapes="trailing"),
    "Array": describe,
    "dlpack": lambda a: Producer(a),
    "memoryview": lambda a: dither.view(np.frombuffer(memoryview(a), np.float32).reshape(a.shape), dither.float32),
}


class Producer:
    """A library with `__dlpack__` and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("source", SOURCES)
def test_sources(scale, source):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    a, b = SOURCES[source](x), SOURCES[source](y)
    for factor in (2.0, 3.0):
        scale[2](a, b, factor)
        np.testing.assert_array_equal(y, x * np.float32(factor))
    assert scale._launcher.hits == 1
    assert scale.stats().compiles + scale.stats().disk_hits == 1


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_data_types(scale, name):
    kind = np.dtype(getattr(ml_dtypes, name, name))
    x, y = rows(8).astype(kind), np.zeros((8, 16), np.float32)
    assert fast(scale, lambda: scale[2](x, y, 2.0))
    np.testing.assert_array_equal(y, x.astype(np.float32) * 2)
    y[:] = 0
    t = torch.from_numpy(x.view(np.uint8)).view(getattr(torch, name))
    assert fast(scale, lambda: scale[2](t, torch.from_numpy(y), 2.0))
    np.testing.assert_array_equal(y, x.astype(np.float32) * 2)


def test_every_way_to_pass_an_argument(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    name = "".join(["fac", "tor"])  # not interned
    for call in (
        lambda: scale[2](x, y, 2.0, 4, None),
        lambda: scale[2](x, y, 2.0),
        lambda: scale[(2, 1)](x, y=y, factor=2.0),
        lambda: scale[(2, 1, 1)](factor=2.0, y=y, x=x, ROWS=4),
        lambda: scale[2](x, y, **{name: 2.0}),
        lambda: scale.launch(2, x, y, 2.0, device="cpu"),
        lambda: scale.launch((2,), x, y, 2.0, device=None, stream=None, num_warps=None, shapes=None),
    ):
        y[:] = 0
        assert fast(scale, call)
        np.testing.assert_array_equal(y, x * 2)
    assert scale.stats.compiles + scale.stats.disk_hits == 1


def test_a_new_batch_size_is_no_new_class(scale):
    y = np.zeros((64, 16), np.float32)
    scale[1](rows(1), y[:1], 2.0)
    for m in range(1, 65):
        x = rows(m, seed=m)
        scale[(m + 3) // 4](x, y[:m], 2.0)
        np.testing.assert_array_equal(y[:m], x * 2)
    # Rows of float32 that numpy allocates begin at multiples of 16 or 32.
    assert scale.stats.compiles + scale.stats.disk_hits <= 2


def test_scalars_are_no_part_of_the_key(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    for factor in (1.0, -0.0, float("inf"), 1e-40, 7):
        scale[2](x, y, factor)
        np.testing.assert_array_equal(y, x * np.float32(factor))
    assert scale.stats.compiles + scale.stats.disk_hits == 2  # float and int


@pytest.mark.parametrize(
    ("one", "two"),
    [(0.0, -0.0), (1, True), (1, 1.0), ((1, 2), (1, 2.0)), ("a", "b"), (None, False), (dither.NVFP4, dither.MXFP4)],
)
def test_constexprs_that_look_alike(scale, one, two):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    assert fast(scale, lambda: scale[2](x, y, 2.0, TAG=one))
    builds = len(scale.stats.builds)
    assert fast(scale, lambda: scale[2](x, y, 2.0, TAG=two))
    assert len(scale.stats.builds) == builds + 1


def test_equal_constexprs_that_are_other_objects(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    for i in range(5):
        scale[2](x, y, 2.0, TAG=(i * 0 + 1000, "".join(["a", "b"])))
    assert scale._launcher.hits == 4


def test_a_frozen_dataclass_as_constexpr(scale):
    @dataclasses.dataclass(frozen=True)
    class Config:
        n: int

    x, y = rows(8), np.zeros((8, 16), np.float32)
    config = Config(3)
    assert fast(scale, lambda: scale[2](x, y, 2.0, TAG=config))
    scale[2](x, y, 2.0, TAG=Config(3))
    assert len(scale.stats.builds) == 1
    scale[2](x, y, 2.0, TAG=Config(4))
    assert len(scale.stats.builds) == 2


ERRORS = [
    ("missing", lambda k, x, y: k[2](x, y), TypeError, "missing a required argument: 'factor'"),
    ("too many", lambda k, x, y: k[2](x, y, 2.0, 4, None, 5), TypeError, "too many positional"),
    ("unknown", lambda k, x, y: k[2](x, y, 2.0, rows=4), TypeError, "unexpected keyword argument 'rows'"),
    ("twice", lambda k, x, y: k[2](x, y, 2.0, x=x), TypeError, "multiple values for argument 'x'"),
    ("grid", lambda k, x, y: k[-1](x, y, 2.0), ValueError, "grid is -1, expected no negative extent"),
    ("grid text", lambda k, x, y: k["a"](x, y, 2.0), ValueError, "grid is 'a', expected one to three integers"),
    ("warps", lambda k, x, y: k.launch(2, x, y, 2.0, num_warps=3), ValueError, "num_warps is 3, expected 1, 2"),
    ("shapes", lambda k, x, y: k.launch(2, x, y, 2.0, shapes="all"), ValueError, "shapes is 'all', expected trailing"),
    ("device", lambda k, x, y: k.launch(2, x, y, 2.0, device="tpu"), ValueError, "unknown device 'tpu'"),
    ("type", lambda k, x, y: k[2](x.astype(np.float64), y, 2.0), TypeError, "argument 'x' has data type float64"),
    ("stride", lambda k, x, y: k[2](x.T.copy().T, y, 2.0), ValueError, "argument 'x' has stride 8 along its last"),
    ("rank", lambda k, x, y: k[2](x.reshape(8, 2, 2, 2, 2), y, 2.0), ValueError, "argument 'x' has rank 5"),
    ("order", lambda k, x, y: k[2](x.astype(">f4"), y, 2.0), TypeError, "foreign byte order"),
    ("bytes", lambda k, x, y: k[2](x.view(np.uint8), y, 2.0), TypeError, "a type of codes: dither.view(x, dtype)"),
]


@pytest.mark.parametrize(("call", "error", "text"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_are_the_same_before_and_after(scale, call, error, text):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    messages = []
    for _ in range(2):
        with pytest.raises(error) as info:
            call(scale, x, y)
        messages.append(str(info.value))
        scale[2](x, y, 2.0)
        np.testing.assert_array_equal(y, x * 2)
    assert text in messages[0]
    assert messages[0] == messages[1]


def test_read_only_outputs_are_refused_in_either_state(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    frozen = y.copy()
    frozen.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="argument 'y' is read-only, expected memory that 'scale' can write"):
            scale[2](x, frozen, 2.0)
        assert fast(scale, lambda: scale[2](x, y, 2.0))
    assert not frozen.any()
    y.flags.writeable = True
    x.flags.writeable = False
    assert fast(scale, lambda: scale[2](x, y, 2.0))


def test_an_empty_grid_runs_nothing(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    assert fast(scale, lambda: scale[0](x, y, 2.0))
    assert fast(scale, lambda: scale[(2, 0)](x, y, 2.0))
    assert not y.any()


def test_grids_that_are_functions(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    for _ in range(2):
        y[:] = 0
        scale[lambda call: (dl.cdiv(call["x"].shape[0], call["ROWS"]),)](x, y, 2.0)
        np.testing.assert_array_equal(y, x * 2)


def test_launches_keep_nothing_alive(scale):
    import weakref

    x, y = torch.zeros(8, 16), torch.zeros(8, 16)
    scale[2](x, y, 2.0)
    scale[2](x, y, 2.0)
    seen = [weakref.ref(x), weakref.ref(y)]
    del x, y
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_kernels_are_collected():
    import weakref

    kernel = make_kernels()
    x, y = rows(8), np.zeros((8, 16), np.float32)
    kernel[2](x, y, 2.0)
    kernel[2](x, y, 2.0)
    ref = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert ref() is None


def test_clear(scale):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    scale[2](x, y, 2.0)
    scale.clear()
    assert scale._launcher.size == 0
    scale[2](x, y, 2.0)
    assert len(scale.stats.builds) == 2


def test_a_kernel_from_disk_needs_no_compiler(scale, monkeypatch):
    x, y = rows(8), np.zeros((8, 16), np.float32)
    scale[2](x, y, 2.0)
    scale.clear()
    from dither import _dither

    for name in ("Module", "Builder", "compile"):
        monkeypatch.delattr(_dither, name)
    y[:] = 0
    scale[2](x, y, 2.0)
    np.testing.assert_array_equal(y, x * 2)
    assert [build.source for build in scale.stats.builds][1:] == ["disk"]


@pytest.mark.parametrize("call", ["launch", "compile", "lower", "prepare"])
def test_a_compile_error_shows_the_call_and_the_kernel(call):
    @dither.jit
    def wrong(x, ROWS: dl.constexpr):
        dl.load(x, (0,), (ROWS,))

    x = np.zeros((4, 8), np.float32)
    calls = {
        "launch": lambda: wrong[1](x, ROWS=4),
        "compile": lambda: wrong.compile(x, ROWS=4),
        "lower": lambda: wrong.lower(x, ROWS=4),
        "prepare": lambda: wrong.prepare(1, x, ROWS=4),
    }
    with pytest.raises(dither.CompileError, match=r"dl\.load") as info:
        calls[call]()
    frames = traceback.extract_tb(info.value.__traceback__)
    assert [frame.name for frame in frames if "dither" in frame.filename and "test" not in frame.filename] == ["call"]
