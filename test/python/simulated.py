"""Runs given PTX on a simulated GPU, with the checks that conftest.py asks for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import numpy as np
from dither import _dither

#: Simulated GPUs, one with what a new driver takes besides.
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a", "sm_100a:ptx91")


@dataclasses.dataclass(frozen=True)
class Out:
    """An array that the kernel writes: all of it, and reads only what was written."""

    shape: tuple[int, ...]
    dtype: np.dtype | type = np.uint8


def run(
    ptx: str,
    name: str,
    arguments: Sequence[np.ndarray | Out | int | np.int64 | None],
    grid: tuple[int, int, int],
    threads: int,
    shared: int = 0,
) -> list[np.ndarray]:
    """The arrays for the `Out`s, in order. Arrays are read, None is a null pointer, an int has 32 bits; `shared`
    bytes are static and dynamic. Raises _dither.RuntimeFailure for a fault."""
    match = re.search(r"\.target (\w+)", ptx)
    assert match
    device = _dither.get_device(f"sim:{match.group(1)}")
    scalars = {int: "i32", np.int64: "i64"}
    kinds = [scalars.get(type(argument), "ptr") for argument in arguments]
    kernel = device.load(_dither.KernelImage(name, match.group(1), ptx.encode(), threads, shared, kinds))
    slots: list[int] = []
    memory: list[int] = []
    try:
        for argument in arguments:
            if isinstance(argument, int | np.int64):
                slots.append(int(argument))
            elif argument is None:
                slots.append(0)
            else:
                size = int(np.prod(argument.shape)) * np.dtype(argument.dtype).itemsize
                slots.append(device.allocate(size))
                memory.append(slots[-1])
            if isinstance(argument, np.ndarray):
                array = np.ascontiguousarray(argument)
                device.copy_in(slots[-1], array.ctypes.data, array.nbytes)
        kernel.launch(slots, grid)
        results = []
        for argument, slot in zip(arguments, slots, strict=True):
            if isinstance(argument, Out):
                results.append(np.empty(argument.shape, argument.dtype))
                written = _dither.first_unwritten(device, slot, results[-1].nbytes)
                if written != results[-1].nbytes:
                    raise RuntimeError(f"byte {written} of an output of {results[-1].nbytes} bytes was not written")
                device.copy_out(results[-1].ctypes.data, slot, results[-1].nbytes)
        return results
    finally:
        for pointer in memory:
            device.release(pointer)


def run_defined(ptx: str, *arguments) -> tuple[list[np.ndarray], int]:
    """As `run`, and the number of registers that needed a value: Triton leaves the sources of conversions undefined
    whose result it does not use, which the simulator says."""
    for undefined in range(33):
        try:
            return run(ptx, *arguments), undefined
        except RuntimeError as error:
            match = re.search(r"\(cvt\.[\w.]+\).* reads register (%r\d+), which was not written", str(error))
            if not match:
                raise
            ptx = ptx.replace("// %bb.0:", f"// %bb.0:\n\tmov.b32 {match.group(1)}, 0;", 1)
    raise AssertionError("more than 32 registers are not written")
