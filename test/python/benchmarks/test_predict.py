"""What is predicted of operators, the page that is made of it, and calibration from the command line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from dither import predict
from dither.predict.model import copy_work
from dither.predict.work import Work, to_json

from benchmarks import predict as rows
from benchmarks.peers import Unavailable

PAGE = Path(__file__).resolve().parents[3] / "docs" / "performance-predicted.md"


def speeds(name: str, cols: int, *gpus: str) -> list[float]:
    target = predict.GPUS[gpus[0]].target
    (work,) = rows.works(name, cols, target)
    return [predict.predict(work, predict.GPUS[gpu]).speed for gpu in gpus]


needs_ptxas = pytest.mark.skipif(rows.tools("sm_90a") is None, reason="no ptxas or nvdisasm")


@needs_ptxas
@pytest.mark.parametrize(
    ("name", "gpus", "least"),
    [
        ("amax", ("H100", "H200"), 0.9),
        ("amax", ("B200",), 0.9),
        ("quantize-mxfp8-row", ("H100", "H200"), 0.9),
        ("quantize-mxfp8-row", ("B200",), 0.9),
        ("quantize-mxfp8-both", ("H200",), 0.9),
        ("quantize-nvfp4-row", ("H200",), 0.7),
        ("quantize-nvfp4-both", ("H200",), 0.73),
        ("quantize-nvfp4-both", ("B200",), 0.79),
        ("quantize-nvfp4-row", ("B200",), 0.9),
        ("dequantize-nvfp4-row", ("H200",), 0.9),
        ("rms_norm-mxfp8-row", ("H200",), 0.7),
        ("rms_norm-mxfp8-row", ("B200",), 0.92),
        ("rms_norm-nvfp4-row", ("H200",), 0.78),
    ],
)
def test_operators_are_as_fast_as_predicted(name: str, gpus: tuple[str, ...], least: float) -> None:
    """At least so: what makes a kernel faster fails nothing, and what a model says of a slower one is seen."""
    assert all(least <= speed < 1.1 for speed in speeds(name, 4096, *gpus))


@needs_ptxas
@pytest.mark.parametrize(
    ("name", "cols", "gpu", "least"),
    [
        ("layer_norm-mxfp8-row", 768, "H200", 0.9),
        ("layer_norm-mxfp8-row", 1024, "H200", 0.9),
        ("rms_norm-nvfp4-row", 1024, "H200", 0.8),
        ("layer_norm-mxfp8-row", 2048, "B200", 0.7),
        ("layer_norm-mxfp8-row", 5120, "B200", 0.65),
        ("rms_norm-mxfp8-row", 2880, "H200", 0.92),
        ("layer_norm-mxfp8-row", 2880, "H200", 0.78),
    ],
)
def test_rows_of_other_lengths(name: str, cols: int, gpu: str, least: float) -> None:
    """Rows that a warp has to itself, that no power of two divides, and that scales in the order 128x4 pad."""
    assert least <= speeds(name, cols, gpu)[0] < 1.1


@needs_ptxas
def test_what_is_read_again_counts_once() -> None:
    """A norm of both directions reads its rows in two launches: it moves 6.06 bytes an element of the 4.06 it needs."""
    works, share = rows.works_and_share("rms_norm-mxfp8-both", 4096, "sm_90a")
    assert len(works) == 2
    assert share == pytest.approx((2 + 2 * 33 / 32) / (4 + 2 * 33 / 32), rel=0.01)
    launches = [predict.predict(work, predict.GPUS["H200"]) for work in works]
    cell = rows.Cell("rms_norm-mxfp8-both", 4096, launches, share, None, "")
    assert 0.6 <= cell.speed <= 0.7
    assert rows.cell_text(cell).endswith(" again")


@needs_ptxas
def test_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """On two GPUs of one target, beside Triton where there is a kernel, and not elsewhere."""
    pytest.importorskip("triton")
    monkeypatch.setattr(rows, "COLUMNS", (4096,))
    gpus = [predict.GPUS[name] for name in ("H100", "H200")]
    found = rows.cells("sm_90a", gpus, ["amax", "quantize-mxfp8-row"])
    assert list(found) == ["H100", "H200"]
    for each in found.values():
        assert [(cell.name, cell.cols) for cell in each] == [("amax", 4096), ("quantize-mxfp8-row", 4096)]
        assert [cell.triton is not None for cell in each] == [False, True]
        quantize = each[1]
        assert quantize.triton and quantize.triton.work.minimum * quantize.triton.work.blocks == pytest.approx(
            rows.ELEMENTS * (2 + 1 + 1 / 32)
        )
        assert sum(one.work.minimum * one.work.blocks for one in quantize.launches) == pytest.approx(
            rows.ELEMENTS * (2 + 1 + 1 / 32)
        )
    (cell,) = rows.cells("sm_90a", gpus[:1], ["quantize-mxfp8-row"], columns=[768])["H100"]
    assert (cell.cols, cell.triton) == (768, None)
    text = rows.page(found)
    assert f"| quantize-mxfp8-row | {rows.cell_text(found['H100'][1])} |" in text
    assert " / " in rows.cell_text(found["H100"][1])


def test_names_of_triton() -> None:
    assert rows.triton_name("quantize-mxfp8-both") == "mxfp8_both"
    assert rows.triton_name("rms_norm-nvfp4-row") == "rms_norm_nvfp4"
    for name in ("amax", "layer_norm-nvfp4-row", "dequantize-mxfp8-row", "rms_norm"):
        with pytest.raises(Unavailable):
            list(rows.triton_works(name, 4096, "sm_90a"))


def test_the_page() -> None:
    """The committed page has a row for every operator, and a column, and a table, for every GPU."""
    parts = PAGE.read_text().split("\n## ")
    assert parts[0].startswith(rows.HEAD.partition("{counted}")[0])
    for part, cols in zip(parts[1:], rows.COLUMNS, strict=False):
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        assert part.startswith(f"Rows of {cols}\n") and lines[0] == f"| kernel | {' | '.join(predict.GPUS)} |"
        assert [line.split(" | ")[0] for line in lines[1:]] == [f"| {name}" for name in rows.operators()]
    limits = parts[3].split("\n### ")
    assert [part.splitlines()[0] for part in limits[1:]] == list(predict.GPUS)


def test_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = dataclasses.replace(predict.GPUS["B200"], copy_share=0.8)
    works: list[Work] = [copy_work(n) for n in (10, 1000, 10_000, 30_000, 60_000, 100_000)]
    measured = [
        {"name": f"copy {i}", "launches": [to_json(work)], "measured": predict.predict(work, gpu).seconds}
        for i, work in enumerate(works)
    ]
    file = tmp_path / "gpu_check.json"
    file.write_text(json.dumps({"predict": {"gpu": "B200", "sms": 148, "rows": measured}}))
    assert rows.main(["--calibrate", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("B200, 148 SMs: error 0.")
    (share,) = (line.split() for line in out.splitlines() if "copy_share" in line)
    assert float(share[1]) == 0.9 and float(share[3]) == pytest.approx(0.8, abs=0.01)


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rows.main(["--gpu", "H20"]) == 1
    assert "error: found GPU 'H20', expected one of A100, H100" in capsys.readouterr().err
    (tmp_path / "other.json").write_text("{}")
    assert rows.main(["--calibrate", str(tmp_path / "other.json")]) == 1
    assert "error: found no 'predict'" in capsys.readouterr().err
