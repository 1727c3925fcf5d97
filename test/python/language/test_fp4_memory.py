"""FP4 codes lie two to a byte: tiles that begin or end inside of one, and whoever stores the other half."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from guarded import Guarded
from ops import data
from ops.check import same_bits

DEVICES = ["cpu", "sim:sm_80", "sim:sm_100a"]


def unpacked(packed):
    """The codes of bytes, low half first."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def random_bytes(rows, columns, seed=0):
    """Rows of codes; the padding after an odd number of them is not zero."""
    return np.random.default_rng(seed).integers(0, 256, (rows, (columns + 1) // 2)).astype(np.uint8)


def moved(source, target, columns_in, columns_out, start, stop, width):
    """What `target` holds after columns [start, start + width) of `source` went to its columns from `stop` on."""
    codes, out = unpacked(source), unpacked(target)
    for j in range(width):
        if 0 <= stop + j < columns_out:
            out[:, stop + j] = codes[:, start + j] if 0 <= start + j < columns_in else 0
    if columns_out % 2 and stop <= columns_out - 1 < stop + width:
        out[:, columns_out] = 0  # a store defines the padding of its row
    return out[:, ::2] | out[:, 1::2] << 4


@dither.jit
def move(q, out, start, stop, ROWS: dl.constexpr, WIDTH: dl.constexpr):
    dl.store(out, (0, stop), dl.load(q, (0, start), (ROWS, WIDTH)))


@dither.jit
def move_known(q, out, START: dl.constexpr, STOP: dl.constexpr, ROWS: dl.constexpr, WIDTH: dl.constexpr):
    dl.store(out, (0, STOP), dl.load(q, (0, START), (ROWS, WIDTH)))


@dither.jit
def move_vector(q, out, start, stop, WIDTH: dl.constexpr):
    dl.store(out, (stop,), dl.load(q, (start,), (WIDTH,)))


@dither.jit
def widen(q, y, start, ROWS: dl.constexpr, WIDTH: dl.constexpr):
    dl.store(y, (0, 0), dl.load(q, (0, start), (ROWS, WIDTH)).to(dl.float32))


@dither.jit
def turn(q, out, start, stop, ROWS: dl.constexpr, WIDTH: dl.constexpr):
    dl.store(out, (0, stop), dl.load(q, (0, start), (WIDTH, ROWS)).T)


@dither.jit
def quantize_columns(x, q, scales, start, ROWS: dl.constexpr, WIDTH: dl.constexpr):
    t = dl.load(x, (0, start), (ROWS, WIDTH))
    s = dl.block_scale(t, "mxfp4", axis=0)
    dl.store(scales, (0, start), s)
    dl.store(q, (0, start), dl.cast(t, s, "mxfp4", axis=0))


@dither.jit
def quantize_strips(x, q, ROWS: dl.constexpr, WIDTH: dl.constexpr):
    c = dl.program_id(0) * WIDTH
    t = dl.load(x, (0, c), (ROWS, WIDTH))
    dl.store(q, (0, c), dl.cast(t, dl.block_scale(t, "mxfp4", axis=0), "mxfp4", axis=0))


def view(packed, columns):
    return dither.view(packed, dither.float4_e2m1, (*packed.shape[:-1], columns))


WIDTHS = {
    "cpu": [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 40],
    "sim:sm_80": [1, 2, 5, 16],
    "sim:sm_100a": [1, 3, 8, 33],
}
OFFSETS = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 3), (3, 2), (-1, 0), (-2, 1), (0, -1), (1, -2), (-1, -3)]


def check_moves(launch, device, width, rows=3, offsets=OFFSETS):
    for columns_in, columns_out in ((width + 4, width + 5), (width + 1, width + 2), (width, width)):
        for start, stop in offsets:
            source = random_bytes(rows, columns_in, 1)
            out = Guarded(random_bytes(rows, columns_out, 2), strided=True)
            out.array[:] = random_bytes(rows, columns_out, 2)
            want = moved(source, out.array, columns_in, columns_out, start, stop, width)
            launch(view(source, columns_in), view(out.array, columns_out), start, stop, width)
            case = f"{columns_in} to {columns_out} columns, from {start} to {stop}, {width} wide, {device}"
            same_bits(out.array, want, case)
            assert out.intact(), case


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_at_offsets_of_launches(device):
    """Which half a tile begins in is known when the program runs."""

    def launch(q, out, start, stop, width):
        move[1,](q, out, start, stop, ROWS=3, WIDTH=width, device=device)

    for width in WIDTHS[device]:
        check_moves(launch, device, width)


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_at_constant_offsets(device):
    def launch(q, out, start, stop, width):
        q, out = (dither.view(v, shapes="dynamic") if v is None else v for v in (q, out))
        move_known[1,](q, out, START=start, STOP=stop, ROWS=3, WIDTH=width, device=device)

    for width in (1, 4, 7) if device == "cpu" else (2, 3):
        check_moves(launch, device, width, offsets=[(0, 0), (0, 1), (1, 0), (1, 1), (-1, 1)])


