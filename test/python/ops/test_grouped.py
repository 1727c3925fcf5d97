"""Groups of rows: each has the bits of a tensor of its own, wherever it lies."""

import itertools

import dither
import ml_dtypes
import numpy as np
import pytest
from dither.ops.allocate import aligned
from ops import check, data

FORMATS = (*check.FORMATS, "fp8_tensor_e4m3", "fp8_row_e4m3", "fp8_1x128_e4m3", "fp8_128x128_e4m3", "int8_row")
#: A group without rows, one of one row, and one of several tiles.
SIZES = np.array([5, 0, 130, 1, 64], np.int32)
DEVICES = ("cpu", "sim:sm_90a", "sim:sm_100a")
OTHERS = {
    "nvfp4 of rows": dither.NVFP4.with_(row_amax=True),
    "nvfp4 decode": dither.NVFP4.with_(tensor_scale_as="decode"),
    "nvfp4 16x16": dither.NVFP4.with_(block=(16, 16)),
}


def same(found, expected, what=""):
    """Fails unless both are the same tensor, in all that they have."""
    if isinstance(expected, dither.ScaledTensor2x):
        same(found.rowwise, expected.rowwise, f"{what} rowwise")
        same(found.colwise, expected.colwise, f"{what} colwise")
        return
    fields = ("format", "shape", "dtype", "is_colwise", "scale_layout", "repeated", "transform")
    assert [getattr(found, f) for f in fields] == [getattr(expected, f) for f in fields], what
    check.same_bits(found.data, expected.data, f"{what} data")
    check.same_bits(found.scale_inv, expected.scale_inv, f"{what} scales")
    for name in ("amax", "tensor_scale"):
        if getattr(expected, name) is not None:
            check.same_bits(getattr(found, name), getattr(expected, name), f"{what} {name}")


def parts_of(sizes):
    """The rows of each group."""
    ends = np.cumsum(sizes)
    return [slice(end - n, end) for end, n in zip(ends, sizes, strict=True)]


def quantize(x, *args, **options):
    """dither.quantize of rows of a tensor in memory of their own: kernels are compiled for how it is aligned."""
    own = aligned(x.shape, x.dtype)
    own[...] = x
    return dither.quantize(own, *args, **options)


def each_alone(found, alone, sizes=SIZES):
    """Fails unless each group is what `alone` gives of its number and rows, and the groups were right."""
    groups = found.split()
    assert found.groups == len(groups) == len(sizes)
    for g, (group, rows) in enumerate(zip(groups, parts_of(sizes), strict=True)):
        same(group, alone(g, rows), f"group {g}")
    assert np.asarray(found.wrong).item() == 0


def orders_of(fmt, layout):
    """The orders of scales that a format has."""
    for order in ("linear", "128x4", "8x4", "column_major", "packed"):
        try:
            dither.quantize(np.ones((1, 32), np.float32), fmt, layout, order)
        except ValueError:
            continue
        yield order


@pytest.mark.sample("values")
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", [*FORMATS, *OTHERS])
def test_every_format(fmt, layout):
    fmt = OTHERS.get(fmt, fmt)
    x = data.normal(200, 96, "float32", seed=3)
    for order in orders_of(fmt, layout):
        found = dither.grouped_quantize(x, fmt, layout, order, group_sizes=SIZES)
        each_alone(found, lambda _, rows, order=order: quantize(x[rows], fmt, layout, order))


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize(
    "fmt, order",
    [
        ("mxfp8_e4m3", "128x4"),
        ("nvfp4", "128x4"),
        ("nvfp4", "linear"),
        ("fp8_tensor_e4m3", "linear"),
        ("fp8_1x128_e4m3", "column_major"),
    ],
)
def test_on_gpus(fmt, order, device):
    x = data.normal(200, 128, "bfloat16", seed=4)
    found = dither.grouped_quantize(x, fmt, "both", order, group_sizes=SIZES, device=device)
    each_alone(found, lambda _, rows: quantize(x[rows], fmt, "both", order))


