"""What an earlier result has besides codes and scales is written over, too, where a call is given its memory."""

import copy
import dataclasses

import dither
import numpy as np
import pytest
from ops import check, data
from ops.test_grouped_outputs import arrays as arrays_of_groups
from ops.test_grouped_outputs import directions
from ops.test_replay import is_replayed, nothing_recorded  # noqa: F401 - a fixture
from ops.test_skip import arrays, same

F32 = np.float32
FORMATS = {
    "nvfp4": dither.NVFP4,
    "nvfp4 rows": dither.NVFP4.with_(row_amax=True),
    "nvfp4 decode": dither.NVFP4.with_(tensor_scale_as="decode"),
    "nvfp4 encode": dither.NVFP4.with_(tensor_scale_as="encode"),
    "fp8 tensor": dither.FP8_TENSOR_E4M3,
}
GAMMA = np.ones(96, F32)
#: Calls on tensors of 48 x 96, by name.
OPERATORS = {
    "quantize": lambda x, **options: dither.quantize(x, **options),
    "an amax": lambda x, **options: dither.quantize(x, amax=np.abs(x).max(), **options),
    "an amax in memory": lambda x, **options: dither.quantize(x, amax=np.abs(x).max().reshape(1), **options),
    "swiglu": lambda x, **options: dither.swiglu(x, x, **options),
    "transformed": lambda x, **options: dither.quantize(x, transform=dither.RandomHadamard(16), **options),
    "many": lambda x, **options: dither.quantize_many([x], **options)[0],
    "rank 3": lambda x, **options: dither.quantize(x.reshape(6, 8, 96), **options),
}


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_earlier_result_is_the_new_one(name, operator, layout, device):
    """Of four calls alike, of which C++ replays the last ones on a CPU."""
    call, of_tensor = OPERATORS[operator], FORMATS[name].tensor_scale and not FORMATS[name].row_amax
    if (operator == "transformed" and layout == "rowwise") or (operator.startswith("an amax") and not of_tensor):
        pytest.skip("refused")
    options = {"format": FORMATS[name], "layout": layout, "device": None if device == "cpu" else device}
    x = data.normal(48, 96)
    out = call(x, **options)
    held = [part.amax for part in check.parts(out)]
    for factor in (8, 0.25, 3, 100):
        found, fresh = call(x * F32(factor), **options, out=out), call(x * F32(factor), **options)
        same(arrays(out), arrays(fresh))
        same(arrays(found), arrays(fresh))
    assert all(part.amax is one for part, one in zip(check.parts(found), held, strict=True))


def test_norms():
    x = data.normal(48, 96)
    out = dither.add_rms_norm(x, x, GAMMA, format="nvfp4", layout="both", return_amax=True)
    for factor in (8, 0.25, 3):
        y = x * F32(factor)
        dither.add_rms_norm(y, x, GAMMA, format="nvfp4", layout="both", return_amax=True, out=out)
        fresh = dither.add_rms_norm(y, x, GAMMA, format="nvfp4", layout="both", return_amax=True)
        same(arrays(out.out), arrays(fresh.out))
        check.same_bits(out.amax, fresh.amax)


def test_torch():
    """Both directions share an amax or have one each, as those of empty storages do; autograd knows what is written."""
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(data.normal(48, 96))
    out = dither.quantize(x, "nvfp4", "both")
    assert out.rowwise.amax is out.colwise.amax
    for _ in range(3):
        dither.quantize(x, "nvfp4", "both", out=out)
    assert is_replayed(dither.quantize, x, "nvfp4", "both", out=out)
    apart = dither.ScaledTensor2x(out.rowwise, dataclasses.replace(out.colwise, amax=out.colwise.amax.clone()))
    for factor in (8, 0.25, 3, 100):
        fresh = dither.quantize(x * factor, "nvfp4", "both")
        for one in (out, apart):
            before = one.rowwise.amax._version
            dither.quantize(x * factor, "nvfp4", "both", out=one)
            for part, other in zip(check.parts(one), check.parts(fresh), strict=True):
                check.same_bits(part.amax, other.amax)
                check.same_bits(part.dequantize(), other.dequantize())
            assert one.rowwise.amax._version > before


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_numbers_of_the_earlier_result(device):
    """They may be given to the call that writes them."""
    x = data.normal(48, 96)
    for fmt, name, field in (("nvfp4", "amax", "amax"), (FORMATS["nvfp4 decode"], "decode_scale", "tensor_scale")):
        out = dither.quantize(x, fmt, device=device)
        before = arrays(out)
        for _ in range(3):
            found = dither.quantize(x, fmt, device=device, out=out, **{name: getattr(out, field)})
            assert getattr(found, field) is getattr(out, field)
            check.same_bits(found.data, before[0])
            check.same_bits(getattr(out, field), before[2 if field == "amax" else 3])


