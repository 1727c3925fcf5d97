"""Recorded calls launch what calls launch, on memory given later."""

import contextlib
import dataclasses

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither import _dither
from dither.arrays import describe
from dither.devices import get_device
from dither.programs import Place

BF16 = ml_dtypes.bfloat16


def numbers(rows=96, cols=256):
    return np.random.default_rng(7).standard_normal((rows, cols), np.float32).astype(BF16)


def leaves(value):
    """Arrays, or places of arrays, in the order of the fields they are in."""
    if isinstance(value, Place) or hasattr(value, "__array__"):
        return [value]
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in leaves(each)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [leaf for field in dataclasses.fields(value) for leaf in leaves(getattr(value, field.name))]
    return []


def types_of(value):
    """Arguments with the types of arrays in their place."""
    if isinstance(value, np.ndarray):
        return dither.TensorType(describe(value).dtype, value.shape)
    if isinstance(value, dither.Groups):
        return dither.Groups(sizes=types_of(value.sizes))
    return value


def arrays_in(values):
    return [leaf for value in values for leaf in leaves(value)]


@contextlib.contextmanager
def memory_of(device, arrays):
    """Copies of arrays in memory of a device, as arrays of dither."""
    addresses = []
    try:
        for array in arrays:
            addresses.append(device.allocate(max(array.nbytes, 1)))
            if array.nbytes:
                device.copy_in(addresses[-1], array.ctypes.data, array.nbytes)
        yield [
            dataclasses.replace(describe(array.view(np.uint8)), pointer=address, device=device.name)
            if array.nbytes
            else array
            for array, address in zip(arrays, addresses, strict=True)
        ]
    finally:
        for address in addresses:
            device.release(address)


def run(program, inputs, device="cpu"):
    """The outputs of a program, its workspace full of ones before."""
    outputs = [np.zeros(out.shape, getattr(ml_dtypes, out.dtype, out.dtype)) for out in program.outputs]
    workspace = np.full(program.workspace, 0xFF, np.uint8)
    if device == "cpu":
        program.run(inputs, outputs, workspace)
        return outputs
    where = get_device(device)
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (*inputs, *outputs, workspace)]
    with memory_of(where, flat) as arrays:
        count = len(inputs)
        program.run(arrays[:count], arrays[count:-1], arrays[-1], device=device)
        for out, array in zip(outputs, arrays[count:-1], strict=True):
            if out.nbytes:
                where.copy_out(out.ctypes.data, array.pointer, out.nbytes)
    return outputs


def same(fn, *args, device="cpu", **kwargs):
    """A recorded call gives the bits of the call, and is returned."""
    target = None if device == "cpu" else device.removeprefix("sim:")
    program = dither.record(fn, *map(types_of, args), target=target, **kwargs)
    inputs = arrays_in(args)
    made = {"inputs": inputs, "outputs": run(program, inputs, device)}
    found = [made[place.kind][place.index] for place in leaves(program.result)]
    want = leaves(fn(*args, **kwargs))
    assert len(found) == len(want)
    for one, other in zip(found, want, strict=True):
        assert one.shape == other.shape
        assert one.tobytes() == np.asarray(other).tobytes()
    return program


CALLS = {
    "mxfp8": lambda x: dither.quantize(x, "mxfp8_e4m3"),
    "nvfp4_both": lambda x: dither.quantize(x, "nvfp4", layout="both", scale_layout="128x4"),
    "fp8_tensor": lambda x: dither.quantize(x, "fp8_tensor_e4m3", layout="both"),
    "transform": lambda x: dither.quantize(
        x,
        "nvfp4",
        layout="colwise",
        transform=dither.RandomHadamard(16, 0x1234),
        rounding="stochastic",
        seed=7,
    ),
    "dbias": lambda x: dither.quantize_dbias(x, format="mxfp8_e4m3", layout="both"),
    "swiglu": lambda x: dither.swiglu(x),
    "softmax": lambda x: dither.softmax(x, format="mxfp8_e4m3", return_amax=True),
    "round_trip": lambda x: dither.dequantize(dither.quantize(x, "nvfp4")),
    "transpose": dither.transpose,
    "amax": dither.amax,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_same_bits(name, device):
    same(CALLS[name], numbers(), device=device)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_100a"])
def test_groups(device):
    def quantized(x, sizes):
        return dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes, layout="both", scale_layout="128x4")

    program = same(quantized, numbers(), np.array([40, 0, 56], np.int64), device=device)
    assert program.launches > 1 and program.workspace


def test_norms_of_several_operands():
    x = numbers()
    same(dither.rms_norm, x, x[0].copy(), format="mxfp8_e4m3", layout="both")
    same(dither.layer_norm, x, x[0].copy(), x[1].copy())


