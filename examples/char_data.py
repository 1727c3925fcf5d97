"""The text that the training examples learn, the sources of the Python standard library, and a bigram model of it."""

from __future__ import annotations

import pathlib
import string
import sysconfig
from collections.abc import Iterator

import numpy as np

#: Characters by number; all others are read as the last one.
CHARACTERS = [*sorted(set(string.printable) - set("\r\x0b\x0c\t")), "\0"]
#: Rows of the table of characters: a multiple of what is split over devices.
VOCABULARY = 128


def read_text(most: int) -> tuple[np.ndarray, np.ndarray]:
    """Sources of the standard library as numbers of characters: what to learn, and the last twentieth to test with."""
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    number = {c: i for i, c in enumerate(CHARACTERS)}
    text: list[int] = []
    for file in sorted(folder.glob("*.py")):
        source = file.read_text(encoding="utf-8", errors="replace").expandtabs()
        text += [number.get(c, len(CHARACTERS) - 1) for c in source]
        if len(text) >= most:
            break
    numbers = np.array(text[:most], np.int32)
    split = len(numbers) - len(numbers) // 20
    return numbers[:split], numbers[split:]


def bigram_loss(train: np.ndarray, test: np.ndarray) -> float:
    """The loss, in nats for each character, of a model that knows how often one character follows another: counts of
    what to learn, plus one."""
    counts = np.ones((VOCABULARY, VOCABULARY))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    chances = counts / counts.sum(axis=1, keepdims=True)
    return float(-np.log(chances[test[:-1], test[1:]]).mean())


def batches(text: np.ndarray, count: int, length: int, seed: int) -> Iterator[np.ndarray]:
    """Batches of pieces of the text at random places, without end: (count, length + 1)."""
    rng = np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(text) - length - 1, count)
        yield text[starts[:, None] + np.arange(length + 1)]
