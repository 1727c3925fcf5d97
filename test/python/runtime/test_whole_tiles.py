"""Code for launches whose tiles are all inside of their tensors, and code for others (docs/runtime.md, Whole tiles)."""

import itertools
import random
import re

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import _dither
from dither.cli.signature import parse_type
from dither.devices import get_device
from guarded import Guarded

DEVICES = ["cpu", "sim:sm_90a", "sim:sm_100a"]


def make_kernel():
    """x * 4 + 3; a loop keeps it out of phases, whose code on CPUs is the same for all launches."""

    @dither.jit(shapes="static")
    def scale(x, y, ROWS: dl.constexpr):
        row = dl.program_id(0) * ROWS
        t = dl.load(x, (row, 0), (ROWS, 64))
        for _ in range(2):
            t = t * 2.0 + 1.0
        dl.store(y, (row, 0), t)

    return scale


def aligned(rows):
    """Rows of 64 numbers at a multiple of 64 bytes: one class of arguments."""
    memory = np.zeros(rows * 64 + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + rows * 64].reshape(rows, 64)


def run(kernel, rows, device):
    x, y = aligned(rows), aligned(rows)
    x[:] = np.random.default_rng(rows).integers(-99, 99, x.shape)
    kernel[-(-rows // 4)](x, y, ROWS=4, device=device, shapes="trailing")
    assert np.array_equal(y, x * 4 + 3)


@pytest.mark.parametrize("device", DEVICES)
def test_each_launch_has_the_code_that_is_made_for_it(device):
    kernel = make_kernel()
    for rows in (8, 5, 12, 7, 16, 8, 9, 5):
        run(kernel, rows, device)
    stats = kernel.stats()
    assert [build.fields["tiles"] for build in stats.builds] == ["whole", "any"]
    assert stats.builds[1].differs == (("tiles", "whole", "any"),)
    assert stats.memory_hits == 6


@pytest.mark.parametrize("device", DEVICES)
def test_the_first_launch_may_be_either(device):
    kernel = make_kernel()
    for rows in (5, 8, 7, 12):
        run(kernel, rows, device)
    assert [build.fields["tiles"] for build in kernel.stats().builds] == ["any", "whole"]


def test_known_launches_of_both_need_no_python():
    kernel = make_kernel()
    for rows in (8, 5):
        run(kernel, rows, "cpu")
    before = kernel._launcher.hits
    for rows in (12, 7, 16, 9) * 10:
        run(kernel, rows, "cpu")
    assert kernel._launcher.hits - before == 40
    assert kernel._launcher.size == 2


@pytest.mark.parametrize("device", DEVICES)
def test_programs_past_the_end_write_nothing(device):
    """The rows are whole tiles, the grid has more of them: not after code for whole tiles was made, either."""
    kernel = make_kernel()
    run(kernel, 8, device)
    out = Guarded(np.zeros((8, 64), np.float32), strided=False)
    x = aligned(8)
    kernel[5](x, out.array, ROWS=4, device=device, shapes="trailing")
    assert out.intact()
    assert (out.array == 3).all()
    first, second = kernel.stats().builds
    assert (first.fields["tiles"], second.differs) == ("whole", (("tiles", "whole", "any"),))


@pytest.mark.parametrize("device", DEVICES)
def test_a_launch_of_nothing_compiles_no_second_one(device):
    kernel = make_kernel()
    run(kernel, 8, device)
    kernel[0](aligned(8), aligned(8), ROWS=4, device=device, shapes="trailing")
    assert len(kernel.stats().builds) == 1


def lowered(kernel, target="sm_90a", rows="?"):
    x = parse_type(f"f32[{rows},64]")
    return kernel.lower(x, x, ROWS=4, target=target)


def test_code_for_whole_tiles_is_one_copy():
    kernel = make_kernel()
    everything = lowered(kernel).compile()
    shapes = {"x": (8, 64), "y": (8, 64)}
    whole = lowered(kernel).compile(grid=(2, 1, 1), shapes=shapes)
    assert (everything.tiles, whole.tiles) == ("any", "whole")
    assert (
        whole.image.tiles[1]
        == everything.image.tiles[1]
        == [(0, 1, 0, 4, 4, "enough", -1), (0, 3, 0, 4, 4, "enough", -1)]
    )
    assert len(whole.ptx) < 0.6 * len(everything.ptx)
    past = lowered(kernel).compile(grid=(3, 1, 1), shapes=shapes)
    assert (past.tiles, past.ptx) == ("any", everything.ptx)
    known = lowered(kernel, rows="8").compile(grid=(2, 1, 1))
    assert (known.tiles, known.image.tiles[1][0]) == ("whole", (0, -1, 8, 4, 4, "enough", -1))


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_refuses_other_launches(device):
    kernel = make_kernel()
    made = get_device(device)
    code = lowered(kernel, made.target).compile(grid=(2, 1, 1), shapes={"x": (8, 64), "y": (8, 64)})
    loaded = code.loaded(made)
    x, y = aligned(8), aligned(8)
    with pytest.raises(_dither.RuntimeFailure, match=r"inside of their tensors, found grid 3x1x1, which reaches past"):
        loaded.launch([x.ctypes.data, 8, y.ctypes.data, 8], (3, 1, 1))
    with pytest.raises(_dither.RuntimeFailure, match="inside of their tensors"):
        loaded.launch([x.ctypes.data, 8, y.ctypes.data, 7], (2, 1, 1))
    loaded.launch([0, 0, 0, 0], (0, 1, 1))
    with pytest.raises(ValueError, match="found 3 slots, expected 4"):
        code.image.suits([0, 8, 0], (2, 1, 1))


def test_an_entry_of_the_cache_has_them():
    code = lowered(make_kernel()).compile(grid=(2, 1, 1), shapes={"x": (8, 64), "y": (8, 64)})
    again = type(code).from_entry(code.to_entry())
    assert (again.tiles, again.image.tiles) == (code.tiles, code.image.tiles)
    image = code.image
    with pytest.raises(ValueError, match="bound of tiles"):
        _dither.KernelImage("k", "sm_90a", b"", 32, 0, image.params, 1, (True, [(3, 1, 0, 4, 4, "enough", -1)]))
    with pytest.raises(ValueError, match="bound of tiles"):
        _dither.KernelImage("k", "sm_90a", b"", 32, 0, image.params, 1, (True, [(0, 4, 0, 4, 4, "enough", -1)]))
    with pytest.raises(ValueError, match="bound of tiles"):
        _dither.KernelImage("k", "sm_90a", b"", 32, 0, image.params, 1, (True, [(-1, 1, 0, 4, 1, "most", -1)]))
    with pytest.raises(ValueError, match="bound of tiles"):
        _dither.KernelImage("k", "sm_90a", b"", 32, 0, image.params, 1, (True, [(-1, 1, 0, 4, 1, "other", -1)]))


def test_prepared_and_recorded_launches():
    kernel = make_kernel()
    for rows, tiles in ((8, "whole"), (7, "any")):
        x, y = aligned(rows), aligned(rows)
        x[:] = 2
        kernel.prepare(2, x, y, ROWS=4, shapes="trailing")()
        assert (y == 11).all()
        assert kernel.stats().builds[-1].fields["tiles"] == tiles

    kernel.clear()
    program = dither.record(lambda x, y: kernel[2](x, y, ROWS=4), *[dither.TensorType(dither.float32, (8, 64))] * 2)
    assert kernel.stats().builds[-1].fields["tiles"] == "whole"
    x, y = aligned(8), aligned(8)
    x[:] = 1
    program.run([x, y], [])
    assert (y == 7).all()


def test_what_prints_is_for_any():
    @dither.jit
    def loud(x, y):
        row = dl.program_id(0) * 4
        t = dl.load(x, (row, 0), (4, 64))
        dl.print("t", t, where=t > 100.0)
        dl.store(y, (row, 0), t)

    x, y = aligned(8), aligned(8)
    for device in DEVICES:
        loud[2](x, y, device=device)
        assert loud.stats().builds[-1].fields["tiles"] == "any"


def make_tiles(steps, firsts):
    """Tiles of 2 x 8 in steps from a first element on along both dimensions, and one number for each."""
    (ROW_STEP, COL_STEP), (ROW, COL) = steps, firsts

    @dither.jit(shapes="dynamic")
    def tiles(x, y):
        i, j = dl.program_id(0), dl.program_id(1)
        t = dl.load(x, (i * ROW_STEP + ROW, j * COL_STEP + COL), (2, 8))
        dl.store(y, (i, (j * COL_STEP) // COL_STEP), dl.sum(dl.sum(t, 0), 1))

    return tiles


@pytest.mark.parametrize(
    "steps, firsts", [((2, 8), (0, 0)), ((1, 4), (0, 0)), ((3, 16), (1, 2)), ((2, 7), (0, 3)), ((5, 8), (4, 0))]
)
def test_launches_are_whole_where_every_access_is_inside(steps, firsts):
    kernel = make_tiles(steps, firsts)
    types = [parse_type("f32[?,?]"), parse_type("f32[?,?]")]
    image = kernel.lower(*types, target="sm_90a").compile().image
    bounds = image.tiles[1]
    assert len(bounds) == 4
    draw = random.Random(repr((steps, firsts)))
    found = set()
    for _ in range(2000):
        grid = draw.randint(1, 4), draw.randint(1, 4)
        # Extents about those that are enough.
        enough = [
            (n - 1) * step + first + size for n, step, first, size in zip(grid, steps, firsts, (2, 8), strict=True)
        ]
        x = [max(0, n + draw.choice([-9, -1, 0, 0, 1, 9])) for n in enough]
        y = [max(0, n + draw.choice([-1, 0, 0, 0, 1])) for n in grid]
        inside = all(
            i * steps[0] + firsts[0] + 2 <= x[0] and j * steps[1] + firsts[1] + 8 <= x[1] and i < y[0] and j < y[1]
            for i, j in itertools.product(*map(range, grid))
        )
        # Code for any launch suits those that have a part of a tile.
        assert image.suits([0, *x, x[1], 0, *y, y[1]], (*grid, 1)) is not inside, (grid, x, y)
        found.add(inside)
    assert found == {True, False}


def test_code_that_replaces_another_says_what_it_is_for(tmp_path, monkeypatch):
    """PTX that was written by a launch of whole tiles, and is put in the place of all code of the kernel."""
    kernel = make_kernel()
    of_any = lowered(kernel).compile().ptx
    monkeypatch.setenv("DITHER_DUMP_DIR", str(tmp_path))
    run(kernel, 8, "sim:sm_90a")
    monkeypatch.delenv("DITHER_DUMP_DIR")
    ptx = (tmp_path / "scale" / "ptx.ptx").read_text()
    assert ptx.endswith("// for launches of whole tiles alone\n")
    monkeypatch.setenv("DITHER_OVERRIDE_DIR", str(tmp_path))
    for stage in (tmp_path / "scale").iterdir():
        if stage.suffix == ".mlir":
            stage.unlink()
    kernel.clear()
    run(kernel, 8, "sim:sm_90a")
    with pytest.raises(_dither.RuntimeFailure, match="reaches past one"):
        run(kernel, 7, "sim:sm_90a")
    (tmp_path / "scale" / "ptx.ptx").write_text(of_any)
    kernel.clear()
    for rows in (8, 7):
        run(kernel, rows, "sim:sm_90a")


def test_a_stage_that_replaces_another_is_for_all_launches(tmp_path, monkeypatch):
    """Text that was written by a launch of whole tiles: as quant IR it is for any launch, whatever it was told of."""
    kernel = make_kernel()
    monkeypatch.setenv("DITHER_DUMP_DIR", str(tmp_path))
    run(kernel, 8, "cpu")
    monkeypatch.delenv("DITHER_DUMP_DIR")
    place = tmp_path / "scale"
    kept = {path.name: path.read_text() for path in place.iterdir()}
    for path in place.iterdir():
        path.unlink()
    assert "quant.launch" in kept["quant.mlir"] and "quant.whole" in kept["tiled.mlir"]
    monkeypatch.setenv("DITHER_OVERRIDE_DIR", str(tmp_path))
    (place / "quant.mlir").write_text(kept["quant.mlir"])
    assert lowered(kernel).compile().tiles == "any"
    kernel.clear()
    before, hits = kernel.stats().compiles, kernel._launcher.hits
    for rows in (8, 7, 12, 7):
        run(kernel, rows, "cpu")
    assert kernel.stats().compiles - before == 1
    assert kernel._launcher.hits - hits == 3
    (place / "tiled.mlir").write_text(kept["tiled.mlir"])
    kernel.clear()
    run(kernel, 8, "cpu")
    with pytest.raises(_dither.RuntimeFailure, match="reaches past one"):
        run(kernel, 7, "cpu")
    (place / "tiled.mlir").write_text(re.sub("quant.whole_if = .*?]", "", kept["tiled.mlir"]))
    kernel.clear()
    with pytest.raises(dither.CompileError):
        run(kernel, 8, "cpu")


def test_ptx_for_whole_tiles_needs_a_kernel_that_can_have_them():
    @dither.jit
    def given(x, y, row):
        dl.store(y, (row, 0), dl.load(x, (row, 0), (4, 64)))

    x = parse_type("f32[?,64]")
    code = given.lower(x, x, dither.ScalarType(dither.types.int64), target="sm_90a").compile()
    with pytest.raises(ValueError, match="found PTX for whole tiles, expected PTX for any launch of kernel 'given'"):
        code.replace_code(lowered(make_kernel()).compile(grid=(1, 1, 1), shapes={"x": (4, 64), "y": (4, 64)}).ptx)


ROWS_OF = 4


def test_code_that_changes_what_it_reads_stays_in_the_launch_path():
    @dither.jit
    def scale(x, y, rows: dl.constexpr):
        row = dl.program_id(0) * rows()
        t = dl.load(x, (row, 0), (rows(), 64))
        for _ in range(2):
            t = t * 2.0 + 1.0
        dl.store(y, (row, 0), t)

    global ROWS_OF
    try:
        for ROWS_OF in (4, 8):
            before = scale._launcher.hits
            for rows in (16, 15) * 5:
                x, y = aligned(rows), aligned(rows)
                x[:] = 1
                scale[-(-rows // ROWS_OF)](x, y, rows=rows_of)
                assert (y == 7).all()
            assert scale._launcher.hits - before >= 8
    finally:
        ROWS_OF = 4


def rows_of():
    return ROWS_OF


def test_numbers_of_32_bits_may_wrap():
    """An offset that wraps is none of a whole tile's: x has 2^31 + 64 elements, and the last of 131073 programs 64."""

    @dither.jit(shapes="dynamic")
    def far(x, y):
        t = dl.load(x, (dl.program_id(0).to(dl.int32) * 16384,), (64,))
        dl.store(y, (dl.program_id(0) * 64,), t)

    x = parse_type("f32[?]")
    code = far.lower(x, x, target="sm_90a").compile(
        grid=(131073, 1, 1), shapes={"x": (2**31 + 64,), "y": (131073 * 64,)}
    )
    assert code.tiles == "any"


@dither.jit
def by_turns(x, y, n):
    """Programs take turns: tiles of 8 rows."""
    for r in range(dl.program_id(0) * 8, x.shape[0], dl.num_programs(0) * 8):
        dl.store(y, (r, 0), dl.load(x, (r, 0), (8, 64)) + 1.0)


@dither.jit
def by_chunks(x, y, n):
    """Each program has so many rows, and takes them eight at a time."""
    each = dl.cdiv(x.shape[0], dl.num_programs(0) * 8) * 8
    first = dl.program_id(0) * each
    for r in range(first, min(first + each, x.shape[0]), 8):
        dl.store(y, (r, 0), dl.load(x, (r, 0), (8, 64)) + 1.0)


@dither.jit
def by_number_of_tiles(x, y, n):
    if dl.program_id(0) == 0:
        for i in range(dl.cdiv(x.shape[0], 8)):
            dl.store(y, (i * 8, 0), dl.load(x, (i * 8, 0), (8, 64)) + 1.0)


@dither.jit
def whole_ones(x, y, n):
    """As many tiles as are whole, and the rest a row at a time."""
    if dl.program_id(0) == 0:
        for i in range(x.shape[0] // 8):
            dl.store(y, (i * 8, 0), dl.load(x, (i * 8, 0), (8, 64)) + 1.0)
        for r in range(x.shape[0] // 8 * 8, x.shape[0]):
            dl.store(y, (r, 0), dl.load(x, (r, 0), (1, 64)) + 1.0)


@dither.jit
def by_a_number(x, y, n):
    if dl.program_id(0) == 0:
        for r in range(0, n, 8):
            dl.store(y, (r, 0), dl.load(x, (r, 0), (8, 64)) + 1.0)


LOOPS = [by_turns, by_chunks, by_number_of_tiles, whole_ones, by_a_number]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", LOOPS, ids=lambda kernel: kernel.__name__)
def test_loops_up_to_an_extent(kernel, device):
    """Rows of x, rows of y, and a number of programs: nothing past an end is read or written."""
    for rows, there, programs in [
        (32, 32, 2),
        (32, 40, 3),
        (40, 32, 2),
        (33, 40, 2),
        (31, 31, 2),
        (0, 8, 1),
        (8, 8, 5),
    ]:
        x, y = (Guarded(np.zeros((n, 64), np.float32), strided=False) for n in (rows, there))
        x.array[:] = np.random.default_rng(rows).integers(-99, 99, (rows, 64))
        y.array[:] = 7
        kernel[programs](x.array, y.array, rows, device=device, shapes="trailing")
        want = np.full((there, 64), 7, np.float32)
        most = min(rows, there)
        want[:most] = x.array[:most] + 1
        # Tiles are whole: what is past the end of x is zero, where a tile begins before it.
        if rows % 8 and kernel is not whole_ones:
            want[rows : -(-rows // 8) * 8] = 1
        assert np.array_equal(y.array, want), (rows, there)
        assert y.intact() and x.intact()


@dither.jit
def columns_in_turns(x, q, s):
    """Blocks of 32 rows, with a scale for each column, which programs take in turns."""
    for r in range(dl.program_id(0) * 64, x.shape[0], dl.num_programs(0) * 64):
        t = dl.load(x, (r, 0), (64, 128))
        e = dl.block_scale(t, "mxfp8_e4m3", axis=0)
        dl.store(q, (r, 0), dl.cast(t, e, "mxfp8_e4m3", axis=0))
        dl.store(s, (r // 32, 0), e)


@pytest.mark.parametrize("device", DEVICES)
def test_a_part_of_what_a_loop_counts(device):
    """Scales have a row for every 32 of x."""
    for rows, there in [(192, 6), (192, 7), (160, 5), (192, 5), (150, 5)]:
        x = np.random.default_rng(rows).standard_normal((rows, 128)).astype(np.float32)
        want = dither.quantize(x, "mxfp8_e4m3", layout="colwise")
        q = Guarded(np.zeros((rows, 128), np.uint8), strided=False)
        s = Guarded(np.zeros((there, 128), np.uint8), strided=False)
        columns_in_turns[2](
            x, dither.view(q.array, dl.float8_e4m3), dither.view(s.array, dl.e8m0), device=device, shapes="trailing"
        )
        same = min(there, -(-rows // 32))
        assert np.array_equal(q.array, np.asarray(want.data).view(np.uint8))
        assert np.array_equal(s.array[:same], np.asarray(want.scale_inv).view(np.uint8)[:same])
        assert q.intact() and s.intact()


@dither.jit
def sums_of_tiles(x, y, n):
    """Columns of x, added up a tile at a time; and how many rows of eight there were before."""
    total = dl.zeros((8, 64), dl.float32)
    for i in range(dl.cdiv(x.shape[0], 8)):
        total = total + dl.load(x, (i * 8, 0), (8, 64))
    for i in range(n):
        total = total + dl.load(x, (i, 0), (1, 64))
    dl.store(y, (0, 0), total)


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_that_loops_carry(device):
    """The tile goes from the loop over whole tiles to that over what is left, which begins where a number says that is
    carried beside it."""
    for rows, n in [(32, 0), (33, 5), (7, 9), (0, 3), (24, -8)]:
        x = Guarded(np.zeros((rows, 64), np.float32), strided=False)
        x.array[:] = np.random.default_rng(rows).integers(-99, 99, (rows, 64))
        y = np.zeros((8, 64), np.float32)
        sums_of_tiles[1](x.array, y, n, device=device, shapes="trailing")
        padded = np.zeros((-(-rows // 8) * 8 + 16, 64), np.float32)
        padded[:rows] = x.array
        want = padded.reshape(-1, 8, 64).sum(0) + padded[: max(n, 0)].sum(0)
        assert np.array_equal(y, want), (rows, n)
        assert x.intact()


def test_what_loops_count_to_decides():
    types = [parse_type("f32[?,64]"), parse_type("f32[?,64]"), parse_type("i64")]
    image = by_turns.lower(*types, target="sm_90a").compile().image
    assert image.tiles[1] == [(-1, 1, 0, 8, 1, "multiple", -1), (-1, 3, 0, 1, 1, "other", 1)]
    for x, y in itertools.product(range(40), range(40)):
        assert image.suits([0, x, 0, y, 0], (2, 1, 1)) == (not (x % 8 == 0 and y >= x)), (x, y)
    image = by_a_number.lower(*types, target="sm_90a").compile().image
    assert [bound[5:] for bound in image.tiles[1]] == [("multiple", -1), ("other", 4), ("other", 4)]
    # The number says how far the loop goes, and may be negative.
    for n, x, y in itertools.product((-8, -3, 0, 8, 16, 17), (8, 15, 16), (8, 16, 20)):
        assert image.suits([0, x, 0, y, n], (1, 1, 1)) == (n % 8 != 0 or n > min(x, y)), (n, x, y)
