"""python -m programs: see `--help`, and docs/testing.md."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # python test/fuzz/programs
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from programs.command import main

if __name__ == "__main__":
    sys.exit(main())
