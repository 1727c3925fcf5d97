"""The rows of `benchmarks.predict` on a GPU: predicted beside measured, in the form that `calibrate` reads."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from dither import predict
from dither.predict import Gpu
from dither.predict.model import COPY_BYTES, copy_work
from dither.predict.work import to_json

from benchmarks import predict as rows
from benchmarks.gpu import Machine

#: Sizes of copies, which say what bandwidth and a launch are.
COPIES = (1 << 20, 1 << 24, 1 << 28)


def measure(device: str, names: Sequence[str], gpu: Gpu | None, quick: bool) -> dict[str, Any]:
    """{"gpu", "sms", "rows"}: of each row "name", "launches", "predicted" and "measured", the seconds that it takes.

    `gpu` is whose table to predict by, by default that of the device's name. Raises ValueError for a device without a
    table, and Unavailable without a GPU.
    """
    machine = Machine(device)
    about = machine.describe()
    gpu = gpu or predict.find(str(about.get("gpu", about["cpu"])))
    if machine.cuda:
        sms = machine.torch.cuda.get_device_properties(device).multi_processor_count
        gpu = dataclasses.replace(gpu, sms=sms)
    repetitions = 5 if quick else 25
    shapes = [(name, cols) for cols in rows.COLUMNS[: 1 if quick else None] for name in names]
    works = predicted_of(shapes, gpu.target)
    found = [one_row(f"copy of {size} bytes", [copy_work(size // COPY_BYTES)], gpu) for size in COPIES]
    for row, size in zip(found, COPIES, strict=True):
        row["measured"] = least(machine, copy(machine, size), repetitions)
    for (name, cols), launches in zip(shapes, works, strict=True):
        row = one_row(f"{name} {cols}", launches, gpu)
        row["measured"] = least(machine, call(machine, name, cols), repetitions)
        found.append(row)
    return {"gpu": gpu.name, "sms": gpu.sms, "machine": about, "rows": found}


def predicted_of(shapes: Sequence[tuple[str, int]], target: str) -> list[list[predict.Work]]:
    """What operators launch, as the simulator sees it, in processes of their own: a GPU waits meanwhile."""
    # Not forked: CUDA runs here.
    with ProcessPoolExecutor(min(len(shapes), os.cpu_count() or 1, 16), multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(rows.works, *zip(*shapes, strict=True), [target] * len(shapes)))


def least(machine: Machine, call: Callable[[], object], repetitions: int) -> float:
    """Seconds, from a cold L2, after one call that is not timed."""
    call()
    return min(machine.seconds(call) for _ in range(repetitions))


def one_row(name: str, launches: Sequence[predict.Work], gpu: Gpu) -> dict[str, Any]:
    """What was predicted, and of what."""
    seconds = sum(predict.predict(work, gpu).seconds for work in launches)
    return {"name": name, "launches": [to_json(work) for work in launches], "predicted": seconds, "measured": None}


def copy(machine: Machine, size: int) -> Callable[[], object]:
    """A copy that reads half of so many bytes and writes half."""
    source = machine.torch.zeros(size // 2, dtype=machine.torch.uint8, device=machine.device)
    target = machine.torch.empty_like(source)
    return lambda: target.copy_(source)


def call(machine: Machine, name: str, cols: int) -> Callable[[], object]:
    """An operator on tensors of torch, into an output that exists."""
    torch = machine.torch
    torch.manual_seed(0)
    elements = rows.ELEMENTS if machine.cuda else 8 * cols  # of the host's times nothing depends
    x = torch.randn(elements // cols, cols, device=machine.device, dtype=torch.bfloat16)
    gamma, beta = (torch.ones(cols, device=machine.device, dtype=torch.bfloat16) for _ in range(2))
    operator = rows.operators()[name](rows.Inputs(x, gamma, beta, torch.full((), 5.0, device=machine.device)))
    options = {"stream": torch.cuda.current_stream().cuda_stream} if machine.cuda else {}
    result = operator(**options)
    return lambda: operator(**options, out=result)


def table(report: dict[str, Any]) -> str:
    """Microseconds of each row, and the quotient."""
    lines = [f"{report['gpu']}, {report['sms']} SMs: microseconds"]
    lines.append(f"{'row':<36}{'predicted':>10}{'measured':>10}{'quotient':>10}")
    for row in report["rows"]:
        one, two = 1e6 * row["predicted"], 1e6 * row["measured"]
        lines.append(f"{row['name']:<36}{one:>10.1f}{two:>10.1f}{one / two:>10.2f}")
    return "\n".join(lines)
