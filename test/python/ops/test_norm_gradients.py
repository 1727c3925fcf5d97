"""Gradients through norms, and norms of sums: bits of the reference, autodiff in float64, formats, invariance."""

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import check, data

F32 = np.float32
TYPES = {"float32": F32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
TARGETS = ("sim:sm_80", "sim:sm_90a", "sim:sm_100a")
NORMS = ("rms", "layer")


def tree(x):
    """Rows in pairs, and the sums of these, until one is left; a zero is +0."""
    while len(x) > 1:
        if len(x) % 2:
            x = np.concatenate([x, np.zeros_like(x[:1])])
        x = x[0::2] + x[1::2]
    return x[0] + F32(0)


def operands(m, n, dtypes=("bfloat16", "bfloat16", "float32")):
    """dz, x and gamma of these data types."""
    dz, x = data.normal(m, n, dtypes[0], seed=1), data.normal(m, n, dtypes[1])
    return dz, x, data.normal(1, n, dtypes[2], seed=2)[0]


def backward(norm, dz, x, gamma, **options):
    """What the operator gives, and the reference: dx in float32, and the sums."""
    zero_centered = options.get("zero_centered_gamma", False)
    with np.errstate(all="ignore"):
        if norm == "rms":
            _, rsigma = oracle.rms_norm(x, gamma, 1e-6, zero_centered)
            dx, terms = oracle.rms_norm_backward(dz, x, gamma, rsigma[:, None], zero_centered)
            found = dither.rms_norm_backward(dz, x, rsigma, gamma, **options)
            return found, dx, [tree(terms)]
        _, mean, rsigma = oracle.layer_norm(x, gamma, gamma, 1e-6, zero_centered)
        dx, terms = oracle.layer_norm_backward(dz, x, gamma, mean[:, None], rsigma[:, None], zero_centered)
        found = dither.layer_norm_backward(dz, x, mean, rsigma, gamma, **options)
        return found, dx, [tree(terms), tree(dz.astype(F32))]


def same(found, want):
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data, "codes")
        check.same_bits(a.scale_inv, b.scale_inv, "scales")


@pytest.mark.parametrize("zero_centered", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (40, 100), (33, 128), (5, 4096), (2, 5000)])
@pytest.mark.parametrize("norm", NORMS)
def test_bits(norm, shape, zero_centered):
    found, dx, sums = backward(norm, *operands(*shape), zero_centered_gamma=zero_centered)
    check.same_bits(found.dx, dx.astype(ml_dtypes.bfloat16), "dx")
    for one, want in zip(found[1:], sums, strict=True):
        check.same_bits(one, want, "sums")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("norm", NORMS)
def test_targets(norm, target):
    for shape in ((9, 100), (40, 256), (3, 4096)):
        found, dx, sums = backward(norm, *operands(*shape), device=target)
        check.same_bits(found.dx, dx.astype(ml_dtypes.bfloat16), "dx")
        for one, want in zip(found[1:], sums, strict=True):
            check.same_bits(one, want, "sums")


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("gamma", TYPES)
@pytest.mark.parametrize("x", TYPES)
@pytest.mark.parametrize("dz", TYPES)
@pytest.mark.parametrize("norm", NORMS)
def test_any_mix_of_types(norm, dz, x, gamma):
    """dx has the type of x, sums have that of gamma, or another that is asked for."""
    given = operands(20, 96, (dz, x, gamma))
    found, dx, sums = backward(norm, *given)
    check.same_bits(found.dx, dx.astype(TYPES[x]), "dx")
    for one, want in zip(found[1:], sums, strict=True):
        check.same_bits(one, want.astype(TYPES[gamma]), "sums")
    found, dx, sums = backward(norm, *given, dtype=dither.float16, grad_dtype=dither.float32)
    check.same_bits(found.dx, dx.astype(np.float16), "dx")
    check.same_bits(found.dgamma, sums[0], "sums")


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", [*check.FORMATS, "fp8_tensor_e4m3", "fp8_row_e4m3", "fp8_1x128_e4m3"])
@pytest.mark.parametrize("norm", NORMS)
def test_every_format(norm, fmt, layout):
    given = operands(40, 160)
    plain, _, sums = backward(norm, *given)
    found, _, _ = backward(norm, *given, format=fmt, layout=layout)
    same(found.dx, dither.quantize(plain.dx, fmt, layout))
    for one, want in zip(found[1:], sums, strict=True):
        check.same_bits(one, want, "sums")


