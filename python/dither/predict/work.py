"""What one block of a kernel does, by the simulator's counters and by what ptxas made of the PTX."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import ptxas
from ..data_classes import dataclass
from ..profile import CACHED, Summary, Traffic
from . import pipes, sass

#: A load whose lanes take fewer bytes each waits for no memory of its own: a scalar that all blocks read.
_WIDE = 8
#: Of so many batches of loads some are looked for whose bytes are those of memory, but for such a part of them.
_MOST_BATCHES, _SAME = 12, 0.03
#: Bytes that a wavefront moves between an SM and its first cache.
_WAVEFRONT = 128


@dataclass(frozen=True)
class Work:
    """What a launch does, as averages of its blocks. All that the model knows of a kernel.

    Attributes:
        source: "sass" where machine code was counted, "ptx" where the PTX was, whose registers are not known.
        blocks, threads: of the launch, and of a block.
        registers: of a thread; 0 if not known.
        shared: bytes of a block.
        loaded, stored: bytes between memory and the chip, of a block. What all blocks read is in L2.
        minimum: bytes that a block's part of the arguments has: each once.
        instructions: of all warps of a block.
        pipes: those among them that take a pipe; of `lsu` wavefronts of 128 bytes.
        prologue: of the instructions, the part before the first load.
        waits: how often a warp waits for loads, and of these for memory (others are for L2).
        batch: bytes that a block asks for before it waits, at most.
        barriers: that a warp waits at.
        fetched, fetched_memory: of the waits, and of those for memory, the ones for loads that the round before of a
            loop made.
        ahead: instructions that a warp issues between such a load and its use.
        spills: bytes that a thread stores and loads because ptxas had no register for them; 0 if not known.
    """

    kernel: str
    source: str
    blocks: int
    threads: int
    registers: int
    shared: int
    loaded: float
    stored: float
    minimum: float
    instructions: float
    pipes: dict[str, float]
    prologue: float
    waits: float
    memory_waits: float
    batch: float
    barriers: float
    fetched: float = 0.0
    fetched_memory: float = 0.0
    ahead: float = 0.0
    spills: int = 0

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.threads // 32)

    def on_grid(self, blocks: int) -> Work:
        """The same kernel with another number of blocks."""
        return dataclasses.replace(self, blocks=blocks)


def of_summary(one: Summary, tools: tuple[str, str] | None = None) -> Work:
    """That of launches that `dither.profile` recorded and summarized. Tools are as of `ptxas.find_tools`, by default
    those that it finds. Raises ValueError where ptxas refuses."""
    blocks = one.grid[0] * one.grid[1] * one.grid[2]
    launches = one.launches * blocks
    warps = -(-one.threads // 32)
    times = {line: n / (launches * warps) for line, n in _executed(one).items()}
    tools = tools or ptxas.find_tools(one.target)
    if tools:
        resources, listing = ptxas.disassemble(tools, one.ptx, one.target)
        used = resources[one.kernel]
        ops, source, registers, spills = list(_of_sass(listing, times)), "sass", used.registers, used.spills
    else:
        ops, source, registers, spills = list(_of_ptx(one, times)), "ptx", 0, 0
    counts: Counter[str] = Counter()
    for op in ops:
        if op.pipe:
            counts[op.pipe] += op.times * warps  # type: ignore[assignment]
    moved = sum(t.loaded + t.stored + t.updated for t in one.traffic)
    counts["lsu"] = (moved / _WAVEFRONT + one.counts["wavefronts"]) / launches  # type: ignore[assignment]
    counts["lsu"] += sum(op.spilled * op.times for op in ops) * warps  # type: ignore[assignment]
    own = [t for t in one.traffic if not _is_shared(t)]
    loaded = sum(t.moved - t.stored for t in own) / launches
    total = sum(op.times for op in ops)
    before, batches = _batches(ops)
    wide = [batch for batch in batches if batch.size >= _WIDE]
    memory_waits, fetched_memory, most = _of_memory(wide, loaded / (32 * warps))
    waits = sum(batch.times for batch in batches)
    fetched = sum(batch.times for batch in batches if batch.ahead)
    ahead = sum(batch.times * batch.ahead for batch in batches)
    return Work(
        one.kernel,
        source,
        blocks,
        one.threads,
        registers,
        one.shared,
        loaded,
        sum(t.stored for t in one.traffic) / launches,
        sum(t.minimum for t in own) / launches,
        total * warps,
        dict(counts),
        before / total if total else 0.0,
        max(waits, 1.0),
        max(memory_waits, 1.0),
        min(most * 32 * warps, loaded) if wide else loaded,
        one.barriers / (launches * warps),
        fetched,
        fetched_memory,
        ahead / fetched if fetched else 0.0,
        spills,
    )


def _is_shared(t: Traffic) -> bool:
    """Whether all blocks read the same elements, as of gamma or a tensor's amax."""
    return t.size <= CACHED and t.fetched + t.updated > 1.5 * t.size * t.launches


