"""Groups that are written over an earlier result, and what is recorded of them; groups whose sizes the host knows."""

import dither
import numpy as np
import pytest
from ops import check, data
from ops.test_grouped import SIZES, each_alone, parts_of, quantize

F32 = np.float32
DEVICES = ("cpu", "sim:sm_90a", "sim:sm_100a")
#: As many groups and rows as SIZES.
OTHER = np.array([64, 1, 0, 5, 130], np.int32)


def directions(q):
    return [q.rowwise, q.colwise] if isinstance(q, dither.GroupedScaledTensor2x) else [q]


def arrays(q):
    """The bytes of all arrays of a result, copied."""
    fields = ("data", "scale_inv", "amax", "tensor_scale", "table", "wrong")
    found = [getattr(part, name) for part in directions(q) for name in fields]
    return [None if array is None else np.atleast_1d(np.array(array)).view(np.uint8) for array in found]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            check.same_bits(one, other)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "fmt, layout, order",
    [
        ("mxfp8_e4m3", "both", "128x4"),
        ("nvfp4", "both", "128x4"),
        ("nvfp4", "rowwise", "linear"),
        ("fp8_tensor_e4m3", "colwise", "linear"),
        ("fp8_1x128_e4m3", "both", "column_major"),
        ("int8_row", "both", "linear"),
    ],
)
def test_out_and_skip(fmt, layout, order, device):
    """Other groups of other numbers in the same memory; a flag keeps the numbers and the groups."""
    x, y = data.normal(200, 96, "float32", seed=1), data.normal(200, 96, "float32", seed=2)
    out = dither.grouped_quantize(x, fmt, layout, order, group_sizes=SIZES, device=device)
    before, flag = arrays(out), np.ones(1, np.int32)
    named = {"group_sizes": OTHER, "device": device}
    kept = dither.grouped_quantize(y, fmt, layout, order, **named, out=out, skip=flag)
    same(arrays(kept), before)
    each_alone(kept, lambda _, rows: quantize(x[rows], fmt, layout, order))
    same(arrays(dither.grouped_quantize(y, fmt, layout, order, **named, out=out, skip=True)), before)
    flag[0] = 0
    found = dither.grouped_quantize(y, fmt, layout, order, **named, out=kept, skip=flag)
    for one, other in zip(directions(found), directions(out), strict=True):
        assert one.data is other.data and one.scale_inv is other.scale_inv
    each_alone(found, lambda _, rows: quantize(y[rows], fmt, layout, order), OTHER)
    # Padding, too: scales are those of a new result, from the first byte to the last.
    fresh = dither.grouped_quantize(y, fmt, layout, order, **named)
    for one, other in zip(arrays(found)[1::6], arrays(fresh)[1::6], strict=True):
        check.same_bits(one, other)


@pytest.mark.parametrize("device", DEVICES[:2])
def test_out_of_operators(device):
    """Plain and quantized output, and all that is saved."""
    dy, g, u = (data.normal(200, 128, "bfloat16", seed=20 + i) for i in range(3))
    groups = dither.Groups(SIZES)
    named = {"groups": groups, "device": device}
    fresh = dither.dbias_dswiglu(dy, g, u, **named, return_amax=True)
    out = dither.dbias_dswiglu(g, dy, g, **named)
    found = dither.dbias_dswiglu(dy, g, u, **named, out=out)
    for name in ("out", "dbias_gate", "dbias_up"):
        assert getattr(found, name) is getattr(out, name)
        check.same_bits(getattr(found, name), getattr(fresh, name), name)
    gamma = data.normal(1, 128, "float32", seed=23)[0]
    options = {"format": "nvfp4", "layout": "both", **named}
    out = dither.add_rms_norm(u, g, gamma, **options)
    found = dither.add_rms_norm(g, dy, gamma, **options, out=out)
    fresh = dither.add_rms_norm(g, dy, gamma)
    check.same_bits(out.sum, fresh.sum)
    check.same_bits(out.rsigma, fresh.rsigma)
    each_alone(found.out, lambda _, rows: quantize(fresh.out[rows], "nvfp4", "both"))
    # In place, where rows stay where they are.
    x = g.copy()
    assert dither.silu(x, out=x, groups=groups, device=device) is x
    check.same_bits(x, dither.silu(g))


