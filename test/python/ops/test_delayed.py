"""dither.update_scale and dither.DelayedScaling: steps of delayed scaling, against the rule in NumPy."""

import copy
import io
import pickle
import types

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.formats import FORMATS
from dither.ops import kernels, updated_scale
from ops.check import same_bits
from ops.data import aligned

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a"]
LENGTHS = [1, 2, 3, 16, 1024, 1025]
F32 = np.float32
MOST = np.finfo(F32).max
E4M3 = {"format": "float8_e4m3"}
#: What an amax can be, and what it never is.
SPECIAL = np.array([0.0, -0.0, 1e-45, 3e-39, 1e-38, 1.3e-36, MOST, np.inf, np.nan, -1.0, -np.inf], F32)


def step(scale, history, amax, largest, margin=0, algorithm="max", skip_zero=False, inf_scale="largest"):
    """The scales (T,) and the history (L, T) after a step."""
    scales, rows = scale.copy(), history.copy()
    for t in range(scale.size):
        h = history[:, t].copy()
        if amax is not None:
            h[0] = amax[t]
        if skip_zero and h[0] == 0:
            continue
        numbers = h[~np.isnan(h)]
        a = numbers.max(initial=F32(0)) if algorithm == "max" else h[0]
        if np.isfinite(a) and a > 0:
            with np.errstate(over="ignore"):
                scales[t] = F32(largest * 2.0**-margin) / a
            if np.isinf(scales[t]) and inf_scale == "largest":
                scales[t] = MOST
        h = np.roll(h, -1)
        h[0] = 0
        rows[:, t] = h
    return scales, rows


def amaxes(shape, seed, special=0.1):
    """Magnitudes, and a few numbers of another kind."""
    random = np.random.default_rng([*shape, seed])
    x = np.exp(random.normal(0, 4, shape)).astype(F32)
    # Code is specialized by alignment, so that it shall not be left to chance.
    return aligned(np.where(random.random(shape) < special, random.choice(SPECIAL, shape), x))


def check(length, tensors, device, given=True, special=0.1, **options):
    """One step of random state."""
    scale, history = amaxes((tensors,), 1), amaxes((length, tensors), 2, special)
    amax = amaxes((tensors,), 3, 0.3) if given else None
    named = {name: value for name, value in options.items() if name != "format"}
    want = step(scale, history, amax, 448.0, **named)
    kept = None if amax is None else amax.copy()
    if amax is not None and (device == "cpu" or length == 16):
        before = scale.copy(), history.copy()
        made = updated_scale(scale, history, amax, **E4M3, **options, device=device)
        for one, expected, old, same in zip(made, want, before, (scale, history), strict=True):
            same_bits(one, expected)
            same_bits(same, old)
    assert dither.update_scale(scale, history, amax, **E4M3, **options, device=device) is None
    same_bits(scale, want[0], "scales")
    same_bits(history, want[1], "history")
    if amax is not None:
        same_bits(amax, kept, "amax")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tensors", [1, 5, 300])
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length, tensors, device):
    # A history of many steps with an infinity in each would change no scale.
    special = 0.1 if length <= 16 else 0.5 / length
    check(length, tensors, device, special=special)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("tensors", [1, 5, 33])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("skip_zero", [False, True])
@pytest.mark.parametrize("algorithm", ["max", "most_recent"])
def test_choices(algorithm, skip_zero, given, tensors, device):
    for length in (1, 2, 7, 130):
        check(length, tensors, device, given, algorithm=algorithm, skip_zero=skip_zero)


@pytest.mark.parametrize("tensors", [1, 2, 7, 8, 9, 31, 32, 33, 64, 65])
def test_numbers_of_tensors(tensors):
    for length in (1, 2, 31, 32, 33, 128, 129, 256, 1000):
        check(length, tensors, "cpu", special=0.5 / length)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("algorithm", ["max", "most_recent"])
