"""The README's code runs as it stands, block after block in one program."""

import pathlib

README = pathlib.Path(__file__).parents[3] / "README.md"


def test_blocks_run(run_page):
    assert ".target sm_100a" in run_page(README, 4)
