"""Trains a small GPT in PyTorch, in bf16 and with each recipe of quantization.

    python examples/train_torch.py [--steps 200] [--seeds 1] [--recipes bf16,nvfp4] [--output FOLDER]
        [--compile | --fsdp]

The model (1.8 million parameters) learns characters of the Python standard library's sources. Activations, weights and
gradients are quantized before each product of its linear layers. At the end stand the losses on text that was not
learned, beside the loss of bigrams, what is saved for the backward pass, and how long a step takes; one plot has all
curves. The exit status is 1 where bf16 is not below bigrams, or a recipe is further above bf16 than ALLOWED says.

With --checkpoint FOLDER each run is saved as it goes, and goes on where it was when it is started again, with the bits
of one that was not stopped. Runs that are finished are kept in the folder of --output, and not repeated.

With --compile torch.compile makes a graph of the model and its loss, for the forward pass and the backward one. With
--fsdp two processes have half of the parameters each, by FSDP2, and half of each batch; weights are gathered in the
format of the recipe (delayed scaling has no such format, and shards of this model are no whole blocks of 128 x 128).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import pathlib
import platform
import sys
import time
from typing import Any, NamedTuple

import dither.torch as dt
import loss_report
import numpy as np
import torch
from char_data import VOCABULARY, batches, bigram_loss, read_text
from dither.recipe import (
    CustomRecipe,
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
)
from torch.nn import functional
from tqdm import tqdm

RECIPES: dict[str, Any] = {
    "bf16": None,
    "delayed": DelayedScaling(amax_history_len=16),
    "current": Float8CurrentScaling(),
    "mxfp8": MXFP8BlockScaling(),
    "block": Float8BlockScaling(),
    "nvfp4": NVFP4BlockScaling(),
    # Forward in MXFP8, and backward in NVFP4.
    "custom": CustomRecipe(dt.factories.mxfp8_fwd_nvfp4_bwd_factory),
}
#: Those of which --fsdp gathers weights as codes, or as they are.
SHARDED = ("bf16", "current", "mxfp8", "nvfp4")
#: How far above that of bf16 the final loss of a recipe may be, in nats, mean over seeds. Written before any full run.
ALLOWED = {"delayed": 0.03, "current": 0.03, "mxfp8": 0.03, "block": 0.03, "nvfp4": 0.10, "custom": 0.10}
#: Steps between two points of a curve, and between two checkpoints.
EVERY, SAVED_EVERY = 10, 50


class Shape(NamedTuple):
    """Of a model: 1.8 million parameters by default."""

    layers: int = 4
    width: int = 192
    heads: int = 6
    length: int = 128


class Block(torch.nn.Module):
    """Attention and a feed-forward part, whose four linear layers are quantized."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.qkv = dt.LayerNormLinear(width, 3 * width, name="qkv")
        self.projection = dt.Linear(width, width, name="projection")
        self.mlp = dt.LayerNormMLP(width, 4 * width, activation="gelu", name="mlp")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (B, S, width)."""
        batch, length, width = x.shape
        parts = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)


class GPT(torch.nn.Module):
    """A GPT on characters, in bfloat16 on float32 parameters."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.characters = torch.nn.Embedding(VOCABULARY, shape.width)
        self.places = torch.nn.Embedding(shape.length, shape.width)
        self.blocks = torch.nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.last = dt.LayerNorm(shape.width)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                into_stream = name.endswith(("projection.weight", "mlp.fc2_weight"))
                torch.nn.init.normal_(p, std=0.02 / math.sqrt(2 * shape.layers) if into_stream else 0.02)
            elif name.endswith("bias"):
                torch.nn.init.zeros_(p)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """The mean loss, in nats for each character, of pieces of text (B, S + 1)."""
        inputs, targets = text[:, :-1], text[:, 1:]
        x = (self.characters(inputs) + self.places.weight[: inputs.shape[1]]).bfloat16()
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.last(x), self.characters.weight.bfloat16()).float()
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def learning_rate(step: int, steps: int) -> float:
    """A rise over the first twentieth, and a cosine down to a tenth."""
    peak, rise = 2e-3, max(steps // 20, 1)
    way = min(max((step - rise) / max(steps - rise, 1), 0.0), 1.0)
    return peak * min((step + 1) / rise, 0.1 + 0.45 * (1 + math.cos(math.pi * way)))


class Run:
    """A model that is trained, and all that a checkpoint needs to go on with the same bits."""

    def __init__(self, recipe: Any, seed: int, shape: Shape, steps: int, compiles: bool = False) -> None:
        torch.manual_seed(seed)
        self.recipe, self.steps, self.step = recipe, steps, 0
        self.model = self.prepared(GPT(shape))
        if compiles:
            torch.compiler.reset()
        self.loss = torch.compile(self.model) if compiles else self.model
        decays = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() <= 1]
        groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95))

    def prepared(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model as it is trained; of a run on several processes sharded, and so are the two that follow."""
        return model

    def share(self, text: torch.Tensor) -> torch.Tensor:
        """Of a batch, what is learned here."""
        return text

    def value(self, loss: torch.Tensor) -> float:
        """The loss of the whole batch."""
        return loss.item()

    def region(self) -> Any:
        """What the forward pass runs in."""
        return contextlib.nullcontext() if self.recipe is None else dt.autocast(recipe=self.recipe)

    def train(self, text: torch.Tensor) -> float:
        """A step; the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.steps)
        self.optimizer.zero_grad()
        with self.region():
            loss = self.loss(self.share(text))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        return self.value(loss)

    @torch.no_grad()
    def test(self, pieces: list[torch.Tensor]) -> float:
        """The mean loss on text."""
        with self.region():
            return float(np.mean([self.value(self.model(self.share(piece))) for piece in pieces]))

    def saved_bytes(self, text: torch.Tensor) -> int:
        """What the blocks save for the backward pass, parameters aside."""
        own = {p.data_ptr() for p in self.model.parameters()}
        found: dict[int, int] = {}

        def pack(t: torch.Tensor) -> torch.Tensor:
            if t.data_ptr() not in own:
                found[t.data_ptr()] = t.nbytes
            return t

        kept: list[Any] = []  # nothing that is saved is freed, and its memory used again, until all is counted
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), self.region():
            inputs = text[:, :-1]
            x = (self.model.characters(inputs) + self.model.places.weight[: inputs.shape[1]]).bfloat16().detach()
            x.requires_grad_()
            for block in self.model.blocks:
                x = block(x)
                kept.append(x)
        return sum(found.values())

    def state_dict(self) -> dict[str, Any]:
        """For torch.save: parameters, scales of delayed scaling, the optimizer, and random numbers."""
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse."""
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])


def as_text(batch: np.ndarray) -> torch.Tensor:
    """Numbers of characters for torch."""
    return torch.from_numpy(batch.astype(np.int64))


def run(
    name: str, seed: int, texts: Any, shape: Shape, args: argparse.Namespace, bar: Any, kind: type[Run] = Run
) -> dict[str, Any]:
    """Trains a model; its losses on both texts, how long a step took, and what is saved for the backward pass."""
    learn, test = texts
    one = kind(RECIPES[name], seed, shape, args.steps, args.compile)
    losses: list[float] = []
    file = None if args.checkpoint is None else args.checkpoint / f"{name}-{seed}.pt"
    if file is not None and file.exists():
        state = torch.load(file, weights_only=True)
        one.load_state_dict(state)
        losses = state["losses"]
        bar.update(one.step)
    source = itertools.islice(batches(learn, args.batch, shape.length, seed), one.step, args.steps)
    durations = []
    for batch in source:
        began = time.perf_counter()
        losses.append(one.train(as_text(batch)))
        durations.append(time.perf_counter() - began)
        if one.step % EVERY == 0:
            bar.set_postfix(loss=f"{np.mean(losses[-EVERY:]):.3f}")
        bar.update()
        if file is not None and (one.step % SAVED_EVERY == 0 or one.step == args.steps):
            file.parent.mkdir(parents=True, exist_ok=True)
            torch.save({**one.state_dict(), "losses": losses}, file)
    pieces = next(batches(test, args.test_pieces, shape.length, 0))
    ends = [*range(EVERY, args.steps, EVERY), args.steps]
    return {
        "curve": [(end, float(np.mean(losses[max(end - EVERY, 0) : end]))) for end in ends],
        "test": one.test([as_text(piece) for piece in np.split(pieces, range(args.batch, len(pieces), args.batch))]),
        "seconds_per_step": float(np.median(durations)) if durations else float("nan"),
        "saved": Run(RECIPES[name], seed, shape, args.steps).saved_bytes(as_text(pieces[: args.batch])),
    }


def table(results: loss_report.Results, bigram: float) -> tuple[str, list[str]]:
    """The losses as a table, and what is not as it should be."""
    columns = {
        "saved, MB": lambda runs: f"{runs[0]['saved'] / 1e6:.1f}",
        "steps a second": lambda runs: f"{1 / loss_report.seconds_per_step(runs):.2f}",
    }
    return loss_report.table(results, bigram, ALLOWED, columns)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="steps of training (default: 200)")
    parser.add_argument("--seeds", type=int, default=1, help="how often each recipe is trained (default: 1)")
    parser.add_argument("--recipes", help=f"some of {','.join(RECIPES)} (default: all)")
    parser.add_argument("--output", type=pathlib.Path, metavar="FOLDER", help="(default: build/train_torch)")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--compile", action="store_true", help="use torch.compile (default FOLDER: .._compile)")
    ways.add_argument("--fsdp", action="store_true", help=f"use FSDP2; recipes {', '.join(SHARDED)} (.._fsdp)")
    parser.add_argument(
        "--checkpoint", type=pathlib.Path, metavar="FOLDER", help="save runs there, and go on with them"
    )
    parser.add_argument("--batch", type=int, default=16, help="pieces of text a step (default: 16)")
    parser.add_argument("--test-pieces", type=int, default=256, help="pieces to test with")
    parser.add_argument("--characters", type=int, default=4_000_000, help="of text at most")
    for name, default in Shape()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{name} of the model (default: {default})")
    args = parser.parse_args(arguments)
    if args.output is None:
        args.output = pathlib.Path("build", "train_torch" + "_compile" * args.compile + "_fsdp" * args.fsdp)
    known = SHARDED if args.fsdp else tuple(RECIPES)
    args.recipes = list(known) if args.recipes is None else args.recipes.split(",")
    unknown = [name for name in args.recipes if name not in known]
    if unknown:
        parser.error(f"found recipe {unknown[0]!r}, expected some of {', '.join(known)}")
    if args.fsdp and args.checkpoint is not None:
        parser.error("found --checkpoint with --fsdp, expected one of them")
    return args


def main(arguments: list[str] | None = None) -> int:
    """Trains, prints and plots."""
    args = parsed(arguments)
    began = time.perf_counter()
    shape = Shape(args.layers, args.width, args.heads, args.length)
    texts = read_text(args.characters)
    bigram = bigram_loss(*texts)
    recipes = {name: RECIPES[name] for name in args.recipes}
    runs = loss_report.kept_runs(args, bigram)
    missing = runs.missing(recipes, args.seeds)
    with tqdm(total=len(missing) * args.steps, unit="step", disable=args.fsdp or None) as bar:
        for name, seed in missing:
            bar.set_description(f"{name}, seed {seed}")
            if args.fsdp:
                import fsdp_run

                found = fsdp_run.run(name, seed, texts, shape, args)
            else:
                found = run(name, seed, texts, shape, args, bar)
            runs.add(name, recipes[name], seed, found)
            if bar.disable:  # not a terminal
                print(f"  {name}, seed {seed}: {found['test']:.3f}", flush=True)
    results = runs.results(recipes, args.seeds)
    count = sum(p.numel() for p in GPT(shape).parameters())
    lines, wrong = table(results, bigram)
    print(
        f"{count} parameters, {args.steps} steps of {args.batch} x {shape.length} characters, on {platform.machine()}"
    )
    print(f"bigrams: {bigram:.3f}\n\n{lines}")
    loss_report.plot(results, bigram, args.output / "losses.svg")
    print(f"\n{args.output}/losses.svg, {runs.file}; {time.perf_counter() - began:.0f} s in all")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