def test_user_kernel():
    @dither.jit
    def double(x, y):
        at = dl.program_id(0) * 64
        dl.store(y, (at, 0), (dl.load(x, (at, 0), (64, 256)) * 2.0).to(dl.bfloat16))

    def call(x):
        y = dither.swiglu(x, x)  # any array of the same shape
        double[2](x, y)
        return y

    program = same(call, numbers())
    assert program.launches == 2 and program.updated == ()


def test_inputs_that_are_written_are_named():
    def update(scale, history):
        dither.update_scale(scale, history, format="fp8_tensor_e4m3")

    program = dither.record(update, dither.TensorType(dither.float32, ()), dither.TensorType(dither.float32, (16,)))
    assert program.updated == (0, 1)


def test_workspace_is_shared_by_what_is_not_in_use_together():
    def twice(x):
        first = dither.dequantize(dither.quantize(x, "nvfp4"))
        return dither.dequantize(dither.quantize(first, "nvfp4"))

    x = dither.TensorType(dither.bfloat16, (1024, 1024))
    one, two = dither.record(CALLS["round_trip"], x), dither.record(twice, x)
    codes, scales = 1024 * 512, 1024 * 64
    assert codes + scales <= one.workspace < codes + scales + 1024
    # What is between the two round trips, and the codes of one of them.
    assert two.workspace < 2 * 1024 * 1024 + codes + scales + 1024


def test_workspace_depends_on_shape_and_target_alone():
    x = dither.TensorType(dither.bfloat16, (512, 256))
    for target in ("sm_90a", "sm_120a", None):
        found = {dither.record(CALLS["dbias"], x, target=target).workspace for _ in range(2)}
        assert len(found) == 1


def test_another_target_needs_no_device():
    x = dither.TensorType(dither.bfloat16, (512, 256))
    program = dither.record(dither.quantize, x, "nvfp4", target="sm_100a")
    assert program.target == "sm_100a" and b".target sm_100a" in program.encode()


def test_encoded_programs_are_checked():
    encoded = dither.record(CALLS["fp8_tensor"], dither.TensorType(dither.bfloat16, (64, 64))).encode()
    assert _dither.Program.decode(encoded).encode() == encoded
    for end in (0, 7, 12, 40, len(encoded) // 2, len(encoded) - 1):
        with pytest.raises(ValueError, match=r"found no program|damaged"):
            _dither.Program.decode(encoded[:end])
    for at in (0, 9, 30, len(encoded) // 2, len(encoded) - 40, len(encoded) - 1):
        spoiled = bytearray(encoded)
        spoiled[at] ^= 1
        with pytest.raises(ValueError, match=r"found no program|damaged|of version"):
            _dither.Program.decode(bytes(spoiled))


def test_wrong_arguments_of_record():
    with pytest.raises(ValueError, match=r"unknown target 'sm_91', expected .*; did you mean 'sm_89'"):
        dither.record(dither.quantize, dither.TensorType(dither.float32, (4, 8)), "nvfp4", target="sm_91")
    with pytest.raises(ValueError, match="expected known extents"):
        dither.record(dither.quantize, dither.TensorType(dither.float32, (None, 8)), "nvfp4")
    with pytest.raises(ValueError, match="unknown format 'nvfp5'"):
        dither.record(dither.quantize, dither.TensorType(dither.float32, (4, 8)), "nvfp5")
    with pytest.raises(ValueError, match="found a part of an array among the results"):
        dither.record(lambda x: x[..., :4], dither.TensorType(dither.float32, (4, 8)))


def test_wrong_arguments_of_run():
    program = dither.record(dither.quantize, dither.TensorType(dither.float32, (4, 32)), "mxfp8_e4m3")
    x, data, scale = np.zeros((4, 32), np.float32), np.zeros((4, 32), np.uint8), np.zeros((4, 1), np.uint8)
    with pytest.raises(ValueError, match="found 0 inputs, expected 1"):
        program.run([], [data, scale])
    with pytest.raises(ValueError, match="found 1 outputs, expected 2"):
        program.run([x], [data])
    with pytest.raises(ValueError, match=r"argument 'outputs\[0\]' has 4 bytes, expected 128"):
        program.run([x], [scale, scale])
    with pytest.raises(TypeError, match=r"argument 'inputs\[0\]' is str, expected an array"):
        program.run(["x"], [data, scale])


def test_prints_are_refused():
    @dither.jit
    def loud(x):
        dl.print("x", dl.load(x, (0, 0), (4, 8)))

    with pytest.raises(ValueError, match=r"kernel 'loud' has dl.print, which recorded calls have not"):
        dither.record(lambda x: loud[1](x), dither.TensorType(dither.float32, (4, 8)))
