"""What the first launch of a process costs: compiled, and from disk.

    python -m benchmarks.startup [--quick] [--json FILE]

Each figure is the least of several processes, on the CPU, NumPy imported before:

import: `import dither`.
extension: loading the compiler and the runtime, at the first launch.
cold: the first launch with nothing on disk.
warm: the first launch with the kernel on disk: nothing of MLIR is set up.
next: another launch like it.
operator: the first call of an operator (NVFP4 of NumPy's float32) in a process, with its kernel on disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import timing

KERNEL = """
import dither, dither.language as dl

@dither.jit
def double(x, y, ROWS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, x.shape[1]))
    dl.store(y, (r, 0), t + t)
"""

PROCESS = """
import json, sys, time
import numpy as np
times = [time.perf_counter()]
import dither
times.append(time.perf_counter())
from dither import _dither
times.append(time.perf_counter())
sys.path.insert(0, sys.argv[1])
from kernel import double
x = np.ones((64, 256), np.float32)
y = np.zeros_like(x)
for _ in range(2):
    start = time.perf_counter()
    double[16](x, y, ROWS=4)
    times.append(time.perf_counter() - start)
assert (y == 2).all()
print(json.dumps({
    "import": times[1] - times[0], "extension": times[2] - times[1], "first": times[3], "next": times[4],
    "compiles": double.stats().compiles, "disk_hits": double.stats().disk_hits,
}))
"""


OPERATOR = """
import json, time
import numpy as np
import dither
x = np.ones((64, 256), np.float32)
start = time.perf_counter()
dither.quantize(x, "nvfp4")
print(json.dumps({"operator": time.perf_counter() - start}))
"""


def process(folder: Path, cache: Path, program: str = PROCESS) -> dict[str, float]:
    """Times of one process, in seconds, and where its kernel came from."""
    environment = timing.environment(DITHER_CACHE_DIR=str(cache), DITHER_DEVICE="cpu")
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def measure(quick: bool) -> dict[str, float]:
    """Milliseconds by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.py").write_text(KERNEL)
        cold = [process(folder, folder / f"cache{i}") for i in range(2 if quick else 5)]
        warm = [process(folder, folder / "cache0") for _ in range(5 if quick else 20)]
        process(folder, folder / "cache0", OPERATOR)
        operator = [process(folder, folder / "cache0", OPERATOR) for _ in range(5 if quick else 20)]
    assert all(run["compiles"] == 1 for run in cold) and all(run["disk_hits"] == 1 for run in warm)
    return {
        "import": 1e3 * min(run["import"] for run in warm),
        "extension": 1e3 * min(run["extension"] for run in warm),
        "cold": 1e3 * min(run["first"] for run in cold),
        "warm": 1e3 * min(run["first"] for run in warm),
        "next": 1e3 * min(run["next"] for run in warm),
        "operator": 1e3 * min(run["operator"] for run in operator),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.startup", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few processes")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(arguments)
    figures = measure(args.quick)
    machine = timing.machine()
    print(f"milliseconds, {machine['cpu']}, load {machine['load']}")
    print("  ".join(f"{name:>9}" for name in figures))
    print("  ".join(f"{value:9.3f}" for value in figures.values()))
    if args.json:
        args.json.write_text(json.dumps({"ms": figures, "machine": machine}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
