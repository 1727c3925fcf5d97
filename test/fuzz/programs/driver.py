"""Starts workers, one for each core, gives them programs, and notices when one dies or hangs."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .execute import Outcome

ROOT = Path(__file__).resolve().parents[3]
#: Programs that a worker runs before another one takes its place: kernels stay in memory.
LIFE = 400


class Worker:
    """A child process."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.process: subprocess.Popen[bytes] | None = None
        self.jobs = 0

    def start(self) -> subprocess.Popen[bytes]:
        """The child; a new one where there is none, or it has run enough."""
        if self.process is not None and self.jobs >= LIFE:
            self.stop()
        if self.process is None:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("DITHER_")}
            environment |= {"DITHER_CACHE": "off", "DITHER_NUM_THREADS": "1", "DITHER_SIM_CHECKS": "init,races"}
            environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=Path(__file__).resolve().parents[1],
            )
            self.jobs = 0
            self._rest = b""
        self.jobs += 1
        return self.process

    def stop(self) -> None:
        """Ends the child."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def run(self, job: dict[str, Any]) -> dict[str, Outcome]:
        """The outcomes of a job, by target and "reference"; what ended the child is the outcome of its target."""
        outcomes: dict[str, Outcome] = {}
        targets = list(job["targets"])
        while True:
            left = [t for t in targets if t not in outcomes]
            at, died = self._attempt({**job, "targets": left}, outcomes)
            if died is None:
                return outcomes
            outcomes[at] = died
            if at not in targets or not [t for t in targets if t not in outcomes]:
                return outcomes

    def _attempt(self, job: dict[str, Any], outcomes: dict[str, Outcome]) -> tuple[str, Outcome | None]:
        process = self.start()
        assert process.stdin is not None and process.stdout is not None
        at = "reference"
        begun = time.monotonic()
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                while b"\n" in self._rest:
                    line, _, self._rest = self._rest.partition(b"\n")
                    message = json.loads(line)
                    begun = time.monotonic()
                    if "done" in message:
                        return at, None
                    if "outcome" in message:
                        outcomes[message["outcome"]] = Outcome(message["kind"], message["detail"], message["seconds"])
                    elif message["begin"] != "generate":
                        at = message["begin"]
                if not selector.select(max(0.0, begun + self.limit - time.monotonic())):
                    self.stop()
                    return at, Outcome("hang", f"did not end within {self.limit:.0f} s", self.limit)
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    status = process.wait()
                    self.stop()
                    how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
                    return at, Outcome("crash", how)
                self._rest += data


def run_all(
    jobs: Iterable[dict[str, Any]],
    workers: int,
    limit: float,
    done: Callable[[dict[str, Any], dict[str, Outcome]], bool],
) -> None:
    """Runs jobs on so many workers; `done` is called for each, one call at a time, until it says False."""
    lock = threading.Lock()
    source = iter(jobs)
    going = True

    def serve() -> None:
        nonlocal going
        worker = Worker(limit)
        try:
            while True:
                with lock:
                    job = next(source, None) if going else None
                if job is None:
                    return
                outcomes = worker.run(job)
                with lock:
                    going = done(job, outcomes) and going
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
