"""What `import dither` imports, and what waits for its first use."""

import json
import os
import subprocess
import sys

#: Each takes a millisecond, or more than all of dither.
HEAVY = (
    "difflib",
    "dither._dither",
    "dither.compiler.lowering",
    "dither.jax",
    "dither.ops",
    "dither.programs",
    "dither.recipe",
    "dither.replay",
    "dither.torch",
    "jax",
    "ml_dtypes",
    "numpy",
    "pathlib",
    "torch",
)

IMPORTED = """
import json, sys
import dither, dither.language
first = sorted(sys.modules)
shown = dir(dither)
missing = [name for name in dither.__all__ if name not in shown or getattr(dither, name) is None]
try:
    dither.quantise
except AttributeError as error:
    message = str(error)
from dither import *
assert quantize is dither.quantize and "quantize" in vars(dither)
print(json.dumps([first, missing, message, sorted(sys.modules)]))
"""


def test_heavy_modules_wait():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, missing, message, then = json.loads(done.stdout)
    assert not set(HEAVY) & set(first)
    assert missing == []
    assert message == "module 'dither' has no attribute 'quantise'"
    assert "dither.ops" in then and "numpy" not in then


def test_a_launch_from_disk_takes_no_lowering(tmp_path):
    """Half of the compiler is not imported where code is there."""
    file = tmp_path / "kernel.py"
    file.write_text(
        "import dither, dither.language as dl\n"
        "@dither.jit\n"
        "def double(x, y):\n"
        "    t = dl.load(x, (0, 0), (4, 64))\n"
        "    dl.store(y, (0, 0), t + t)\n"
    )
    run = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import numpy as np\n"
        "from kernel import double\n"
        "x = np.ones((4, 64), np.float32); y = np.zeros_like(x)\n"
        "double[1](x, y)\n"
        "assert (y == 2).all()\n"
        "print(double.stats().disk_hits, 'dither.compiler.lowering' in sys.modules, 'dither.ops' in sys.modules)\n"
    )
    environment = {"DITHER_CACHE_DIR": str(tmp_path / "cache"), "DITHER_DEVICE": "cpu"}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", run], capture_output=True, text=True, check=True, env={**os.environ, **environment}
        ).stdout.split()
        for _ in range(2)
    ]
    assert outputs == [["0", "True", "False"], ["1", "False", "False"]]
