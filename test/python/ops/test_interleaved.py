"""Gates and what they let through that take turns in the columns of one tensor."""

import dither
import ml_dtypes
import numpy as np
import pytest
from ops import check, data

GATED = ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")
DEVICES = ("cpu", "sim:sm_90a")


def by_turns(first, second, size):
    """Columns of both, `size` of each by turns."""
    m, n = first.shape
    parts = [x.reshape(m, n // size, size) for x in (first, second)]
    return np.ascontiguousarray(np.stack(parts, 2).reshape(m, 2 * n))


def operands(n=192):
    return (data.normal(50, n, "bfloat16", seed=i) for i in range(3))


@pytest.mark.parametrize("name", GATED)
def test_every_activation(name):
    gate, up, grad = operands()
    x, halves = by_turns(gate, up, 32), np.concatenate([gate, up], 1)
    forward, backward = getattr(dither, name), getattr(dither, f"d{name}")
    check.same_values(forward(x, interleave=32), forward(halves))
    wanted = backward(grad, halves)
    check.same_values(backward(grad, x, interleave=32), by_turns(wanted[:, :192], wanted[:, 192:], 32))


@pytest.mark.sample("values")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 16, 32, 64])
def test_every_size(size, device):
    gate, up, grad = operands()
    x, halves = by_turns(gate, up, size), np.concatenate([gate, up], 1)
    turns = {"interleave": size, "device": device}
    for fmt in ("mxfp8_e4m3", "nvfp4"):
        options = {"format": fmt, "layout": "both", "scale_layout": "128x4"}
        found, wanted = dither.swiglu(x, **turns, **options), dither.swiglu(halves, **options)
        for one, want in ((found.rowwise, wanted.rowwise), (found.colwise, wanted.colwise)):
            check.same_bits(one.data, want.data)
            check.same_bits(one.scale_inv, want.scale_inv)
    plain = dither.dbias_dswiglu(grad, halves)
    both = by_turns(plain.out[:, :192], plain.out[:, 192:], size)
    found = dither.dbias_dswiglu(grad, x, **turns)
    check.same_bits(found.out, both)
    check.same_bits(found.dbias_gate, plain.dbias_gate)
    quantized = dither.dbias_dswiglu(grad, x, format="mxfp8_e4m3", layout="both", **turns)
    wanted = dither.quantize(both, "mxfp8_e4m3", "both")
    check.same_bits(quantized.out.rowwise.data, wanted.rowwise.data)
    check.same_bits(quantized.out.colwise.data, wanted.colwise.data)
    check.same_bits(quantized.dbias_up, plain.dbias_up)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 16, 64])
def test_sums_of_rows(size, device):
    """Of rows that are longer than the tiles of what sums none; the gradient of a factor is one."""
    gate, up, grad = operands(320)
    x, factor = by_turns(gate, up, size), data.normal(50, 1, "float32", seed=9)[:, 0]
    plain = dither.dfactor_dswiglu(grad, np.concatenate([gate, up], 1), factor=factor)
    both = by_turns(plain.out[:, :320], plain.out[:, 320:], size)
    found = dither.dfactor_dswiglu(grad, x, factor=factor, interleave=size, device=device)
    check.same_bits(found.out, both)
    check.same_bits(found.dfactor, plain.dfactor)
    for fmt in ("mxfp8_e4m3", "int8_row"):
        options = {"format": fmt, "layout": "both", "interleave": size, "device": device}
        quantized, wanted = (
            dither.dfactor_dswiglu(grad, x, factor=factor, **options),
            dither.quantize(both, fmt, "both"),
        )
        for one, want in zip(check.parts(quantized.out), check.parts(wanted), strict=True):
            check.same_bits(one.data, want.data)
            check.same_bits(one.scale_inv, want.scale_inv)
        check.same_bits(quantized.dfactor, plain.dfactor)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", data.DTYPES)
def test_column_by_column(dtype, device):
    """Any number of columns; zeros keep their signs, and infinities and NaN stay where they are."""
    for n in (1, 7, 100, 600):
        gate, up, grad = (data.adversarial(37, n, dtype, seed=i) for i in range(3))
        x, halves = by_turns(gate, up, 1), np.concatenate([gate, up], 1)
        named = {"interleave": 1, "device": device}
        for name in ("reglu", "clamped_swiglu"):
            check.same_values(getattr(dither, name)(x, **named), getattr(dither, name)(halves))
            wanted = getattr(dither, f"d{name}")(grad, halves)
            check.same_values(getattr(dither, f"d{name}")(grad, x, **named), by_turns(wanted[:, :n], wanted[:, n:], 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 32])
def test_groups(size, device):
    gate, up, grad = operands()
    x, groups = by_turns(gate, up, size), dither.Groups(np.array([20, 0, 30], np.int32))
    options = {"interleave": size, "groups": groups, "device": device}
    check.same_bits(dither.swiglu(x, **options), dither.swiglu(gate, up))
    check.same_bits(dither.dswiglu(grad, x, **options), dither.dswiglu(grad, x, interleave=size))
    index = np.random.default_rng(0).permutation(50).astype(np.int32)
    routed = dither.Groups(np.array([20, 0, 30], np.int32), rows=index)
    check.same_bits(dither.swiglu(x, interleave=size, groups=routed, device=device), dither.swiglu(gate, up)[index])


def test_any_rows_rank_and_library():
    torch = pytest.importorskip("torch")
    gate, up, _ = operands()
    x = by_turns(gate, up, 16)
    wide = np.zeros((50, 400), ml_dtypes.bfloat16)
    wide[:, :384] = x
    check.same_bits(dither.swiglu(wide[:, :384], interleave=16), dither.swiglu(gate, up))
    check.same_bits(dither.swiglu(x.reshape(5, 10, 384), interleave=16).reshape(50, 192), dither.swiglu(gate, up))
    for size in (1, 16):
        x = by_turns(gate, up, size)
        found = dither.swiglu(torch.from_numpy(x.view(np.int16)).view(torch.bfloat16), interleave=size)
        assert isinstance(found, torch.Tensor)
        check.same_bits(found, dither.swiglu(gate, up))
        jax = pytest.importorskip("jax")
        found = jax.jit(lambda x, size=size: dither.swiglu(x, interleave=size))(jax.numpy.asarray(x))
        check.same_bits(found, dither.swiglu(gate, up))


def test_wrong_calls():
    x = np.ones((4, 192), np.float32)
    for error, message, call in (
        (ValueError, "interleave is 12, expected 0 or 1, 16, 32, 64", lambda: dither.swiglu(x, interleave=12)),
        (TypeError, "interleave is True, expected an integer", lambda: dither.swiglu(x, interleave=True)),
        (ValueError, "'interleave' was given, expected none: gelu has no gate", lambda: dither.gelu(x, interleave=16)),
        (ValueError, "'up' was given with interleave, expected one tensor", lambda: dither.swiglu(x, x, interleave=16)),
        (ValueError, "'gate' has 192 columns, expected a multiple of 128", lambda: dither.swiglu(x, interleave=64)),
        (ValueError, "not a matrix with dense rows", lambda: dither.swiglu(np.asfortranarray(x), interleave=16)),
    ):
        with pytest.raises(error, match=message):
            call()
