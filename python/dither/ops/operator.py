"""Running a producer with its sinks: what is checked, allocated, chosen and launched is the same for all operators."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from ..arrays import Array, Buffer
from ..data_classes import dataclass
from ..devices import chosen_device
from ..extents import Extent
from ..jit import Kernel
from ..language import linear
from ..once import one_property
from ..options import UNSAID, CodeOptions
from ..recording import Recording
from ..scalars import check_number, run_time_number
from ..types import DType, Structure, float32
from . import column_sum, halves, outputs, shards
from .allocate import contiguous_rows, empty_like, fill, filled, floats, matrix
from .column_sum import ColumnSums
from .flatten import flatten_operands, flatten_result, flattened, reshape, restore_result
from .fused_kernel import fused_kernel
from .given import integer_or_array, written_number
from .producer import IMPLIED, Producer, plain_tile
from .request import Wanted
from .row_passes import RowPasses, steps_in_row_passes
from .scale_sources import ScaleSources
from .settle import settle
from .skip import Skip
from .tiles import Tile, ordered
from .written import check_results, flatten_written

#: Columns of the whole periods that a tile has at least, at most, and periods of a whole row: each is code of its own.
MOST_COLUMNS = 1024
MOST_PERIODS = 64
#: Rows and columns of the tiles of which a GPU takes the amax of each column, and one atomic maximum for each.
COLUMN_AMAX = 128

#: Arguments of the kernel that a launch may leave out.
_OUTPUTS = (
    *(
        "out",
        "right",
        "out_amax",
        "out_row_amax",
        "out_col_amax",
        "amax",
        "own_amax",
        "col_amax",
        "row_data",
        "row_scale",
        "col_data",
        "col_scale",
    ),
    *("encode_scale", "seed", "offset", "shard", "skip", "group_of", "group_table", "group_rows", "group_before"),
    "of_program",
)


@dataclass(frozen=True, eq=False)
class Operator:
    """A producer with its kernel. Operands and constants go by the names of its parameters. `passes` are the two that
    it may be on a GPU, where there are such."""

    producer: Producer
    options: CodeOptions = UNSAID
    passes: RowPasses | None = None

    @one_property
    def kernel(self) -> Kernel:
        """The kernel, which is called as the producer is."""
        places: dict[str, list[str]] = {"operands": [], "constants": []}
        for name, role in self.producer.roles.items():
            if role not in IMPLIED:
                places["constants" if role == "constexpr" else "operands"].append(name)
        places["saved"] = list(self.producer.saves)
        structures = {
            where: Structure("tuple", tuple((f"[{i}]", name) for i, name in enumerate(names)))
            for where, names in places.items()
        }
        return Kernel(fused_kernel, self.options, name=f"{self.producer.name}_kernel", structures=structures)

    def choices(
        self, operands: Mapping[str, Any], roles: Mapping[str, str] | None = None, **chosen: Any
    ) -> dict[str, Any]:
        """The constexprs of a launch, less those of the producer; what is not chosen is nothing. `roles` has those of
        operands that kernels know by others than the producer."""
        other = {name: "number" for name in self._scalars if isinstance(operands[name], (int, float, Extent))}
        return {**self._defaults, "ROLES": self._roles(tuple({**other, **(roles or {})}.items())), **chosen}

    @functools.cached_property
    def absent(self) -> dict[str, None]:
        """The tensors that a launch may leave out, left out."""
        return dict.fromkeys((*_OUTPUTS, *self.producer.saves))

    @functools.cached_property
    def _scalars(self) -> list[str]:
        return [name for name, role in self.producer.roles.items() if role in ("scalar", "integer")]

    @functools.lru_cache  # noqa: B019 - operators are few, and last
    def _roles(self, other: tuple[tuple[str, str], ...]) -> tuple[tuple[str, int], ...]:
        """Role and place of each parameter; some have `other` roles than the producer says."""
        return tuple((dict(other).get(name, role), place) for name, role, place in self._places)

    @functools.cached_property
    def _places(self) -> list[tuple[str, str, int]]:
        """Name, role and place of each parameter, among the operands or the constants."""
        roles = self.producer.roles
        constants = [name for name, role in roles.items() if role == "constexpr"]
        operands = [name for name, role in roles.items() if role not in ("constexpr", *IMPLIED)]
        places = {name: i for names in (constants, operands) for i, name in enumerate(names)}
        of = {"period": next(iter(self.producer.periodic), None)}
        return [
            (name, role, places.get(of.get(role) or name, places[self.producer.tile])) for name, role in roles.items()
        ]

    @functools.cached_property
    def _defaults(self) -> dict[str, Any]:
        return {
            "PRODUCER": self.producer.function,
            "SAVES": tuple(self.producer.saves.values()),
            "TILE": next(place for name, _, place in self._places if name == self.producer.tile),
            "HALVES": self.producer.halves,
            "WHOLE_ROWS": self.producer.whole_rows,
            "ROUND": None,
            "FMT": None,
            "RANDOM": None,
            "LAYOUT": linear,
            "REPEAT": False,
            "ROW_TRANSFORM": None,
            "COL_TRANSFORM": None,
            "PAD": None,
            "TILES": 1,
            "BACKWARDS": False,
            "ACROSS": False,
            "INNER": None,
        }


class Results(NamedTuple):
    """What a call gives: the output, what the producer saves by name, and the amax of the output, or None."""

    out: Any
    saved: Mapping[str, Any]
    amax: Any


def run(operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted) -> Results:
    """Runs an operator on tensors.

    `operands` has a value for each parameter that is no constexpr, `constants` for the others. Raises TypeError or
    ValueError, which name the argument, for what the operator does not take.
    """
    if wanted.groups is not None:
        from .grouped_operator import run_grouped

        return run_grouped(operator, operands, constants, wanted, wanted.groups)
    results = finish(steps_of(operator, operands, constants, wanted))
    x = operands[operator.producer.tile]
    if isinstance(x, (Array, Buffer)):
        where = chosen_device(wanted.device, floats(x, operator.producer.tile).device)
        if shards.describes(where):
            _describe(where, operator.producer, operands, wanted, results)
    return results


def _describe(
    where: Recording, producer: Producer, operands: Mapping[str, Any], wanted: Wanted, results: Results
) -> None:
    """Says how the tensors of a call may be split."""
    flat = flattened(floats(operands[producer.tile], producer.tile).shape, wanted.flatten_axis)
    rows, cols = flat.shape[: flat.axis], flat.shape[flat.axis :]
    if producer.halves:  # columns are those of the output, and whole
        cols = (*cols[:-1], 2 * cols[-1])
    split = shards.Describing(rows, cols)
    if not split.rows:
        return
    if producer.whole_rows or producer.halves:
        split.keep(*split.cols)
    if split.operands(producer, operands, where.sizes):
        split.draws((1, 32) if wanted.plan is None else wanted.plan.granule)
        split.multiple("col", 4)
    kinds = {"tile": (*split.rows, *split.cols), "column": split.rows, "column_sum": split.cols}
    for name, value in results.saved.items():
        split.label(value, kinds[producer.saves[name]])
    split.label(results.amax, ())
    if wanted.plan is None:
        halves = (*split.rows, *(None for _ in split.cols)) if producer.halves else kinds["tile"]
        split.label(results.out, halves)
    else:
        split.quantized(results.out, None if wanted.random is None else wanted.plan.granule)
    split.say(where)


@dataclass(frozen=True)
class Zero:
    """A step of a call: an array of float32, made by `empty_like`, becomes zero."""

    array: Any


@dataclass(frozen=True)
class Step:
    """A step of a call: a launch of an operator's kernel with these arguments."""

    operator: Operator
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]

    def run(self) -> None:
        """Launches it."""
        self.operator.kernel.launch(self.grid, **self.arguments)


