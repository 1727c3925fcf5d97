"""Calls that are run as earlier ones like them were: results and errors are those of calls that Python runs."""

import gc
import math
import subprocess
import sys
import threading
import weakref

import dither
import dither.language as dl
import numpy as np
import pytest
from ops import data
from ops.replays import (
    CALLS,
    F32,
    LIBRARIES,
    ROW,
    UNTIL,
    X,
    Y,
    arrays_of,
    hits,
    in_python,
    is_replayed,
    made,
    nothing_recorded,
    of,
    same,
    turned,
    warm,
)

torch = pytest.importorskip("torch")
__all__ = ["nothing_recorded"]  # for every test of this file


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CALLS)
def test_results(name, library):
    operator, args, kwargs = CALLS[name]
    args = tuple(made(library, value) for value in args)
    kwargs = {name: made(library, value) for name, value in kwargs.items()}
    want = in_python(operator)(*args, **kwargs)
    before = hits(operator)
    for _ in range(UNTIL + 2):
        same(operator(*args, **kwargs), want)
    assert hits(operator) == before + 2
    # The memory of a call is its own, and the next one reads other memory.
    first, second = operator(*args, **kwargs), operator(*args, **kwargs)
    others = tuple(made(library, turned(value)) for value in CALLS[name][1])
    if name != "strided":  # its copy is dense
        same(operator(*others, **kwargs), in_python(operator)(*others, **kwargs))
        assert hits(operator) == before + 5
    same(first, second)


@pytest.mark.parametrize("library", LIBRARIES)
def test_given_outputs(library):
    x, row = of(library, X), of(library, ROW)
    cases = [
        (dither.quantize, (x, "mxfp8_e4m3", "both"), lambda: dither.quantize(x, "mxfp8_e4m3", "both")),
        (dither.quantize, (x, "nvfp4"), lambda: dither.quantize(x, "nvfp4")),
        (dither.gelu, (x,), lambda: dither.gelu(x)),
        (dither.rms_norm, (x, row), lambda: dither.rms_norm(x, row)),
    ]
    for operator, args, make in cases:
        want = make()
        before = hits(operator)
        out = make()
        for _ in range(UNTIL + 2):
            for array in arrays_of(out):
                array[...] = 0 if array.dtype.__class__ is not torch.dtype else array
            found = operator(*args, out=out)
            same(found, want)
            assert all(a is b for a, b in zip(arrays_of(found)[:1], arrays_of(out)[:1], strict=True))
        assert hits(operator) >= before + 2


def test_what_comes_again_and_again_is_recorded_in_any_company():
    """Lengths of sequences, of which there are more than are recorded at the second call."""
    lengths = [np.ones((n, 32), F32) for n in range(1, 301)]
    for _ in range(8):
        for x in lengths:
            dither.quantize(x, "mxfp8_e4m3")
    assert all(is_replayed(dither.quantize, x, "mxfp8_e4m3") for x in lengths)


def test_calls_that_differ():
    x = of("torch", data.normal(8, 64, "float32"))
    warm(dither.gelu, x)
    assert is_replayed(dither.gelu, x)
    # Other types, shapes, strides, libraries, options and classes are other calls.
    wide = torch.zeros(8, 128)
    others = [
        x.bfloat16(),
        x[:4],
        wide[:, :64],
        x.t().contiguous().t(),
        x.numpy(),
        torch.nn.Parameter(x, False),
    ]
    for other in others:
        assert not is_replayed(dither.gelu, other), other
    assert not is_replayed(dither.gelu, x, approximate="none")
    assert not is_replayed(dither.gelu, x, device="cpu")
    assert not is_replayed(dither.gelu, x, return_amax=True)
    assert not is_replayed(dither.silu, x)
    # 1, 1.0 and True are equal, and not the same.
    warm(dither.rms_norm, x, x[0], 1.0)
    assert is_replayed(dither.rms_norm, x, x[0], 1.0)
    assert not is_replayed(dither.rms_norm, x, x[0], 1)
    with pytest.raises(ValueError, match="argument 'eps' is True"):
        dither.rms_norm(x, x[0], True)


def test_bytes_are_told_apart():
    """int8 and uint8 are one type to launches."""
    for dtype in (np.int8, np.uint8):
        x = np.arange(64, dtype=dtype).reshape(8, 8)
        for _ in range(UNTIL + 1):
            assert dither.transpose(x).dtype == dtype
        t = torch.from_numpy(x)
        for _ in range(UNTIL + 1):
            assert dither.transpose(t).dtype == t.dtype


