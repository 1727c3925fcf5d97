"""Converts a real sentence encoder with one call, tunes it for a few steps, and measures it before and after.

    python examples/finetune.py [--recipe mxfp8] [--steps 20] [--pairs 1000]

all-MiniLM-L6-v2 finds the sentence that a function of the Python standard library is described by, given the function's
name: of --pairs functions, how many have their own sentence first, or among the first ten. Other functions, from other
modules, are what it is tuned with, forward and backward with quantized operands. The exit status is 1 where the
converted model finds fewer by more than ALLOWED says, or tuning it makes it worse.
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
import sys
import sysconfig
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import dither.torch as dt
import numpy as np
import torch
from dither.recipe import (
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
)
from minilm import Tokenizer, directory, load_weights
from torch.nn import functional
from tqdm import tqdm

RECIPES: dict[str, Any] = {
    "delayed": DelayedScaling(amax_history_len=16),
    "current": Float8CurrentScaling(),
    "mxfp8": MXFP8BlockScaling(),
    "block": Float8BlockScaling(),
    # Sentences have any number of tokens, and a transform takes rows by 16.
    "nvfp4": NVFP4BlockScaling(disable_rht=True),
}
#: How much of the sentences that are found first may be lost by converting. Written before any run.
ALLOWED = {"nvfp4": 0.10}
ALLOWED_ELSE = 0.02
HEADS, MOST_TOKENS = 12, 48


class Layer(torch.nn.Module):
    """A layer of BERT."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(width, width) for _ in range(3))
        self.mixed, self.mixed_norm = torch.nn.Linear(width, width), torch.nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)
        self.norm = torch.nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Of (B, S, width), where `mask` (B, 1, 1, S) says which tokens are there."""
        batch, length, width = x.shape
        split = [
            part(x).reshape(batch, length, HEADS, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        ]
        mixed = functional.scaled_dot_product_attention(*split, attn_mask=mask)
        x = self.mixed_norm(x + self.mixed(mixed.transpose(1, 2).reshape(batch, length, width)))
        return self.norm(x + self.down(functional.gelu(self.up(x))))


#: Names of the layers here, and in the model's file.
NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "mixed_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}


class Encoder(torch.nn.Module):
    """all-MiniLM-L6-v2."""

    def __init__(self) -> None:
        super().__init__()
        given = {
            name: torch.from_numpy(w.copy()) for name, w in load_weights(directory() / "model.safetensors").items()
        }
        words = given["embeddings.word_embeddings.weight"]
        places = given["embeddings.position_embeddings.weight"] + given["embeddings.token_type_embeddings.weight"][0]
        self.words = torch.nn.Embedding.from_pretrained(words, freeze=False)
        self.places = torch.nn.Embedding.from_pretrained(places, freeze=False)
        self.first = torch.nn.LayerNorm(words.shape[1], eps=1e-12)
        count = sum(name.endswith("intermediate.dense.weight") for name in given)
        inner = given["encoder.layer.0.intermediate.dense.weight"].shape[0]
        self.layers = torch.nn.ModuleList(Layer(words.shape[1], inner) for _ in range(count))
        with torch.no_grad():
            for kind in ("weight", "bias"):
                getattr(self.first, kind).copy_(given[f"embeddings.LayerNorm.{kind}"])
                for i, layer in enumerate(self.layers):
                    for ours, theirs in NAMES.items():
                        getattr(getattr(layer, ours), kind).copy_(given[f"encoder.layer.{i}.{theirs}.{kind}"])

    def forward(self, tokens: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        """The embeddings (B, 384), of length 1, of sentences (B, S) of tokens."""
        x = self.first(self.words(tokens) + self.places.weight[: tokens.shape[1]])
        for layer in self.layers:
            x = layer(x, there[:, None, None, :])
        weights = there[..., None].to(x.dtype)
        return functional.normalize((x * weights).sum(1) / weights.sum(1), dim=1)


class Pair(NamedTuple):
    """A function by its name, and what it does."""

    name: str
    sentence: str


def read_pairs() -> dict[str, list[Pair]]:
    """Functions and classes of the standard library with a sentence, by module; no name and no sentence twice."""
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    seen: set[str] = set()
    found: dict[str, list[Pair]] = {}
    for file in sorted(folder.glob("**/*.py")):
        if {"test", "tests", "idlelib", "lib2to3", "site-packages"} & set(file.parts):
            continue
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                continue
            sentence = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            sentence = sentence.split(". ")[0][:200]
            words = re.findall(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]+|[a-z]+", node.name)
            name = " ".join([file.stem, *words]).lower()
            if len(words) > 1 and 4 <= len(sentence.split()) <= 30 and not {name, sentence} & seen:
                seen |= {name, sentence}
                found.setdefault(file.stem, []).append(Pair(name, sentence))
    return found


def split_pairs(by_module: dict[str, list[Pair]], count: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """So many pairs to measure with, and those of other modules to tune with."""
    rng = np.random.default_rng(seed)
    modules = [sorted(by_module)[i] for i in rng.permutation(len(by_module))]
    measured: list[Pair] = []
    while len(measured) < count:
        if not modules:
            raise ValueError(f"found {len(measured)} pairs, expected {count} or more: --pairs")
        measured += by_module[modules.pop()]
    rest = [pair for name in modules for pair in by_module[name]]
    return measured[:count], [rest[i] for i in rng.permutation(len(rest))]


def batch(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens of texts, and which are there."""
    ids = [tokenizer(text)[:MOST_TOKENS] for text in texts]
    length = max(map(len, ids))
    tokens = torch.tensor([[*row, *[0] * (length - len(row))] for row in ids])
    return tokens, torch.tensor([[i < len(row) for i in range(length)] for row in ids])


