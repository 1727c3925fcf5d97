"""Calls that differ from earlier ones in extents alone, such as the number of rows, are run as these were."""

import dataclasses
import gc
import math
import random
import threading
import weakref

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.extents import Extent, Terms
from ops import data
from ops.replays import (
    CALLS,
    F32,
    LIBRARIES,
    ROW,
    X,
    bytes_of,
    hits,
    in_python,
    is_replayed,
    made,
    nothing_recorded,
    of,
    replays_of,
    resized,
    same,
)

torch = pytest.importorskip("torch")
__all__ = ["nothing_recorded"]  # for every test of this file


def records(operator):
    """How many of its calls were described."""
    return replays_of(operator).records


def rows_of(library, rows, columns=64, dtype="bfloat16"):
    return of(library, data.normal(rows, columns, dtype))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CALLS)
def test_results(name, library):
    """The first call is seen, the second recorded; the next ones, each of another length, take no Python."""
    operator, args, kwargs = CALLS[name]
    kwargs = {name: made(library, value) for name, value in kwargs.items()}
    own = 2 if name == "three dimensions" else 32 if name == "transform" else 6
    found = []
    for rows in (own, 7, 11, 13, 77, 1, 150, 3):
        given = tuple(made(library, resized(value, own, rows)) for value in args)
        want = in_python(operator)(*given, **kwargs)
        before = hits(operator)
        same(operator(*given, **kwargs), want)
        found.append(hits(operator) - before)
    # Of scales in an order that has whole tiles, some lengths have code of their own.
    assert found[:2] == [0, 0] and sum(found[2:]) >= (3 if name == "swizzle" else 5)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("layout", ["rowwise", "colwise"])
@pytest.mark.parametrize(("fmt", "order"), [("mxfp8_e4m3", "linear"), ("nvfp4", "linear"), ("nvfp4", "128x4")])
def test_quantized_tensors(fmt, order, layout, library):
    """The shape of a quantized tensor is one of the extents."""
    for rows in (48, 80, 112, 144, 16, 33):
        q = in_python(dither.quantize)(rows_of(library, rows), fmt, layout, order)
        same(dither.dequantize(q), in_python(dither.dequantize)(q))
        with pytest.raises(ValueError, match="argument 'x' has data of shape"):
            dither.dequantize(dataclasses.replace(q, shape=(rows + 16, 64)))
        with pytest.raises(ValueError, match="argument 'x' has data of shape"):
            dither.dequantize(dataclasses.replace(q, shape=(rows, 128)))
    assert hits(dither.dequantize) >= 2 if order == "linear" else 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_given_outputs(library):
    for rows in (4, 40, 70, 7, 130):
        x = rows_of(library, rows)
        out = in_python(dither.quantize)(x, "mxfp8_e4m3", "both")
        found = dither.quantize(x, "mxfp8_e4m3", "both", out=out)
        same(found, in_python(dither.quantize)(x, "mxfp8_e4m3", "both"))
        assert found.rowwise.data is out.rowwise.data and found.colwise.scale_inv is out.colwise.scale_inv
    assert hits(dither.quantize) == 3


@pytest.mark.parametrize("library", LIBRARIES)
def test_seeds(library):
    """Random bits of a new seed in each call, of tensors of one length and of others."""
    x = rows_of(library, 9)
    big = [7, 8, 2**40 + 3, 0, -1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 12]
    for seed in big:
        options = {"rounding": "stochastic", "seed": seed, "offset": 2**33 + seed % 5}
        got = dither.quantize(x, "nvfp4", "both", **options)
        same(got, in_python(dither.quantize)(x, "nvfp4", "both", **options))
    assert hits(dither.quantize) >= 4
    for rows in (3, 4, 5, 6):
        options = {"rounding": "stochastic", "seed": 100 * rows}
        y = rows_of(library, rows)
        same(dither.gelu(y, format="nvfp4", **options), in_python(dither.gelu)(y, format="nvfp4", **options))
        same(
            dither.add_dropout(y, y, 0.5, dropout_seed=rows),
            in_python(dither.add_dropout)(y, y, 0.5, dropout_seed=rows),
        )
    assert hits(dither.gelu) == 2 and hits(dither.add_dropout) == 2
    for wrong in (2**64, True, 1.5):
        with pytest.raises((TypeError, ValueError), match="seed"):
            dither.quantize(x, "nvfp4", rounding="stochastic", seed=wrong)


