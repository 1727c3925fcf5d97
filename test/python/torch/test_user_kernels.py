"""A user's kernels as operators of torch: compiled, exported, mapped, and with a gradient of their own."""

import io

import dither
import dither.language as dl
import pytest

torch = pytest.importorskip("torch")
import dither.torch  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

BATCHES = (32, 48, 80, 33)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield


@dither.jit
def double(x, y):
    at = dl.program_id(0) * 16
    dl.store(y, (at, 0), dl.load(x, (at, 0), (16, 64)) * 2.0)


def launched(x, y):
    double[-(-x.shape[0] // 16)](x, y)
    return y


@dither.torch.operator(backward=lambda grad, result, x: {"x": doubled(grad)})
def doubled(x):
    return launched(x, torch.empty_like(x))


@dither.torch.operator(writes=("y",))
def double_into(x, y):
    launched(x, y)


@dither.torch.operator
def both(x, format, scale=1.0):
    y = launched(x, torch.empty_like(x))
    return {"q": dither.quantize(y, format, layout="both"), "y": y * scale}


@dither.fuse
def scaled(x, by: dl.scalar = 2.0):
    return x * by


scaled_with_gradient = dither.torch.operator(scaled, backward=lambda grad, result, x, by=2.0: {"x": scaled(grad, by)})


def x(m):
    return torch.randn(m, 64, generator=torch.Generator().manual_seed(m))


def test_one_graph_for_every_batch():
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, backend=counter)
    def call(x):
        y = torch.zeros_like(x)
        double_into(x, y)
        made = both(x.detach(), dither.NVFP4, 0.5)
        return doubled(x) + 1, y * 3, made["q"], made["y"]

    for m in BATCHES:
        given = x(m).requires_grad_()
        out, y, q, halved = call(given.detach())
        assert torch.equal(out, 2 * given + 1) and torch.equal(y, 6 * given) and torch.equal(halved, given)
        assert torch.equal(q.rowwise.data, dither.quantize(2 * given.detach(), "nvfp4").data) and q.shape == (m, 64)
    assert counter.frame_count == 2


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_backward(compiled):
    for fn, factor in ((doubled, 2), (scaled_with_gradient, 2), (lambda x: scaled_with_gradient(x, 3.0), 3)):
        call = torch.compile(fn, fullgraph=True, backend="aot_eager") if compiled else fn
        given = x(32).requires_grad_()
        weights = x(31)[:1].expand(32, 64)
        (call(given) * weights).sum().backward()
        assert torch.equal(given.grad, factor * weights)


def test_transformations():
    xs = x(96).reshape(3, 32, 64)
    assert torch.equal(torch.vmap(doubled)(xs), 2 * xs)
    weights = x(31)[:1]
    found = torch.vmap(torch.func.grad(lambda x: (doubled(x) * weights).sum()))(xs)
    assert torch.equal(found, (2 * weights).expand(3, 32, 64))


def test_export():
    class Model(torch.nn.Module):
        def forward(self, x):
            return doubled(x), both(x, "mxfp8_e4m3")["q"].rowwise.data

    exported = torch.export.export(Model(), (x(64),), dynamic_shapes={"x": {0: torch.export.Dim("m", min=33)}})
    saved = io.BytesIO()
    torch.export.save(exported, saved)
    saved.seek(0)
    y, data = torch.export.load(saved).module()(x(48))
    assert torch.equal(y, 2 * x(48))
    assert torch.equal(data.view(torch.uint8), dither.quantize(y, "mxfp8_e4m3").data.view(torch.uint8))


def test_opcheck():
    torch.library.opcheck(torch.ops.dither.fused.default, ([x(32)], [], f"{doubled.graph_name!r}(T0)"))


def test_fake():
    @dither.torch.operator(fake=lambda x, steps: torch.empty_like(x))
    def repeated(x, steps):
        for _ in range(steps if float(x.abs().max()) > 0 else 0):
            x = launched(x, torch.empty_like(x))
        return x

    compiled = torch.compile(lambda x: repeated(x, 3) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x(32)), 8 * x(32) + 1)


def test_mistakes():
    given = x(32).requires_grad_()
    with pytest.raises(TypeError, match="argument 'x' requires a gradient, which both with these arguments has not"):
        both(given, "nvfp4")
    with pytest.raises(ValueError, match="writes has 'z', expected parameters of 'launched'"):
        dither.torch.operator(launched, writes=("z",))
    with pytest.raises(ValueError, match="operator 'launched' writes 'y' and has a backward, expected one of the two"):
        dither.torch.operator(launched, writes=("y",), backward=lambda grad, result, x, y: {})
    with pytest.raises(TypeError, match=r"operator '<lambda>' takes \*xs, expected named parameters"):
        dither.torch.operator(lambda *xs: xs)
    wrong = dither.torch.operator(scaled, backward=lambda grad, result, x: grad)
    with pytest.raises(
        TypeError, match="the backward of 'scaled' gives Tensor, expected a dictionary of the gradients"
    ):
        wrong(given).sum().backward()
