"""Many tensors in few launches: each has the bits of a call of its own."""

import dither
import ml_dtypes
import numpy as np
import pytest
from ops import check, data

F32 = np.float32
DEVICES = ("cpu", "sim:sm_90a", "sim:sm_100a")
#: Of different ranks, one without elements, and two that are alike.
SHAPES = ((64, 256), (33, 100), (1, 1), (0, 64), (200, 64), (64, 256), (130, 33))


def tensors(dtype="bfloat16", shapes=SHAPES):
    return [data.aligned(data.normal(m, n, dtype, seed=i)) for i, (m, n) in enumerate(shapes)]


def same(found, expected, what=""):
    """Fails unless both are the same tensor, in all that they have."""
    for one, want in zip(check.parts(found), check.parts(expected), strict=True):
        fields = ("format", "shape", "dtype", "is_colwise", "scale_layout", "repeated", "transform", "flatten_axis")
        assert [getattr(one, f) for f in fields] == [getattr(want, f) for f in fields], what
        check.same_bits(one.data, want.data, f"{what} data")
        check.same_bits(one.scale_inv, want.scale_inv, f"{what} scales")
        for name in ("amax", "tensor_scale"):
            if getattr(want, name) is not None:
                check.same_bits(getattr(one, name), getattr(want, name), f"{what} {name}")


CASES = {
    "mxfp8 128x4": ("mxfp8_e4m3", "both", "128x4"),
    "nvfp4 128x4": ("nvfp4", "both", "128x4"),
    "nvfp4 decode": (dither.NVFP4.with_(tensor_scale_as="decode"), "rowwise"),
    "nvfp4 rows": (dither.NVFP4.with_(row_amax=True), "both"),
    "fp8 tensor": ("fp8_tensor_e4m3", "both"),
    "fp8 rows": ("fp8_row_e4m3", "both"),
    "fp8 128x128": ("fp8_128x128_e4m3", "both"),
    "mxfp4": ("mxfp4", "colwise"),
}
PAIRS = [(name, device) for i, name in enumerate(CASES) for device in ("cpu", DEVICES[1 + i % 2])]


