"""Modules in torch.compile: one graph for forward and backward, with the bits of eager calls."""

import contextlib

import dither.torch as dt
import pytest
import torch
from dither import recipe as recipes
from dither.torch.roles import QuantizerRole
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils.checkpoint import checkpoint

K, N = 128, 96
MXFP8, NVFP4 = recipes.MXFP8BlockScaling(), recipes.NVFP4BlockScaling()


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def results(module, x, recipe, call=None, rest=()):
    """The output, and the gradients of the input and of the parameters."""
    module.zero_grad()
    torch.manual_seed(7)
    x = x.clone().requires_grad_()
    with contextlib.nullcontext() if recipe is None else dt.autocast(recipe=recipe):
        y = (module if call is None else call)(x, *rest)
    y.backward(tensor(*y.shape, seed=3).to(y.dtype))
    return [y.detach(), x.grad, *[p.grad for p in module.parameters()]]


def same(found, want):
    for one, other in zip(found, want, strict=True):
        assert one.dtype is other.dtype and torch.equal(one, other)


def compiled(module, backend="aot_eager", fullgraph=True):
    counter = CompileCounterWithBackend(backend)
    return torch.compile(module, backend=counter, fullgraph=fullgraph), counter


def test_one_graph_for_every_batch_of_a_recipe():
    module = dt.LayerNormLinear(K, N)
    call, counter = compiled(module)
    # The first batch compiles, the second makes its extent a symbol, which later recipes have from the start.
    for recipe, graphs in ((MXFP8, 2), (None, 3), (NVFP4, 4), (recipes.NVFP4BlockScaling(), 4)):
        for batch in (32, 48, 80):
            same(results(module, tensor(batch, K), recipe, call), results(module, tensor(batch, K), recipe))
        assert counter.frame_count == graphs
    norm = dt.LayerNorm(K)
    call, counter = compiled(norm)
    for recipe in (MXFP8, None):
        same(results(norm, tensor(32, K), recipe, call), results(norm, tensor(32, K), recipe))
    assert counter.frame_count == 1


def test_inductor(monkeypatch):
    """Also with rounding at random, of the numbers that eager calls draw."""
    module = dt.LayerNormLinear(K, N)
    monkeypatch.setattr(torch._inductor.config, "fallback_random", True)
    call, _ = compiled(module, "inductor")
    same(results(module, tensor(32, K), NVFP4, call), results(module, tensor(32, K), NVFP4))


def test_export():
    """What is exported has the recipe that it was exported under, and calls operators alone."""
    module = dt.Linear(K, N)
    batch = torch.export.Dim("m", min=33)
    with torch.no_grad(), dt.autocast(recipe=MXFP8):
        exported = torch.export.export(module, (tensor(64, K),), dynamic_shapes=({0: batch},))
        want = module(tensor(80, K))
    assert torch.equal(exported.module()(tensor(80, K)), want)
    assert "dither.quantize.default" in {str(node.target) for node in exported.graph.nodes}


def test_groups():
    module = dt.GroupedLinear(2, K, N)
    call, _ = compiled(module)
    for sizes in ([32, 16], [0, 48]):
        want = results(module, tensor(48, K), MXFP8, rest=(sizes,))
        same(results(module, tensor(48, K), MXFP8, call, (sizes,)), want)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.projection = dt.LayerNormLinear(64, 192), dt.Linear(64, 64)
        self.mlp = dt.LayerNormMLP(64, 128)

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(2, 16, 3, 4, 16).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(2, 16, 64))
        return x + self.mlp(x)


def test_a_model_is_one_graph():
    model = torch.nn.Sequential(Block(), Block())
    call, counter = compiled(model)
    x = tensor(2, 16, 64)
    same(results(model, x, MXFP8, call), results(model, x, MXFP8))
    assert counter.frame_count == 1