def test_seeds_and_rows_that_are_equal():
    """A seed that is as large as the number of rows is so by chance."""
    for rows in (4, 5, 6):
        options = {"rounding": "stochastic", "seed": rows}
        dither.quantize(rows_of("numpy", rows), "nvfp4", **options)
    x = rows_of("numpy", 9)
    before = hits(dither.quantize)
    options = {"rounding": "stochastic", "seed": 77}
    same(dither.quantize(x, "nvfp4", **options), in_python(dither.quantize)(x, "nvfp4", **options))
    assert hits(dither.quantize) == before + 1


def sizes_of(rows, seed):
    """Rows of four groups, which may be empty."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, rows + 1, 3))
    return np.diff(np.concatenate([[0], cuts, [rows]])).astype(np.int64)


def values_of(groups):
    """What groups are, less what is past them."""
    sides = (groups.rowwise, groups.colwise) if hasattr(groups, "rowwise") else (groups,)
    own = [
        (
            q.shape,
            q.dtype,
            q.groups,
            q.height,
            q.joined,
            np.asarray(q.wrong).tolist(),
            np.asarray(q.table)[:-1].tolist(),
        )
        for q in sides
    ]
    parts = [part for q in sides for part in q.split()]
    return own, [(part.shape, bits(part.data), bits(part.scale_inv), bits(part.amax)) for part in parts]


def bits(array):
    if array is None:
        return None
    found = bytes_of(array) if isinstance(array, torch.Tensor) else np.ascontiguousarray(array).tobytes()
    return tuple(array.shape), found


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("layout", ["rowwise", "both"])
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "fp8_tensor_e4m3"])
@pytest.mark.parametrize("kind", ["sizes", "starts", "list"])
def test_groups(kind, fmt, layout, library):
    """Groups of other sizes in each call, of as many rows and of others, whether the host knows them or not."""
    for seed, rows in enumerate((60, 60, 60, 60, 33, 91, 128, 7)):
        x, sizes = rows_of(library, rows), sizes_of(rows, seed)
        starts = data.aligned(np.cumsum([0, *sizes[:-1]]))
        given = {
            "sizes": {"group_sizes": of(library, data.aligned(sizes))},
            "starts": {"group_starts": of(library, starts)},
            "list": {"group_sizes": sizes.tolist()},
        }[kind]
        want = in_python(dither.grouped_quantize)(x, fmt, layout, **given)
        found = dither.grouped_quantize(x, fmt, layout, **given)
        assert values_of(found) == values_of(want)
        same(dither.grouped_dequantize(found), in_python(dither.grouped_dequantize)(want))
    assert hits(dither.grouped_quantize) >= (3 if kind == "list" else 5)
    assert hits(dither.grouped_dequantize) >= 4


def test_lists_of_sizes():
    """Numbers of a list that are equal by chance may be others as well; a list of many is Python's."""
    for groups, expected in ((64, 6), (600, 0)):
        dither.grouped_quantize.__wrapped__.own.replays = None
        rng = random.Random(groups)
        for _ in range(8):
            sizes = [rng.randrange(5) for _ in range(groups)]
            x = rows_of("numpy", sum(sizes), 32)
            want = in_python(dither.grouped_quantize)(x, "mxfp8_e4m3", group_sizes=sizes)
            assert values_of(dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes)) == values_of(want)
        assert hits(dither.grouped_quantize) == expected
        assert records(dither.grouped_quantize) == (expected > 0)


