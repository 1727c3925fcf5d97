"""Gradients of operators in torch, beside torch's own of the formulas in float64."""

import functools

import dither
import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

M, N = 24, 64


def numbers(*shape, seed=3, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def leaves(result):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def gradients(fn, *operands, dtype=torch.float32):
    """Of a weighted sum of all that a function returns, for all operands."""
    given = [operand.detach().to(dtype).requires_grad_() for operand in operands]
    found = leaves(fn(*given))
    sum((leaf * numbers(*leaf.shape, seed=7 + i)).sum() for i, leaf in enumerate(found)).backward()
    return [operand.grad for operand in given]


def close(ours, formula, *operands, error=4e-6):
    """Gradients of an operator, and of a formula in float64, differ by rounding of float32: relative to the largest."""
    exact = gradients(formula, *operands, dtype=torch.float64)
    for one, other in zip(gradients(ours, *operands), exact, strict=True):
        assert one.dtype == torch.float32 and one.shape == other.shape
        assert (one.double() - other).abs().max() <= error * other.abs().max() > 0


PLAIN = {
    "gelu": functools.partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
    "qgelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": functional.relu,
    "srelu": lambda x: functional.relu(x) ** 2,
    "sigmoid": torch.sigmoid,
}
GATES = {
    "glu": torch.sigmoid,
    "geglu": PLAIN["gelu"],
    "swiglu": functional.silu,
    "qgeglu": PLAIN["qgelu"],
    "reglu": functional.relu,
    "sreglu": PLAIN["srelu"],
}


@pytest.mark.parametrize("name", PLAIN)
def test_activations(name):
    x, bias = numbers(M, N), numbers(N, seed=4)
    close(getattr(dither, name), PLAIN[name], x)
    close(getattr(dither, name), lambda x, bias: PLAIN[name](x + bias), x, bias)


@pytest.mark.parametrize("name", GATES)
def test_gated_activations(name):
    ours = getattr(dither, name)

    def formula(gate, up, factor=None):
        y = GATES[name](gate) * up
        return y if factor is None else y * factor[:, None]

    gate, up, factor = numbers(M, N), numbers(M, N, seed=4), numbers(M, seed=5)
    close(ours, formula, gate, up, factor)
    close(ours, lambda x: formula(x[:, :N], x[:, N:]), torch.cat([gate, up], 1))
    biases = numbers(N, seed=6), numbers(N, seed=8)
    with_biases = lambda gate, up, b, c: ours(gate, up, bias_gate=b, bias_up=c)  # noqa: E731
    close(with_biases, lambda gate, up, b, c: formula(gate + b, up + c), gate, up, *biases)


def rms_norm(x, gamma, eps=1e-5):
    rsigma = torch.rsqrt((x * x).mean(-1) + eps)
    return x * rsigma[..., None] * gamma, rsigma


def layer_norm(x, gamma, beta, eps=1e-6):
    mean = x.mean(-1)
    rsigma = torch.rsqrt(((x - mean[..., None]) ** 2).mean(-1) + eps)
    return (x - mean[..., None]) * rsigma[..., None] * gamma + beta, mean, rsigma


def test_norms():
    x, residual, gamma, beta = (numbers(*shape, seed=seed) for seed, shape in enumerate([(M, N), (M, N), (N,), (N,)]))
    close(lambda *a: dither.rms_norm(*a)[:2], rms_norm, x, gamma)
    close(lambda *a: dither.rms_norm(*a).out, lambda *a: rms_norm(*a)[0], x, gamma)
    close(lambda x: dither.rms_norm(x, gamma).rsigma, lambda x: rms_norm(x, gamma)[1], x)
    close(dither.layer_norm, layer_norm, x, gamma, beta)
    close(dither.add_rms_norm, lambda x, r, g: (*rms_norm(x + r, g, 1e-6), x + r), x, residual, gamma)
    close(dither.add_layer_norm, lambda x, r, g, b: (*layer_norm(x + r, g, b), x + r), x, residual, gamma, beta)
    wide = numbers(3, 8, N)
    close(
        lambda x, gamma: dither.rms_norm(x, gamma, zero_centered_gamma=True).out,
        lambda x, gamma: rms_norm(x, 1 + gamma)[0],
        wide,
        gamma,
    )


def test_softmax_rope_and_dropout():
    x, residual, angle = numbers(M, N), numbers(M, N, seed=4), numbers(M, 16, seed=5)
    close(lambda x: dither.softmax(x, 0.5), lambda x: torch.softmax(0.5 * x, -1), x)
    cos, sin = torch.cos(angle), torch.sin(angle)

    def turned(x):
        low, high = x.reshape(M, 2, 2, 16).unbind(2)
        c, s = cos[:, None], sin[:, None]
        return torch.stack([low * c - high * s, high * c + low * s], dim=2).reshape(M, N)

    close(lambda x: dither.rope(x, cos, sin), turned, x)
    ours = lambda x, r: dither.add_dropout(x, r, 0.25, dropout_seed=5)  # noqa: E731
    kept = ours(torch.ones(M, N), torch.zeros(M, N))
    assert 0.6 < (kept != 0).float().mean() < 0.9
    close(ours, lambda x, r: x * kept + r, x, residual)


def test_gradients_are_those_of_the_backward_operators():
    x, gamma = numbers(M, N, dtype=torch.bfloat16).requires_grad_(), numbers(N, seed=4).requires_grad_()
    y = dither.rms_norm(x, gamma)
    weights = numbers(M, N, seed=7, dtype=torch.bfloat16)
    y.out.backward(weights)
    assert (x.grad.dtype, gamma.grad.dtype) == (torch.bfloat16, torch.float32)
    back = dither.rms_norm_backward(weights, x.detach(), y.rsigma.detach(), gamma.detach())
    assert torch.equal(x.grad, back.dx) and torch.equal(gamma.grad, back.dgamma)


def test_under_torch_func_and_checkpoint():
    xs, gamma = numbers(3, M, N), numbers(N, seed=4)

    def loss(x, gamma):
        return (dither.gelu(dither.rms_norm(x, gamma).out) ** 2).sum()

    want = gradients(loss, xs[0], gamma)
    weight = numbers(seed=7)
    found = torch.func.grad(lambda *a: loss(*a) * weight, argnums=(0, 1))(xs[0], gamma)
    mapped = torch.vmap(torch.func.grad(lambda *a: loss(*a) * weight, argnums=(0, 1)), in_dims=(0, None))(xs, gamma)
    again = gradients(lambda *a: torch.utils.checkpoint.checkpoint(loss, *a, use_reentrant=False), xs[0], gamma)
    for i in range(2):
        assert torch.equal(found[i], want[i]) and torch.equal(mapped[i][0], want[i]) and torch.equal(again[i], want[i])


def test_only_what_a_gradient_needs_is_kept():
    x, residual = numbers(M, N).requires_grad_(), numbers(M, N, seed=4)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(tuple(t.shape)) or t, lambda t: t):
        dither.gelu(x)
        dither.add_rms_norm(x, residual, torch.ones(N))
        dither.add_dropout(x, residual, dropout_seed=5)
    # x; gamma, rsigma and the sum; nothing.
    assert sorted(kept) == sorted([(M, N), (N,), (M,), (M, N)])


