"""examples/train_jax.py on a model of nothing much: it trains, writes what it says, and judges what it finds."""

import json
import sys
import warnings
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")
for name in ("tqdm", "matplotlib"):
    pytest.importorskip(name)
if len(jax.devices()) < 4:
    pytest.skip("needs 4 devices", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TINY = "--steps 3 --layers 1 --width 32 --heads 2 --length 32 --batch 4 --test-pieces 4 --characters 20000"


@pytest.fixture
def train_jax(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("XLA_FLAGS", "")
    import train_jax

    return train_jax


def test_a_model_is_trained_with_a_recipe_that_has_everything(train_jax, monkeypatch, tmp_path, capsys):
    """NVFP4 on a mesh: squares of weights, the transform, gradients rounded at random. Nothing is gathered."""
    monkeypatch.setattr(sys, "argv", ["train_jax.py", *TINY.split(), "--recipes", "nvfp4", "--output", str(tmp_path)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert train_jax.main() == 0
    assert "| nvfp4 |" in capsys.readouterr().out
    run = json.loads((tmp_path / "losses.json").read_text())["runs"]["nvfp4"][0]
    assert run["curve"][-1][0] == 3 and 3 < run["test"] < 5
    assert (tmp_path / "losses.svg").read_text().startswith("<?xml")
    # It is not done again, and runs of other settings are not put beside it.
    monkeypatch.setattr(train_jax, "run", None)
    assert train_jax.main() == 0
    kept = (tmp_path / "losses.json").read_text()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--steps", "4"])
    with pytest.raises(SystemExit, match=r"found runs with steps 3 in .*losses.json, expected 4: say another"):
        train_jax.main()
    assert (tmp_path / "losses.json").read_text() == kept


def test_runs_are_kept_as_they_finish(train_jax, tmp_path):
    import loss_report

    def runs(**settings):
        return loss_report.Runs(tmp_path / "losses.json", {"steps": 3, "bigram": 2.5, **settings})

    recipes = {"bf16": None, "mxfp8": train_jax.RECIPES["mxfp8"]}
    assert runs().missing(recipes, 2) == [("bf16", 0), ("mxfp8", 0), ("bf16", 1), ("mxfp8", 1)]
    runs().add("mxfp8", recipes["mxfp8"], 1, {"test": 2.0, "curve": [(1, 3.0)]})
    runs().add("mxfp8", recipes["mxfp8"], 0, {"test": 1.0, "curve": [(1, 4.0)]})
    assert runs().missing(recipes, 2) == [("bf16", 0), ("bf16", 1)]
    assert [one["test"] for one in runs().results(recipes, 2)["mxfp8"]] == [1.0, 2.0]
    assert runs().results(recipes, 1)["bf16"] == []
    for settings in ({"bigram": 2.25}, {"compile": True}):
        with pytest.raises(ValueError, match="found runs with "):
            runs(**settings)
    with pytest.raises(ValueError, match="found mxfp8 of MXFP8BlockScaling"):
        runs().find("mxfp8", train_jax.RECIPES["current"], 0)


def test_losses_are_judged_by_what_was_allowed(train_jax):
    def of(*losses):
        return [{"test": loss, "seconds_per_step": 0.1} for loss in losses]

    lines, wrong = train_jax.table({"bf16": of(2.0, 2.1), "mxfp8": of(2.02, 2.1), "nvfp4": of(2.3, 2.4)}, 2.4)
    assert "| mxfp8 | 2.060 | 2.020, 2.100 | +0.010 | 0.03 | 100 |" in lines
    assert wrong == ["nvfp4 is 0.300 above bf16, expected at most 0.1"]
    assert train_jax.table({"bf16": of(2.5)}, 2.4)[1] == ["bf16 ends at 2.500, expected it below bigrams, 2.400"]


def test_bigrams(train_jax):
    """Of a text of two characters by turns the next one is known, but for the count of one that all have."""
    import char_data
    import numpy as np

    text = np.array([0, 1] * 500, np.int32)
    assert abs(char_data.bigram_loss(text, text) + np.log(501 / (500 + char_data.VOCABULARY))) < 2e-3
