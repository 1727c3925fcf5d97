"""The code of the README and of what it leads to runs as it stands, block after block in one program for each page."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("page", "count", "printed"),
    [("README.md", 4, ".target sm_100a"), ("docs/operators.md", 2, ""), ("docs/language.md", 2, ".target sm_100a")],
)
def test_blocks_run(run_page, page, count, printed):
    assert printed in run_page(ROOT / page, count)


@pytest.mark.parametrize("page", ["README.md", "docs/operators.md", "docs/language.md"])
def test_links(page):
    for link in re.findall(r"\]\((?!https?:)([\w./-]+)[)#]", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(link).exists(), link
