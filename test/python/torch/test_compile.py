"""dither in compiled and exported graphs of torch: the bits of eager calls, in graphs that serve every batch."""

import io

import dither
import dither.language as dl
import pytest

torch = pytest.importorskip("torch")
import dither.torch  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

N = 128
#: The first batch compiles, the second makes its extents symbols; the others compile nothing.
BATCHES = (32, 48, 80, 33)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield


def numbers(*shape, seed=3):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def same(found, want):
    """Results with the same structure, shapes and bits."""
    ours, our_tree = pytree.tree_flatten(found)
    theirs, their_tree = pytree.tree_flatten(want)
    assert our_tree == their_tree and len(ours) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert type(one) is type(other)
        if isinstance(one, torch.Tensor):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            if one.dtype.itemsize == 1:
                one, other = one.view(torch.uint8), other.view(torch.uint8)
            assert torch.equal(one, other)
        else:
            assert one == other


def serves_every_batch(call, *make, backend="aot_eager"):
    """A call has one graph without breaks, compiled twice, and its bits; `make` makes operands of a batch."""
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(call, fullgraph=True, backend=counter)
    for m in BATCHES:
        operands = [each(m) for each in make]
        same(compiled(*operands), call(*operands))
    assert counter.frame_count == 2


def x(m):
    return numbers(m, N, seed=m)


@dither.fuse
def shifted(x, bias: dl.row):
    return x + bias