@pytest.mark.parametrize("device", DEVICES)
def test_recorded_amaxes(device):
    """Of each group, or of all, in the pass that quantizes; what is there is raised."""
    x = data.normal(200, 128, "bfloat16", seed=3)
    largest = np.array([np.abs(x[rows].astype(F32)).max(initial=0) for rows in parts_of(SIZES)])
    each, one = np.zeros(5, F32), np.zeros((), F32)
    each[1] = 7
    named = {"group_sizes": SIZES, "device": device}
    found = dither.grouped_quantize(x, "mxfp8_e4m3", **named, record_amax=each)
    each_alone(found, lambda _, rows: quantize(x[rows], "mxfp8_e4m3"))
    check.same_bits(each, np.maximum(largest, [0, 7, 0, 0, 0]).astype(F32))
    scales = np.array([1, 2, 4, 8, 16], F32)
    dither.grouped_quantize(x, "fp8_tensor_e4m3", **named, encode_scale=scales, record_amax=one)
    check.same_bits(one, F32(largest.max()))
    each[:] = 0
    dither.silu(x, format="fp8_tensor_e4m3", encode_scale=scales, record_amax=each, groups=dither.Groups(SIZES))
    silu = dither.silu(x, dtype=dither.float32)
    check.same_bits(each, np.array([np.abs(silu[rows]).max(initial=0) for rows in parts_of(SIZES)], F32))


