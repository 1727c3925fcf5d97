"""The code of docs/torch-training.md runs as it stands."""

import importlib.util
import pathlib

import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "torch-training.md"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch (requirements.txt)")
def test_blocks_run(run_page):
    run_page(PAGE, 2)