def test_wrong_groups():
    for seed in range(4):
        x = rows_of("numpy", 60)
        dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes_of(60, seed).tolist())
        dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes_of(60, seed))
    assert hits(dither.grouped_quantize) >= 4
    for sizes, words in (
        ([1, 2, 3, 4], "has groups of 10 rows, expected 60"),
        ([70, -10, 0, 0], "has a group of -10 rows at 1"),
        ([20, 20, 20, 0.0], "has 0.0 at 3, expected an integer"),
        ([20, 20, 20, True], "has True at 3, expected an integer"),
        ([2**63, 0, 0, 0], "rows, expected 60"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes)
    # What lies on the device is looked at there.
    found = dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=np.array([1, 2, 3, 4]))
    assert found.wrong.item() == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_groups_of_operators(library):
    for seed, rows in enumerate((60, 60, 60, 33, 91, 128)):
        x, row = rows_of(library, rows), of(library, ROW)
        groups = dither.Groups(sizes=of(library, data.aligned(sizes_of(rows, seed))))
        options = {"groups": groups, "format": "mxfp8_e4m3", "layout": "both"}
        want = in_python(dither.rms_norm)(x, row, **options)
        found = dither.rms_norm(x, row, **options)
        assert values_of(found[0]) == values_of(want[0])
        same(found[1:], want[1:])
        same(dither.gelu(x, groups=groups), in_python(dither.gelu)(x, groups=groups))
    assert hits(dither.rms_norm) == 3 and hits(dither.gelu) == 3


def test_several_extents():
    """Batches and lengths, of which either may be another."""
    shapes = [(2, 3), (4, 3), (4, 5), (1, 5), (5, 1), (7, 9), (3, 3), (2, 8)]
    found = []
    for batch, length in shapes:
        x = data.normal(batch * length, 64).reshape(batch, length, 64)
        want = in_python(dither.quantize)(x, "mxfp8_e4m3", "both")
        before = hits(dither.quantize)
        same(dither.quantize(x, "mxfp8_e4m3", "both"), want)
        found.append(hits(dither.quantize) - before)
    # One record for batches, and one for both.
    assert found == [0, 0, 0, 1, 1, 1, 1, 1]


def test_extents_that_are_equal():
    """A record of extents that were equal is for those that are."""
    found = []
    for batch, length in [(2, 3), (4, 4), (5, 5), (6, 5), (7, 7), (8, 9)]:
        x = data.normal(batch * length, 64).reshape(batch, length, 64)
        before = hits(dither.gelu)
        same(dither.gelu(x), in_python(dither.gelu)(x))
        found.append(hits(dither.gelu) - before)
    assert found == [0, 0, 1, 0, 1, 1]


def test_columns_are_code():
    """The last extent is part of the code: each has records of its own."""
    for columns in (64, 96, 128):
        for rows in (4, 5, 6, 7):
            x = rows_of("numpy", rows, columns)
            same(dither.gelu(x), in_python(dither.gelu)(x))
        assert is_replayed(dither.gelu, rows_of("numpy", 9, columns))
    assert records(dither.gelu) == 3


def test_what_is_asked_of_extents():
    """Where a call does something else for other extents, these are another record."""
    a, b = rows_of("numpy", 100), rows_of("numpy", 200)
    for x in (a, b, a, b):
        dither.rms_norm_backward(x, x, np.ones(len(x), F32), ROW)
    assert records(dither.rms_norm_backward) == 1
    # More rows than one program sums the columns of.
    for rows in (40000, 50000, 60000, 70000):
        x = rows_of("numpy", rows, 64)
        args = (x, x, np.ones(rows, F32), ROW)
        same(dither.rms_norm_backward(*args), in_python(dither.rms_norm_backward)(*args))
    assert records(dither.rms_norm_backward) == 2


