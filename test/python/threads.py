"""Threads that start together, and what they launch, for tests."""

import threading

import dither
import dither.language as dl

THREADS = 8


def make_kernel(factor):
    """A kernel of its own, which multiplies 16 elements a program."""

    @dither.jit
    def kernel(x, y):
        i = dl.program_id(0) * 16
        dl.store(y, (i,), dl.load(x, (i,), (16,)) * factor)

    return kernel


def in_threads(work, count=THREADS):
    """Runs work(index) in threads that start together; what each returned or raised."""
    barrier = threading.Barrier(count)
    found = [None] * count

    def run(index):
        barrier.wait()
        try:
            found[index] = work(index)
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    return found