@pytest.mark.parametrize("kind", ["ends", "starts", "int64", "stack"])
def test_what_groups_are_given_as(kind):
    x = data.normal(200, 64, "float32", seed=5)
    ends = np.cumsum(SIZES)
    sizes, given = (
        SIZES,
        {
            "ends": {"group_ends": ends.astype(np.int32)},
            "starts": {"group_starts": ends - SIZES},
            "int64": {"group_sizes": SIZES.astype(np.int64)},
            "stack": {},
        }[kind],
    )
    of = x
    if kind == "stack":
        of, sizes = x.reshape(5, 40, 64), np.full(5, 40)
    found = dither.grouped_quantize(of, "nvfp4", "both", "128x4", **given)
    each_alone(found, lambda _, rows: quantize(x[rows], "nvfp4", "both", "128x4"), sizes)


@pytest.mark.parametrize("device", DEVICES)
def test_options_of_quantize(device):
    x = data.normal(200, 128, "bfloat16", seed=6)
    many = np.array([1, 2, 3, 4, 5], np.float32)

    def agrees(fmt, options=None, **each):
        options = options or {}
        given = {name: value for name, (value, _) in each.items()}
        found = dither.grouped_quantize(x, fmt, "both", group_sizes=SIZES, device=device, **options, **given)
        each_alone(
            found,
            lambda g, rows: quantize(
                x[rows], fmt, "both", **options, **{name: of(g) for name, (_, of) in each.items()}
            ),
        )

    agrees("nvfp4", amax=(many, lambda g: many[g]))
    agrees("nvfp4", {"amax": 2.5})
    agrees("nvfp4", decode_scale=(many / 2688, lambda g: many[g] / np.float32(2688)))
    agrees("fp8_tensor_e4m3", encode_scale=(many, lambda g: many[g]))
    agrees("fp8_128x128_e4m3", {"repeat_scales": True})
    agrees("nvfp4", {"numerics": "torchao"})
    stochastic = {"rounding": "stochastic", "seed": 7}
    agrees("nvfp4", stochastic, offset=(3, lambda g: 3 + g * 2**32))
    agrees("mxfp8_e4m3", stochastic, offset=(0, lambda g: g * 2**32))


@pytest.mark.parametrize("device", DEVICES)
def test_transforms(device):
    sizes = np.array([16, 0, 128, 32, 16], np.int32)
    x = data.normal(192, 128, "bfloat16", seed=7)
    found = dither.grouped_quantize(
        x, "nvfp4", "both", group_sizes=sizes, transform=dither.RandomHadamard(), device=device
    )
    each_alone(found, lambda _, rows: quantize(x[rows], "nvfp4", "both", transform=dither.RandomHadamard()), sizes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ["colwise", "both"])
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3", "fp8_tensor_e4m3"])
def test_groups_that_are_no_runs(fmt, layout, device):
    """Columns of each are followed by zeros, up to a whole run, as those of a tensor are; rows are as they were."""
    sizes = np.array([7, 1, 0, 56, 36], np.int32)
    x = data.normal(100, 96, "bfloat16", seed=7)
    options = {"transform": dither.RandomHadamard(16, 0x8001), "layout": layout}

    def alone(_, rows):
        return quantize(x[rows], fmt, **options)

    for given in (sizes, sizes.tolist()):
        found = dither.grouped_quantize(x, fmt, **options, group_sizes=given, device=device)
        each_alone(found, alone, sizes)
        again = dither.grouped_quantize(x * 3, fmt, **options, group_sizes=given, device=device, out=found)
        each_alone(again, lambda _, rows: quantize(x[rows] * 3, fmt, **options), sizes)
    stack = dither.grouped_quantize(x.reshape(5, 20, 96), fmt, **options, device=device)
    each_alone(stack, alone, [20] * 5)
    columns = stack if layout == "colwise" else stack.colwise
    assert (columns.shape, columns.height) == ((160, 96), 32)
    undone = dither.grouped_dequantize(columns, dither.float32, undo_transform=True, device=device).reshape(5, 32, 96)
    for group, rows in zip(undone, parts_of([20] * 5), strict=True):
        want = alone(0, rows) if layout == "colwise" else alone(0, rows).colwise
        check.same_bits(group, want.dequantize(dither.float32, undo_transform=True))


