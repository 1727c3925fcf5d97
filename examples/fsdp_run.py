"""Runs of train_torch.py on two processes: FSDP2 over gloo, with weights gathered in the format of the recipe."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import tempfile
from typing import Any

import dither.torch as dt
import torch
import torch.distributed as dist
import train_torch
from torch.distributed.fsdp import fully_shard
from tqdm import tqdm

PROCESSES = 2


class ShardedRun(train_torch.Run):
    """A run of which each process has half of every parameter, and learns half of every batch."""

    def prepared(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model with weights that are sharded, and gathered as codes where the recipe has them."""
        if self.recipe is not None:
            dt.gather_quantized(model, self.recipe)
        for block in model.blocks:
            fully_shard(block)
        return fully_shard(model)

    def share(self, text: torch.Tensor) -> torch.Tensor:
        """Of a batch, what this process learns."""
        return text.chunk(PROCESSES)[dist.get_rank()]

    def value(self, loss: torch.Tensor) -> float:
        """The mean over processes."""
        total = loss.detach().clone()
        dist.all_reduce(total)
        return total.item() / PROCESSES


def process(rank: int, folder: str, name: str, seed: int, texts: Any, shape: Any, args: argparse.Namespace) -> None:
    """What one process does; the first one writes the result."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // PROCESSES))
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=PROCESSES)
    with tqdm(total=args.steps, unit="step", desc=f"{name}, seed {seed}", disable=None if rank == 0 else True) as bar:
        found = train_torch.run(name, seed, texts, shape, args, bar, ShardedRun)
    if rank == 0:
        pathlib.Path(folder, "result.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def run(name: str, seed: int, texts: Any, shape: Any, args: argparse.Namespace) -> dict[str, Any]:
    """As `train_torch.run`, in processes of its own."""
    os.environ.setdefault("DITHER_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // PROCESSES)))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(process, (folder, name, seed, texts, shape, args), nprocs=PROCESSES)
        found: dict[str, Any] = json.loads(pathlib.Path(folder, "result.json").read_text())
    return found
