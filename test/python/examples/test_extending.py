"""The code of docs/extending.md runs as it stands."""

import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "extending.md"


def test_blocks_run(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    program = tmp_path / "extending.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_files_that_it_names_are_there():
    root = PAGE.parents[1]
    names = set(
        re.findall(r"\b((?:python|lib|test|include|dialect)/[\w./-]+\.(?:py|cpp|h|md|mlir|td))\b", PAGE.read_text())
    )
    assert len(names) > 8
    assert [name for name in names if not (root / name).exists()] == []