DROPPED = r"argument 'x' requires a gradient, which {} with these arguments has not: pass x\.detach\(\), call it under"


@pytest.mark.parametrize("transform", [lambda f: f, torch.func.grad], ids=["backward", "grad"])
def test_gradients_that_would_be_dropped(transform):
    x, gamma = numbers(M, N).requires_grad_(), numbers(N, seed=4)
    for name, call in (
        ("quantize", lambda x: dither.quantize(x, "mxfp8_e4m3").dequantize().sum()),
        ("gelu", lambda x: dither.gelu(x, format="mxfp8_e4m3").dequantize().sum()),
        ("rms_norm", lambda x: dither.rms_norm(x, gamma, format="nvfp4").rsigma.sum()),
        ("amax", dither.amax),
        ("gelu", lambda x: dither.gelu(x, out=torch.empty(M, N)).sum()),
    ):
        with pytest.raises(TypeError, match=DROPPED.format(name)):
            transform(call)(x)
    with torch.no_grad():
        assert not dither.quantize(x, "nvfp4").dequantize().requires_grad
    assert not dither.quantize(x.detach(), "nvfp4").dequantize().requires_grad


def test_operands_without_a_gradient_are_named():
    x, factor = numbers(M, N).requires_grad_(), numbers(M, seed=4).requires_grad_()
    y = dither.srelu(x, factor=factor)
    with pytest.raises(
        TypeError, match="the gradient of argument 'factor' was asked for, expected one of x: srelu has"
    ):
        y.sum().backward()
    dither.srelu(x, factor=factor.detach()).sum().backward()
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "second",
    [
        lambda loss, x: torch.func.grad(lambda x: torch.func.grad(loss)(x).sum())(x),
        lambda loss, x: torch.autograd.grad(loss(x), x, create_graph=True)[0].sum().backward(),
    ],
    ids=["func", "autograd"],
)
def test_gradients_of_gradients(second):
    with pytest.raises(TypeError, match="the gradient of a gradient was asked for"):
        second(lambda x: (dither.gelu(x) ** 2).sum(), numbers(M, N).requires_grad_())


def test_forward_mode_is_refused():
    x = numbers(M, N)
    _, back = torch.func.vjp(dither.gelu, x)
    assert torch.equal(back(x)[0], dither.dgelu(x, x))
    for call in (dither.gelu, lambda x: dither.quantize(x, "nvfp4").scale_inv):
        with pytest.raises(TypeError, match="argument 'x' has a tangent, expected none"):
            torch.func.jvp(call, (x,), (x,))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            with pytest.raises(TypeError, match="argument 'x' has a tangent, expected none"):
                call(dual)


def test_straight_through():
    x = numbers(M, N, dtype=torch.bfloat16).requires_grad_()

    def rounded(x, name):
        return dither.dequantize(dither.quantize(x, name), dither.float32)

    through = dither.torch.straight_through(rounded)
    y = through(x, "nvfp4")
    assert torch.equal(y, rounded(x.detach(), "nvfp4"))
    (y**2).sum().backward()
    assert x.grad.dtype == torch.bfloat16 and torch.equal(x.grad, (2 * y.detach()).bfloat16())
    assert torch.equal(torch.func.grad(lambda x: (through(x, "nvfp4") ** 2).sum())(x.detach()), x.grad)
    with pytest.raises(ValueError, match=r"the function gives shape \(24, 32\), expected a tensor of shape \(24, 64\)"):
        dither.torch.straight_through(lambda x: x[:, :32])(x)
