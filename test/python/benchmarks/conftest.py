"""The benchmarks are a package at the root of the tree; the NumPy reference lies one folder up."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
for place in (ROOT, ROOT / "test" / "python"):
    if str(place) not in sys.path:
        sys.path.append(str(place))


@pytest.fixture(scope="session")
def limit():
    """The hand-written kernels; skips where the machine lacks their instructions, fails where they do not build."""
    from benchmarks import limit

    try:
        return limit.load()
    except limit.LimitError as error:
        if "failed" in str(error):
            raise
        pytest.skip(str(error))
