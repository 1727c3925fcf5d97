"""What launches of a kernel cost: how many compilations, of what, and why."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterable, Mapping, Sequence

from . import knobs
from .data_classes import dataclass


@dataclass(frozen=True)
class Build:
    """Code that a kernel got: from the compiler or from disk.

    Attributes:
        source: "compiler" or "disk".
        target: what it is for.
        milliseconds: what it took.
        fields: what it is specialized by, by name.
        earlier: those of earlier builds.
    """

    source: str
    target: str
    milliseconds: float
    fields: Mapping[str, str] = dataclasses.field(repr=False)
    earlier: tuple[Mapping[str, str], ...] = dataclasses.field(default=(), repr=False, compare=False)

    @functools.cached_property
    def differs(self) -> tuple[tuple[str, str, str], ...]:
        """(field, its value before, its value now) against the most similar earlier build; empty for the first.

        Found when it is asked for: with hundreds of earlier builds it takes as long as a small kernel's compilation.
        """
        return differences(self.fields, self.earlier)

    @property
    def reason(self) -> str:
        """Why there is this build, in words; the first field that differs is the one to look at."""
        if not self.differs:
            return "the first launch"
        return "; ".join(f"{name} is {now}, was {before}" for name, before, now in self.differs)


@dataclass(frozen=True)
class Stats:
    """What launches of a kernel cost so far; `kernel.stats()` and `kernel.stats` are the same.

    Attributes:
        compiles: compilations.
        memory_hits: launches of code that was there.
        disk_hits: kernels read from disk.
        compile_ms: milliseconds of all compilations.
        builds: one for each compilation and disk hit, oldest first (the last 256).
    """

    compiles: int = 0
    memory_hits: int = 0
    disk_hits: int = 0
    compile_ms: float = 0.0
    builds: tuple[Build, ...] = ()

    def __call__(self) -> Stats:
        return self


def total(parts: Sequence[Stats]) -> Stats:
    """The sum of the stats of variants of a kernel."""
    return Stats(
        sum(part.compiles for part in parts),
        sum(part.memory_hits for part in parts),
        sum(part.disk_hits for part in parts),
        sum(part.compile_ms for part in parts),
        tuple(build for part in parts for build in part.builds),
    )


def differences(fields: Mapping[str, str], earlier: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str, str], ...]:
    """The fields that differ from the most similar of `earlier` (the latest of those), in their order."""
    best: tuple[tuple[str, str, str], ...] | None = None
    for other in earlier:
        names = [*fields, *(name for name in other if name not in fields)]
        pairs = ((name, other.get(name, "absent"), fields.get(name, "absent")) for name in names)
        found = tuple(pair for pair in pairs if pair[1] != pair[2])
        if best is None or len(found) <= len(best):
            best = found
    return best or ()


def log(kernel: str, build: Build) -> None:
    """With DITHER_LOG=recompiles, a line about a build on stderr."""
    if "recompiles" in knobs.get("log"):
        how = "compiled" if build.source == "compiler" else "read from disk"
        took = f"{build.milliseconds:.1f} ms"
        print(f"dither: {how} {kernel} for {build.target} in {took}: {build.reason}", file=sys.stderr)
