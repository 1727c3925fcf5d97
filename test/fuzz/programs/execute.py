"""Runs a program on a target and compares every byte with the reference."""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import math
import sys
import time
import types
from typing import Any

import numpy as np

from . import memory, reference
from .program import Program
from .reference import DTYPES

#: Levels of the CPU, and simulated GPUs.
HOSTS = {
    "base": "host:base",
    "avx2": "host:avx2",
    "avx512": "host:avx512",
    "vbmi": "host:avx512vbmi",
    "fp16": "host:avx512fp16",
}
_BLACKWELL = ("sm_100a", "sm_103a", "sm_120a", "sm_121a")
GPUS = ("sm_80", "sm_86", "sm_89", "sm_90a", *_BLACKWELL, *(f"{chip}:ptx91" for chip in _BLACKWELL))


@dataclasses.dataclass
class Outcome:
    """`kind` is "ok", "undefined", or a failure: mismatch, refused, fault, error, crash, hang or slow."""

    kind: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether this is a finding."""
        return self.kind not in ("ok", "undefined")


@dataclasses.dataclass
class Expected:
    """Arguments before a launch, and what the reference leaves in them."""

    before: list[memory.Memory]
    after: list[memory.Memory]
    loose: list[np.ndarray]


def constant(value: Any, names: dict[str, Any]) -> Any:
    """A constexpr: formats are given as the text that makes them."""
    return eval(value, names) if isinstance(value, str) and value.startswith("dither.") else value


def expect(program: Program, backwards: bool = False) -> Expected:
    """Runs the reference, the grid from its end if asked for. Raises reference.Undefined."""
    before = memory.make_all(program.arguments)
    after = memory.copies(before)
    loose = {id(m.whole): np.zeros_like(m.whole) for m in after}
    tensors = {
        a.name: m.tensor(a.shapes or program.shapes or "trailing", loose[id(m.whole)])
        for a, m in zip(program.arguments, after, strict=True)
    }
    constants = {
        name: reference.Constexpr(constant(value, reference.NAMES)) for name, value in program.constants.items()
    }
    reference.run(program.source, program.kernel, {**tensors, **program.numbers, **constants}, program.grid, backwards)
    return Expected(before, after, [t.loose for t in tensors.values()])


def has_order(program: Program, expected: Expected) -> bool:
    """Whether the result depends on the order in which programs run: then it is not defined."""
    if math.prod(program.grid) == 1:
        return False
    other = expect(program, backwards=True)
    return any((a.whole != b.whole).any() for a, b in zip(expected.after, other.after, strict=True))


_texts = itertools.count()


def kernel_of(program: Program) -> Any:
    """The kernel, compiled by Python from a text that linecache knows."""
    file = f"<program {next(_texts)}>"
    linecache.cache[file] = (len(program.source), None, program.source.splitlines(keepends=True), file)
    module = types.ModuleType("a_random_program")
    sys.modules[module.__name__] = module  # dataclasses look there
    exec(compile(program.source, file, "exec"), module.__dict__)
    return getattr(module, program.kernel)


def forget() -> None:
    """Drops the texts of `kernel_of`."""
    for file in [file for file in linecache.cache if file.startswith("<program ")]:
        del linecache.cache[file]


def launch(program: Program, target: str, arrays: dict[str, Any]) -> None:
    """Compiles and runs the kernel: as users do where the target is what a device has, else step by step."""
    import dither
    from dither.devices import get_device

    kernel = kernel_of(program)
    names = {"dither": dither, "dl": dither.language}
    constants = {name: constant(value, names) for name, value in program.constants.items()}
    given = {**arrays, **program.numbers, **constants}
    host = HOSTS.get(target)
    if host is None or host == get_device("cpu").target:
        device = "cpu" if host else target if target.startswith("cuda:") else f"sim:{target}"
        kernel[program.grid](**given, device=device, num_warps=program.num_warps)
        return
    compiled = kernel.lower(**given, target=host, num_warps=program.num_warps).compile()
    compiled.launch(get_device("cpu"), program.grid, kernel.signature.bind((), given).arguments)


def run(program: Program, target: str, expected: Expected) -> Outcome:
    """What the target does with the program."""
    import dither
    from dither import _dither

    start = time.process_time()
    memories = memory.copies(expected.before)
    arrays = {a.name: m.array() for a, m in zip(program.arguments, memories, strict=True)}
    try:
        launch(program, target, arrays)
    except dither.CompileError as error:
        if "tiles side by side" in str(error):  # a sum of what a loop hands on in parts, which is refused by name
            return Outcome("undefined", "", time.process_time() - start)
        return Outcome("refused", str(error), time.process_time() - start)
    except _dither.RuntimeFailure as error:
        return Outcome("fault", str(error), time.process_time() - start)
    except Exception as error:
        return Outcome("error", f"{type(error).__name__}: {error}", time.process_time() - start)
    seconds = time.process_time() - start
    for got, want, loose in zip(memories, expected.after, expected.loose, strict=True):
        detail = difference(got, want, loose)
        if detail:
            return Outcome("mismatch", detail, seconds)
    return Outcome("ok", "", seconds)


def difference(got: memory.Memory, want: memory.Memory, loose: np.ndarray) -> str:
    """The first byte that differs, in words; empty where none does."""
    wrong = got.whole != want.whole
    if not wrong.any():
        return ""
    name, bits = got.argument.dtype, DTYPES[got.argument.dtype].bits
    if loose.any():  # any NaN is as good as another
        size = max(bits // 8, 1)
        begin = got.begin % size
        length = (len(got.whole) - begin) // size * size
        elements: np.ndarray = got.whole[begin : begin + length].view(DTYPES[name].numpy)
        nan = np.isnan(reference.widen(reference.Tile(elements, DTYPES[name])).data)
        wrong[begin : begin + length] &= ~(np.repeat(nan, size) & (loose[begin : begin + length] > 0))
        if not wrong.any():
            return ""
    first = int(np.flatnonzero(wrong)[0])
    element, where = _place(got, first)
    size = max(bits // 8, 1)
    at = got.begin + (first - got.begin) // size * size
    have, expected = (bytes(m.whole[at : at + size][::-1]).hex() for m in (got, want))
    return (
        f"{where} of {got.argument.name}{element}: found {have}, expected {expected}; {int(wrong.sum())} bytes differ"
    )


def _place(got: memory.Memory, byte: int) -> tuple[str, str]:
    """Which element a byte is of, and whether it is a guard."""
    shape, bits = got.argument.shape, DTYPES[got.argument.dtype].bits
    offset = (byte - got.begin) * 8 // bits
    if byte < got.begin:
        return f" ({got.begin - byte} bytes before it)", "guard"
    index: list[int] = []
    for stride in got.strides:
        index.append(offset // stride)
        offset %= stride
    inside = all(i < n for i, n in zip(index, shape, strict=True)) and (shape or offset == 0)
    return str(tuple(index)), "element" if inside else "guard"