@pytest.mark.parametrize("inf_scale", ["largest", "inf"])
def test_every_special_amax(inf_scale, algorithm, device):
    """The amax of this step, and one of earlier steps, are each number of another kind."""
    new, earlier = (x.reshape(-1) for x in np.meshgrid([*SPECIAL, 2.0], [*SPECIAL, 2.0]))
    new, earlier = new.astype(F32), earlier.astype(F32)
    scale, history, new = aligned(np.full(new.size, 0.75, F32)), aligned(np.zeros((3, new.size), F32)), aligned(new)
    history[2] = earlier
    want = step(scale, history, new, 448.0, 0, algorithm, inf_scale=inf_scale)
    dither.update_scale(scale, history, new, **E4M3, algorithm=algorithm, inf_scale=inf_scale, device=device)
    same_bits(scale, want[0])
    same_bits(history, want[1])
    assert (MOST if inf_scale == "largest" else np.inf) in scale


def test_by_hand():
    scale, history = np.array(3, F32), np.array([0, 7, 5, 4], F32)
    dither.update_scale(scale, history, np.array([2], F32), **E4M3)
    assert scale == 448 / 7
    assert history.tolist() == [0, 5, 4, 2]
    dither.update_scale(scale, history, np.array(1, F32), **E4M3, algorithm="most_recent", margin=1)
    assert scale == 224
    assert history.tolist() == [0, 4, 2, 1]
    dither.update_scale(scale, history, np.array(0, F32), **E4M3, skip_zero=True)
    assert scale == 224
    assert history.tolist() == [0, 4, 2, 1]
    for amax, kept in [(np.inf, np.inf), (np.nan, np.nan)]:
        dither.update_scale(scale, history, np.array(amax, F32), **E4M3, algorithm="most_recent")
        assert scale == 224
        assert history[0] == 0
        np.testing.assert_equal(history[3], F32(kept))


def test_a_maximum_has_no_nan():
    scale, history = np.array(3, F32), np.array([np.nan, np.nan, 2, np.nan], F32)
    dither.update_scale(scale, history, **E4M3)
    assert scale == 224
    history[:] = np.nan
    dither.update_scale(scale, history, **E4M3)
    assert scale == 224


def test_what_stays_keeps_its_bits():
    """A scale that does not move, and rows that do, are copied as they are, whatever they are."""
    odd = np.array([0x7FC12345, 0xFF812345, 0x80000001, 0x80000000, 0xFF800000, 0x7F800000], np.uint32).view(F32)
    scale, history = odd.copy(), np.stack([odd] * 3)
    dither.update_scale(scale, history, np.zeros(6, F32), **E4M3, algorithm="most_recent")
    same_bits(scale, odd)
    same_bits(history, np.stack([np.zeros(6, F32), odd, np.zeros(6, F32)]))


@pytest.mark.parametrize("margin", [-119, -7, -1, 0, 1, 3, 60, 134, np.int64(2)])
def test_margins(margin):
    check(5, 40, "cpu", margin=margin)


LARGEST = {
    "nvfp4": 6,
    "mxfp4": 6,
    "mxfp6_e2m3": 7.5,
    "mxfp6_e3m2": 28,
    "mxfp8_e4m3": 448,
    "mxfp8_e5m2": 57344,
    "mxint8": 127 / 64,
    "float8_e4m3": 448,
    "float8_e5m2": 57344,
    "float6_e2m3": 7.5,
    "float6_e3m2": 28,
    "float4_e2m1": 6,
    "int8": 127,
}


@pytest.mark.parametrize("name", LARGEST)
def test_formats(name):
    """By name in any case, and as the object."""
    for given in (name, name.upper(), FORMATS.get(name) or getattr(dl, name)):
        for margin in (0, 2):
            scale = np.ones(1, F32)
            dither.update_scale(scale, np.zeros(4, F32), np.array(3, F32), format=given, margin=margin)
            same_bits(scale, np.array([LARGEST[name] / 2**margin], F32) / F32(3))