@pytest.mark.parametrize(("name", "device"), PAIRS)
def test_bits(name, device):
    xs = tensors()
    found = dither.quantize_many(xs, *CASES[name], device=device)
    for i, (one, x) in enumerate(zip(found, xs, strict=True)):
        same(one, dither.quantize(x, *CASES[name]), f"tensor {i}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["128x4", "8x4", "packed"])
def test_padding_of_scales_is_written(order, device):
    """Rows that are shorter than what scales are padded to; and of fewer tiles, or more than one."""
    xs = tensors(shapes=((40, 16), (40, 32), (40, 64), (7, 192), (130, 320)))
    for layout in ("rowwise", "both"):
        found = dither.quantize_many(xs, "mxfp8_e4m3", layout, order, device=device)
        for i, (one, x) in enumerate(zip(found, xs, strict=True)):
            same(one, dither.quantize(x, "mxfp8_e4m3", layout, order), f"{layout}, tensor {i}")


@pytest.mark.parametrize("device", DEVICES)
def test_options_of_each(device):
    """Lists have a value for each: formats, layouts, scales, offsets and earlier results."""
    xs = [*tensors(shapes=((64, 128), (96, 64))), data.normal(32, 96, "float32").reshape(4, 8, 96)]
    options = {
        "layout": ["both", "rowwise", "colwise"],
        "encode_scale": [None, 0.5, None],
        "amax": [3.0, None, None],
        "rounding": "stochastic",
        "seed": 5,
        "offset": [1, 2, 3],
        "record_amax": [None, np.zeros(1, F32), np.zeros((), F32)],
        "transform": [dither.RandomHadamard(), None, None],
    }
    formats = ("mxfp8_e4m3", "fp8_tensor_e5m2", "mxfp6_e2m3")
    options["amax"][0] = None
    each = [{k: v[i] if isinstance(v, list) else v for k, v in options.items()} for i in range(3)]
    found = dither.quantize_many(xs, formats, **options, device=device)
    for one, x, fmt, own in zip(found, xs, formats, each, strict=True):
        recorded = None if own["record_amax"] is None else np.zeros(1, F32)
        same(one, dither.quantize(x, fmt, **{**own, "record_amax": recorded}), fmt)
        if recorded is not None:
            check.same_bits(own["record_amax"].reshape(1), recorded)


@pytest.mark.parametrize("device", DEVICES[:2])
def test_out_and_skip(device):
    xs, ys = tensors(), [x * 2 for x in tensors()]
    for fmt in ("nvfp4", "mxfp8_e4m3"):
        outs = dither.quantize_many(xs, fmt, "both", device=device)
        flags = [np.full(1, i % 2, np.int32) for i in range(len(xs))]
        found = dither.quantize_many(ys, fmt, "both", out=outs, skip=flags, device=device)
        for i, (one, out) in enumerate(zip(found, outs, strict=True)):
            assert one.rowwise.data is out.rowwise.data
            same(one, dither.quantize(xs[i] if i % 2 else ys[i], fmt, "both"), f"tensor {i}")


def launches(fn, *args, **options):
    return dither.record(fn, *args, **options, target="sm_100a").launches


def test_number_of_launches():
    """As few as a launch's 62 arguments allow; of sections one, and what finds them."""
    shapes = [(64 + 8 * i, 128) for i in range(30)]
    types = [dither.TensorType(dither.bfloat16, shape) for shape in shapes]
    assert launches(dither.quantize_many, types, "mxfp8_e4m3") == 2
    assert launches(dither.quantize_many, types, "mxfp8_e4m3", "both", "128x4") == 3
    # Zeros, amaxes (of up to 16 tensors) and codes.
    assert launches(dither.quantize_many, types[:8], "nvfp4", "both", "128x4") == 3
    assert launches(dither.quantize_many, types, "nvfp4", "both", "128x4") == 1 + 2 + 4
    one_by_one = sum(launches(dither.quantize, of, "nvfp4", "both", "128x4") for of in types)
    assert one_by_one == 90
    whole = dither.TensorType(dither.bfloat16, (sum(m for m, _ in shapes), 128))
    sizes = [m for m, _ in shapes]
    count = launches(dither.grouped_quantize, whole, "mxfp8_e4m3", "both", "128x4", group_sizes=sizes)
    # The sizes, the table of groups, the group of each program, scales of zeros both ways, and the codes.
    assert count == 6


def test_code_is_shared():
    """Tensors that are alike go together, and longer batches are no other code."""
    from dither.ops.many_kernels import many_kernel

    narrow, wide = [(64, 96)] * 15, [(64, 160)] * 15
    order = [shape for pair in zip(narrow, wide, strict=True) for shape in pair]

    def builds(shapes):
        before = len(many_kernel.stats().builds)
        dither.quantize_many(tensors("float32", shapes), "mxfp4", device="sim:sm_90a")
        return len(many_kernel.stats().builds) - before

    assert builds(order) == 2
    assert builds([(m + 5, n) for m, n in order]) == 0


def test_of_torch_and_jax():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    xs = tensors("float32", SHAPES[:3])
    found = dither.multi_tensor_quantize([torch.from_numpy(x) for x in xs], "nvfp4", "both")
    assert isinstance(found[0].rowwise.data, torch.Tensor)
    for one, x in zip(found, xs, strict=True):
        same(one, dither.quantize(x, "nvfp4", "both"))
    step = jax.jit(lambda xs: dither.quantize_many(xs, "nvfp4", "both"))
    for one, x in zip(step([jax.numpy.asarray(x) for x in xs]), xs, strict=True):
        same(one, dither.quantize(x, "nvfp4", "both"))
    x, sections = tensors("float32", ((90, 64),))[0], [40, 0, 50]
    for of in (torch.from_numpy(x), jax.numpy.asarray(x)):
        for one, rows in zip(dither.split_quantize(of, sections, "nvfp4", "both"), parts_of(sections), strict=True):
            assert isinstance(one.rowwise.data, type(of))
            same(one, dither.quantize(data.aligned(x[rows]), "nvfp4", "both"))


def parts_of(sections):
    ends = np.cumsum(sections)
    return [slice(end - n, end) for end, n in zip(ends, sections, strict=True)]


@pytest.mark.parametrize(("name", "device"), PAIRS)
def test_sections(name, device):
    x, sections = data.normal(240, 96, "bfloat16", seed=9), (40, 0, 130, 1, 69)
    found = dither.split_quantize(x, sections, *CASES[name], device=device)
    for i, (one, rows) in enumerate(zip(found, parts_of(sections), strict=True)):
        same(one, dither.quantize(data.aligned(x[rows]), *CASES[name]), f"section {i}")


def test_sections_of_several_formats():
    x, sections, formats = data.normal(96, 64, "float32"), [32, 64], ["nvfp4", "mxfp8_e4m3"]
    for one, rows, fmt in zip(
        dither.split_quantize(x, sections, formats, "both"), parts_of(sections), formats, strict=True
    ):
        same(one, dither.quantize(data.aligned(x[rows]), fmt, "both"))
    outs = dither.split_quantize(-x, sections, "nvfp4", "both")
    again = dither.split_quantize(x, sections, "nvfp4", "both", out=outs)
    for one, out, rows in zip(again, outs, parts_of(sections), strict=True):
        assert one.rowwise.data is out.rowwise.data
        same(one, dither.quantize(data.aligned(x[rows]), "nvfp4", "both"))


def test_nothing():
    assert dither.quantize_many([], "nvfp4") == []
    (one,) = dither.quantize_many([np.ones((2, 32), ml_dtypes.bfloat16)], "nvfp4", device="sim:sm_90a")
    assert one.shape == (2, 32)


def test_wrong_calls():
    xs = [np.ones((4, 32), F32), np.ones((4, 32), np.int32)]
    good = xs[0]
    for error, message, call in (
        (TypeError, "'tensors' is ndarray, expected a list or tuple", lambda: dither.quantize_many(good, "nvfp4")),
        (TypeError, "tensor 1: argument 'x' has data type int32", lambda: dither.quantize_many(xs, "nvfp4")),
        (
            ValueError,
            "'amax' has 1 values, expected 2: one for each tensor",
            lambda: dither.quantize_many([good, good], "nvfp4", amax=[1.0]),
        ),
        (
            ValueError,
            "tensor 1: argument 'amax' is -1.0, expected a finite number",
            lambda: dither.quantize_many([good, good], "nvfp4", amax=[1.0, -1.0], device="sim:sm_90a"),
        ),
        (TypeError, "unexpected keyword argument 'scales'", lambda: dither.quantize_many([good], "nvfp4", scales=1)),
        (
            ValueError,
            "'sections' has groups of 3 rows, expected 4",
            lambda: dither.split_quantize(good, [1, 2], "nvfp4"),
        ),
        (TypeError, "'sections' has 1.5 at 0, expected an int", lambda: dither.split_quantize(good, [1.5, 2], "nvfp4")),
        (TypeError, "'pad' was given, expected none: sec", lambda: dither.split_quantize(good, [4], "nvfp4", pad=2)),
    ):
        with pytest.raises(error, match=message):
            call()
