"""The program of docs/prediction.md."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_runs():
    command = [sys.executable, ROOT / "tools" / "check_page.py", ROOT / "docs" / "prediction.md"]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert (made.returncode, made.stdout) == (0, "1 commands, 0 problems\n"), made.stderr
