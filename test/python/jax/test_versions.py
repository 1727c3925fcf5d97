"""Versions of JAX."""

import subprocess
import sys

import pytest

pytest.importorskip("jax")
from dither.jax import versions


def test_what_is_promised():
    versions.check("0.10.2")
    versions.check("0.10.99.dev20260101")
    versions.check("0.11.2")
    for version in ("0.9.9", "0.12.0", "1.10.0", "nightly"):
        expected = rf"found JAX {version}, expected 0.10 to 0.11: dither.jax is made for these"
        with pytest.raises(ImportError, match=expected):
            versions.check(version)


def test_import_beside_another():
    """The first line that fails names the version, whatever names that version lacks."""
    code = "import jax; jax.__version__ = '0.4.30'; import dither; dither.quantize(jax.numpy.ones((2, 32)), 'nvfp4')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].startswith("ImportError: found JAX 0.4.30, expected 0.10")
