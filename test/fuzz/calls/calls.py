"""A sequence of calls: drawn as numbers, so that any of them can be left out; run on dither and on the model."""

from __future__ import annotations

import dataclasses
import os
import random
import tempfile
import threading
from typing import Any

import ml_dtypes
import numpy as np

from . import kernels

DTYPES = (np.float32, np.float32, ml_dtypes.bfloat16, np.float16)
GAINS: tuple[Any, ...] = (0, 1, True, 2.0, -0.0, 0.0, 3, 1.0)
CONFIGS = (
    *(kernels.Config(), kernels.Config(1.0), kernels.Config(True), kernels.Config(0.0), kernels.Config(-0.0)),
    *(kernels.Config(2, True), kernels.Config(2, True, "other"), kernels.Config(3)),
)
NUMBERS: tuple[Any, ...] = (1, 2.0, -1.0, 3, 0.5, np.int64(2), np.float32(0.5), -2, 0)


class Wrong(Exception):
    """dither did something else than the model."""


@dataclasses.dataclass(frozen=True)
class Call:
    """What to do, and numbers that choose with what."""

    what: str
    numbers: tuple[int, ...]


def draw(seed: int, length: int = 40) -> list[Call]:
    """The calls of a seed."""
    rng = random.Random(seed)
    table = {
        "launch": 20,
        "prepare": 3,
        "prepared": 6,
        "gain": 3,
        "clear": 0.5,
        "cache": 0.5,
        "threads": 1.5,
        "fill": 1,
        "overlap": 3,
        "refused": 2,
        "alias": 2,
    }
    names = rng.choices(list(table), list(table.values()), k=length)
    return [Call(name, tuple(rng.randrange(1 << 20) for _ in range(24))) for name in names]


@dataclasses.dataclass
class View:
    """A part of a base: for the model, and as a launch gets it."""

    base: int
    rows: slice
    columns: slice
    array: np.ndarray
    given: Any
    places: frozenset[int]

    def same(self, other: View) -> bool:
        """Whether both are one tensor."""
        return (self.base, self.rows, self.columns) == (other.base, other.rows, other.columns)


@dataclasses.dataclass
class Prepared:
    """A prepared launch and what it was prepared with."""

    function: Any
    kernel: str
    views: list[View]
    number: Any
    gain: Any
    config: kernels.Config