def _executed(one: Summary) -> dict[int, int]:
    """How often warps ran each line of the PTX."""
    found: Counter[int] = Counter()
    for line in one.lines:
        found[line.line] = max(found[line.line], line.counts["warps"])
    return found


@dataclass(frozen=True)
class _Op:
    """An instruction that runs `times` in a warp; `load` are the bytes that a lane takes from global memory, `written`
    the registers that it waits with for them, or _COPIES. `place` is its address or line, and `back` where a loop that
    ends with it begins. `spilled` are wavefronts between a warp's registers and memory of its own."""

    times: float
    pipe: str | None
    load: int
    written: frozenset[str]
    read: frozenset[str]
    place: int = 0
    back: int | None = None
    spilled: int = 0


@dataclass(frozen=True)
class _Batch:
    """Loads that a warp waits for together: bytes of a lane, how often, and instructions between the last of them and
    the wait, where the round before of a loop made them."""

    size: float
    times: float
    ahead: float = 0.0


#: Stands for shared memory that asynchronous copies write to.
_COPIES = frozenset({"copies"})


def _of_sass(listing: str, times: Mapping[int, float]) -> Iterator[_Op]:
    for i, often in sass.executed(sass.parse(listing), times):
        if i.base == "LDGSTS":
            yield _Op(often, None, i.width // 8, _COPIES, frozenset())
            continue
        if i.base == "DEPBAR":
            yield _Op(often, None, 0, frozenset(), _COPIES)
            continue
        load = i.width // 8 if i.base == "LDG" else 0
        parts = i.operands.split(",")
        # The first operand is written but by stores; a load writes as many registers as it takes words.
        reads = ",".join(parts if i.base in ("STG", "STS", "ST", "RED") else parts[1:])
        first = re.match(r"\s*R(\d+)", parts[0])
        count = max(1, load // 4)
        written = {f"R{int(first[1]) + k}" for k in range(count)} if first and load else set()
        if load > 16 and (second := re.match(r"\s*R(\d+)", parts[1])):  # of 256 bits: two groups of four
            written = {f"R{int(first[1]) + k}" for k in range(4)} if first else set()
            written |= {f"R{int(second[1]) + k}" for k in range(4)}
            reads = ",".join(parts[2:])
        read = {f"R{n}" for n in re.findall(r"\bR(\d+)", reads)}
        read |= {f"R{int(n) + 1}" for n in re.findall(r"\bR(\d+)\.64", reads)}
        back = i.target if i.target is not None and i.target <= i.address else None
        spilled = i.width // 32 if i.base in ("LDL", "STL") else 0
        yield _Op(often, pipes.of_sass(i.base), load, frozenset(written), frozenset(read), i.address, back, spilled)


def _of_ptx(one: Summary, times: Mapping[int, float]) -> Iterator[_Op]:
    text = one.ptx.splitlines()
    labels = {line.strip(" :"): at for at, line in enumerate(text, 1) if re.match(r"\s*\$L\w+:", line)}
    for line in sorted({line.line: line for line in one.lines}.values(), key=lambda line: line.line):
        often = times.get(line.line, 0.0)
        if not often or line.kind in pipes.NO_CODE:
            continue
        whole = text[line.line - 1]
        load, written = 0, frozenset[str]()
        if line.text.startswith("cp.async.wait"):
            yield _Op(often, None, 0, frozenset(), _COPIES)
            continue
        names = frozenset(re.findall(r"%\w+", whole))
        if re.match(r"ld\.global", line.text):
            inside, _, rest = whole.partition("[")
            written = frozenset(re.findall(r"%\w+", inside.partition("ld.global")[2]))
            names = frozenset(re.findall(r"%\w+", rest))
            load = line.counts["bytes"] // max(1, line.counts["lanes"])
        elif re.match(r"cp\.async\.c[ag]", line.text):
            load, written = int(whole.rstrip(" ;").split(",")[2]), _COPIES
        branch = re.search(r"\bbra(?:\.uni)?\s+(\$L\w+)", whole)
        target = labels.get(branch[1]) if branch else None
        back = target if target is not None and target <= line.line else None
        yield _Op(often, pipes.of_class(line.kind), load, written, names, line.line, back)


def _batches(ops: Iterable[_Op]) -> tuple[float, list[_Batch]]:
    """Instructions before the first load, and batches of loads. A batch ends where a register is read that one of its
    loads writes, which may be in the next round of a loop. All copies until a wait are one, in whatever rounds."""
    before, seen = 0.0, False
    found: list[_Batch] = []
    done: list[_Op] = []
    waiting: dict[str, int] = {}  # registers, and which operation loads them
    size, often = 0.0, 0.0
    for op in ops:
        seen = seen or op.load > 0
        before += 0.0 if seen else op.times
        if not op.read.isdisjoint(waiting):
            found.append(_Batch(size, often))
            waiting, size, often = {}, 0, 0.0
        waiting |= dict.fromkeys(op.written, len(done))
        done.append(op)
        if op.written == _COPIES:
            size, often = size + op.load * op.times, max(often, 1.0)
        elif op.load:
            size, often = size + op.load, max(often, op.times)
        if op.back is not None and (batch := _next_round(done, waiting, op.back)):
            found.append(batch)
            waiting, size, often = {}, 0, 0.0
    return before, found


def _of_memory(batches: Sequence[_Batch], loaded: float) -> tuple[float, float, float]:
    """How often a warp waits for memory, how often for what it asked a round before, and the bytes of a lane that it
    asks memory for at once, at most, where memory gives a lane `loaded` bytes. Others are for what all blocks read,
    which L2 has. The batches whose bytes are as many are those of memory, if some are; else each has a part."""
    bytes_of = {number: batch.size * batch.times for number, batch in enumerate(batches)}
    parts = (
        some
        for count in range(1, len(batches) + 1 if len(batches) <= _MOST_BATCHES else 1)
        for some in itertools.combinations(bytes_of, count)
    )
    found = next((some for some in parts if abs(sum(bytes_of[n] for n in some) - loaded) <= _SAME * loaded), None)
    some = [batches[n] for n in bytes_of if found is None or n in found]
    part = 1.0 if found else min(1.0, loaded / max(sum(bytes_of.values()), 1e-9))
    return (
        part * sum(batch.times for batch in some),
        part * sum(batch.times for batch in some if batch.ahead),
        part * max((batch.size for batch in some), default=0.0),
    )


def _next_round(done: Sequence[_Op], waiting: Mapping[str, int], back: int) -> _Batch | None:
    """What the next round of a loop waits for, whose last operation is the last of `done`."""
    start = next((at for at, op in enumerate(done) if op.place >= back and op.place), len(done))
    loads = {register: at for register, at in waiting.items() if at >= start and done[at].written != _COPIES}
    if not loads:
        return None
    use = next((at for at in range(start, len(done)) if not done[at].read.isdisjoint(loads)), None)
    if use is None:
        return None
    last = max(loads.values())
    rounds = done[last].times
    size = sum(done[at].load for at in set(loads.values()))
    return _Batch(size, max(rounds - 1, 0.0), len(done) - last + use - start)


def to_json(work: Work) -> dict[str, Any]:
    """For files."""
    return dataclasses.asdict(work)


def of_json(found: Mapping[str, Any]) -> Work:
    """From what `to_json` gave. Raises ValueError for other keys."""
    names = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(Work)}
    if set(found) - set(names) or {name for name, needed in names.items() if needed} - set(found):
        raise ValueError(f"found a kernel's work with {', '.join(sorted(found))}, expected {', '.join(sorted(names))}")
    return Work(**found)
