"""Every kernel of the operator library on a GPU, its results against those of the CPU, bit for bit.

    python tools/gpu_checks/compare.py --device cuda:0 --json FILE [--filter GLOB] [--shard 0/4] [--dry-run]

With --dry-run the fake driver takes the launches, and its log is checked instead of results.
"""

from __future__ import annotations

import argparse
import ctypes
import fnmatch
import json
import re
import sys
import time
import zlib
from typing import Any

import dither
import numpy as np
from dither.devices import Device, get_device
from dither.ops.allocate import numpy_type
from dither.ops.library import Entry, Tensor, library

#: The table's shape, and one whose rows and columns end within a block and within a tile.
SHAPES = ((256, 1024), (133, 1000))


def inputs(entry: Entry, rng: np.random.Generator) -> dict[str, Any]:
    """Arrays for every tensor: random where the kernel reads, zero where it writes."""
    return {
        name: None if tensor is None else fill(name, tensor, rng) if name in entry.reads else empty(tensor)
        for name, tensor in entry.tensors.items()
    }


def empty(tensor: Tensor) -> np.ndarray:
    """Zeros for one tensor."""
    dtype, shape = tensor[:2]
    if dtype.bits == 4:
        shape = (*shape[:-1], (shape[-1] + 1) // 2)
    return np.zeros(shape, numpy_type(dtype))


def fill(name: str, tensor: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Contents of one tensor; floats have rows of different magnitude, subnormals, zeros, infinities and NaN."""
    shape = empty(tensor).shape
    kind = numpy_type(tensor[0])
    if name in ("data", "scale") or not tensor[0].is_float:
        return rng.integers(0, 256, (*shape[:-1], shape[-1] * kind.itemsize), np.uint8).view(kind)
    if name == "amax":
        return np.array(rng.uniform(1, 1e4), kind)
    if len(shape) == 2:
        x = rng.standard_normal(shape, np.float32) * np.exp2(rng.integers(-30, 30, (shape[0], 1))).astype(np.float32)
        flat = x.reshape(-1)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 448.0, 6.0]
        where = rng.choice(flat.size, 20 * len(special), replace=False)
        flat[where] = np.tile(np.array(special, np.float32), 20)
        with np.errstate(over="ignore"):
            return x.astype(kind)
    return rng.uniform(-2, 2, shape).astype(kind)


def launch(entry: Entry, arrays: dict[str, Any], device: Device) -> dict[str, np.ndarray]:
    """Runs the kernel on copies; what its outputs hold afterwards."""
    own: dict[str, Any] = {name: None if array is None else array.copy() for name, array in arrays.items()}
    arguments = {name: None if array is None else view(entry, name, array) for name, array in own.items()}
    entry.kernel.launch(entry.grid, **arguments, **entry.constexprs, device=device)
    device.synchronize()
    return {name: array for name, array in own.items() if array is not None and name not in entry.reads}


def expected(entry: Entry, arrays: dict[str, Any], found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the CPU makes of the same bytes, as arrays like those that were `found`: kernels of the CPU may take
    elements where those of a GPU take words."""
    own = {name: None if array is None else retyped(array, entry.tensors[name]) for name, array in arrays.items()}
    made = launch(entry, own, get_device("cpu"))
    return {name: array.reshape(-1).view(found[name].dtype).reshape(found[name].shape) for name, array in made.items()}


def retyped(array: np.ndarray, tensor: Tensor | None) -> np.ndarray:
    """An array's bytes as those of a tensor."""
    assert tensor is not None
    wanted = empty(tensor)
    return array.reshape(-1).view(wanted.dtype).reshape(wanted.shape)


def view(entry: Entry, name: str, array: np.ndarray) -> Any:
    """The kernel argument of an array."""
    tensor = entry.tensors[name]
    assert tensor is not None
    dtype, shape, *shapes = tensor
    typed = (dtype, shape) if dtype.bits == 4 else ()
    return dither.view(array, *typed, shapes=shapes[0] if shapes else "trailing")


def difference(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> str:
    """Which outputs differ and where first; empty where none does. NaN of floats are all the same."""
    for name, want in expected.items():
        got = found[name]
        bits = f"u{want.dtype.itemsize}"
        same = got.view(bits) == want.view(bits)
        if want.dtype.itemsize > 1:
            same |= np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32))
        if not same.all():
            where = tuple(int(i) for i in np.argwhere(~same)[0])
            one, two = got.view(bits)[where], want.view(bits)[where]
            return (
                f"{name} differs in {int((~same).sum())} of {same.size}, first at {where}: {one:#x}, expected {two:#x}"
            )
    return ""


class Log:
    """The launch log of the fake driver, which must be loaded already."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(dither.knobs.get("libcuda"))
        self.library.fakeCudaLaunches.restype = ctypes.c_char_p
        self.seen = 0
        self.new()

    def new(self) -> list[str]:
        """Launches since the last call."""
        lines = self.library.fakeCudaLaunches().decode().splitlines()
        fresh, self.seen = lines[self.seen :], len(lines)
        return fresh


def check_launch(entry: Entry, lines: list[str], target: str) -> str:
    """Whether the log holds the one launch of this entry, with its grid, threads and parameters; else why not."""
    if len(lines) != 1:
        return f"found {len(lines)} launches, expected one"
    found = re.fullmatch(r"(\w+) grid=(\S+) block=(\d+)x1x1 shared=(\d+) stream=0 params=(\S*)", lines[0])
    if found is None:
        return f"found '{lines[0]}', expected a launch"
    grid = "x".join(map(str, (*entry.grid, 1, 1)[:3]))
    image = entry.compile(target).image
    wanted = (entry.kernel.__name__, grid, str(image.num_threads), len(image.params))
    got = (found[1], found[2], found[3], len(found[5].split(",")))
    return "" if got == wanted else f"found the launch {got}, expected {wanted}"


def check(
    shape: tuple[int, int], names: str, shard: tuple[int, int], device: Device, dry: bool
) -> list[dict[str, Any]]:
    """One result for each entry of the table for `shape`: name, what is wrong if anything, and seconds."""
    cpu = get_device("cpu")
    reference = {entry.name: entry for entry in library(cpu.target, shape)}
    log = Log() if dry else None
    results = []
    for number, entry in enumerate(library(device.target, shape)):
        if number % shard[1] != shard[0] or not fnmatch.fnmatch(entry.name, names):
            continue
        start = time.perf_counter()
        rng = np.random.default_rng(zlib.crc32(entry.name.encode()))
        arrays = inputs(entry, rng)
        try:
            found = launch(entry, arrays, device)
            if log is not None:
                problem = check_launch(entry, log.new(), device.target)
            else:
                # Operators of one pass on a CPU have two on a GPU: kernels that only its table has.
                problem = difference(found, expected(reference.get(entry.name, entry), arrays, found))
        except Exception as error:  # whatever it is, it is this kernel's result
            problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        seconds = time.perf_counter() - start
        results.append({"name": f"{entry.name} {shape[0]}x{shape[1]}", "error": problem, "seconds": round(seconds, 3)})
    return results


def main() -> int:
    p = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--json", required=True)
    p.add_argument("--filter", default="*")
    p.add_argument("--shard", default="0/1", help="I/N: every Nth entry from the Ith on")
    p.add_argument("--dry-run", action="store_true")
    args = p.parse_args()
    index, count = map(int, args.shard.split("/"))
    device = get_device(args.device)
    results = [r for shape in SHAPES for r in check(shape, args.filter, (index, count), device, args.dry_run)]
    with open(args.json, "w") as file:
        json.dump(results, file, indent=1)
    for result in results:
        if result["error"]:
            print(f"{result['name']}: {result['error']}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