class Session:
    """Arrays, their model, and what has been prepared."""

    def __init__(self) -> None:
        self.bases = [np.zeros((14, 40), dtype) for dtype in DTYPES]
        self.truth = [base.copy() for base in self.bases]
        for i in range(len(self.bases)):
            self.refill(i, i)
        self.gain: Any = 1
        kernels.GAIN = 1
        self.prepared: list[Prepared] = []

    def refill(self, base: int, seed: int) -> None:
        """New small integers in a base: sums and products are exact."""
        values = np.random.PCG64(seed).random_raw(self.bases[base].size) % 17
        fresh = (values.astype(np.float32) - 8).reshape(self.bases[base].shape)
        self.bases[base][...] = fresh.astype(self.bases[base].dtype)
        self.truth[base][...] = self.bases[base]

    def view(self, numbers: tuple[int, ...], shape: tuple[int, int]) -> View:
        """A tensor of a shape somewhere in a base, by one of the libraries."""
        base = numbers[0] % len(self.bases)
        step = 2 if numbers[1] % 5 == 0 and 2 * shape[0] <= 14 else 1
        row = numbers[2] % (14 - step * (shape[0] - 1))
        column = numbers[3] % (40 - shape[1] + 1) // (1 if numbers[3] % 3 else 8) * (1 if numbers[3] % 3 else 8)
        return self.at(
            base, slice(row, row + step * (shape[0] - 1) + 1, step), slice(column, column + shape[1]), numbers[4]
        )

    def at(self, base: int, rows: slice, columns: slice, how: int) -> View:
        """A view, as NumPy's array, as torch's tensor, as something with DLPack, or as a `dither.view`."""
        import dither

        array = self.bases[base][rows, columns]
        places = np.arange(self.bases[base].size).reshape(self.bases[base].shape)[rows, columns]
        given: Any = array
        kind = how % 6
        if kind in (1, 2) and array.dtype != ml_dtypes.bfloat16:
            import torch

            given = torch.from_numpy(self.bases[base])[rows, columns]
        elif kind == 3 and array.dtype != ml_dtypes.bfloat16:
            given = Producer(array)
        elif kind == 4:
            given = dither.view(array, shapes=("trailing", "static")[how // 6 % 2])
        return View(base, rows, columns, self.truth[base][rows, columns], given, frozenset(places.ravel().tolist()))

    # ---- calls

    def run(self, call: Call) -> None:
        """One call on both sides, then a comparison of all bytes."""
        getattr(self, f"do_{call.what}")(call.numbers)
        for i, (base, truth) in enumerate(zip(self.bases, self.truth, strict=True)):
            if base.tobytes() != truth.tobytes():
                place = np.argwhere(base.view(f"u{base.itemsize}") != truth.view(f"u{base.itemsize}"))[0]
                at = tuple(int(p) for p in place)
                raise Wrong(f"base {i} ({base.dtype}) at {at}: found {base[at]}, expected {truth[at]}")

    def arguments(self, numbers: tuple[int, ...], aliased: bool = False) -> tuple[str, list[View], Any, kernels.Config]:
        """A kernel and tensors for it, whose written one shares no byte with the others (or is one of them)."""
        name = list(kernels.KERNELS)[numbers[0] % 4]
        shape = ((1, 3, 5, 7)[numbers[1] % 4], (8, 24)[numbers[2] % 2])
        count = kernels.KERNELS[name][1]
        views = [self.view(numbers[4 + 5 * i : 9 + 5 * i], shape) for i in range(count)]
        if aliased and count > 1:
            source = views[0]
            views[-1] = self.at(source.base, source.rows, source.columns, numbers[22])
        # Reads may overlap; the one that is written must be apart: it goes to the next base that is free.
        while not aliased and any(v.base == views[-1].base for v in views[:-1]):
            last = views[-1]
            views[-1] = self.at((last.base + 1) % len(self.bases), last.rows, last.columns, numbers[22])
        return name, views, NUMBERS[numbers[19] % len(NUMBERS)], CONFIGS[numbers[20] % len(CONFIGS)]

    def call(
        self, name: str, views: list[View], number: Any, config: kernels.Config, how: int, prepare: bool = False
    ) -> Any:
        """The launch itself, or its preparation."""
        kernel = kernels.KERNELS[name][0]
        rows, columns = views[0].array.shape
        grid: Any = (
            (-(-rows // 4), -(-columns // 32)) if name == "add" else (-(-rows // (2 if name == "update" else 4)),)
        )
        rest: list[Any] = [number] if name in ("scale", "update") else [config] if name == "configured" else []
        options: dict[str, Any] = {}
        if name == "scale" and how % 3 == 0:
            options["ROWS"] = 4
        if not prepare and how % 29 == 0:
            options["device"] = "sim:sm_90a"
        given = [v.given for v in views]
        if prepare:
            return kernel.prepare(grid, *given, *rest, **options)
        kernel[grid](*given, *rest, **options)
        return None

    def do_launch(self, numbers: tuple[int, ...]) -> None:
        name, views, number, config = self.arguments(numbers)
        if numbers[23] % 6 == 0:
            for v in views[:-1]:
                v.given = jax_array(v.array)
        self.call(name, views, number, config, numbers[21])
        kernels.model(name, [v.array for v in views], number, self.gain, config)

    def do_alias(self, numbers: tuple[int, ...]) -> None:
        name, views, number, config = self.arguments(numbers, aliased=True)
        if name == "add" and views[1].base == views[0].base:
            views[1] = views[0]
        self.call(name, views, number, config, numbers[21])
        kernels.model(name, [v.array for v in views], number, self.gain, config)

    def do_threads(self, numbers: tuple[int, ...]) -> None:
        """Launches at once, each on its own base."""
        failures: list[BaseException] = []
        work = []
        for i in range(3):
            name = ("update", "scale", "configured")[numbers[i] % 3]
            view = self.at(i, slice(0, 5), slice(0, 24), 0)
            views = [view] if name == "update" else [view, self.at(i, slice(7, 12), slice(0, 24), 0)]
            work.append((name, views, NUMBERS[numbers[3 + i] % len(NUMBERS)], CONFIGS[numbers[6 + i] % len(CONFIGS)]))

        def go(name: str, views: list[View], number: Any, config: kernels.Config) -> None:
            try:
                self.call(name, views, number, config, 1)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=go, args=item) for item in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        for name, views, number, config in work:
            kernels.model(name, [v.array for v in views], number, self.gain, config)

    def do_gain(self, numbers: tuple[int, ...]) -> None:
        self.gain = kernels.GAIN = GAINS[numbers[0] % len(GAINS)]

    def do_fill(self, numbers: tuple[int, ...]) -> None:
        for i in range(len(self.bases)):
            self.refill(i, numbers[i])

    def do_clear(self, numbers: tuple[int, ...]) -> None:
        kernels.KERNELS[list(kernels.KERNELS)[numbers[0] % 4]][0].clear()

    def do_cache(self, numbers: tuple[int, ...]) -> None:
        import dither

        dither.knobs.set("cache", ("on", "off", "readonly")[numbers[0] % 3])

    def do_prepare(self, numbers: tuple[int, ...]) -> None:
        name, views, number, config = self.arguments(numbers)
        function = self.call(name, views, number, config, 1, prepare=True)
        self.prepared = [*self.prepared[-3:], Prepared(function, name, views, number, self.gain, config)]

    def do_prepared(self, numbers: tuple[int, ...]) -> None:
        """A prepared launch again, on its arguments or on others like them."""
        if not self.prepared:
            return
        p = self.prepared[numbers[0] % len(self.prepared)]
        if numbers[1] % 2:
            p.function()
            kernels.model(p.kernel, [v.array for v in p.views], p.number, p.gain, p.config)
            return
        number = type(p.number)(int(p.number) + numbers[2] % 3)
        rest = [number] if p.kernel in ("scale", "update") else []
        p.function(*(v.given for v in p.views), *rest)
        kernels.model(p.kernel, [v.array for v in p.views], number, p.gain, p.config)

    def do_overlap(self, numbers: tuple[int, ...]) -> None:
        """An output that shares bytes with an input is refused, and one that lies between its bytes is not."""
        name = ("scale", "configured")[numbers[0] % 2]
        x = self.view(numbers[4:9], (3, 8))
        row, column = numbers[9] % 12, numbers[10] % 33
        y = self.at(x.base, slice(row, min(row + 3, 14)), slice(column, column + 8), numbers[11])
        if y.array.shape != x.array.shape:
            return
        shared = bool(x.places & y.places) and not x.same(y)
        number, config = NUMBERS[numbers[12] % len(NUMBERS)], CONFIGS[numbers[13] % len(CONFIGS)]
        try:
            self.call(name, [x, y], number, config, 1)
        except ValueError as error:
            if not shared:
                raise
            if "share memory" not in str(error):
                raise Wrong(f"arguments that share memory: {error}") from None
            return
        if shared:
            raise Wrong(f"arguments that share memory were taken: {x.rows, x.columns} and {y.rows, y.columns}")
        kernels.model(name, [x.array, y.array], number, self.gain, config)

    def do_refused(self, numbers: tuple[int, ...]) -> None:
        """What no kernel takes raises TypeError, ValueError or an error of the kernel."""
        import dither

        base = self.bases[0]
        frozen = base[:5, :24].copy()
        frozen.flags.writeable = False
        bad: list[Any] = [
            base[:5, ::2][:, :8],
            None,
            [1, 2],
            base.astype(np.float64)[:5, :24],
            frozen,
            "text",
            base[:5, :24][None, None],
            jax_array(base[:5, :24]),
        ]
        chosen = bad[numbers[0] % len(bad)]
        try:
            kernels.scale[1](self.bases[1][:5, :24], chosen, 2.0)
        except (TypeError, ValueError, dither.CompileError):
            return
        raise Wrong(f"{type(chosen).__name__} was taken as an output")


def jax_array(array: np.ndarray) -> Any:
    """A copy of JAX's own, which nobody may write."""
    import jax.numpy

    return jax.numpy.asarray(np.ascontiguousarray(array))


class Producer:
    """A library with `__dlpack__` and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def run(calls: list[Call]) -> str:
    """What went wrong at which call; empty where nothing did."""
    import dither

    with tempfile.TemporaryDirectory() as cache:
        before = os.environ.get("DITHER_CACHE_DIR")
        os.environ["DITHER_CACHE_DIR"] = cache
        dither.knobs.set("cache", "on")
        session = Session()
        try:
            for i, call in enumerate(calls):
                try:
                    session.run(call)
                except Exception as error:
                    return f"call {i} ({call.what}): {type(error).__name__}: {error}"
        finally:
            os.environ.pop("DITHER_CACHE_DIR")
            if before is not None:
                os.environ["DITHER_CACHE_DIR"] = before
    return ""