GAMMA = numbers(N, seed=4)
RCEIL = dither.MXFP4.with_(scale_rounding="rceil")
TRANSFORM = dither.RandomHadamard(16, 0x8001, colwise=False, rowwise=True)
CALLS = {
    "gelu": dither.gelu,
    "nvfp4": lambda x: dither.quantize(x, "nvfp4"),
    "mxfp8": lambda x: dither.quantize(x, dither.MXFP8_E4M3, layout="both", scale_layout="128x4"),
    "format": lambda x: dither.quantize(x, RCEIL, transform=None),
    "transform": lambda x: dither.quantize(x, "nvfp4", transform=TRANSFORM, rounding="stochastic", seed=5),
    "fp8_tensor": lambda x: dither.quantize(x, "fp8_tensor_e4m3", layout="both"),
    "round_trip": lambda x: dither.quantize(x, "nvfp4", layout="both").colwise.dequantize(dither.bfloat16),
    "rms_norm": lambda x: dither.rms_norm(x, GAMMA, format="mxfp8_e4m3", return_amax=True),
    "dswiglu": lambda x: dither.dbias_dswiglu(x[:, : N // 2], x, format="mxfp8_e4m3"),
    "rank 3": lambda x: dither.quantize(x.reshape(-1, 1, N), "mxfp8_e4m3"),
    "groups": lambda x: dither.grouped_quantize(x, "mxfp8_e4m3", "both", "128x4", group_sizes=torch.tensor([9, 0, 4])),
    "fuse": lambda x: shifted(x, GAMMA, format="mxfp8_e4m3"),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_graph_for_every_batch(name):
    serves_every_batch(CALLS[name], x)


def test_tracing_does_not_walk_through_all_modules(monkeypatch):
    """Some modules import others when they are looked at, and the dictionary of them changes then."""
    want = dither.gelu(numbers(4, N))
    monkeypatch.setattr(dither.frameworks, "sys", None)
    traced = []

    def backend(graph, inputs):
        traced.append(graph)
        monkeypatch.undo()
        return graph

    same(torch.compile(lambda x: dither.gelu(x), fullgraph=True, backend=backend)(numbers(4, N)), want)
    assert len(traced) == 1


def test_quantized_tensors_as_arguments():
    serves_every_batch(lambda q: (q.dequantize(), q.shape[0]), lambda m: dither.quantize(x(m), "nvfp4"))
    serves_every_batch(
        lambda q: dither.grouped_dequantize(q.rowwise),
        lambda m: dither.grouped_quantize(x(m), "mxfp8_e4m3", "both", group_sizes=torch.tensor([m - 9, 9])),
    )


def test_gradients():
    counter = CompileCounterWithBackend("aot_eager")
    through = dither.torch.straight_through(lambda x: dither.dequantize(dither.quantize(x, "nvfp4")))

    def loss(x, gamma):
        return (dither.gelu(through(dither.rms_norm(x, gamma).out)) ** 2).sum()

    compiled = torch.compile(loss, fullgraph=True, backend=counter)
    for m in BATCHES:
        found = []
        for each in (compiled, loss):
            operands = x(m).requires_grad_(), GAMMA.clone().requires_grad_()
            each(*operands).backward()
            found.append([operand.grad for operand in operands])
        same(*found)
    assert counter.frame_count == 2


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_delayed_scaling_in_place(backend):
    states = [dither.DelayedScaling("float8_e4m3", history=4, like=torch.empty(0)) for _ in range(2)]

    def step(x, state):
        normed = dither.rms_norm(x, GAMMA).out
        encode, record = state.scale, state.amax_history[:1]
        q = dither.quantize(normed, "fp8_tensor_e4m3", encode_scale=encode, record_amax=record)
        state.update()
        return q, dither.dequantize(q) + 1

    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(step, fullgraph=True, backend=counter)
    for m in BATCHES:
        same(compiled(x(m) * m, states[0]), step(x(m) * m, states[1]))
        assert torch.equal(states[0].scale, states[1].scale)
        assert torch.equal(states[0].amax_history, states[1].amax_history)
    assert counter.frame_count == 2 and states[0].scale != 1


def test_out():
    def call(x, q, y):
        return dither.quantize(x, "mxfp8_e4m3", out=q), dither.gelu(x, out=y)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    q, y = dither.quantize(x(32), "mxfp8_e4m3"), torch.empty(32, N)
    other = numbers(32, N, seed=9)
    given, out = compiled(other, q, y)
    assert given.data.data_ptr() == q.data.data_ptr() and out is y
    same((q, y), (dither.quantize(other, "mxfp8_e4m3"), dither.gelu(other)))


def test_mistakes_are_named():
    compiled = torch.compile(lambda x: dither.quantize(x, "nvfp5"), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=r"ValueError.*unknown format 'nvfp5', expected nvfp4"):
        compiled(x(32))
    compiled = torch.compile(lambda x: dither.quantize(x, "nvfp4").dequantize(), fullgraph=True, backend="eager")
    with pytest.raises(
        Exception, match=r"TypeError.*argument 'x' requires a gradient, which quantize with these arguments"
    ):
        compiled(x(32).requires_grad_())


# -- export --------------------------------------------------------------------------------------


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gamma", GAMMA.clone())

    def forward(self, x):
        q = dither.rms_norm(x, self.gamma, format="mxfp8_e4m3", layout="both").out
        return q, shifted(x, q.rowwise.dequantize()[0]), dither.gelu(x)


def test_export_round_trip():
    model = Model()
    # The number of blocks of 32 rows is an extent, and torch has graphs of their own for extents of 1.
    batch = torch.export.Dim("m", min=33)
    exported = torch.export.export(model, (x(64),), dynamic_shapes={"x": {0: batch}})
    targets = {str(node.target) for node in exported.graph.nodes}
    assert {"dither.rms_norm.default", "dither.fused.default", "dither.gelu.default"} <= targets
    saved = io.BytesIO()
    torch.export.save(exported, saved)
    saved.seek(0)
    again = torch.export.load(saved).module()
    for m in BATCHES[1:]:
        same(again(x(m)), model(x(m)))


# -- transformations -----------------------------------------------------------------------------


def test_vmap_is_a_stack_of_calls():
    xs = numbers(3, 48, 64)
    xs[1] *= 100

    def call(x):
        return dither.quantize(x, "nvfp4", layout="both", scale_layout="128x4")

    found = torch.vmap(call)(xs)
    for i in range(3):
        same(pytree.tree_map(lambda leaf, i=i: leaf[i], found), call(xs[i]))
    moved = torch.vmap(lambda x: dither.quantize(x, "mxfp8_e4m3").data, in_dims=1, out_dims=2)(xs.movedim(0, 1))
    for i in range(3):
        same(moved[:, :, i], dither.quantize(xs[i], "mxfp8_e4m3").data)
    gammas = numbers(3, 64, seed=5)
    found = torch.vmap(lambda x, gamma: dither.rms_norm(x, gamma).out, in_dims=(None, 0))(xs[0], gammas)
    for i in range(3):
        same(found[i], dither.rms_norm(xs[0], gammas[i]).out)


def test_fake_tensors():
    with torch._subclasses.FakeTensorMode():
        q = dither.quantize(torch.empty(40, 96, dtype=torch.bfloat16), "nvfp4", layout="both")
        assert type(q.colwise.data).__name__ == "FakeTensor"
        assert q.colwise.data.shape == (96, 20) and q.rowwise.scale_inv.dtype == torch.float8_e4m3fn
        assert dither.dequantize(q.rowwise).shape == (40, 96)


@pytest.mark.parametrize(
    ("device", "found"), [("meta", "a tensor on device 'meta'"), ("cpu", "a Wrapped, which stands for other tensors")]
)
def test_tensors_that_are_no_memory(device, found):
    class Wrapped(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    given = torch.empty(32, N, device=device)
    if device == "cpu":
        given = torch.Tensor._make_wrapper_subclass(Wrapped, (32, N))
    for each in (given, given.requires_grad_() if device == "meta" else given):
        with pytest.raises(TypeError, match=f"argument 'x': found {found}"):
            dither.gelu(each)