@torch.no_grad()
def found(model: torch.nn.Module, tokenizer: Tokenizer, pairs: Sequence[Pair], bar: Any) -> tuple[float, float]:
    """How many names have their own sentence first, and among the first ten, of the sentences of all."""
    model.eval()
    sides = []
    for side in zip(*pairs, strict=True):
        order = sorted(range(len(side)), key=lambda i: len(side[i]))
        rows = torch.empty(len(side), 384)
        for at in range(0, len(side), 64):
            some = order[at : at + 64]
            rows[some] = model(*batch(tokenizer, [side[i] for i in some]))
            bar.update()
        sides.append(rows)
    model.train()
    names, sentences = sides
    scores = names @ sentences.T
    rank = (scores > scores.diagonal()[:, None]).sum(1)
    return float((rank == 0).float().mean()), float((rank < 10).float().mean())


def tune(model: torch.nn.Module, tokenizer: Tokenizer, pairs: Sequence[Pair], args: Any, bar: Any) -> list[float]:
    """Steps that bring names near their sentences and away from the others of a batch; the losses before them."""
    torch.manual_seed(args.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate)
    losses = []
    for step in range(args.steps):
        at = step * args.batch % max(len(pairs) - args.batch, 1)
        names, sentences = zip(*pairs[at : at + args.batch], strict=True)
        scores = 20 * model(*batch(tokenizer, names)) @ model(*batch(tokenizer, sentences)).T
        loss = functional.cross_entropy(scores, torch.arange(len(names)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        bar.update()
    return losses


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", choices=RECIPES, default="mxfp8", help="default: mxfp8")
    parser.add_argument("--steps", type=int, default=20, help="of tuning (default: 20)")
    parser.add_argument("--pairs", type=int, default=1000, help="functions to measure with (default: 1000)")
    parser.add_argument("--batch", type=int, default=48, help="pairs of a step (default: 48)")
    parser.add_argument("--rate", type=float, default=3e-5, help="learning rate (default: 3e-5)")
    parser.add_argument("--seed", type=int, default=0, help="which functions, in which order (default: 0)")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Measures, converts, tunes and measures again."""
    args = parsed(arguments)
    began = time.perf_counter()
    try:
        plain, tokenizer = Encoder(), Tokenizer(directory() / "vocab.txt")
        measured, rest = split_pairs(read_pairs(), args.pairs, args.seed)
    except (FileNotFoundError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = []
    work = 4 * 2 * -(-args.pairs // 64) + 2 * args.steps
    with tqdm(total=work, unit="batch", disable=None, leave=False) as bar:
        rows.append(("float32", found(plain, tokenizer, measured, bar)))
        model = dt.convert(Encoder(), RECIPES[args.recipe])
        rows.append((args.recipe, found(model, tokenizer, measured, bar)))
        losses = tune(plain, tokenizer, rest, args, bar)
        rows.append(("float32, tuned", found(plain, tokenizer, measured, bar)))
        low = tune(model, tokenizer, rest, args, bar)
        rows.append((f"{args.recipe}, tuned", found(model, tokenizer, measured, bar)))
    print(f"{len(measured)} functions by name, of {len({p.sentence for p in measured})} sentences")
    print(f"tuned for {args.steps} steps of {args.batch} others: loss {losses[0]:.3f} to {losses[-1]:.3f} in float32, ")
    print(f"{low[0]:.3f} to {low[-1]:.3f} in {args.recipe}\n")
    print("| model | own sentence first | among ten |\n|---|---|---|")
    for name, (first, ten) in rows:
        print(f"| {name} | {100 * first:.1f} % | {100 * ten:.1f} % |")
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    (before, _), (converted, _), _, (after, _) = (values for _, values in rows)
    allowed = ALLOWED.get(args.recipe, ALLOWED_ELSE)
    wrong = [
        f"converting loses {100 * (before - converted):.1f} %, expected at most {100 * allowed:.1f} %"
        for _ in range(before - converted > allowed)
    ]
    if args.steps and after < converted:
        wrong.append(f"tuning goes from {100 * converted:.1f} % to {100 * after:.1f} %, expected no fewer")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