@pytest.mark.parametrize("device", ["cpu", "sim:sm_100a"])
def test_a_flag(device):
    """The earlier result itself stays as it is, or is the new one."""
    x, y = data.normal(70, 200), data.normal(70, 200, seed=1) * F32(9)
    for fmt in FORMATS.values():
        for options in ({}, {"amax": np.full(1, 50.0, F32)} if fmt.tensor_scale and not fmt.row_amax else {}):
            out = dither.quantize(x, fmt, "both", device=device)
            before, flag = arrays(out), np.ones(1, np.int32)
            dither.quantize(y, fmt, "both", device=device, out=out, skip=flag, **options)
            same(arrays(out), before)
            flag[0] = 0
            dither.quantize(y, fmt, "both", device=device, out=out, skip=flag, **options)
            same(arrays(out), arrays(dither.quantize(y, fmt, "both", device=device, **options)))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
def test_groups(layout, device):
    """Sizes, too: a result is read with those of its call."""
    x, y = data.normal(48, 96), data.normal(48, 96, seed=1) * F32(9)
    for fmt in FORMATS.values():
        out = dither.grouped_quantize(x, fmt, layout, group_sizes=np.array([3, 30, 15], np.int32), device=device)
        sizes = np.array([20, 0, 28], np.int32)
        dither.grouped_quantize(y, fmt, layout, group_sizes=sizes, device=device, out=out)
        fresh = dither.grouped_quantize(y, fmt, layout, group_sizes=sizes, device=device)
        for one, other in zip(directions(out), directions(fresh), strict=True):
            same(arrays_of_groups(one)[1:], arrays_of_groups(other)[1:])  # codes have bytes of no group
            check.same_bits(dither.grouped_dequantize(one), dither.grouped_dequantize(other))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_requantize(device):
    x = data.normal(48, 96)
    one, other = (dither.quantize(x * F32(factor), "nvfp4") for factor in (1, 8))
    out = dither.requantize(one)
    for _ in range(3):
        found = dither.requantize(other, out=out, device=device)
        same(arrays(out.colwise), arrays(dither.requantize(other).colwise))
        assert out.rowwise.data is one.data and found.rowwise.data is other.data
        same(arrays(one), arrays(dither.quantize(x, "nvfp4")))
    both = dither.quantize(x, "nvfp4", "both")
    dither.requantize(both.rowwise, out=both, device=device)
    same(arrays(both.colwise), arrays(dither.requantize(both.rowwise).colwise))
    with pytest.raises(ValueError, match="argument 'out' has an amax of both directions, expected one of its columns"):
        dither.requantize(other, out=both)
    groups = [dither.grouped_quantize(x * F32(factor), "nvfp4", group_sizes=[3, 30, 15]) for factor in (1, 8)]
    out = dither.requantize(groups[0])
    dither.requantize(groups[1], out=out, device=device)
    same(arrays_of_groups(out.colwise)[1:], arrays_of_groups(dither.requantize(groups[1]).colwise)[1:])
    same(arrays_of_groups(groups[0]), arrays_of_groups(dither.grouped_quantize(x, "nvfp4", group_sizes=[3, 30, 15])))


def test_what_does_not_fit():
    """It is refused before anything is written."""
    x = data.normal(48, 96)
    rows, out = dither.quantize(x, FORMATS["nvfp4 rows"]), dither.quantize(x, "nvfp4")
    groups = dither.grouped_quantize(x, "nvfp4", group_sizes=[3, 45])
    readonly = np.zeros((), F32)
    readonly.flags.writeable = False
    before = arrays(out)
    for call, one, change, message in (
        (dither.quantize, out, {"amax": np.zeros(2, F32)}, r"'out' has amax of shape \(2,\), expected \(\)"),
        (dither.quantize, out, {"amax": np.zeros((), np.int32)}, "'out' has amax of data type int32, expected float32"),
        (dither.quantize, out, {"amax": readonly}, "'out' has read-only amax, expected memory that can be written"),
        (dither.quantize, out, {"amax": 3.0}, "'out' has amax of type float, expected an array"),
        (dither.quantize, rows, {"amax": np.zeros((), F32)}, r"has amax of shape \(\), expected \(48, 1\)"),
        (dither.grouped_quantize, groups, {"amax": np.zeros(3, F32)}, r"has amax of shape \(3,\), expected \(2,\)"),
        (dither.grouped_quantize, groups, {"table": readonly}, "has table of data type float32, expected int64"),
    ):
        options = {"group_sizes": [3, 45]} if one is groups else {}
        with pytest.raises((TypeError, ValueError), match=message):
            call(x * F32(2), one.format, out=dataclasses.replace(one, **change), **options)
    same(arrays(out), before)
    stack = dither.grouped_quantize(x.reshape(3, 16, 96), "nvfp4")
    with pytest.raises(ValueError, match="argument 'out' has groups of 16 rows, expected of any"):
        dither.grouped_quantize(x, "nvfp4", group_sizes=[3, 30, 15], out=stack)


def test_copies_are_apart():
    x = data.normal(48, 96)
    out = dither.quantize(x, "nvfp4", "both")
    before, same_arrays = copy.deepcopy(out), copy.copy(out)
    dither.quantize(x * F32(8), "nvfp4", "both", out=out)
    same(arrays(before), arrays(dither.quantize(x, "nvfp4", "both")))
    same(arrays(same_arrays), arrays(out))