def test_what_needs_the_number():
    """A call that needs an extent as a number, here a stride of a tensor of three dimensions, is recorded for each."""
    for rows in (4, 5, 6, 7):
        codes = data.normal(64, rows * 2, "float32").reshape(64, rows, 2)
        for _ in range(3):
            same(dither.amax(codes), in_python(dither.amax)(codes))
    assert is_replayed(dither.amax, codes)


def test_empty_and_wide():
    """Tensors without rows stay Python's; those of a stride have records of their own."""
    for rows in (4, 5, 0, 6):
        assert dither.gelu(np.zeros((rows, 64), F32)).shape == (rows, 64)
    assert not is_replayed(dither.gelu, np.zeros((0, 64), F32)) and is_replayed(dither.gelu, np.zeros((9, 64), F32))
    wide = torch.from_numpy(data.normal(64, 128, "float32"))
    for rows in (4, 5):
        dither.gelu(torch.ones(rows, 64))
    for rows in (4, 5, 6, 7, 6):
        same(dither.gelu(wide[:rows, :64]), in_python(dither.gelu)(wide[:rows, :64]))
    assert is_replayed(dither.gelu, wide[:8, 64:]) and is_replayed(dither.gelu, wide[:8, :64].contiguous())
    # Every second row, and rows that go backwards, are others.
    for x in (wide[::2, :64], wide.numpy()[::-1, :64]):
        assert not is_replayed(dither.gelu, x)
        same(dither.gelu(x), in_python(dither.gelu)(x))


