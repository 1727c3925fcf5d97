"""What the training examples say of their runs: all curves in one plot, and the final losses in one table."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

#: What was found, by recipe: of each seed a `curve` of (step, loss), the `test` loss, and what else a run says.
Results = Mapping[str, list[dict[str, Any]]]


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
