"""What threads share: launches, calls that are run as earlier ones were, and what these depend on, from many threads at
once. Written for Pythons without a GIL (docs/testing.md), and true in all."""

import dataclasses
import gc
import os
import subprocess
import sys
import sysconfig
import threading
import time
import types

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import _dither, frameworks, once
from dither.ops.allocate import aligned
from dither.specialize import Signature
from threads import THREADS, in_threads, make_kernel

ROUNDS = 20
NOTHING = [None] * THREADS
#: Rows of the tensors of calls.
ROWS = 32


def raise_first(found):
    """Raises what a thread raised."""
    for each in found:
        if isinstance(each, Exception):
            raise each
    return found


def same(found, expected):
    """Fails unless two quantized tensors have the same bits."""
    for part in ("rowwise", "colwise"):
        if hasattr(expected, part):
            same(getattr(found, part), getattr(expected, part))
            return
    np.testing.assert_array_equal(found.data.view(np.uint8), expected.data.view(np.uint8))
    np.testing.assert_array_equal(found.scale_inv.view(np.uint8), expected.scale_inv.view(np.uint8))


def normal(seed, rows=ROWS, cols=64):
    return np.random.default_rng(seed).standard_normal((rows, cols)).astype(np.float32)


@pytest.fixture(autouse=True)
def nothing_recorded():
    """What earlier tests called counts for how much is recorded."""
    dither.quantize.__wrapped__.own.replays = dither.silu.replays = None


@pytest.fixture
def collecting():
    """A thread that collects garbage half of the time: it looks into what the others are making."""
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            start = time.perf_counter()
            gc.collect()
            time.sleep(time.perf_counter() - start)

    gc.freeze()  # what other tests left, such as torch, takes long to look at
    thread = threading.Thread(target=collect)
    thread.start()
    yield
    stop.set()
    thread.join(60)
    gc.unfreeze()