@pytest.mark.parametrize("norm", NORMS)
def test_gradient_of_a_residual_is_added(norm):
    add = data.normal(40, 100, "float16", seed=7)
    found, dx, _ = backward(norm, *operands(40, 100), add=add)
    check.same_bits(found.dx, (dx + add.astype(F32)).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("norm", NORMS)
def test_rows_and_sums_depend_on_values_alone(norm):
    """A batch is no other than its rows, and sums of columns do not know of threads."""
    from dither import _dither

    dz, x, gamma = operands(65, 200)
    whole, _, _ = backward(norm, dz, x, gamma)
    for rows in (slice(0, 1), slice(10, 33)):
        part, _, _ = backward(norm, dz[rows].copy(), x[rows].copy(), gamma)
        check.same_bits(part.dx, whole.dx[rows])
    before = _dither.num_threads() if hasattr(_dither, "num_threads") else None
    try:
        for threads in (1, 3):
            _dither.set_num_threads(threads)
            again, _, _ = backward(norm, dz, x, gamma)
            check.same_bits(again.dgamma, whole.dgamma)
    finally:
        _dither.set_num_threads(before or 2)


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_are_those_of_autodiff(norm, jax_float64):
    jax, jnp = jax_float64, jax_float64.numpy
    dz, x, gamma = operands(24, 192, ("float32",) * 3)

    def of(x, gamma, beta):
        if norm == "rms":
            return gamma * x / jnp.sqrt((x * x).mean(1, keepdims=True) + 1e-6)
        d = x - x.mean(1, keepdims=True)
        return gamma * d / jnp.sqrt((d * d).mean(1, keepdims=True) + 1e-6) + beta

    _, back = jax.vjp(of, *(jnp.asarray(a, jnp.float64) for a in (x, gamma, gamma)))
    exact = back(jnp.asarray(dz, jnp.float64))
    found, _, _ = backward(norm, dz, x, gamma)
    for one, want in zip(found, exact, strict=False):
        want = np.asarray(want)
        assert np.abs(one.astype(np.float64) - want).max() < 64 * 2.0**-24 * np.abs(want).max()


@pytest.mark.parametrize("fmt", [None, "nvfp4", "mxfp8_e4m3"])
@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_norms_of_sums(device, fmt):
    """The sum is rounded to the type of x, returned, and what is normalized: two operators one by one."""
    x, residual = data.normal(40, 200, "bfloat16"), data.normal(40, 200, "float32", seed=3)
    gamma, beta = data.normal(1, 200, "float16", seed=4)[0], data.normal(1, 200, "float32", seed=5)[0]
    total = (x.astype(F32) + residual).astype(ml_dtypes.bfloat16)
    options = {"format": fmt, "device": device}
    found = dither.add_rms_norm(x, residual, gamma, **options)
    want = dither.rms_norm(total, gamma, eps=1e-6, **options)
    centered = dither.add_layer_norm(x, residual, gamma, beta, **options)
    wanted = dither.layer_norm(total, gamma, beta, **options)
    check.same_bits(centered.mean, wanted.mean)
    for one, alone in ((found, want), (centered, wanted)):
        check.same_bits(one.sum, total)
        check.same_bits(one.rsigma, alone.rsigma)
        if fmt is None:
            check.same_bits(one.out, alone.out)
        else:
            same(one.out, alone.out)


def test_any_rank():
    dz, x, gamma = operands(24, 96)
    flat, _, _ = backward("rms", dz, x, gamma)
    rsigma = oracle.rms_norm(x, gamma, 1e-6)[1]
    deep = dither.rms_norm_backward(dz.reshape(4, 6, 96), x.reshape(4, 6, 96), rsigma.reshape(4, 6), gamma)
    check.same_bits(deep.dx, flat.dx.reshape(4, 6, 96))
    check.same_bits(deep.dgamma, flat.dgamma)
    # Of the last two dimensions together.
    both = dither.rms_norm_backward(
        *(a.reshape(24, 8, 12) for a in (dz, x)), rsigma, gamma.reshape(8, 12), flatten_axis=1
    )
    check.same_bits(both.dgamma, flat.dgamma.reshape(8, 12))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": lambda a: a[:, :8]}, ValueError, r"argument 'x' has shape \(8, 8\), expected \(8, 32\)"),
        ({"rsigma": lambda a: a[:3]}, ValueError, r"argument 'rsigma' has shape \(3,\), expected \(8,\)"),
        ({"gamma": lambda a: a[:3]}, ValueError, r"argument 'gamma' has shape \(3,\), expected \(32,\)"),
        ({"add": lambda a: np.ones((8, 3), F32)}, ValueError, r"argument 'add' has shape \(8, 3\), expected \(8, 32\)"),
        ({"grad_dtype": lambda a: dither.e8m0}, TypeError, "dtype is e8m0, expected float32, bfloat16 or float16"),
        ({"zero_centered_gamma": lambda a: 1}, dither.CompileError, "zero_centered_gamma is 1, expected a constexpr"),
    ],
)
def test_wrong_calls(change, error, message):
    given = {
        "dz": np.ones((8, 32), F32),
        "x": np.ones((8, 32), F32),
        "rsigma": np.ones(8, F32),
        "gamma": np.ones(32, F32),
    }
    for name, of in change.items():
        given[name] = of(given.get(name))
    with pytest.raises(error, match=message):
        dither.rms_norm_backward(**given)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_two_steps_round_to_the_type_of_x(device):
    """What one kernel does not quantize is stored in between, in the type that it has by default."""
    dz, x = data.normal(64, 128, "float32"), data.normal(64, 128, "bfloat16", seed=1)
    gamma, rsigma = data.normal(1, 128, seed=2)[0], np.abs(data.normal(1, 64, seed=3)[0])
    plain = dither.rms_norm_backward(dz, x, rsigma, gamma).dx
    assert plain.dtype == x.dtype
    transform = dither.RandomHadamard(64, rowwise=True)
    found = dither.rms_norm_backward(
        dz, x, rsigma, gamma, format="nvfp4", layout="both", transform=transform, device=device
    ).dx
    want = dither.quantize(plain, "nvfp4", "both", transform=transform)
    for one, other in ((found.rowwise, want.rowwise), (found.colwise, want.colwise)):
        assert one.dtype is other.dtype
        check.same_bits(one.data, other.data)
        check.same_bits(one.scale_inv, other.scale_inv)
