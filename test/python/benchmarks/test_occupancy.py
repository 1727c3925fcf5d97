"""Kernels with other numbers of blocks than the compiler chose."""

import json

import pytest

from benchmarks import occupancy, sass
from benchmarks.peers import Unavailable


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Two numbers of blocks, of kernels along rows."""
    try:
        sass.find_ptxas("sm_90a")
    except Unavailable as reason:
        pytest.skip(str(reason))
    monkeypatch.setattr(occupancy, "WARPS", (4, 40))
    monkeypatch.setattr(occupancy, "LAYOUTS", ("rowwise",))


def test_blocks(tmp_path, capsys):
    file = tmp_path / "found.json"
    assert not occupancy.main(["--target", "sm_90a", "--only", "gelu", "--format", "nvfp4", "--json", str(file)])
    (kernel,) = json.loads(file.read_text())
    by_blocks = {choice["blocks"]: choice for choice in kernel["choices"]}
    assert set(by_blocks) == {1, 10, kernel["chosen"]}
    # One block takes as many registers as it likes, ten have 48, and wait less.
    assert by_blocks[1]["registers"] > 48 >= by_blocks[10]["registers"]
    assert by_blocks[1]["seconds"] > by_blocks[10]["seconds"]
    out = capsys.readouterr().out
    assert "gelu nvfp4 rowwise" in out and "H100, 1 kernels" in out


def test_what_there_is_no_operator_for(capsys):
    """What an operator refuses is said, and left out."""
    assert not list(occupancy.launches("quantize", "nvfp4", "sideways", "sm_90a"))
    assert "quantize nvfp4 sideways: " in capsys.readouterr().err