def test_memory_that_is_shared():
    for rows in (4, 5, 6):
        x = np.ones((rows, 64), F32)
        dither.gelu(x, out=np.zeros((rows, 64), F32))
    assert is_replayed(dither.gelu, np.ones((9, 64), F32), out=np.zeros((9, 64), F32))
    both = np.zeros((16, 64), F32)
    with pytest.raises(ValueError, match="share"):
        dither.gelu(both[:8], out=both[4:12])
    with pytest.raises(ValueError, match=r"has shape \(7, 64\), expected \(9, 64\)"):
        dither.gelu(np.ones((9, 64), F32), out=np.zeros((7, 64), F32))
    out = np.zeros((9, 64), F32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        dither.gelu(np.ones((9, 64), F32), out=out)


def test_numbers_on_the_host():
    amax = np.array(4.0, F32)
    for rows in (4, 5, 6):
        dither.quantize(rows_of("numpy", rows), "nvfp4", amax=amax)
    x = rows_of("numpy", 9)
    assert is_replayed(dither.quantize, x, "nvfp4", amax=amax)
    for value in (-1.0, math.inf, math.nan):
        amax[...] = value
        with pytest.raises(ValueError, match=f"argument 'amax' is {value!r}"):
            dither.quantize(x, "nvfp4", amax=amax)


def test_what_the_code_depends_on(monkeypatch):
    from ops.test_replay import written

    scope = {"dl": dl, "dither": dither, "FACTOR": 2.0}
    operator = written("def scaled(x):\n    return x * FACTOR\n", scope)
    of_rows = [data.normal(rows, 64, "float32") for rows in range(4, 12)]
    for x in of_rows:
        np.testing.assert_array_equal(operator(x), x * F32(2))
    assert is_replayed(operator, of_rows[-1])
    scope["FACTOR"] = 3.0
    for x in of_rows:
        np.testing.assert_array_equal(operator(x), x * F32(3))
    assert is_replayed(operator, of_rows[0])
    monkeypatch.setenv("DITHER_MATH", "fast")
    assert not is_replayed(operator, of_rows[0])
    operator.operator.kernel.clear()
    for x in of_rows:
        np.testing.assert_array_equal(operator(x), x * F32(3))
    # The operator goes, with all that was recorded of it.
    known = weakref.ref(operator)
    del operator
    scope.clear()
    gc.collect()
    assert known() is None


def test_wrong_calls():
    """A call that a record is for, but for what it says, is told so at once."""
    for rows in (4, 5, 6):
        dither.rms_norm(rows_of("numpy", rows), ROW, format="mxfp8_e4m3")
    x = rows_of("numpy", 9)
    assert is_replayed(dither.rms_norm, x, ROW, format="mxfp8_e4m3")
    with pytest.raises(ValueError, match=r"argument 'gamma' has shape \(32,\), expected \(64,\)"):
        dither.rms_norm(x, ROW[:32].copy(), format="mxfp8_e4m3")
    for rows in (4, 5, 6, 7):
        with pytest.raises(ValueError, match=r"has shape \(3, 64\), expected \(\d, 64\)"):
            dither.swiglu(rows_of("numpy", rows), rows_of("numpy", 3))


def test_wrong_calls_come_first():
    """What is wrong of some calls does not keep others from being recorded."""
    for rows in range(3, 11):
        with pytest.raises(ValueError, match="expected"):
            dither.swiglu(rows_of("numpy", rows), rows_of("numpy", 2))
        with pytest.raises(ValueError, match="expected"):
            dither.grouped_quantize(rows_of("numpy", rows), "mxfp8_e4m3", group_sizes=[1, rows])
    for rows in range(3, 11):
        dither.swiglu(rows_of("numpy", rows), rows_of("numpy", rows))
        dither.grouped_quantize(rows_of("numpy", rows), "mxfp8_e4m3", group_sizes=[1, rows - 1])
    assert hits(dither.swiglu) >= 6 and hits(dither.grouped_quantize) >= 6


def test_keys_of_families():
    """A text where a number belongs is another call, whatever it is."""
    for columns in (64, 96, 128):
        x = rows_of("numpy", 9, columns)
        with pytest.raises(TypeError, match="argument 'seed' is 'offset'"):
            dither.quantize(x, "nvfp4", rounding="stochastic", seed="offset")
        options = {"rounding": "stochastic", "seed": 5, "offset": 3}
        same(dither.quantize(x, "nvfp4", **options), in_python(dither.quantize)(x, "nvfp4", **options))
        for wrong in ({"seed": "abc", "format": "nvfp4_seed"}, {"seed": 5, "abc": "format", "nvfp4_seed": 9}):
            with pytest.raises((TypeError, ValueError)):
                dither.gelu(x, **wrong)


def test_many_shapes_of_weights():
    """More shapes than records are kept of: each is recorded for itself when it comes again and again."""
    shapes = [(rows, 64) for rows in range(1, 200)]
    for _ in range(3):
        for shape in shapes:
            x = np.ones(shape, F32)
            same(dither.softmax(x), in_python(dither.softmax)(x))
    assert records(dither.softmax) <= 8


def test_threads():
    x = [of("torch", data.normal(rows, 64, "float32")) for rows in range(1, 65)]
    want = [in_python(dither.quantize)(each, "nvfp4", "both") for each in x]
    failures = []

    def run(start):
        try:
            for i in range(400):
                at = (start + 7 * i) % len(x)
                same(dither.quantize(x[at], "nvfp4", "both"), want[at])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(16 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and hits(dither.quantize) > 1400


def test_graphs_of_lengths():
    """torch's own tensors of a batch whose length is new in each step."""
    layer = torch.nn.Linear(64, 64).bfloat16()
    for rows in (3, 9, 4, 27, 81, 2):
        with torch.no_grad():
            y = layer(torch.from_numpy(X.view("u2")).view(torch.bfloat16)[:1].expand(rows, 64).contiguous())
            same(dither.quantize(y, "mxfp8_e4m3"), in_python(dither.quantize)(y, "mxfp8_e4m3"))
    assert hits(dither.quantize) == 4


def test_nothing_keeps_an_extent():
    """What is remembered from call to call, such as code by its key, has numbers."""
    for name, (operator, args, kwargs) in CALLS.items():
        own = 2 if name == "three dimensions" else 32 if name == "transform" else 6
        for rows in (own, 7, 40):
            operator(*(resized(value, own, rows) for value in args), **kwargs)
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, (Extent, Terms))]