def test_options_of_a_module_are_part_of_its_graph():
    module = dt.Linear(K, N)
    call, _ = compiled(module)
    for value in (None, QuantizerRole("linear", "output", "next")):
        module.output_quantizer_role = value
        same(results(module, tensor(32, K), MXFP8, call), results(module, tensor(32, K), MXFP8))
    with torch.autocast("cpu", torch.bfloat16):
        x = tensor(32, K).float()
        same(results(module, x, MXFP8, call), results(module, x, MXFP8))
    with dt.quantized_model_init(recipe=MXFP8):
        module = dt.Linear(K, N)
    same(results(module, tensor(32, K), MXFP8, compiled(module)[0]), results(module, tensor(32, K), MXFP8))


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (dt.LayerNormLinear, {"eps": 0.5, "zero_centered_gamma": True}),
        (dt.LayerNormMLP, {"activation": "relu", "eps": 0.5, "zero_centered_gamma": True}),
    ],
)
def test_attributes_that_change(make, changes):
    module, x = make(K, N), tensor(32, K)
    call, _ = compiled(module)
    results(module, x, MXFP8, call)
    for name, value in changes.items():
        setattr(module, name, value)
        same(results(module, x, MXFP8, call), results(module, x, MXFP8))


def test_regions_inside_of_what_is_compiled():
    model = torch.nn.Sequential(torch.nn.Linear(K, N), torch.nn.ReLU(), torch.nn.Linear(N, K)).bfloat16()
    model = dt.convert(model, MXFP8)
    call, counter = compiled(model, fullgraph=False)
    same(results(model, tensor(32, K), None, call), results(model, tensor(32, K), None))
    assert counter.frame_count == 1
    outer = torch.nn.Sequential(model, torch.nn.Linear(K, 8).bfloat16())
    call, _ = compiled(outer, fullgraph=False)
    same(results(outer, tensor(32, K), None, call), results(outer, tensor(32, K), None))


def test_what_is_computed_again():
    """The region around a checkpoint is that of the first pass; graphs inside of the checkpoint would have none."""
    layer, x = dt.Linear(K, N, dtype=torch.bfloat16), tensor(64, K)
    want = results(layer, x, MXFP8)
    compiled = torch.compile(layer, backend="aot_eager")

    def again(layer, x):
        return checkpoint(layer, x, use_reentrant=False)

    same(results(layer, x, MXFP8, lambda x: again(layer, x)), want)
    same(results(layer, x, MXFP8, torch.compile(lambda x: again(layer, x), backend="aot_eager")), want)
    with pytest.raises(RuntimeError, match=r"is computed again under another recipe than that of the forward pass"):
        results(layer, x, MXFP8, lambda x: again(compiled, x))


def test_what_keeps_state_is_outside_of_graphs():
    """Delayed scaling, weights that are kept, and gradients that are added to."""
    delayed = recipes.DelayedScaling(amax_history_len=4)
    torch.manual_seed(1)
    modules = [torch.nn.Sequential(dt.Linear(K, N), torch.nn.GELU()) for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    call, _ = compiled(modules[0], fullgraph=False)
    for seed in range(3):
        x = tensor(32, K, seed=seed) * 2**seed
        same(results(modules[0], x, delayed, call), results(modules[1], x, delayed))
    states = [module[0]._state() for module in modules]
    for direction in ("forward", "backward"):
        assert states[0][direction]["amax_history"][1].min() > 0
        for name in ("scale", "amax_history"):
            assert torch.equal(states[0][direction][name], states[1][direction][name])
    layer = modules[0][0]
    # A quantizer with a scale and an amax of its own, in one direction of a hybrid one.
    given = dt.Float8Quantizer(torch.ones(1), torch.zeros(1), "e4m3")
    hybrid = dt.HybridQuantizer(given, dt.MXFP8Quantizer("e4m3"))
    plain = dt.MXFP8Quantizer("e4m3")
    recipe = recipes.CustomRecipe(lambda role: hybrid if role.tensor_type == "input" else plain)
    call, _ = compiled(layer, fullgraph=False)
    same(results(layer, tensor(32, K), recipe, call), results(layer, tensor(32, K), recipe))
    assert given.amax.item() == tensor(32, K).abs().max().item()
    for first in (True, False):
        same(results(layer, tensor(32, K), MXFP8, call, (first,)), results(layer, tensor(32, K), MXFP8))
    layer.fuse_wgrad_accumulation, layer.weight.main_grad = True, torch.zeros(N, K)
    results(layer, tensor(32, K), MXFP8, call)
    assert layer.weight.main_grad.abs().sum() > 0 and layer.weight.grad is None
    call, _ = compiled(layer)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="this module of dither keeps state"):
        results(layer, tensor(32, K), MXFP8, call)
