"""The tutorials: their code runs, prints what they say, and makes the pictures that are committed beside them."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import pytest
from dither import _dither

ROOT = pathlib.Path(__file__).parents[3]
TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = sorted(TUTORIALS.glob("[0-9]*.md"))
#: Where `dither-layout` and the library of C programs are.
BUILD = pathlib.Path(_dither.__file__).parents[2]


def pictures(page):
    """The pictures that a page shows."""
    return set(re.findall(r"!\[[^]]+\]\(images/([^)]+)\)", page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, tmp_path):
    # Matrices are small, and other tests run beside: threads that wait for each other would take longer than one.
    threads = {"OMP_NUM_THREADS": "1", "DITHER_NUM_THREADS": "1"}
    env = {**os.environ, **threads, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "MPLCONFIGDIR": str(tmp_path)}
    command = [sys.executable, ROOT / "tools" / "check_page.py", page, "--pictures", tmp_path / "images"]
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {made.name for made in (tmp_path / "images").iterdir()} == pictures(page)


def test_pictures():
    shown = [name for page in PAGES for name in pictures(page)]
    committed = list((TUTORIALS / "images").iterdir())
    assert sorted(shown) == sorted(picture.name for picture in committed)
    assert {picture.name: size for picture in committed if (size := picture.stat().st_size) > 100_000} == {}


def test_each_leads_to_the_next():
    assert len(PAGES) >= 5
    for page, following in itertools.pairwise(PAGES):
        assert f"]({following.name})" in page.read_text()


def test_links():
    for page in (*PAGES, TUTORIALS / "README.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (TUTORIALS / link).exists(), f"{page.name} links {link}"
