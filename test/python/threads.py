"""Threads that start together, for tests."""

import threading

THREADS = 8


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