def test_formats_of_ones_own():
    for fmt, largest in (
        (dither.Format(element=dl.float8_e5m2, scale=dl.float32, block="tensor"), 57344),
        (dither.Format(element=dl.int8, scale=dl.float32, block="row"), 127),
        (dither.Format(element=dl.int8, scale=dl.e8m0, block=64), 127 / 64),
    ):
        scale = np.array(1, F32)
        dither.update_scale(scale, np.zeros(4, F32), np.array(2, F32), format=fmt)
        assert scale == largest / 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("algorithm", ["max", "most_recent"])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_many_steps(length, algorithm, device):
    states = [dither.DelayedScaling("float8_e5m2", length, 1, algorithm, tensors=7) for _ in range(2)]
    want = np.ones(7, F32), np.zeros((length, 7), F32)
    for i in range(4 * length + 9):
        amax = amaxes((7,), i, 0.2 if i % 3 else 0)
        want = step(*want, amax, 57344.0, 1, algorithm)
        states[0].update(amax, device=device)
        # An amax that somebody put in row 0 is one that is given.
        states[1].amax_history[0] = amax
        states[1].update(device=device)
        for state in states:
            same_bits(state.scale, want[0], f"scales, step {i}")
            same_bits(state.amax_history, want[1], f"history, step {i}")


def test_with_the_amax_of_a_tensor():
    state = dither.DelayedScaling(dl.float8_e4m3, 4)
    for factor in (1, 8, 2):
        state.update(dither.amax(np.array([[-1, 0.5], [np.nan, 0.25]], F32) * F32(factor)))
    assert state.scale == 448 / 8
    assert state.amax_history.tolist() == [0, 1, 8, 2]


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("column", [False, True])
def test_one_tensor_in_every_shape(column, shape):
    scale, history = np.full(shape, 2, F32), np.arange(1, 6, dtype=F32)
    dither.update_scale(scale, history[:, None] if column else history, np.full(shape, 9, F32), **E4M3)
    assert scale.shape == shape
    same_bits(scale, np.full(shape, F32(448) / F32(9)))
    assert history.tolist() == [0, 3, 4, 5, 9]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "view",
    [np.s_[::2, 3], np.s_[::-1, 3], np.s_[1, 2:], np.s_[1:9, 1:6], np.s_[1:9, 3:4], np.s_[::-3, :], np.s_[::3, ::20]],
)
def test_parts_of_arrays(view, device):
    """A history may be a part of an array, whose rest stays."""
    memory = amaxes((20, 20), 4, 0)
    expected, history = memory.copy(), memory[view]
    tensors = history.shape[1] if history.ndim == 2 else 1
    scales = amaxes((3 * tensors,), 5, 0)
    before, scale, amax = scales.copy(), scales[tensors : 2 * tensors], amaxes((tensors,), 6, 0)
    want = step(scale, history.reshape(-1, tensors), amax, 448.0)
    expected[view] = want[1].reshape(history.shape)
    dither.update_scale(scale, history, amax, **E4M3, device=device)
    same_bits(memory, expected)
    same_bits(scales, np.concatenate([before[:tensors], want[0], before[2 * tensors :]]))


@pytest.mark.parametrize("length", [1, 16])
def test_no_tensors(length):
    dither.update_scale(np.ones(0, F32), np.ones((length, 0), F32), np.ones(0, F32), **E4M3)
    state = dither.DelayedScaling("float8_e4m3", length, tensors=0)
    state.update()
    assert state.amax_history.shape == (length, 0)


def test_fast_math_is_not_for_scales(monkeypatch):
    scale = np.ones(200, F32)
    amax = amaxes((200,), 1, 0)
    monkeypatch.setenv("DITHER_MATH", "fast")
    dither.update_scale(scale, np.zeros((2, 200), F32), amax, **E4M3, device="sim:sm_90a")
    same_bits(scale, F32(448) / amax)