def test_gradients():
    x = torch.randn(8, 64)
    with torch.no_grad():
        parameter = torch.nn.Parameter(x)
        warm(dither.gelu, parameter)
        assert is_replayed(dither.gelu, parameter)
    before = hits(dither.gelu)
    y = dither.gelu(parameter)
    assert y.requires_grad
    y.sum().backward()
    assert parameter.grad is not None
    with pytest.raises(TypeError, match="requires a gradient"):
        dither.quantize(parameter, "mxfp8_e4m3")
    # What is written tells autograd, and refuses what would lose its gradient.
    out = torch.zeros(8, 64)
    warm(dither.gelu, x, out=out)
    version = out._version
    assert is_replayed(dither.gelu, x, out=out) and out._version > version
    kept = torch.zeros(8, 64)
    weight = torch.ones(8, 64, requires_grad=True)
    loss = (weight * kept).sum()
    dither.gelu(x, out=kept)
    dither.gelu(x, out=kept)
    assert is_replayed(dither.gelu, x, out=kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert before is not None


def test_inference_mode():
    x = torch.randn(8, 64)
    warm(dither.gelu, x)
    with torch.inference_mode():
        before = hits(dither.gelu)
        assert dither.gelu(x).is_inference()
        assert hits(dither.gelu) == before + 1
    assert not dither.gelu(x).is_inference()


def test_modes_of_torch():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Dispatch.seen += 1
            return func(*args, **(kwargs or {}))

    x = torch.randn(8, 64)
    want = warm(dither.gelu, x)
    for mode in (Functions(), Dispatch(), torch.autograd.forward_ad.dual_level()):
        with mode:
            before = hits(dither.gelu)
            same(dither.gelu(x), want)
            assert Dispatch.seen or not isinstance(mode, Dispatch)
            if not isinstance(mode, Dispatch):
                assert hits(dither.gelu) == before
    assert is_replayed(dither.gelu, x)
    batched = torch.vmap(dither.gelu)(torch.stack([x, 2 * x]))
    same(batched[0].clone(), want)


def test_subclasses():
    class Named(torch.Tensor):
        pass

    x = torch.randn(8, 64)
    want = warm(dither.gelu, x)
    named = x.as_subclass(Named)
    for _ in range(UNTIL + 2):
        assert not is_replayed(dither.gelu, named)
    same(dither.gelu(x), want)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = dither.gelu(mode.from_tensor(x))
    assert type(fake).__name__ == "FakeTensor" and fake.shape == x.shape


def test_memory_that_is_shared():
    x = np.zeros((8, 64), F32)
    out = np.zeros((8, 64), F32)
    warm(dither.gelu, x, out=out)
    assert is_replayed(dither.gelu, x, out=out)
    both = np.zeros((12, 64), F32)
    with pytest.raises(ValueError) as by_python:
        in_python(dither.gelu)(both[:8], out=both[4:])
    for _ in range(UNTIL + 2):
        with pytest.raises(ValueError) as error:
            dither.gelu(both[:8], out=both[4:])
        assert str(error.value) == str(by_python.value)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        dither.gelu(x, out=out)
    # Inputs may overlap, and be the same.
    for _ in range(UNTIL + 1):
        same(dither.swiglu(both[:8], both[4:]), in_python(dither.swiglu)(both[:8], both[4:]))
        same(dither.swiglu(x, x), in_python(dither.swiglu)(x, x))


@pytest.mark.parametrize(
    ("name", "fmt", "bad"),
    [
        ("amax", "nvfp4", (-1.0, math.inf, math.nan)),
        ("encode_scale", "fp8_tensor_e4m3", (-1.0, math.inf, math.nan, 0.0, -0.0)),
        ("decode_scale", "nvfp4", (-1.0, math.inf, math.nan, 0.0, -0.0)),
    ],
)
def test_numbers_on_the_host(name, fmt, bad):
    """Numbers in memory are read by each call, and checked."""
    for library in LIBRARIES:
        x, number = of(library, X), of(library, np.array(4.0, F32))
        for value in (4.0, 4.0, 4.0, 5.0, 3.0, 1e-40, *((0.0, -0.0) if name == "amax" else ())):
            number[...] = value
            got = dither.quantize(x, fmt, **{name: number})
            same(got, in_python(dither.quantize)(x, fmt, **{name: number}))
        number[...] = 2.0
        assert is_replayed(dither.quantize, x, fmt, **{name: number})
        for value in bad:
            number[...] = value
            with pytest.raises(ValueError, match=f"argument '{name}' is {value!r}, expected a finite number"):
                dither.quantize(x, fmt, **{name: number})


def test_where_arrays_begin():
    """On a CPU arrays may begin anywhere: a scale among others, a tensor after another in the same memory."""
    for library in LIBRARIES:
        scales = of(library, np.array([1.0, 2.0, 3.0], F32))
        whole = of(library, data.normal(1, 64 * 16, "bfloat16")[0])
        for i in (0, 1, 2, 1):
            for begin in (0, 2, 16):
                x = whole[begin : begin + 64 * 15].reshape(15, 64)
                got = dither.quantize(x, "fp8_tensor_e4m3", "both", encode_scale=scales[i : i + 1])
                same(got, in_python(dither.quantize)(x, "fp8_tensor_e4m3", "both", encode_scale=scales[i : i + 1]))
        assert is_replayed(dither.quantize, x, "fp8_tensor_e4m3", "both", encode_scale=scales[1:2])
        # Words of 32 bits are moved where they are aligned: what is not is another call.
        x, odd = whole[2:62].reshape(2, 30), whole[1:61].reshape(2, 30)
        for one in (x, x, x, odd, odd, odd):
            same(dither.transpose(one), in_python(dither.transpose)(one))
        assert is_replayed(dither.transpose, x) and not is_replayed(dither.transpose, odd)


def test_numbers_that_are_none_stay_python_s():
    """An amax of another shape or data type, or where a function has no name for it, is checked by the call."""
    for amax, words in ((np.full(2, 4.0, F32), "expected one element"), (np.array(4.0), "expected float32")):
        for _ in range(UNTIL + 2):
            with pytest.raises((TypeError, ValueError), match=words):
                dither.quantize(X, "nvfp4", amax=amax)
    amax = np.array(4.0, F32)
    for _ in range(UNTIL + 2):
        assert not is_replayed(dither.quantize_many, [X, Y], "nvfp4", "rowwise", "linear", amax)


def test_values_on_the_host():
    """Values that calls look at are looked at in each."""
    skip = np.array(0.0, F32)
    out = dither.quantize(X, "mxfp8_e4m3")
    for flag in (0.0, 1.0, 0.0, 1.0, 1.0):
        skip[...] = flag
        out.data[...] = 0
        dither.quantize(X, "mxfp8_e4m3", out=out, skip=skip)
        assert bool(np.any(out.data.view(np.uint8))) == (flag == 0.0)


def test_seeds():
    found = [
        dither.quantize(X, "nvfp4", rounding="stochastic", seed=seed, offset=offset).data.tobytes()
        for _ in range(UNTIL + 1)
        for seed, offset in ((1, 0), (1, 1), (2, 0))
    ]
    assert found == found[:3] * (UNTIL + 1) and len(set(found)) == 3
    # On the device they are read by each call.
    seed = np.array(1, np.int64)
    for value in (1, 2, 1, 2, 1):
        seed[...] = value
        got = dither.quantize(X, "nvfp4", rounding="stochastic", seed=seed).data.tobytes()
        assert got == found[0 if value == 1 else 2]


def test_what_the_code_depends_on(monkeypatch):
    x = data.normal(8, 64, "float32")
    scope = {"dl": dl, "dither": dither, "FACTOR": 2.0}
    source = "def scaled(x):\n    return x * FACTOR\n"
    operator = written(source, scope)
    warm(operator, x)
    assert is_replayed(operator, x)
    scope["FACTOR"] = 3.0
    for _ in range(UNTIL + 2):
        np.testing.assert_array_equal(operator(x), x * F32(3))
    assert is_replayed(operator, x)
    monkeypatch.setenv("DITHER_MATH", "fast")
    assert not is_replayed(operator, x)


def written(source, scope, name="scaled"):
    """An operator of a text, which lies where `inspect` finds it."""
    import linecache

    file = f"<{name} of test_replay>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope["__name__"] = __name__
    exec(compile(source, file, "exec"), scope)
    return dither.fuse(scope[name])


def test_recording_is_no_launch():
    """What a call does is asked for beside its launch, for its own extents, and for others."""
    kernel = dither.gelu.operator.kernel
    for m in (3, 3, 3, 3, 5, 6, 7):
        x = np.ones((m, 96), F32)
        before, builds = kernel.stats().memory_hits, len(kernel.stats().builds)
        dither.gelu(x)
        assert kernel.stats().memory_hits + len(kernel.stats().builds) == before + builds + 1, m
    assert is_replayed(dither.gelu, x)


def test_cleared_and_observed():
    x = np.ones((8, 64), F32)
    warm(dither.gelu, x)
    kernel = dither.gelu.operator.kernel
    before = kernel.stats().memory_hits
    assert is_replayed(dither.gelu, x)
    assert kernel.stats().memory_hits == before + 1
    with dither.profile.record(device="sim:sm_90a") as runs:
        dither.gelu(x)
    assert len(runs) == 1
    warm(dither.gelu, x)
    kernel.clear()
    assert not is_replayed(dither.gelu, x)


def test_recorded_calls_are_not_replayed():
    x = np.ones((8, 64), F32)
    warm(dither.gelu, x)
    program = dither.record(dither.gelu, dither.TensorType(dither.float32, (8, 64)))
    assert program.launches == 1


def test_threads():
    x = [of("torch", data.normal(16, 64, "float32", seed=seed)) for seed in range(4)]
    want = [in_python(dither.quantize)(each, "mxfp8_e4m3", "both") for each in x]
    failures = []

    def run(i):
        try:
            for _ in range(200):
                same(dither.quantize(x[i], "mxfp8_e4m3", "both"), want[i])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_is_kept(library):
    x, out = of(library, X.copy()), of(library, np.zeros_like(X))
    q = dither.quantize(x, "nvfp4", "both")
    calls = [
        lambda: dither.quantize(x, "nvfp4", "both"),
        lambda: dither.quantize(x, "nvfp4", "both", out=q),
        lambda: dither.gelu(x, out=out),
        lambda: dither.rms_norm(x, x[0], format="mxfp8_e4m3"),
    ]
    for call in calls:
        for _ in range(UNTIL + 2):
            call()
    objects = (x, out, q, q.rowwise, q.rowwise.data, dither.NVFP4, dither.float32, None, (8, 64))

    def counts():
        return [sys.getrefcount(each) for each in objects[:-2]], sys.getallocatedblocks()

    gc.collect()
    gc.disable()
    try:
        refs, blocks = counts()
        for call in calls:
            for _ in range(100):
                call()
        later, more = counts()
    finally:
        gc.enable()
    assert later == refs and more < blocks + 50


def test_arguments_and_results_go():
    x = of("torch", X.copy())
    warm(dither.quantize, x, "nvfp4", "both")
    assert is_replayed(dither.quantize, x, "nvfp4", "both")
    result = weakref.ref(dither.quantize(x, "nvfp4", "both").rowwise.data)
    given = weakref.ref(x)
    assert result() is None
    del x
    assert given() is None


def test_an_operator_of_a_user_goes():
    scope = {"dl": dl, "dither": dither, "FACTOR": 2.0}
    operator = written("def gone(x):\n    return x * FACTOR\n", scope, "gone")
    x = np.ones((8, 64), F32)
    warm(operator, x)
    known = weakref.ref(operator)
    del operator
    scope.clear()
    gc.collect()
    assert known() is None


def test_formats_that_calls_make():
    """A launch of one is like the one before, although each call makes its format anew."""
    from dither.ops import kernels

    assert dither.NVFP4.with_(order="div6_mul") is dither.NVFP4.with_(order="div6_mul")
    assert dither.NVFP4.with_(order="div6_mul") is not dither.NVFP4.with_(order="div6_div")
    q = dither.quantize(data.normal(8, 64), "mxfp8_e4m3")
    dequantize = in_python(dither.dequantize)
    dequantize(q)
    launcher = kernels.dequantize_kernel._launcher
    before = launcher.hits, launcher.size
    for _ in range(3):
        dequantize(q)
    assert (launcher.hits, launcher.size) == (before[0] + 3, before[1])


def test_without_the_functions_of_numpy():
    """Arrays are made by Python where NumPy's table of functions is not found."""
    run = (
        "import numpy as np, dither\n"
        "from dither import replay\n"
        "replay._numpy_api = lambda: None\n"
        "x = np.arange(512, dtype=np.float32).reshape(8, 64)\n"
        "want = dither.quantize.__wrapped__(x, 'mxfp8_e4m3')\n"
        "for _ in range(4):\n"
        "    q = dither.quantize(x, 'mxfp8_e4m3')\n"
        "    assert q.data.tobytes() == want.data.tobytes() and q.data.dtype == want.data.dtype\n"
        "    assert q.scale_inv.tobytes() == want.scale_inv.tobytes() and q.data.ctypes.data % 64 == 0\n"
        "print(dither.quantize.__wrapped__.own.replays.__self__.hits)\n"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
