"""The training example: a tiny model, its table and plot, and runs that stop and go on."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PACKAGES = ("torch", "tqdm", "matplotlib")

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES),
    reason=f"needs {', '.join(PACKAGES)} (requirements.txt)",
)
TINY = (
    *("--layers", "1", "--width", "64", "--heads", "2", "--length", "32", "--batch", "4", "--test-pieces", "4"),
    *("--characters", "20000"),
)


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import train_torch

        yield train_torch
    finally:
        sys.path.remove(str(EXAMPLES))


def test_a_tiny_model(example, tmp_path, capsys, monkeypatch):
    recipes = ("bf16", "mxfp8", "nvfp4")
    arguments = (*TINY, "--steps", "3", "--recipes", ",".join(recipes), "--output", str(tmp_path))
    # It is not below bigrams yet, and says so.
    assert example.main(arguments) == 1
    out, error = capsys.readouterr()
    assert "expected it below bigrams" in error and "| nvfp4 |" in out
    found = json.loads((tmp_path / "losses.json").read_text())
    assert set(found["runs"]) == set(recipes) and (tmp_path / "losses.svg").read_text().startswith("<?xml")
    saved = {name: runs[0]["saved"] for name, runs in found["runs"].items()}
    assert saved["nvfp4"] < saved["mxfp8"] < saved["bf16"]
    # What is finished is not done again; the other seed is.
    done = []
    monkeypatch.setattr(example, "run", lambda name, seed, *_: done.append((name, seed)) or found["runs"][name][0])
    assert example.main((*arguments, "--seeds", "2")) == 1
    assert done == [(name, 1) for name in recipes]


def test_the_model_of_the_docstring(example):
    count = sum(p.numel() for p in example.GPT(example.Shape()).parameters())
    assert f"{count / 1e6:.1f} million" in example.__doc__


def test_runs_that_stop_go_on_with_the_same_bits(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "SAVED_EVERY", 2)
    shape, texts = example.Shape(1, 32, 2, 32), example.read_text(20000)

    class Bar:
        def update(self, count=1):
            if stops is not None and one["steps"] + count > stops:
                raise KeyboardInterrupt
            one["steps"] += count

        def set_postfix(self, **_):
            pass

    found = {}
    for stop in (None, 3):
        args = example.parsed([*TINY, "--steps", "5", "--checkpoint", str(tmp_path / str(stop))])
        one, stops = {"steps": 0}, stop
        try:
            found[stop] = example.run("nvfp4", 0, texts, shape, args, Bar())
        except KeyboardInterrupt:
            one, stops = {"steps": 0}, None
            found[stop] = example.run("nvfp4", 0, texts, shape, args, Bar())
            assert one["steps"] == 5
    for what in ("curve", "test"):
        assert found[None][what] == found[3][what]


def losses(example, folder, *more):
    assert example.main([*TINY, "--steps", "2", "--recipes", "mxfp8", "--output", str(folder), *more]) in (0, 1)
    (found,) = json.loads((folder / "losses.json").read_text())["runs"]["mxfp8"]
    return found["curve"], found["test"]


def test_compiled_and_on_two_processes(example, tmp_path, monkeypatch):
    """A compiled run has the bits of an eager one, but for Inductor's own arithmetic; two processes sum in halves."""
    import torch

    want = losses(example, tmp_path / "eager")
    curve, test = losses(example, tmp_path / "fsdp", "--fsdp")
    assert curve[0][1] == pytest.approx(want[0][0][1], abs=1e-3) and test == pytest.approx(want[1], abs=1e-3)
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: compile(model, backend="aot_eager", fullgraph=True))
    assert losses(example, tmp_path / "compile", "--compile") == want


def test_what_is_wrong_is_said(example):
    def runs(loss):
        return [{"test": loss, "seconds_per_step": 0.5, "saved": 2e6}]

    text, wrong = example.table({"bf16": runs(2.0), "mxfp8": runs(2.02), "nvfp4": runs(2.2)}, 2.5)
    assert wrong == ["nvfp4 is 0.200 above bf16, expected at most 0.1"]
    assert "| mxfp8 | 2.020 | 2.020 | +0.020 | 0.03 | 2.0 | 2.00 |" in text
    assert example.table({"bf16": runs(2.6)}, 2.5)[1] == ["bf16 ends at 2.600, expected it below bigrams, 2.500"]
    with pytest.raises(SystemExit):
        example.parsed(["--recipes", "fp3"])
    with pytest.raises(SystemExit):
        example.parsed(["--fsdp", "--recipes", "delayed"])
