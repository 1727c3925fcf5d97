"""Several processes on one machine, which exchange by gloo, beside one process (processes.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
CHECKS = (
    *("quantized_and_gathered", "quantizers", "columns", "sums", "masters", "mistakes"),
    *("gradients", "fsdp", "tensor_parallel"),
)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no torch.distributed")
@pytest.mark.parametrize("count", [2, 4])
def test_processes_have_the_bits_of_one(count, tmp_path):
    program = str(Path(__file__).with_name("processes.py"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "DITHER_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, program, str(rank), str(count), str(tmp_path / "store")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        outputs = [process.communicate(timeout=300)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for process, output in zip(running, outputs, strict=True):
        assert process.returncode == 0, output
        assert [line for line in output.splitlines() if line.endswith(" ok")] == [f"{name} ok" for name in CHECKS]


def test_order_of_sums():
    from dither.torch.distributed import ordered_sum

    terms = [torch.tensor(x, dtype=torch.bfloat16) for x in (1.0, 2.0**-9, 3.0, -3.0, 2.0**-20)]
    assert ordered_sum(terms).item() == (1 + 2.0**-9) + 2.0**-20
    assert ordered_sum(terms[:1]).dtype is torch.float32