#: What a call does, list by list: what is in one has no order, so that it may be done with that of other calls.
Steps = Generator[Sequence[Zero | Step], None, Results]


def finish(steps: Steps) -> Results:
    """Runs a call."""
    while True:
        try:
            some = next(steps)
        except StopIteration as end:
            results: Results = end.value
            return results
        for step in some:
            if isinstance(step, Zero):
                fill(step.array)
            else:
                step.run()


def steps_of(operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted) -> Steps:
    """As `run`, without groups, step by step."""
    producer = operator.producer
    matrices, flat, shared = flatten_operands(producer, operands, wanted.flatten_axis)
    if shared:  # copies take microseconds
        wanted = dataclasses.replace(wanted, shared=shared)
    if flat is None:
        return (yield from steps_on_matrices(operator, operands, constants, wanted))
    array = floats(operands[producer.tile], producer.tile)
    shard = chosen_device(wanted.device, array.device).shard
    if shard is not None and any(shard.inner):
        halves_of = flat.shape[: flat.axis], flat.shape[flat.axis :]
        rows, cols = (
            math.prod(dims[own[-1] :]) if own else 0 for dims, own in zip(halves_of, shard.inner, strict=True)
        )
        wanted = dataclasses.replace(wanted, together=(rows, cols))
    kinds = {"tile": flat.shape, "column": flat.shape[: flat.axis], "column_sum": flat.shape[flat.axis :]}
    matrix_kinds = {"tile": flat.matrix, "column": flat.matrix[:1], "column_sum": flat.matrix[1:]}
    if producer.halves:
        if flat.axis != len(flat.shape) - 1:
            found = f"flatten_axis is {wanted.flatten_axis}"
            raise ValueError(f"{found}, expected -1: {producer.name} has halves of columns")
        flat = dataclasses.replace(flat, shape=(*flat.shape[:-1], 2 * flat.shape[-1]))
    shapes = {"out": flat.shape, **{name: kinds[kind] for name, kind in producer.saves.items()}}
    matrix_shapes = {"out": flat.matrix, **{name: matrix_kinds[kind] for name, kind in producer.saves.items()}}
    given = wanted
    wanted = flatten_written(wanted, shapes, matrix_shapes)
    if wanted.plan is not None and wanted.out is not None:
        shape = getattr(wanted.out, "shape", flat.shape)
        rows, _ = wanted.plan.shape_of(not wanted.plan.rowwise, flat.matrix)
        padded = flat.shape if rows == flat.matrix[0] else (rows, *flat.shape[flat.axis :])
        if shape != padded:
            raise ValueError(f"argument 'out' has shape {shape}, expected {padded}")
        wanted.out = flatten_result(wanted.out, "out")
    results = yield from steps_on_matrices(operator, matrices, constants, wanted)
    saved = {name: reshape(one, shapes[name], name) for name, one in results.saved.items()} | given.saved
    if wanted.plan is not None:
        out = restore_result(results.out, flat)
    else:
        out = reshape(results.out, flat.shape, "out") if given.out is None else given.out
    return Results(out, saved, results.amax)