@pytest.mark.parametrize("seed", range(8))
def test_random_calls(seed):
    """Random operators, options and extents, again and again: the results of Python."""
    rng = random.Random(seed)
    for _ in range(6):
        call = random_call(rng)
        for _ in range(7):
            operator, args, kwargs = call(rng)
            compare(operator, args, kwargs)


def random_call(rng):
    """Draws a call, and returns what draws its arguments."""
    library, dtype = rng.choice(LIBRARIES), rng.choice(["bfloat16", "float32"])
    columns = rng.choice([32, 64, 96, 160])
    rank = rng.choice([2, 2, 2, 3])
    most = rng.choice([9, 70, 300])
    fmt = rng.choice(
        [None, "mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "nvfp4", "fp8_tensor_e4m3", "fp8_row_e4m3", "fp8_1x128_e4m3"]
    )
    options = {} if fmt is None else {"format": fmt, "layout": rng.choice(["rowwise", "colwise", "both"])}
    if fmt in ("mxfp8_e4m3", "mxfp4", "nvfp4") and rng.random() < 0.4:
        options["scale_layout"] = "128x4"
    stochastic = fmt in ("mxfp4", "nvfp4") and rng.random() < 0.3
    which = rng.choice(
        ["quantize", "gelu", "swiglu", "rms_norm", "layer_norm", "dgelu", "dbias_dgelu", "dequantize", "transpose"]
    )
    if which in ("quantize", "dequantize") and fmt is None:
        fmt = options["format"] = "mxfp8_e4m3"
    if which == "transpose":
        options, stochastic, rank = {}, False, 2

    def draw(rng):
        shape = [rng.choice([1, 2, 16, 32, 33, 128, most, rng.randrange(1, most + 1)]) for _ in range(rank - 1)]
        if rank == 3:
            shape = [min(n, 12) for n in shape]
        x, y = (tensor(rng, library, dtype, (*shape, columns)) for _ in range(2))
        row = of(library, data.normal(1, columns, "float32", seed=rng.randrange(9))[0])
        own = dict(options)
        if stochastic:
            own |= {"rounding": "stochastic", "seed": rng.randrange(2**40), "offset": rng.choice([0, 5])}
        if which == "dequantize":
            del own["format"]
            own = {name: value for name, value in own.items() if name == "scale_layout" or name == "layout"}
            if own.get("layout") == "both":
                own["layout"] = "rowwise"
            return dither.dequantize, (in_python(dither.quantize)(x, fmt, **own),), {}
        args = {
            "swiglu": (x, y),
            "dgelu": (x, y),
            "dbias_dgelu": (x, y),
            "rms_norm": (x, row),
            "layer_norm": (x, row, row),
        }
        return getattr(dither, which), args.get(which, (x,)), own

    return draw


def tensor(rng, library, dtype, shape):
    """Random elements; rows may be a part of wider ones."""
    rows = math.prod(shape[:-1])
    x = data.normal(rows, shape[-1], dtype, seed=rng.randrange(1000)).reshape(shape)
    if len(shape) == 2 and rng.random() < 0.2:
        wide = np.zeros((rows, 2 * shape[-1]), x.dtype)
        wide[:, : shape[-1]] = x
        return of(library, data.aligned(wide))[:, : shape[-1]]
    return of(library, data.aligned(x))


def compare(operator, args, kwargs):
    """A call, and what Python makes of it: results, or errors."""
    try:
        want = in_python(operator)(*args, **kwargs)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)) as found:
            operator(*args, **kwargs)
        assert str(found.value) == str(error)
        return
    same(operator(*args, **kwargs), want)