def test_nothing_is_compiled_for_lengths_numbers_formats_and_margins():
    def run(length, tensors, offset, fmt="float8_e4m3", margin=0, inf_scale="largest"):
        scale, amax = np.ones(tensors + offset, F32)[offset:], np.ones(tensors, F32)
        options = {"format": fmt, "margin": margin, "inf_scale": inf_scale}
        dither.update_scale(scale, np.zeros((length, tensors), F32), amax, **options)

    for tensors in (1, 2, 40):
        run(4, tensors, 0)
    before = kernels.update_scale_kernel.stats().memory_hits
    builds = len(kernels.update_scale_kernel.stats().builds)
    calls = 0
    for length in (1, 2, 7, 64, 1000):
        for tensors in (1, 2, 3, 8, 9, 31, 64, 257):
            run(length, tensors, length % 3, "float8_e5m2", length % 5, "inf")
            calls += 1
    assert len(kernels.update_scale_kernel.stats().builds) == builds
    assert kernels.update_scale_kernel.stats().memory_hits == before + calls


def test_torch():
    torch = pytest.importorskip("torch")
    for tensors in (None, 5):
        shape = () if tensors is None else (tensors,)
        state = dither.DelayedScaling("float8_e4m3", 6, like=torch.zeros(1, dtype=torch.bfloat16), tensors=tensors)
        assert state.scale.dtype is state.amax_history.dtype is torch.float32
        assert (state.scale.shape, state.amax_history.shape) == (shape, (6, *shape))
        want = np.ones(tensors or 1, F32), np.zeros((6, tensors or 1), F32)
        for i in range(9):
            amax = amaxes((tensors or 1,), i)
            want = step(*want, amax, 448.0)
            versions = state.scale._version, state.amax_history._version
            state.update(torch.from_numpy(amax))
            assert state.scale._version > versions[0] and state.amax_history._version > versions[1]
            same_bits(state.scale.reshape(-1), want[0])
            same_bits(state.amax_history.reshape(6, -1), want[1])


# -- the state ---------------------------------------------------------------------------


def test_a_new_state():
    state = dither.DelayedScaling(format="mxfp8_e4m3")
    assert state.format is dither.MXFP8_E4M3
    assert (state.margin, state.algorithm) == (0, "max")
    assert state.scale.dtype == state.amax_history.dtype == F32
    assert state.scale.shape == () and state.scale == 1
    assert state.amax_history.shape == (1024,) and not state.amax_history.any()
    state = dither.DelayedScaling("FLOAT8_E5M2", history=np.int64(3), tensors=2, algorithm="most_recent", margin=-1)
    assert state.format is dl.float8_e5m2
    assert state.scale.tolist() == [1, 1]
    assert state.amax_history.tolist() == [[0, 0]] * 3
    assert repr(state) == "DelayedScaling(float8_e5m2, shape=(3, 2), margin=-1, algorithm='most_recent')"


def through_torch(x, weights_only=False):
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=weights_only)


