"""The code of docs/extending.md runs as it stands."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "extending.md"


def test_blocks_run(run_page):
    run_page(PAGE, 3)


def test_files_that_it_names_are_there():
    root = PAGE.parents[1]
    names = set(
        re.findall(r"\b((?:python|lib|test|include|dialect)/[\w./-]+\.(?:py|cpp|h|md|mlir|td))\b", PAGE.read_text())
    )
    assert len(names) > 8
    assert [name for name in names if not (root / name).exists()] == []
