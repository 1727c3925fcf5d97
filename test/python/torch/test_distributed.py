"""Several processes on one machine, which exchange by gloo, beside one process (processes.py)."""

from pathlib import Path

import pytest
import spawned

torch = pytest.importorskip("torch")
CHECKS = (
    *("quantized_and_gathered", "groups", "quantizers", "columns", "sums", "masters", "mistakes"),
    *("gradients", "fsdp", "master_weights", "tensor_parallel"),
)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no torch.distributed")
@pytest.mark.parametrize("count", [2, 4])
def test_processes_have_the_bits_of_one(count, tmp_path):
    program = str(Path(__file__).with_name("processes.py"))
    commands = [[program, str(rank), str(count), str(tmp_path / "store")] for rank in range(count)]
    spawned.check(commands, CHECKS, DITHER_NUM_THREADS="1")


def test_order_of_sums():
    from dither.torch.distributed import ordered_sum

    terms = [torch.tensor(x, dtype=torch.bfloat16) for x in (1.0, 2.0**-9, 3.0, -3.0, 2.0**-20)]
    assert ordered_sum(terms).item() == (1 + 2.0**-9) + 2.0**-20
    assert ordered_sum(terms[:1]).dtype is torch.float32