WITHOUT = """
import sys, dither, numpy
x = numpy.ones((4, 64), numpy.float32)
for _ in range(4):
    dither.quantize(x, "mxfp8_e4m3")
print(sys._is_gil_enabled())
"""


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_the_gil_stays_off():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    command = [sys.executable, "-W", "error", "-c", WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert "PYTHON_GIL" in os.environ or not sys._is_gil_enabled()


def test_first_launches_at_once(collecting):
    """Each kernel is compiled once, and all launches are counted by the one launch path that it has."""
    x = np.arange(64, dtype=np.float32)
    outputs = np.zeros((THREADS, 64), np.float32)
    for k in range(ROUNDS):
        kernel = make_kernel(float(k + 1000))
        assert in_threads(lambda i, kernel=kernel: kernel[4](x, outputs[i])) == NOTHING
        np.testing.assert_array_equal(outputs, np.tile(x * (k + 1000), (THREADS, 1)))
        assert len(kernel.stats.builds) == 1
        assert kernel.stats.memory_hits == THREADS - 1


def test_one_launch_path_for_threads_that_ask_first_at_once(monkeypatch):
    rows = Signature.rows

    def slowly(self):
        time.sleep(0.02)  # the others get here before there is one
        return rows(self)

    monkeypatch.setattr(Signature, "rows", slowly)
    kernel = make_kernel(1.0)
    assert len(set(map(id, in_threads(lambda i: kernel._launcher)))) == 1


def test_one_value_for_threads_that_ask_first_at_once():
    class Owner:
        @once.one_property
        def value(self):
            time.sleep(0.02)
            return object()

    owner = Owner()
    assert len(set(in_threads(lambda i: owner.value))) == 1
    assert owner.value is owner.__dict__["value"]

    @once.one_for_each
    def made(number):
        time.sleep(0.02)
        return [number]

    assert len(set(map(id, in_threads(lambda i: made(1))))) == 1
    assert made(2) == [2] and made(2) is made(2) is not made(1)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("layout", ["rowwise", "both"])
def test_replays(collecting, shared, layout):
    """Calls of one operator, recorded and run again by many threads, on tensors of their own and on one of all."""
    tensors = [normal(0 if shared else i) for i in range(THREADS)]
    if shared:
        tensors = tensors[:1] * THREADS
    names = ("mxfp8_e4m3", "nvfp4", "mxfp4")
    run = dither.quantize.__wrapped__
    expected = [[run(x, name, layout) for name in names] for x in tensors]

    def work(index):
        for _ in range(30):
            for name, like in zip(names, expected[index], strict=True):
                same(dither.quantize(tensors[index], name, layout), like)

    raise_first(in_threads(work))
    assert run.own.replays.__self__.hits > 100


def test_replays_into_given_memory(collecting):
    x = [normal(i) for i in range(THREADS)]
    expected = [dither.silu(each) for each in x]
    out = [np.zeros_like(each) for each in x]

    def work(index):
        for _ in range(100):
            out[index][:] = 0
            assert dither.silu(x[index], out=out[index]) is out[index]
            np.testing.assert_array_equal(out[index], expected[index])

    raise_first(in_threads(work))


def test_tables_of_replays_that_are_cleared(collecting):
    """One thread forgets what is recorded while the others find it."""
    x = normal(1)
    expected = dither.silu(x)
    table = dither.silu.replays.__self__
    left = threading.Semaphore(0)

    def work(index):
        if index == 0:
            while not left.acquire(blocking=False):
                table.clear()
            return
        for _ in range(200):
            np.testing.assert_array_equal(dither.silu(x), expected)
        if index == 1:
            left.release()

    raise_first(in_threads(work))


FACTOR = 1.0
config = types.ModuleType("config")
config.FACTOR = 1.0


@dataclasses.dataclass(frozen=True)
class Settings:
    factor: float


settings_now = Settings(1.0)


def scaled(t, by=1.0):
    return t * by


def once_more(t):
    return t


def twice(t):
    return t * 2.0


def of_global(t):
    return t * FACTOR


def of_module(t):
    return t * config.FACTOR


def of_configuration(t):
    return t * settings_now.factor


def of_default(t):
    return scaled(t)


def of_code(t):
    return once_more(t)


#: Both are kept: reading a field of a function that another thread sets is a race of Python's own, where the old value
#: goes away.
CODES = {1.0: once_more.__code__, 2.0: twice.__code__}
DEFAULTS = {1.0: (1.0,), 2.0: (2.0,)}
CHANGES = {
    "global": (of_global, lambda factor: globals().__setitem__("FACTOR", factor)),
    "module": (of_module, lambda factor: setattr(config, "FACTOR", factor)),
    "configuration": (of_configuration, lambda factor: globals().__setitem__("settings_now", Settings(factor))),
    "default": (of_default, lambda factor: setattr(scaled, "__defaults__", DEFAULTS[factor])),
    "code": (of_code, lambda factor: setattr(once_more, "__code__", CODES[factor])),
}


@pytest.mark.parametrize("what", CHANGES)
def test_captured_values_that_change(what, collecting):
    """A launch has one of the values that there were, whole; the last one counts in the end."""
    function, change = CHANGES[what]

    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), function(dl.load(x, (0,), (64,))))

    x = np.arange(1, 65, dtype=np.float32)
    outputs = np.zeros((THREADS, 64), np.float32)
    stop = threading.Event()

    def work(index):
        if index == 0:
            for k in range(150):
                change(2.0 if k % 2 == 0 else 1.0)
                kernel[1](x, outputs[0])
                np.testing.assert_array_equal(outputs[0], x * (2 if k % 2 == 0 else 1))
            stop.set()
            return
        y = outputs[index]
        while not stop.is_set():
            y[:] = 0
            kernel[1](x, y)
            assert y[0] in (1, 2)
            np.testing.assert_array_equal(y, x * y[0])

    try:
        raise_first(in_threads(work))
        for factor in (2.0, 1.0):
            change(factor)
            raise_first(in_threads(lambda i: kernel[1](x, outputs[i])))
            np.testing.assert_array_equal(outputs, np.tile(x * factor, (THREADS, 1)))
        assert kernel.stats.compiles + kernel.stats.disk_hits == 2
    finally:
        change(1.0)