@pytest.mark.parametrize("layout", check.LAYOUTS)
def test_what_is_saved_beside_runs(layout):
    """It has the rows of the groups, and is written once."""
    x, sizes = data.normal(64, 96, "float32", seed=3), [7, 1, 56]
    options = {"format": "nvfp4", "layout": layout, "transform": dither.RandomHadamard(16, rowwise=True)}
    gamma = np.ones(96, np.float32)
    found = dither.rms_norm(x, gamma, **options, groups=dither.Groups(sizes=sizes), amax=None)
    each_alone(found.out, lambda _, rows: dither.rms_norm(np.array(x[rows]), gamma, **options).out, sizes)
    check.same_bits(found.rsigma, dither.rms_norm(x, gamma).rsigma)
    found = dither.quantize_dbias(x, **options, groups=dither.Groups(sizes=sizes))
    for g, rows in enumerate(parts_of(sizes)):
        check.same_bits(found.dbias[g], dither.quantize_dbias(np.array(x[rows]), **options).dbias)
    parts = dither.split_quantize(x, sizes, **options)
    for part, rows in zip(parts, parts_of(sizes), strict=True):
        same(part, quantize(x[rows], **options))


def test_an_earlier_result_of_other_directions():
    x, options = data.normal(64, 96), {"transform": dither.RandomHadamard(), "group_sizes": [7, 57]}
    out = dither.grouped_quantize(x, "nvfp4", "colwise", **options)
    with pytest.raises(TypeError, match="'out' is GroupedScaledTensor1x, expected a GroupedScaledTensor2x"):
        dither.grouped_quantize(x, "nvfp4", "both", **options, out=out)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "fp8_tensor_e4m3"])