@pytest.mark.parametrize("device", DEVICES)
def test_vectors(device):
    def launch(q, out, start, stop, width):
        q, out = (dataclass_row(v) for v in (q, out))
        move_vector[1,](q, out, start, stop, WIDTH=width, device=device)

    def dataclass_row(v):
        return dither.view(v.base[0], v.dtype, v.shape[1:])

    for width in WIDTHS[device][::2]:
        check_moves(launch, device, width, rows=1)


@pytest.mark.parametrize("device", DEVICES)
def test_widened(device):
    for width in WIDTHS[device]:
        for columns in (width + 3, width, max(1, width - 1)):
            q = random_bytes(5, columns)
            for start in (0, 1, 2, 3):
                y = np.full((5, width), np.nan, np.float32)
                widen[1,](view(q, columns), y, start, ROWS=5, WIDTH=width, device=device)
                want = np.zeros((5, width), np.float32)
                have = unpacked(q)[:, start : min(start + width, columns)]
                want[:, : have.shape[1]] = have.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
                same_bits(y, want, f"{columns} columns from {start}, {width} wide")


@pytest.mark.parametrize("device", DEVICES)
def test_transposed(device):
    """Columns become rows: what shares a byte comes from two of them."""
    for rows, width in ((3, 4), (4, 3), (5, 16), (16, 7)):
        q = random_bytes(width, rows + 3)
        for start, stop in ((0, 0), (1, 0), (0, 1), (3, 3)):
            out = Guarded(random_bytes(rows, width + 4, 2), strided=True)
            out.array[:] = 0x5A
            want = unpacked(out.array)
            want[:, stop : stop + width] = unpacked(q)[:, start : start + rows].T
            turn[1,](view(q, rows + 3), view(out.array, width + 4), start, stop, ROWS=rows, WIDTH=width, device=device)
            same_bits(out.array, want[:, ::2] | want[:, 1::2] << 4, f"{rows}x{width} from {start} to {stop}")
            assert out.intact()


@pytest.mark.parametrize("device", DEVICES)
def test_quantized_strips(device):
    """Strips of any width, beginning anywhere, leave their neighbours' codes alone."""
    for columns, width in ((9, 3), (8, 1), (11, 5), (40, 33)):
        x = data.normal(64, columns, seed=width)
        want = oracle.quantize(x, "mxfp4", axis=0)
        for start in (0, 1, 4):
            q = Guarded(np.empty((64, (columns + 1) // 2), np.uint8), strided=True)
            q.array[:] = 0x77
            scales = np.zeros((2, columns), ml_dtypes.float8_e8m0fnu)
            quantize_columns[1,](
                x, view(q.array, columns), scales, np.int32(start), ROWS=64, WIDTH=width, device=device
            )
            codes = unpacked(np.full_like(q.array, 0x77))
            stop = min(start + width, columns)
            codes[:, start:stop] = want.codes[:, start:stop]
            if stop == columns and columns % 2:
                codes[:, columns] = 0
            same_bits(q.array, codes[:, ::2] | codes[:, 1::2] << 4, f"{columns} columns, {width} from {start}")
            same_bits(scales.view(np.uint8)[:, start:stop], want.scale[:, start:stop])
            assert q.intact()


@pytest.mark.parametrize("device", DEVICES)
def test_programs_that_share_bytes(device):
    """Neighbouring programs, on other threads, store the two halves of a byte at the same time."""
    columns, width, rounds = (3 * 501, 3, 20) if device == "cpu" else (3 * 21, 3, 1)
    x = data.normal(32, columns, seed=3)
    want = oracle.quantize(x, "mxfp4", axis=0)
    for fill in [0x00, 0xFF] * rounds:
        q = np.full((32, (columns + 1) // 2), fill, np.uint8)
        quantize_strips[-(-columns // width),](x, view(q, columns), ROWS=32, WIDTH=width, device=device)
        same_bits(q, want.data, f"over {fill}")
