"""The code of docs/jax.md runs as it stands."""

import pathlib

import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "jax.md"


def test_blocks_run(run_page):
    for name in ("jax", "flax"):
        pytest.importorskip(name)
    run_page(PAGE, 6)