def test_padded_and_gathered(fmt, device):
    """Rows that a router names, padded with zeros, and back."""
    x = data.normal(90, 128, "bfloat16", seed=8)
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 90, 200).astype(np.int32)
    found = dither.grouped_quantize(x, fmt, "both", group_sizes=SIZES, rows=rows, pad=32, device=device)
    taken = np.where((rows >= 0)[:, None], x[rows], 0).astype(x.dtype)
    padded = -(-SIZES // 32) * 32
    expected = []
    for part, n in zip(parts_of(SIZES), padded, strict=True):
        group = np.zeros((n, 128), x.dtype)
        group[: part.stop - part.start] = taken[part]
        expected.append(group)
    each_alone(found, lambda g, _: quantize(expected[g], fmt, "both"), padded)
    # Each token in one group, and back to where it was.
    order = rng.permutation(90).astype(np.int32)
    sizes = np.array([20, 0, 70], np.int32)
    found = dither.grouped_quantize(x, fmt, group_sizes=sizes, rows=order, pad=16, device=device)
    back = np.full(found.shape[0], -1, np.int32)
    at = 0
    for part, n in zip(parts_of(sizes), -(-sizes // 16) * 16, strict=True):
        back[at : at + part.stop - part.start] = order[part]
        at += n
    values = dither.grouped_dequantize(found, rows=back, height=90, device=device)
    for part in parts_of(sizes):
        check.same_bits(values[order[part]], quantize(x[order[part]], fmt).dequantize())


@pytest.mark.parametrize("pad", [1, 32])
@pytest.mark.parametrize("device", DEVICES)
def test_joined_codes(device, pad):
    """Transposed codes of all groups as one matrix, as torch's grouped matmuls take them."""
    x = data.normal(200, 96, "bfloat16", seed=45)
    fmt = dither.MXFP8_E4M3.with_(transposed=True)
    found = dither.grouped_quantize(x, fmt, "both", "128x4", group_sizes=SIZES, joined=True, pad=pad, device=device)
    assert found.colwise.data.shape == (96, found.shape[0])
    groups = []
    for rows in parts_of(SIZES):
        group = np.zeros((-(-x[rows].shape[0] // pad) * pad, 96), x.dtype)
        group[: rows.stop - rows.start] = x[rows]
        groups.append(group)
    each_alone(found, lambda g, _: quantize(groups[g], fmt, "both", "128x4"), [len(g) for g in groups])
    values = dither.grouped_dequantize(found.colwise, device=device)
    used = np.concatenate(groups)
    check.same_bits(values[: len(used)], np.concatenate([quantize(g, fmt, "colwise").dequantize() for g in groups]))
    with pytest.raises(ValueError, match="joined is True for nvfp4, of which two columns share a byte"):
        dither.grouped_quantize(x, "nvfp4", "both", group_sizes=SIZES, joined=True)


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_that_are_not_those_of_all_rows(device):
    """Rows past the groups are zero, groups past the rows end with them, and the result says so."""
    x = data.normal(200, 64, "float32", seed=9)
    for fmt, sizes, there in (
        ("mxfp8_e4m3", [5, 10], [5, 10]),
        ("nvfp4", [150, 100, 3], [150, 50, 0]),
        ("fp8_1x128_e4m3", [2**31 - 1, 7], [200, 0]),
        ("nvfp4", [0, 0], [0, 0]),
        ("mxfp8_e4m3", [-5, 205], None),
    ):
        sizes = np.array(sizes, np.int64)
        found = dither.grouped_quantize(x, fmt, "both", "linear", group_sizes=sizes, device=device)
        assert np.asarray(found.wrong).item() == 1
        if there is None:
            continue
        for g, (group, rows) in enumerate(zip(found.split(), parts_of(there), strict=True)):
            same(group, quantize(x[rows], fmt, "both"), f"group {g}")
        past = check.bits(found.rowwise.data)[sum(there) :]
        assert not past.any()
        assert not check.array(found.dequantize())[sum(there) :].any()
    found = dither.grouped_quantize(x, "nvfp4", group_starts=np.array([5, 100], np.int32), device=device)
    assert np.asarray(found.wrong).item() == 1


@pytest.mark.sample("values")
@pytest.mark.parametrize("layout", ["rowwise", "colwise"])
@pytest.mark.parametrize("fmt", [*FORMATS, "nvfp4 of rows"])
def test_dequantize(fmt, layout):
    fmt = OTHERS.get(fmt, fmt)
    x = data.normal(200, 160, "float32", seed=10)
    for order in orders_of(fmt, layout):
        found = dither.grouped_quantize(x, fmt, layout, order, group_sizes=SIZES)
        values = found.dequantize()
        for rows in parts_of(SIZES):
            check.same_bits(values[rows], quantize(x[rows], fmt, layout, order).dequantize(), order)


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize("layout", ["rowwise", "colwise"])
def test_dequantize_on_gpus(layout, device):
    x = data.normal(200, 160, "bfloat16", seed=11)
    for fmt, order in itertools.product(("mxfp8_e4m3", "nvfp4", "fp8_1x128_e4m3"), ("linear", "128x4", "column_major")):
        if order not in orders_of(fmt, layout):
            continue
        found = dither.grouped_quantize(x, fmt, layout, order, group_sizes=SIZES)
        values = dither.grouped_dequantize(found, dither.float32, device=device)
        check.same_bits(values, found.dequantize(dither.float32), f"{fmt} {order}")


def test_transforms_are_undone():
    sizes = np.array([16, 48], np.int32)
    x = data.normal(64, 128, "float32", seed=12)
    options = {"transform": dither.RandomHadamard(), "layout": "colwise"}
    found = dither.grouped_dequantize(
        dither.grouped_quantize(x, "nvfp4", group_sizes=sizes, **options), undo_transform=True
    )
    for rows in parts_of(sizes):
        alone = quantize(x[rows], "nvfp4", **options).dequantize(undo_transform=True)
        check.same_bits(found[rows], alone)


@pytest.mark.parametrize("device", DEVICES)
def test_fused_operators(device):
    """Activations, norms and gradients of groups: also what they save, with a sum of columns for each group."""
    g, u, dy = (data.normal(200, 128, "float32", seed=20 + i) for i in range(3))
    gamma, groups = data.normal(1, 128, "float32", seed=23)[0], dither.Groups(SIZES)
    options = {"format": "mxfp8_e4m3", "layout": "both", "scale_layout": "128x4"}
    here = {**options, "groups": groups, "device": device}
    each_alone(dither.swiglu(g, u, **here), lambda _, rows: dither.swiglu(g[rows], u[rows], **options))
    each_alone(dither.dswiglu(dy, g, u, **here), lambda _, rows: dither.dswiglu(dy[rows], g[rows], u[rows], **options))
    found = dither.rms_norm(g, gamma, **here)
    each_alone(found.out, lambda _, rows: dither.rms_norm(g[rows], gamma, **options).out)
    check.same_bits(found.rsigma, dither.rms_norm(g, gamma).rsigma)
    for fmt in ("nvfp4", None):
        options = {"format": fmt, "layout": "both"} if fmt else {}
        found = dither.dbias_dsilu(dy, g, **options, groups=groups, device=device)
        for i, rows in enumerate(parts_of(SIZES)):
            alone = dither.dbias_dsilu(dy[rows], g[rows], **options)
            check.same_bits(found.dbias[i], alone.dbias, f"dbias of group {i}")
            if fmt:
                same(found.out.group(i), alone.out)
            else:
                check.same_bits(found.out[rows], alone.out)
    found = dither.silu(g, groups=groups, return_amax=True, device=device)
    check.same_bits(found.amax, np.array([np.abs(found.out[rows]).max(initial=0) for rows in parts_of(SIZES)]))


def test_tables_and_rows_of_groups():
    """Operands that repeat along columns, columns of rows that a router names, and whole rows."""
    x, cos, sin = (data.normal(200, n, "float32", seed=40 + n) for n in (256, 32, 33))
    sin, groups = sin[:, :32].copy(), dither.Groups(SIZES)
    options = {"format": "mxfp8_e4m3", "layout": "both"}
    each_alone(
        dither.rope(x, cos, sin, **options, groups=groups),
        lambda _, rows: dither.rope(x[rows], cos[rows], sin[rows], **options),
    )
    each_alone(dither.softmax(x, **options, groups=groups), lambda _, rows: dither.softmax(x[rows], **options))
    index = np.random.default_rng(1).permutation(200).astype(np.int32)
    routed, factor = dither.Groups(SIZES, rows=index), data.normal(1, 200, "float32", seed=44)[0]
    each_alone(
        dither.rope(x, cos, sin, **options, groups=routed),
        lambda _, rows: dither.rope(x[index[rows]], cos[index[rows]], sin[index[rows]], **options),
    )
    each_alone(
        dither.srelu(x, factor=factor, **options, groups=routed),
        lambda _, rows: dither.srelu(x[index[rows]], factor=factor[index[rows]], **options),
    )


def test_sums_of_groups_of_many_rows():
    """More programs than are added up at once, in groups and in rows of one."""
    x = data.normal(20000, 32, "float32", seed=30)
    sizes = np.array([9000, 3, 10997], np.int32)
    found = dither.quantize_dbias(x, groups=dither.Groups(sizes))
    for i, rows in enumerate(parts_of(sizes)):
        check.same_bits(found.dbias[i], dither.quantize_dbias(x[rows]).dbias)


def test_many_groups():
    """More of them than are added up at once, most of them empty."""
    sizes = np.zeros(1000, np.int64)
    sizes[[0, 127, 128, 500, 998]] = [3, 40, 1, 77, 9]
    x = data.normal(130, 64, "float32", seed=31)
    for device in DEVICES[:2]:
        found = dither.grouped_quantize(x, "nvfp4", "both", "128x4", group_sizes=sizes, device=device)
        assert np.asarray(found.wrong).item() == 0
        for g in (0, 1, 127, 128, 500, 998, 999):
            rows = parts_of(sizes)[g]
            same(found.group(g), _alone(x[rows]))


def _alone(x):
    return quantize(x, "nvfp4", "both", "128x4")


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    x = data.normal(200, 64, "float32", seed=32)
    sizes = torch.from_numpy(SIZES)
    found = dither.grouped_quantize(torch.from_numpy(x).bfloat16(), "mxfp8_e4m3", "both", group_sizes=sizes)
    assert isinstance(found.rowwise.data, torch.Tensor)
    x = x.astype(ml_dtypes.bfloat16)
    each_alone(found, lambda _, rows: quantize(x[rows], "mxfp8_e4m3", "both"))
    assert isinstance(found.dequantize(), torch.Tensor)


def test_no_rows():
    x = np.zeros((0, 64), np.float32)
    found = dither.grouped_quantize(x, "nvfp4", "both", "128x4", group_sizes=np.zeros(3, np.int32))
    each_alone(found, lambda *_: _alone(x), [0, 0, 0])
    assert found.dequantize().shape == (0, 64)


def test_wrong_calls():
    x, sizes = np.ones((8, 64), np.float32), np.array([4, 4], np.int32)
    grouped = dither.grouped_quantize
    for error, message, call in (
        (TypeError, "found no groups, expected group_sizes", lambda: grouped(x, "nvfp4")),
        (
            TypeError,
            "found group_sizes and group_ends, expected one of group_sizes, group_starts and group_ends",
            lambda: grouped(x, "nvfp4", group_sizes=sizes, group_ends=sizes),
        ),
        (
            ValueError,
            r"'group_sizes' was given for x of shape \(2, 4, 64\), expected a matrix",
            lambda: grouped(x.reshape(2, 4, 64), "nvfp4", group_sizes=sizes),
        ),
        (
            TypeError,
            "argument 'group_sizes' has data type float32, expected int32 or int64",
            lambda: grouped(x, "nvfp4", group_sizes=sizes.astype(np.float32)),
        ),
        (
            ValueError,
            "argument 'group_sizes' has rank 2, expected 1",
            lambda: grouped(x, "nvfp4", group_sizes=sizes[None]),
        ),
        (ValueError, "argument 'group_sizes' has no elements", lambda: grouped(x, "nvfp4", group_sizes=sizes[:0])),
        (
            ValueError,
            "argument 'group_sizes' has groups of 7 rows, expected 8",
            lambda: grouped(x, "nvfp4", group_sizes=[4, 3]),
        ),
        (
            ValueError,
            "argument 'group_starts' has 1 at first, expected 0",
            lambda: grouped(x, "nvfp4", group_starts=(1, 4)),
        ),
        (
            ValueError,
            "argument 'group_ends' has a group of -2 rows at 1, expected none below 0",
            lambda: grouped(x, "nvfp4", group_ends=[4, 2, 8]),
        ),
        (
            ValueError,
            "argument 'ends' has groups of 7 rows, expected 8",
            lambda: dither.silu(x, groups=dither.Groups(ends=[4, 7])),
        ),
        (ValueError, "pad is 24, expected a power of two", lambda: grouped(x, "nvfp4", group_sizes=sizes, pad=24)),
        (
            ValueError,
            r"argument 'amax' is float32 of shape \(3,\), expected a number, or float32 of shape \(2,\)",
            lambda: grouped(x, "nvfp4", group_sizes=sizes, amax=np.ones(3, np.float32)),
        ),
        (
            ValueError,
            "argument 'amax' is -1.0, expected a finite number",
            lambda: grouped(x, "nvfp4", group_sizes=sizes, amax=np.array([1, -1], np.float32)),
        ),
        (
            ValueError,
            "argument 'encode_scale' was given for mxfp8_e4m3, expected a format with a tensor scale",
            lambda: grouped(x, "mxfp8_e4m3", group_sizes=sizes, encode_scale=2.0),
        ),
        (TypeError, "argument 'groups' is ndarray, expected a dither.Groups", lambda: dither.silu(x, groups=sizes)),
        (ValueError, "found 8 rows, expected a multiple of 3", lambda: dither.silu(x, groups=dither.Groups(count=3))),
        (
            ValueError,
            "found 8 rows, expected a multiple of 5, the rows of a group",
            lambda: dither.silu(x, groups=dither.Groups(height=5)),
        ),
        (ValueError, "height is 0, expected a positive integer", lambda: dither.Groups(height=0)),
        (TypeError, "found count and height, expected one of", lambda: dither.Groups(count=2, height=4)),
        (
            TypeError,
            "argument 'x' is ndarray, expected what dither.grouped_quantize gives",
            lambda: dither.grouped_dequantize(x),
        ),
        (IndexError, "group 2 of 2, expected -2 to 1", lambda: grouped(x, "nvfp4", group_sizes=sizes).group(2)),
    ):
        with pytest.raises(error, match=message):
            call()