def run_on_matrices(
    operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted
) -> Results:
    """As `run`, on tensors of rank 2."""
    return finish(steps_on_matrices(operator, operands, constants, wanted))


def steps_on_matrices(
    operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted
) -> Steps:
    """As `steps_of`, on tensors of rank 2."""
    producer, p = operator.producer, wanted.plan
    values, arrays = check_operands(producer, operands, wanted.shared)
    period = next((arrays[name].shape[1] for name in producer.periodic if name in arrays), None)
    if period is not None:
        producer = producer.of_period(int(period))  # of a symbol, that of this trace
    x, array = values[producer.tile], arrays[producer.tile]
    if wanted.interleave is not None:
        values = wanted.interleave.operands(values, arrays)
    m, n = array.shape
    # What the output is described by: its shape, beside x.
    shape = (m, 2 * n) if producer.halves else (m, n)
    output = dataclasses.replace(array, shape=shape, strides=(shape[1], 1))
    if producer.whole_rows and n == 0 and m:
        raise ValueError(f"argument '{producer.tile}' has rows of no elements, expected at least one")
    where = chosen_device(wanted.device, array.device)
    dtype = wanted.dtype or arrays[producer.like.get(producer.output, producer.tile)].dtype
    assert dtype is not None
    kinds = {"column": (m,), "tile": (m, n), "column_sum": (n,)}
    of_saved = {
        name: (kinds[kind], saved_dtype(producer, name, arrays, wanted)) for name, kind in producer.saves.items()
    }
    check_results(wanted, shape, dtype, of_saved, arrays)
    p = None if p is None else p.on(where)
    two = operator.passes
    if two is not None and wanted.skip is None and two.pay(producer, p, n, where.is_cpu, where.target):
        return (yield from steps_in_row_passes(operator, two, values, arrays, constants, wanted, dtype))
    if p is not None and not (
        p.fits(producer, where.is_cpu)
        and (not producer.halves or (wanted.interleave is None and halves.fit(p, shape, producer, where.is_cpu)))
    ):
        return in_two_steps(operator, operands, constants, wanted, dtype)
    # Sums have their places, and are made where tiles are known.
    saved: dict[str, Any] = dict.fromkeys(producer.saves)
    for name in producer.saves.keys() - producer.sums:
        saved[name] = wanted.saved.get(name)
        if saved[name] is None:
            saved[name] = empty_like(x, array, *of_saved[name])
    where_to = {"device": where, "stream": wanted.stream}
    roles = {} if wanted.interleave is None else wanted.interleave.roles
    common = {**operator.absent, **operator.choices(values, roles), **values, **constants, **where_to}
    rounded = dtype if wanted.round_intermediate and dtype is not float32 else None

    draws = any(
        role == "integer" and values[name] is not None for name, role in producer.roles.items() if name in values
    )
    of_part: dict[str, Any] = {}
    if where.shard is not None:
        of_part = {"shard": where.shard.origin, "INNER": tuple(map(len, where.shard.inner))}
    if draws:
        common |= of_part

    def launch(tile: Tile, extent: tuple[int, int], **named: Any) -> list[Step]:
        if not m or not n:
            return []
        rows, cols = Tile(tile.rows * named.get("TILES", 1), tile.cols).grid(*extent)
        grid, named["ACROSS"] = ordered((rows,) if producer.whole_rows else (rows, cols), where.is_cpu)
        if wanted.shared:
            whole = {name: arrays[name].shape[0] % tile.rows == 0 for name in wanted.shared}
            tables = {name: "shared_tiles" if fits else "shared_rows" for name, fits in whole.items()}
            named = {**operator.choices(values, {**roles, **tables}), **named}
        return [Step(operator, grid, {**common, **named, "ROWS": tile.rows, "COLS": tile.cols})]

    def summing(tile: Tile, extent: tuple[int, int], least: int = 1, **named: Any) -> list[Step]:
        """A launch that saves sums of columns, too, of tiles of a multiple of `least` rows."""
        programs = column_sum.programs_of(tile, least, producer, where.target, m)
        outs = saved | sums.rows(Tile(programs.rows, tile.cols), extent)
        return launch(programs.tile, extent, **named, **outs, TILES=programs.tiles)

    plain = plain_tile(producer, n, where.is_cpu)
    # Whole rows stay whole.
    turns = None if where.is_cpu or producer.whole_rows else wanted.interleave
    if turns is not None:
        plain = turns.tile(plain)
    if draws:
        plain = _within(plain, wanted.together)
    sum_dtypes = {name: of_saved[name][1] for name in producer.sums}
    sums = ColumnSums(sum_dtypes, wanted.saved, x, array, where, wanted.stream)

    if p is None:
        out = wanted.out
        if out is None and not wanted.only_saved:
            out = empty_like(x, array, shape, dtype)
        outs = {"out": out} if not producer.halves else halves.outputs(out, wanted.interleave)
        peak = filled(x, array, ()) if wanted.return_amax else None
        yield summing(plain, (m, n), **outs, out_amax=peak, ROUND=rounded)
        if peak is not None:
            shards.raise_to_all(where, peak)
        return Results(out, saved | sums.totals(), peak)

    skip = Skip.of(wanted.skip, where)
    if wanted.out is not None:
        outputs.check_out(p, wanted.out, shape, arrays)
    if skip is True:
        return Results(wanted.out, saved, None)
    if isinstance(skip, Skip):
        common["skip"] = skip.flag
    recorded = None if wanted.record_amax is None else written_number("record_amax", wanted.record_amax)
    launches = bool(m and n and not where.is_cpu and not skip)
    sources = ScaleSources(p, x, output, where, wanted.stream, launches)
    sources.take(wanted, isinstance(skip, Skip))
    found = sources.missing()
    yield [Zero(one) for one in found.values()]
    some: list[Step] = []
    for each in p.amax_parts(producer.whole_rows, where.is_cpu) if found else []:
        transforms = {f"{which.upper()}_TRANSFORM": each.transform_of(which == "col") for which in ("row", "col")}
        outs = {f"out_{what}": found[what] for what in each.amaxes(shape) if what in found}
        first_tile = each.amax_tile(n, producer, where.is_cpu) if p.transform else plain
        if "out_col_amax" in outs and not (
            where.is_cpu or p.transform or producer.whole_rows or producer.whole_periods
        ):
            first_tile = Tile(COLUMN_AMAX, max(COLUMN_AMAX, producer.columns))
        if draws:
            first_tile = _within(first_tile, wanted.together)
        some += launch(first_tile, (m, n), **outs, **transforms, ROUND=rounded)
    yield some
    for what, one in found.items():
        shards.raise_to_all(where, one, what)
    sources.make_scales()
    peak = found.get("amax")
    asked = filled(x, array, ()) if wanted.return_amax and peak is None else None
    if recorded is not None and (peak is not None or asked is not None):
        raise ValueError("argument 'record_amax' was given, expected none where the amax is computed for the scale")
    known = [sources.known(which) for which in ("row", "col")]
    result = outputs.allocate(p, x, output, dtype, known, wanted.out)
    passes = [
        (each, each.of(result), each.tile(n, producer, where.is_cpu), each.extent(shape))
        for each in p.parts(producer, where.is_cpu)
    ]
    if producer.halves:
        passes = [
            (each, written, halves.tile(tile, n), (rows, cols // 2)) for each, written, tile, (rows, cols) in passes
        ]
    if turns is not None:
        passes = [
            (each, written, tile if each.row_blocks else turns.tile(tile), extent)
            for each, written, tile, extent in passes
        ]
    random = wanted.random
    if random is not None or draws:
        passes = [(each, written, _within(tile, wanted.together), extent) for each, written, tile, extent in passes]
    _, _, tile, extent = passes[0]
    if passes[0][0].saves_apart(producer, where.is_cpu) or tile.rows > column_sum.MOST_ROWS:
        yield summing(plain, (m, n))
        start: Callable[..., list[Step]] = launch
    else:
        start = functools.partial(summing, least=passes[0][0].granule[0])
    raised = asked if recorded is None else recorded
    first = {"out_amax": raised, **sources.copies()}
    drawn = {} if random is None else {**random._asdict(), "RANDOM": random.kinds}
    if random is not None:
        drawn |= of_part
    some = []
    for each, written, tile, extent in passes:
        some += start(
            tile,
            extent,
            **each.given_amaxes(sources.of("row"), sources.of("col")),
            encode_scale=sources.encode_scale,
            **outputs.arguments(written),
            **first,
            **drawn,
            ROUND=rounded,
            BACKWARDS=not where.is_cpu and (wanted.again or bool(p.amaxes(shape))),
            FMT=p.fmt,
            LAYOUT=p.layout,
            REPEAT=p.repeat,
            ROW_TRANSFORM=each.transform_of(False),
            COL_TRANSFORM=each.transform_of(True),
        )
        first, start = {}, launch
    yield some
    if raised is not None:
        shards.raise_to_all(where, raised)
    if wanted.out is not None:
        flag = skip.flag if isinstance(skip, Skip) else None
        parts = settle(outputs.parts_of(result), outputs.parts_of(wanted.out), where, wanted.stream, flag)
        result = outputs.of_parts(parts)
    return Results(result, saved | sums.totals(), peak if peak is not None else asked)


def _within(tile: Tile, together: tuple[int, int]) -> Tile:
    """A tile that has no more than the rows and columns that follow each other in the whole, where 0 is all."""
    return Tile(math.gcd(tile.rows, together[0]), math.gcd(tile.cols, together[1]))


def saved_dtype(producer: Producer, name: str, arrays: Mapping[str, Array], wanted: Wanted) -> DType:
    """The data type of what is saved."""
    if wanted.grad_dtype is not None and name in producer.sums:
        return wanted.grad_dtype
    like = producer.like.get(name)
    dtype = arrays[like].dtype if like else float32
    assert dtype is not None
    return dtype


def in_two_steps(
    operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted, dtype: DType
) -> Results:
    """As `run_on_matrices`, of what one kernel does not quantize: all of the output, and then its codes. `dtype`
    is that of the output."""
    from .quantize import QUANTIZE

    between = dtype if wanted.round_intermediate else float32
    alone = Wanted(
        dtype=between,
        device=wanted.device,
        stream=wanted.stream,
        grad_dtype=wanted.grad_dtype,
        saved=wanted.saved,
        interleave=wanted.interleave,
    )
    first = run_on_matrices(operator, operands, constants, alone)
    then = dataclasses.replace(wanted, dtype=dtype, saved={}, interleave=None)
    second = run_on_matrices(QUANTIZE, {"x": first.out}, {}, then)
    return Results(second.out, first.saved, second.amax)


def check_operands(
    producer: Producer, operands: Mapping[str, Any], shared: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The operands as kernels take them, and the descriptions of those that are arrays. `shared` are tables whose rows
    are those of each so many rows of the tensor."""
    values: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for name, value in operands.items():
        role = producer.roles[name]
        if value is None and name in producer.optional:
            values[name] = None
            continue
        if role in ("tile", "periodic"):
            array = matrix(value, name)
            values[name], arrays[name] = contiguous_rows(value, array)
            continue
        if role == "integer":
            given = integer_or_array(name, value)
            values[name] = given
            if isinstance(given, Array):
                arrays[name] = given
            continue
        if role == "scalar":
            number = run_time_number(value)
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                check_number(name, number)
                values[name] = float(number)
                continue
        values[name], arrays[name] = value, floats(value, name)
    if len(operands) == 1:
        return values, arrays
    m, n = arrays[producer.tile].shape
    shapes = {"tile": (m, n), "row": (n,), "column": (m,), "scalar": (), "integer": ()}
    tables = {name: arrays[name].shape for name in producer.periodic if name in arrays}
    _check_periods(producer, {name: (m if name in shared else r, k) for name, (r, k) in tables.items()}, (m, n))
    for name, array in arrays.items():
        if name in producer.periodic:
            continue
        expected = shapes[producer.roles[name]]
        if array.shape != expected:
            raise ValueError(f"argument '{name}' has shape {array.shape}, expected {expected}")
    return values, arrays


def _check_periods(producer: Producer, shapes: Mapping[str, tuple[int, ...]], tensor: tuple[int, int]) -> None:
    """Raises ValueError for periodic operands that do not fit a tensor of this shape, or each other."""
    m, n = tensor
    first = ""
    for name, (rows, k) in shapes.items():
        whole, whole_name = (k, "k") if producer.periods == 1 else (producer.periods * k, f"{producer.periods} k")
        if rows != m or not k or n % whole:
            divisor = f"{whole_name} a divisor of the {n} columns of '{producer.tile}'"
            raise ValueError(f"argument '{name}' has shape {(rows, k)}, expected ({m}, k), {divisor}")
        if first and k != shapes[first][1]:
            raise ValueError(f"argument '{name}' has shape {(rows, k)}, expected {shapes[first]} like '{first}'")
        first = first or name
        if whole > MOST_COLUMNS:
            most = f"at most {MOST_COLUMNS // producer.periods} columns"
            raise ValueError(f"argument '{name}' has shape {(rows, k)}, expected {most}")
        if producer.whole_rows and n > MOST_PERIODS * whole:
            most = f"at most {MOST_PERIODS} times as many, where functions see whole rows"
            found = f"argument '{name}' has shape {(rows, k)} for {n} columns of '{producer.tile}'"
            raise ValueError(f"{found}, expected {most}")
