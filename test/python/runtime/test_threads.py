"""Launches and compilations from many threads, after fork, and while the interpreter ends."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.once import OncePerKey
from threads import THREADS, in_threads, make_kernel


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_launch_storm():
    """8 threads x 100,000 launches over 100 kernels: right results, and no memory kept."""
    kernels = [make_kernel(float(k)) for k in range(100)]
    memory = np.zeros((THREADS + 2) * 16, np.float32)  # rows at multiples of 64 bytes: one class of arguments
    x, *outputs = memory[-memory.ctypes.data % 64 // 4 :][: (THREADS + 1) * 16].reshape(-1, 16)
    x[:] = np.arange(16)

    def work(launches):
        def run(index):
            y = outputs[index]
            calls = [kernel[1] for kernel in kernels]
            wrong = 0
            for i in range(launches // 100):
                for k, call in enumerate(calls):
                    call(x, y)
                    if i % 10 == index:
                        wrong += not np.array_equal(y, x * k)
            return wrong

        return run

    assert in_threads(work(10_000)) == [0] * THREADS
    gc.collect()
    before = resident()
    assert in_threads(work(100_000)) == [0] * THREADS
    gc.collect()
    assert resident() - before < 2 << 20
    assert [len(kernel.stats.builds) for kernel in kernels] == [1] * 100
    assert sum(k.stats.memory_hits + 1 for k in kernels) == THREADS * 110_000


def test_each_specialization_is_compiled_once():
    kernel = make_kernel(3.0)
    x = np.arange(64, dtype=np.float32)
    outputs = np.zeros((THREADS, 64), np.float32)
    assert in_threads(lambda i: kernel[4](x, outputs[i])) == [None] * THREADS
    np.testing.assert_array_equal(outputs, np.tile(x * 3, (THREADS, 1)))
    assert len(kernel.stats.builds) == 1
    assert kernel.stats.memory_hits == THREADS - 1


def test_a_compile_error_reaches_every_waiter(monkeypatch):
    @dither.jit
    def wrong(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (16,)) + dl.load(x, (0,), (8,)))

    lower = dither.jit.__globals__["Lowered"]

    def slowly(*args):
        time.sleep(0.2)  # the others get here before it fails
        return lower(*args)

    monkeypatch.setitem(dither.jit.__globals__, "Lowered", slowly)
    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    errors = in_threads(lambda i: wrong[1](x, y))
    assert all(isinstance(error, dither.CompileError) for error in errors), errors
    assert len({str(error) for error in errors}) == 1
    assert "operands of '+' have shapes" in str(errors[0])
    with pytest.raises(dither.CompileError):  # and a later one
        wrong[1](x, y)


def test_other_keys_are_not_held_up():
    once = OncePerKey()
    inside, leave = threading.Event(), threading.Event()

    def slow():
        inside.set()
        assert leave.wait(60)
        return "slow"

    thread = threading.Thread(target=lambda: once.make("a", slow))
    thread.start()
    assert inside.wait(60)
    assert once.make("b", lambda: "quick") == "quick"
    leave.set()
    thread.join(60)
    assert once.get("a") == "slow"


def test_an_interrupted_thread_leaves_the_key_to_others():
    once = OncePerKey()

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once.make("a", interrupted)
    assert once.make("a", lambda: 1) == 1


def child(work):
    """Runs work() in a forked process; fails with its traceback or where it hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os.write(write, b"ok")
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    deadline = time.monotonic() + 60
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    assert said == "ok", said


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_while_another_thread_compiles():
    kernel = make_kernel(5.0)
    x, y = np.arange(1 << 20, dtype=np.float32), np.zeros(1 << 20, np.float32)
    make_kernel(2.0)[1 << 16](x, y)  # the pool's threads exist
    inside, leave = threading.Event(), threading.Event()
    build = kernel._build

    def slow(wanted, grid):
        inside.set()
        leave.wait(60)
        return build(wanted, grid)

    kernel._build = slow
    thread = threading.Thread(target=lambda: kernel[1 << 16](x, y))
    thread.start()
    assert inside.wait(60)

    def work():
        kernel._build = build
        out = np.zeros_like(x)
        kernel[1 << 16](x, out)
        np.testing.assert_array_equal(out, x * 5)

    try:
        child(work)
    finally:
        leave.set()
        thread.join(60)
    np.testing.assert_array_equal(y, x * 5)


EXITING = """
import sys, threading, time
sys.path[:0] = {places!r}
import numpy as np
from test_threads import make_kernel
kernels = [make_kernel(float(k)) for k in range(4)]
def work(kernel, n):
    x, y = np.ones(n, np.float32), np.zeros(n, np.float32)
    while True:
        kernel[n // 16](x, y)
for i, kernel in enumerate(kernels * 2):
    threading.Thread(target=work, args=(kernel, 16 if i < 4 else 1 << 22), daemon=True).start()
time.sleep({seconds})
print("leaving")
"""


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.5])
def test_exit_with_work_in_flight(seconds):
    here = os.path.dirname(os.path.abspath(__file__))
    text = EXITING.format(places=[here, os.path.dirname(here)], seconds=seconds)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")