KINDS = {
    "sizes": {"group_sizes": SIZES.tolist()},
    "starts": {"group_starts": tuple(int(n) for n in np.cumsum(SIZES) - SIZES)},
    "ends": {"group_ends": list(np.cumsum(SIZES))},
}


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_the_host(kind):
    x = data.normal(200, 96, "float32", seed=5)
    for device in DEVICES[:2]:
        found = dither.grouped_quantize(x, "nvfp4", "both", "128x4", **KINDS[kind], pad=16, device=device)
        # As large as these groups need, padded.
        padded = -(-SIZES // 16) * 16
        assert found.shape == (padded.sum(), 96)
        assert found.rowwise.scale_inv.shape == ((-(-padded // 128) * 128).sum(), 8)
        plain = dither.grouped_quantize(x, "nvfp4", "both", "128x4", group_sizes=SIZES, pad=16)
        for g in range(5):
            check.same_bits(found.rowwise.group(g).data, plain.rowwise.group(g).data)
            check.same_bits(found.colwise.group(g).scale_inv, plain.colwise.group(g).scale_inv)


def test_sizes_of_the_host_in_programs():
    """Launches carry the numbers: there is no copy, and nothing of the host's memory is read when a program runs."""
    x = data.normal(200, 96, "bfloat16", seed=6)
    many = [0] * 40 + SIZES.tolist()
    for sizes in (many, np.array(many)):  # an array of the host beside one of another device
        of = dither.TensorType(dither.bfloat16, (200, 96))
        program = dither.record(dither.grouped_quantize, of, "mxfp8_e4m3", "rowwise", "128x4", group_sizes=sizes)
        outputs = [np.empty(t.nbytes, np.uint8) for t in program.outputs]
        workspace = np.empty(program.workspace, np.uint8)
        program.run([x], outputs, workspace)
        fresh = dither.grouped_quantize(x, "mxfp8_e4m3", "rowwise", "128x4", group_sizes=many)
        check.same_bits(outputs[program.result.data.index].reshape(fresh.data.shape), fresh.data.view(np.uint8))
        check.same_bits(outputs[program.result.scale_inv.index], fresh.scale_inv.view(np.uint8).reshape(-1))
    # Other sizes are no other code.
    from dither.ops.group_kernels import numbers_kernel

    before = numbers_kernel.stats().compiles
    dither.record(dither.grouped_quantize, of, "mxfp8_e4m3", "rowwise", "128x4", group_sizes=many[::-1])
    assert numbers_kernel.stats().compiles == before


def test_in_other_libraries():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    x = data.normal(200, 64, "float32", seed=7)
    of = torch.from_numpy(x)
    found = dither.grouped_quantize(of, "mxfp8_e4m3", "both", group_sizes=SIZES.tolist())
    each_alone(found, lambda _, rows: quantize(x[rows], "mxfp8_e4m3", "both"))
    amax = torch.zeros(5)
    again = dither.grouped_quantize(
        torch.from_numpy(-2 * x),
        "mxfp8_e4m3",
        "both",
        group_ends=np.cumsum(OTHER).tolist(),
        out=found,
        record_amax=amax,
    )
    assert again.rowwise.data.data_ptr() == found.rowwise.data.data_ptr()
    each_alone(again, lambda _, rows: quantize(-2 * x[rows], "mxfp8_e4m3", "both"), OTHER)
    check.same_bits(amax, np.array([2 * np.abs(x[rows]).max(initial=0) for rows in parts_of(OTHER)], F32))

    @jax.jit
    def step(x):
        return dither.swiglu(x, x, format="nvfp4", groups=dither.Groups(SIZES.tolist()))

    both = dither.swiglu(x, x)
    each_alone(step(jax.numpy.asarray(x)), lambda _, rows: quantize(both[rows], "nvfp4"))


def test_wrong_calls():
    x, sizes = np.ones((8, 64), F32), np.array([4, 4], np.int32)
    quantized = dither.grouped_quantize(x, "nvfp4", group_sizes=sizes)
    other = dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes)

    def grouped(**options):
        return dither.grouped_quantize(x, "nvfp4", **{"group_sizes": sizes, **options})

    padded = dither.Groups(sizes, pad=8)
    for error, message, call in (
        (TypeError, "'out' is ScaledTensor1x, expected a Grouped", lambda: grouped(out=dither.quantize(x, "nvfp4"))),
        (
            ValueError,
            "argument 'out' is a GroupedScaledTensor1x.mxfp8.*expected dither.NVFP4, row",
            lambda: grouped(out=other),
        ),
        (ValueError, "expected dither.NVFP4, rowwise, 3 groups", lambda: grouped(out=quantized, group_sizes=[3, 4, 1])),
        (ValueError, "'skip' was given, expected 'out' with it", lambda: grouped(skip=True)),
        (
            ValueError,
            "'record_amax' was given, expected none where the amax is computed",
            lambda: grouped(record_amax=np.zeros(2, F32)),
        ),
        (
            ValueError,
            r"'record_amax' is float32 of shape \(3,\), expected one element, or float32 of shape \(2,\)",
            lambda: grouped(record_amax=np.zeros(3, F32), amax=2.0),
        ),
        (
            ValueError,
            r"argument 'out' has shape \(8, 64\), expected \(16, 64\)",
            lambda: dither.silu(x, groups=padded, out=x),
        ),
        (
            ValueError,
            "argument 'out' shares memory with argument 'x', expected memory of its own",
            lambda: dither.silu(x, groups=dither.Groups(sizes, rows=np.arange(8, dtype=np.int32)), out=x),
        ),
        (ValueError, "'group_sizes' has groups of 7 rows, expected 8", lambda: grouped(group_sizes=[3, 4])),
        (
            ValueError,
            "'group_sizes' has a group of -1 rows at 1, expected none below 0",
            lambda: grouped(group_sizes=[9, -1]),
        ),
        (
            ValueError,
            "'group_starts' has 1 at first, expected 0",
            lambda: grouped(group_sizes=None, group_starts=[1, 4]),
        ),
        (TypeError, "'group_sizes' has 4.0 at 1, expected an integer", lambda: grouped(group_sizes=[4, 4.0])),
        (ValueError, "'group_sizes' has no elements, expected one for each group", lambda: grouped(group_sizes=[])),
    ):
        with pytest.raises(error, match=message):
            call()
    assert not (x != 1).any()


def test_memory_of_out():
    """What does not fit is refused before anything is written."""
    import dataclasses

    x, sizes = np.ones((200, 64), F32), SIZES
    out = dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes)
    codes = np.asarray(out.data)
    for change, message in (
        ({"data": codes[:100]}, r"has data of shape \(100, 64\), expected \(200, 64\)"),
        ({"data": np.zeros((200, 64), np.int32)}, "has data of data type int32, expected float8_e4m3"),
        ({"data": np.zeros((64, 200), np.uint8).T}, "has data with strides .*, expected a dense array"),
        ({"scale_inv": codes.view(np.uint8)[:, :2]}, "has scale_inv with strides"),
        ({"scale_inv": codes.view(np.uint8).reshape(-1)[:400].reshape(200, 2)}, "scale_inv .* shares memory with data"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes, out=dataclasses.replace(out, **change))
