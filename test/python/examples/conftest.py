"""Pages whose code runs."""

import re
import subprocess
import sys

import pytest


@pytest.fixture
def run_page(tmp_path):
    """run_page(path, count) runs the `count` Python blocks of a page, one after the other in one program, and returns
    what it printed."""

    def run(page, count):
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        assert len(blocks) == count
        program = tmp_path / "page.py"
        program.write_text("\n".join(blocks))
        done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