def test_fuse(collecting):
    """First calls of an operator of a user's: one kernel of each kind, and one class of results."""
    for _ in range(ROUNDS // 4):

        @dither.fuse(whole_rows=True, saves={"most": "column"})
        def halved(x, y: dl.row):
            return x * 0.5 + y, dl.max(dl.abs(x), axis=1)

        x, y = [normal(i) for i in range(THREADS)], np.arange(64, dtype=np.float32)

        def work(index, halved=halved, x=x, y=y):
            for _ in range(20):
                found = halved(x[index], y)
                np.testing.assert_array_equal(found.out, x[index] * np.float32(0.5) + y)
                np.testing.assert_array_equal(found.most.ravel(), np.abs(x[index]).max(axis=1))
            return type(found)

        assert len(set(raise_first(in_threads(work)))) == 1
        stats = halved.operator.kernel.stats
        assert stats.compiles + stats.disk_hits == 1


def test_names_of_operators(monkeypatch):
    """Operators that threads make at once have names of their own in graphs."""

    class Slow(dict):
        def __contains__(self, name):
            found = super().__contains__(name)
            time.sleep(0.002)  # the others ask before it is there
            return found

    monkeypatch.setattr(frameworks, "_operators", Slow())
    names = in_threads(lambda i: frameworks.name_in_graphs(i, "operator"))
    assert sorted(names) == ["operator", *(f"operator#{k}" for k in range(2, THREADS + 1))]
    assert sorted(frameworks._operators.values()) == list(range(THREADS))


@pytest.mark.parametrize("sizes", [[5, 0, 20, 7], np.array([1, 15, 16, 0], np.int32)], ids=["list", "array"])
def test_groups(collecting, sizes):
    x = [normal(i) for i in range(THREADS)]
    options = {"format": "mxfp8_e4m3", "layout": "both", "groups": dither.Groups(sizes)}
    expected = [dither.silu(each, **options) for each in x]

    def work(index):
        for _ in range(20):
            same(dither.silu(x[index], **options), expected[index])

    raise_first(in_threads(work))


def test_lists_that_change(collecting):
    """A call has the tensors that a list held at one time, whatever another thread puts there."""
    tensors = [normal(i) for i in range(4)]
    expected = [dither.quantize(x, "mxfp8_e4m3") for x in tensors]
    both = [tensors[:2], tensors[2:]]
    given = list(both[0])
    stop = threading.Event()

    def work(index):
        if index == 0:
            for k in range(2000):
                given[:] = both[k % 2]
                given[k % 2] = tensors[k % 4]
            stop.set()
            return
        while not stop.is_set():
            for found in dither.quantize_many(given, "mxfp8_e4m3"):
                assert any(np.array_equal(found.data, like.data) for like in expected)

    raise_first(in_threads(work))


def test_prepared_launches(collecting):
    """One prepared launch on what it was prepared for, which threads share, and on tensors of their own."""
    kernel = make_kernel(7.0)
    x, y, *tensors = (aligned((64,), np.dtype(np.float32)) for _ in range(2 + 2 * THREADS))
    x[:] = np.arange(64)
    prepared = kernel.prepare(4, x, y)
    inputs, outputs = tensors[:THREADS], tensors[THREADS:]

    def work(index):
        own = inputs[index]
        own[:] = x + np.float32(index)
        for _ in range(500):
            prepared()
            outputs[index][:] = 0
            prepared(own, outputs[index])
            np.testing.assert_array_equal(outputs[index], own * 7)

    raise_first(in_threads(work))
    np.testing.assert_array_equal(y, x * 7)


def test_cache_on_disk(tmp_path, monkeypatch, collecting):
    """One thread forgets code while the others launch: it is compiled once, and read back."""
    monkeypatch.setenv("DITHER_CACHE_DIR", str(tmp_path))
    kernels = [make_kernel(float(k + 2000)) for k in range(4)]
    x = np.arange(64, dtype=np.float32)
    outputs = np.zeros((THREADS, 64), np.float32)
    stop = threading.Event()

    def work(index):
        if index == 0:
            for _ in range(20):
                for kernel in kernels:
                    kernel.clear()
                    kernel[4](x, outputs[0])
            stop.set()
            return
        while not stop.is_set():
            for k, kernel in enumerate(kernels):
                outputs[index][:] = 0
                kernel[4](x, outputs[index])
                np.testing.assert_array_equal(outputs[index], x * (k + 2000))

    raise_first(in_threads(work))
    assert [kernel.stats.compiles for kernel in kernels] == [1] * 4
    assert sum(kernel.stats.disk_hits for kernel in kernels) > 0
    assert len(list(tmp_path.glob("*.kernel"))) == 4


def test_kernels_that_are_dropped(collecting):
    """Kernels come and go with their launch paths, which are parts of cycles, in all threads."""
    x = np.arange(64, dtype=np.float32)
    outputs = np.zeros((THREADS, 64), np.float32)

    def work(index):
        for k in range(ROUNDS):
            kernel = make_kernel(float(k % 2))
            for _ in range(3):
                kernel[4](x, outputs[index])
                np.testing.assert_array_equal(outputs[index], x * (k % 2))

    raise_first(in_threads(work))


def test_text_that_is_compiled_at_once():
    """`Lowered.compile` uses its module up: one thread takes it, and the others make their own."""
    for _ in range(5):
        lowered = make_kernel(3.0).lower(np.zeros(16, np.float32), np.zeros(16, np.float32))
        codes = raise_first(in_threads(lambda i, lowered=lowered: lowered.compile().image.code))
        assert len(set(codes)) == 1


def test_a_capsule_is_used_up_by_one():
    for _ in range(100):
        capsule = np.zeros(4, np.float32).__dlpack__()
        found = in_threads(lambda i, capsule=capsule: _dither.from_dlpack(capsule))
        assert sum(isinstance(each, tuple) for each in found) == 1
        assert sum(isinstance(each, TypeError) and "used_dltensor" in str(each) for each in found) == THREADS - 1


def test_errors_of_ir_at_once():
    """Each thread has a module of its own, and the error that is its own."""

    def work(index):
        for k in range(20):
            module = _dither.Module()
            try:
                module.set_attribute("name", f"broken {index} {k}")
            except _dither.IRError as error:
                assert error.message
            else:
                raise AssertionError("expected an error")
            assert _dither.Module.parse(module.text()).text() == module.text()

    raise_first(in_threads(work))