WAYS = {f"pickle {p}": (lambda x, p=p: pickle.loads(pickle.dumps(x, p))) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)}
WAYS |= {"deepcopy": copy.deepcopy, "torch": through_torch}
STATES = [
    ("float8_e5m2", 4, 2, "most_recent"),
    ("nvfp4", 1),
    (dither.MXFP4.with_(scale_rounding="even"), 3, -1),
    (dither.Format(element=dl.float8_e4m3, scale=dl.float32, block="tensor"), 5),
]


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("arguments", STATES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_copies_go_on_alone(way, arguments, library):
    like = pytest.importorskip("torch").zeros(()) if library == "torch" else None
    state = dither.DelayedScaling(*arguments, like=like, tensors=3)

    def update(state, seed):
        amax = amaxes((3,), seed, 0)
        state.update(like.new_tensor(amax) if library == "torch" else amax)

    update(state, 1)
    again = WAYS[way](state)
    assert type(again) is dither.DelayedScaling
    assert (again.format, again.margin, again.algorithm) == (state.format, state.margin, state.algorithm)
    assert type(again.scale) is type(state.scale)
    kept = copy.deepcopy(state)
    update(again, 2)
    same_bits(state.scale, kept.scale)
    same_bits(state.amax_history, kept.amax_history)
    update(state, 2)
    same_bits(state.scale, again.scale)
    same_bits(state.amax_history, again.amax_history)


def test_a_shallow_copy_has_the_same_arrays():
    state = dither.DelayedScaling("float8_e4m3", 4)
    again = copy.copy(state)
    assert again is not state
    assert again.scale is state.scale and again.amax_history is state.amax_history


def test_a_checkpoint_of_weights_alone():
    torch = pytest.importorskip("torch")
    state = dither.DelayedScaling("float8_e4m3", 4, like=torch.zeros(()))
    state.update(torch.tensor(3.0))
    with torch.serialization.safe_globals([dither.ops.delayed.restore]):
        again = through_torch(state, weights_only=True)
    same_bits(again.scale, state.scale)
    same_bits(again.amax_history, state.amax_history)


# -- mistakes ----------------------------------------------------------------------------


def readonly(x):
    x.flags.writeable = False
    return x


def on_a_gpu(shape, pointer=4096):
    """Stands for an array of CUDA's memory, which nothing here looks at."""
    about = {"shape": shape, "typestr": "<f4", "data": (pointer, False), "version": 3}
    return types.SimpleNamespace(__cuda_array_interface__=about)


def ones(*shape):
    return np.ones(shape, F32)


def sharing(kind):
    """Arrays of one memory."""
    x = ones(64)
    return {
        "amax and row 0": (ones(4), x.reshape(16, 4), x[:4]),
        "amax and the scale": (x[:1], ones(4), x[:1]),
        "scale and history": (x[7:8], x[:8], None),
        "a column and the next element": (x[2:3], x[:9:2], None),
    }[kind]


WRONG = [
    ((ones(), ones(4, 1, 1)), {}, ValueError, r"'amax_history' has shape \(4, 1, 1\), expected \(L,\) or \(L, T\)"),
    ((ones(), ones()), {}, ValueError, r"argument 'amax_history' has shape \(\), expected \(L,\) or \(L, T\)"),
    ((ones(), ones(0)), {}, ValueError, r"argument 'amax_history' has shape \(0,\), expected at least one row"),
    ((ones(3), ones(0, 3)), {}, ValueError, r"argument 'amax_history' has shape \(0, 3\), expected at least one row"),
    (
        (ones(3), ones(4)),
        {},
        ValueError,
        r"argument 'scale' has shape \(3,\), expected \(\) or \(1,\): 'amax_history' has shape \(4,\)",
    ),
    ((ones(1, 1), ones(4)), {}, ValueError, r"argument 'scale' has shape \(1, 1\), expected \(\) or \(1,\)"),
    ((ones(), ones(4, 3)), {}, ValueError, r"argument 'scale' has shape \(\), expected \(3,\)"),
    ((ones(4), ones(4, 3)), {}, ValueError, r"argument 'scale' has shape \(4,\), expected \(3,\)"),
    ((ones(1), ones(4, 0)), {}, ValueError, r"argument 'scale' has shape \(1,\), expected \(0,\)"),
    ((ones(3), ones(4, 3), ones()), {}, ValueError, r"argument 'amax' has shape \(\), expected \(3,\)"),
    ((ones(), ones(4), ones(4)), {}, ValueError, r"argument 'amax' has shape \(4,\), expected \(\) or \(1,\)"),
    ((1.0, ones(4)), {}, TypeError, "argument 'scale' is float, expected an array"),
    ((ones(), [1.0]), {}, TypeError, "argument 'amax_history' is list, expected an array"),
    ((ones(), ones(4), 1.0), {}, TypeError, "argument 'amax' is float, expected an array"),
    ((np.ones(1), ones(4)), {}, TypeError, "argument 'scale' has data type float64, expected float32"),
    ((ones(), np.ones(4, np.float16)), {}, TypeError, "'amax_history' has data type float16, expected float32"),
    ((ones(), ones(4), np.ones(1, np.int32)), {}, TypeError, "argument 'amax' has data type int32, expected float32"),
    ((readonly(ones()), ones(4)), {}, ValueError, "argument 'scale' is read-only, expected memory that can be written"),
    ((ones(), readonly(ones(4))), {}, ValueError, "argument 'amax_history' is read-only, expected memory"),
    ((ones(6)[::2], ones(4, 3)), {}, ValueError, "argument 'scale' has stride 2 along its last dimension, expected 1"),
    ((ones(3), ones(4, 6)[:, ::2]), {}, ValueError, "argument 'amax_history' has stride 2 along its last dimension"),
    ((ones(3), ones(4, 3), ones(3)[::-1]), {}, ValueError, "argument 'amax' has stride -1 along its last dimension"),
    (
        (ones(), np.lib.stride_tricks.as_strided(ones(1), (4,), (0,))),
        {},
        ValueError,
        "argument 'amax_history' has elements that share memory",
    ),
    (
        (ones(3), np.lib.stride_tricks.as_strided(ones(9), (4, 3), (8, 4))),
        {},
        ValueError,
        "argument 'amax_history' has elements that share memory",
    ),
    (
        sharing("amax and row 0"),
        {},
        ValueError,
        "argument 'amax' shares memory with 'amax_history', expected memory of",
    ),
    (sharing("amax and the scale"), {}, ValueError, "argument 'amax' shares memory with 'scale', expected memory of"),
    (sharing("scale and history"), {}, ValueError, "argument 'amax_history' shares memory with 'scale'"),
    (sharing("a column and the next element"), {}, ValueError, "argument 'amax_history' shares memory with 'scale'"),
    (
        (ones(), on_a_gpu((4,))),
        {},
        ValueError,
        "argument 'scale' is on cpu and 'amax_history' on cuda:0, expected one device",
    ),
    (
        (on_a_gpu(()), on_a_gpu((4,), 8192), ones()),
        {},
        ValueError,
        "argument 'amax' is on cpu and 'amax_history' on cuda:0, expected one device",
    ),
    (
        (on_a_gpu(()), on_a_gpu((4,), 8192)),
        {"device": "cpu"},
        ValueError,
        "argument 'scale' is on cuda:0, expected cpu, the device of the launch",
    ),
    ((), {"algorithm": "most_recnt"}, ValueError, "algorithm is 'most_recnt', expected max, most_recent; did you mean"),
    ((), {"algorithm": max}, ValueError, "algorithm is <built-in function max>, expected max, most_recent"),
    ((), {"inf_scale": "Inf"}, ValueError, "inf_scale is 'Inf', expected largest, inf"),
    ((), {"skip_zero": 1}, TypeError, "skip_zero is 1, expected True or False"),
    ((), {"margin": True}, TypeError, "margin is True, expected an integer"),
    ((), {"margin": 1.0}, TypeError, "margin is 1.0, expected an integer"),
    ((), {"margin": "1"}, TypeError, "margin is '1', expected an integer"),
    ((), {"margin": 135}, ValueError, "margin is 135, expected -119 to 134 for float8_e4m3"),
    ((), {"margin": -(10**30)}, ValueError, "expected -119 to 134 for float8_e4m3"),
    ((), {"margin": -113, "format": "mxfp8_e5m2"}, ValueError, "margin is -113, expected -112 to 141 for mxfp8_e5m2"),
    (
        (),
        {"format": "float8_e4m4"},
        ValueError,
        "unknown format 'float8_e4m4', expected .*; did you mean 'float8_e4m3'",
    ),
    (
        (),
        {"format": dl.float32},
        ValueError,
        "found float32 as a format, expected a dither format, its name, or float4",
    ),
    ((), {"format": None}, TypeError, "found None as a format, expected a dither format, its name, or float4"),
    ((), {"device": "cpus"}, ValueError, "device 'cpus'"),
]


@pytest.mark.parametrize(("arrays", "options", "error", "message"), WRONG)
def test_wrong_calls(arrays, options, error, message):
    arrays = arrays or (ones(), ones(4), ones())
    memory = [x.copy() for x in arrays if isinstance(x, np.ndarray)]
    with pytest.raises(error, match=message):
        dither.update_scale(*arrays, **{**E4M3, **options})
    for x, y in zip([x for x in arrays if isinstance(x, np.ndarray)], memory, strict=True):
        assert (x == y).all()


def test_a_format_is_asked_for():
    with pytest.raises(TypeError, match="format"):
        dither.update_scale(ones(), ones(4))


@pytest.mark.parametrize("known", [False, True])
def test_what_requires_a_gradient(known):
    torch = pytest.importorskip("torch")
    kernels.update_scale_kernel.clear()
    if known:
        dither.update_scale(torch.ones(()), torch.ones(4), **E4M3)
    scale, history = torch.ones((), requires_grad=True), torch.ones(4)
    with pytest.raises(ValueError, match="argument 'scale' requires a gradient"):
        dither.update_scale(scale, history, **E4M3)
    assert history.tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="argument 'amax_history' requires a gradient"):
        dither.update_scale(scale.detach(), history.requires_grad_(), **E4M3)
    with torch.no_grad():
        dither.update_scale(scale, history, **E4M3)
    assert scale == 448


