"""What the training examples keep and say of their runs: JSON of those that are finished, all curves in one plot, and
the final losses in one table."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

#: What was found, by recipe: of each seed a `curve` of (step, loss), the `test` loss, and what else a run says.
Results = Mapping[str, list[dict[str, Any]]]


class Runs:
    """Runs that are finished, in a file of JSON with the settings that made them: a later call of the example does what
    is missing."""

    def __init__(self, file: pathlib.Path, settings: Mapping[str, Any]) -> None:
        """`settings` is all that losses depend on but recipes and seeds. Raises ValueError where the file has runs of
        other settings."""
        self.file = file
        self.settings = json.loads(json.dumps(settings))
        self._runs: dict[str, list[dict[str, Any]]] = {}
        if file.exists():
            kept = json.loads(file.read_text())
            theirs = kept.get("settings", {})
            for name in sorted(self.settings.keys() | theirs.keys()):
                self._expect(f"runs with {name} {theirs.get(name)}", theirs.get(name), self.settings.get(name))
            self._runs = kept["runs"]

    def _expect(self, what: str, found: Any, expected: Any) -> None:
        if found != expected:
            raise ValueError(f"found {what} in {self.file}, expected {expected}: say another folder with --output")

    def find(self, name: str, recipe: Any, seed: int) -> dict[str, Any] | None:
        """The run of a recipe and a seed; None where it is missing. Raises ValueError where this name was that of
        another recipe."""
        for one in self._runs.get(name, []):
            if one["seed"] == seed:
                self._expect(f"{name} of {one['recipe']}", one["recipe"], _described(recipe))
                return one
        return None

    def missing(self, recipes: Mapping[str, Any], seeds: int) -> list[tuple[str, int]]:
        """Recipes, by their names, and seeds that have no run, all recipes of a seed before the next one."""
        return [(name, seed) for seed in range(seeds) for name in recipes if not self.find(name, recipes[name], seed)]

    def add(self, name: str, recipe: Any, seed: int, found: Mapping[str, Any]) -> None:
        """Keeps a run. The file is replaced as a whole, and never half written."""
        runs = [*self._runs.get(name, []), {"seed": seed, "recipe": _described(recipe), **found}]
        self._runs[name] = sorted(runs, key=lambda one: one["seed"])
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({"settings": self.settings, "runs": self._runs}))
        os.replace(new, self.file)

    def results(self, recipes: Mapping[str, Any], seeds: int) -> Results:
        """The runs of these recipes and of so many seeds."""
        of = {name: [self.find(name, recipe, seed) for seed in range(seeds)] for name, recipe in recipes.items()}
        return {name: [one for one in runs if one is not None] for name, runs in of.items()}


def kept_runs(args: argparse.Namespace, bigram: float) -> Runs:
    """The runs in the folder of --output. What else is said to the example, and the text, by the loss of bigrams in it,
    are their settings."""
    no_settings = {"recipes", "seeds", "output", "checkpoint"}
    settings = {name: value for name, value in vars(args).items() if name not in no_settings}
    try:
        return Runs(args.output / "losses.json", {**settings, "bigram": bigram})
    except ValueError as error:
        sys.exit(str(error))


def _described(recipe: Any) -> str:
    """A recipe as text that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(recipe))


def plot(results: Results, bigram: float, file: pathlib.Path) -> None:
    """Curves of all recipes, the mean over seeds."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "dither"
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, runs in results.items():
        steps = [step for step, _ in runs[0]["curve"]]
        means = np.mean([[loss for _, loss in one["curve"]] for one in runs], axis=0)
        axes.plot(steps, means, label=name, linewidth=1)
    axes.axhline(bigram, color="gray", linestyle=":", linewidth=1, label="bigrams")
    axes.set(xlabel="step", ylabel="loss of training, nats for each character")
    axes.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def table(
    results: Results,
    bigram: float,
    allowed: Mapping[str, float],
    columns: Mapping[str, Callable[[list[dict[str, Any]]], str]],
) -> tuple[str, list[str]]:
    """The losses as a table, and what is not as it should be: bf16 is below bigrams, and a recipe above bf16 by no more
    than what is allowed. `columns` are more of the table, each of the runs of a recipe."""
    means = {name: float(np.mean([one["test"] for one in runs])) for name, runs in results.items()}
    titles = ("recipe", "test loss", "seeds", "above bf16", "allowed", *columns)
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    wrong = []
    for name, runs in results.items():
        seeds = ", ".join(f"{one['test']:.3f}" for one in runs)
        above = means[name] - means["bf16"] if "bf16" in means else float("nan")
        most = allowed.get(name)
        limit = "" if most is None else f"{most:.2f}"
        cells = (name, f"{means[name]:.3f}", seeds, f"{above:+.3f}", limit, *(of(runs) for of in columns.values()))
        lines.append(f"| {' | '.join(cells)} |")
        if most is not None and above > most:
            wrong.append(f"{name} is {above:.3f} above bf16, expected at most {most}")
    if means.get("bf16", 0.0) >= bigram:
        wrong.append(f"bf16 ends at {means['bf16']:.3f}, expected it below bigrams, {bigram:.3f}")
    return "\n".join(lines), wrong


def seconds_per_step(runs: list[dict[str, Any]]) -> float:
    """The median over seeds."""
    return float(np.median([one["seconds_per_step"] for one in runs]))
