"""`math="fast"`: what GPUs may approximate and contract, and what stays as it is."""

import dither
import dither.language as dl
import numpy as np
import pytest
from ops import check

F32 = np.float32
GPUS = ["sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


@dither.jit
def apply(x, y, F: dl.constexpr):
    dl.store(y, (0, 0), F(dl.load(x, (0, 0), (8, 64))))


def contracted(t):
    return t * t + 0.1


def divided(t):
    return t / (t * t + 1.0)


def sine(t):
    return dl.sin(t) + 2.0


def cosine(t):
    return dl.cos(t) + 2.0


def by_row(t):
    return t / dl.amax(t, axis=1)


#: With the largest relative error, of operands in the range below.
FUNCTIONS = {
    "exp": (dl.exp, np.exp, 2.0**-20),
    "exp2": (dl.exp2, np.exp2, 2.0**-22),
    "log": (dl.log, np.log, 2.0**-21),
    "log2": (dl.log2, np.log2, 2.0**-21),
    "tanh": (dl.tanh, np.tanh, 2.0**-11),
    "sigmoid": (dl.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 2.0**-20),
    "sin": (sine, lambda x: np.sin(x) + 2, 2.0**-20),
    "cos": (cosine, lambda x: np.cos(x) + 2, 2.0**-20),
    "sqrt": (dl.sqrt, np.sqrt, 2.0**-22),
    "rsqrt": (dl.rsqrt, lambda x: 1 / np.sqrt(x), 2.0**-22),
    "quotient": (divided, lambda x: x / (x * x + 1), 2.0**-21),
    "by_row": (by_row, lambda x: x / np.abs(x).max(1, keepdims=True), 2.0**-22),
    "contracted": (contracted, lambda x: x * x + np.float64(F32(0.1)), 2.0**-24),
}


def values():
    """Positive, for the logarithms, and away from 1, where they are small."""
    return np.random.default_rng(0).uniform(2, 8, (8, 64)).astype(F32)


def run(function, x, device, **options):
    y = np.zeros_like(x)
    apply[1](x, y, F=function, device=device, **options)
    return y


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_on_gpus(name, device):
    function, exact, bound = FUNCTIONS[name]
    x = values()
    found = run(function, x, device, math="fast")
    want = exact(x.astype(np.float64))
    assert (np.abs(found - want) <= bound * np.abs(want)).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cpus_stay_exact(name):
    function, x = FUNCTIONS[name][0], values()
    check.same_bits(run(function, x, "cpu", math="fast"), run(function, x, "cpu"))


def ptx(function, **options):
    x = dither.TensorType(dl.float32, (8, 64))
    return apply.lower(x, x, F=function, target="sm_90a", **options).compile().ptx


@pytest.mark.parametrize(
    ("function", "instruction"),
    [
        (dl.exp, "ex2.approx.ftz.f32"),
        (dl.exp2, "ex2.approx.ftz.f32"),
        (dl.log, "lg2.approx.ftz.f32"),
        (dl.log2, "lg2.approx.ftz.f32"),
        (dl.tanh, "tanh.approx.f32"),
        (dl.sigmoid, "ex2.approx.ftz.f32"),
        (dl.sin, "sin.approx.ftz.f32"),
        (dl.cos, "cos.approx.ftz.f32"),
        (dl.sqrt, "sqrt.approx.ftz.f32"),
        (dl.rsqrt, "rsqrt.approx.ftz.f32"),
        (divided, "rcp.approx.ftz.f32"),
        (contracted, "fma.rn.f32"),
    ],
)
def test_nothing_is_approximated_unasked(function, instruction):
    assert instruction in ptx(function, math="fast")
    assert instruction not in ptx(function) or function in (divided,)
    assert ptx(function) == ptx(function, math="exact")


def test_a_kernel_a_launch_and_the_knob(monkeypatch):
    """The launch goes before the kernel, and the kernel before the knob."""
    x = values()
    exact, fast = run(dl.exp, x, "sim:sm_90a", math="exact"), run(dl.exp, x, "sim:sm_90a", math="fast")
    assert (exact != fast).any()
    always = dither.jit(apply.fn, math="fast")
    y = np.zeros_like(x)
    always[1](x, y, F=dl.exp, device="sim:sm_90a")
    check.same_bits(y, fast)
    always[1](x, y, F=dl.exp, device="sim:sm_90a", math="exact")
    check.same_bits(y, exact)
    monkeypatch.setenv("DITHER_MATH", "fast")
    check.same_bits(run(dl.exp, x, "sim:sm_90a"), fast)
    check.same_bits(run(dl.exp, x, "sim:sm_90a", math="exact"), exact)
    dither.jit(apply.fn, math="exact")[1](x, y, F=dl.exp, device="sim:sm_90a")
    check.same_bits(y, exact)


def test_it_is_part_of_what_is_compiled():
    kernel = dither.jit(apply.fn)
    x = values()
    y = np.zeros_like(x)  # one: code depends on how an array is aligned, too
    for math in ("exact", "fast", "exact", "fast"):
        kernel[1](x, y, F=dl.exp, device="sim:sm_90a", math=math)
    builds = kernel.stats().builds
    assert [(build.fields["math"], build.differs) for build in builds] == [
        ("exact", ()),
        ("fast", (("math", "exact", "fast"),)),
    ]


@pytest.mark.parametrize("math", ["quick", 1, True])
def test_other_values(math):
    message = f"math is {math!r}, expected 'exact' or 'fast'"
    with pytest.raises(ValueError, match=message):
        dither.jit(apply.fn, math=math)
    with pytest.raises(ValueError, match=message):
        apply[1](values(), values(), F=dl.exp, math=math)
    with pytest.raises(ValueError, match=message):
        dither.fuse(lambda t: t, math=math)


@pytest.mark.parametrize("device", GPUS)
def test_scales_and_codes_stay_exact(device, monkeypatch):
    x = values()
    want = {name: dither.quantize(x, name, "both") for name in ("nvfp4", "mxfp8_e4m3", "mxint8")}
    monkeypatch.setenv("DITHER_MATH", "fast")
    for name, expected in want.items():
        found = dither.quantize(x, name, "both", device=device)
        check.same_bits(found.rowwise.data, expected.rowwise.data)
        check.same_bits(found.rowwise.scale_inv, expected.rowwise.scale_inv)
        check.same_bits(found.colwise.data, expected.colwise.data)
        check.same_bits(found.colwise.scale_inv, expected.colwise.scale_inv)


def quick_gelu(t):
    return t * dl.sigmoid(1.702 * t)


def test_fused_functions():
    x = -values()
    gelu, exact = dither.fuse(quick_gelu, math="fast"), dither.fuse(quick_gelu)
    assert (gelu(x, device="sim:sm_90a") != exact(x, device="sim:sm_90a")).any()
    check.same_bits(gelu(x, device="cpu"), exact(x, device="sim:sm_90a"))
    np.testing.assert_allclose(gelu(x, device="sim:sm_90a"), exact(x), rtol=2.0**-18)