def test_tensors_of_inference():
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        state = dither.DelayedScaling("float8_e4m3", 3, like=torch.ones(()))
        for _ in range(2):
            state.update(torch.tensor(4.0))
    assert state.scale == 112


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"format": "float8"}, ValueError, "unknown format 'float8'"),
        ({"history": 0}, ValueError, "history is 0, expected at least 1"),
        ({"history": 2.0}, TypeError, "history is 2.0, expected an integer"),
        ({"history": True}, TypeError, "history is True, expected an integer"),
        ({"margin": 1.5}, TypeError, "margin is 1.5, expected an integer"),
        ({"margin": 1000}, ValueError, "margin is 1000, expected -119 to 134"),
        ({"algorithm": "maximum"}, ValueError, "algorithm is 'maximum', expected max, most_recent"),
        ({"tensors": -1}, ValueError, "tensors is -1, expected at least 0"),
        ({"like": "numpy"}, TypeError, "argument 'like' is str, expected an array"),
    ],
)
def test_wrong_states(options, error, message):
    with pytest.raises(error, match=message):
        dither.DelayedScaling(**{**E4M3, **options})


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_a_step_of_training_is_one_pass_and_an_update(device):
    """Quantized under the scale of earlier steps, with the amax recorded where the update finds it."""
    random = np.random.default_rng(0)
    state = dither.DelayedScaling("fp8_tensor_e4m3", history=4)
    history, scale = np.zeros(4, np.float32), np.float32(1)
    for step in range(7):
        x = (random.standard_normal((32, 48)) * 10.0 ** (step % 3)).astype(np.float32)
        quantized = dither.quantize(
            x,
            "fp8_tensor_e4m3",
            "both",
            encode_scale=state.scale,
            record_amax=state.amax_history[:1],
            device=device,
        )
        for part in (quantized.rowwise, quantized.colwise):
            assert part.scale_inv.item() == np.float32(1) / scale
        history[0] = np.abs(x).max()
        state.update(device=device)
        scale = np.float32(np.float32(448) / history.max())
        history = np.roll(history, -1)
        history[0] = 0
        assert np.asarray(state.scale).item() == scale
        assert np.array_equal(state.amax_history, history)
