"""Modules under each recipe: their products, gradients, and what they save."""

import copy
import io
import threading

import dither
import pytest
import torch
import torch.nn.utils.prune as prune
import torch.utils.checkpoint
from dither import recipe as recipes
from dither.torch import (
    GroupedLinear,
    HybridQuantizer,
    IdentityQuantizer,
    LayerNorm,
    LayerNormLinear,
    LayerNormMLP,
    Linear,
    MXFP8Quantizer,
    QuantizedTensor,
    RMSNorm,
    autocast,
    convert,
    factories,
    fp8_autocast,
    fp8_model_init,
    is_nvfp4_available,
    quantized_model_init,
)
from dither.torch.autocast import current, get_align_size_for_quantization, get_default_recipe
from dither.torch.roles import QuantizerRole, factory_of

M, N, K = 64, 96, 128
MXFP8 = recipes.MXFP8BlockScaling()


def tensor(*shape, seed=0, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def same(a, b):
    if a is None or b is None:
        return a is b
    return a.dtype is b.dtype and torch.equal(a, b)


def run(module, x, recipe, *args, enabled=True, seed=7):
    """The output, and the gradients of the input and the parameters, of a loss whose gradient is known."""
    module.zero_grad()
    x = x.clone().requires_grad_()
    with autocast(enabled=enabled, recipe=recipe):
        y = module(x, *args)
    torch.manual_seed(seed)
    y.backward(tensor(*y.shape, seed=3))
    return y.detach(), x.grad, {name: p.grad for name, p in module.named_parameters()}


def near(got, a, b, plus=0.0):
    """As far from the product in float64 as sums in float32, and one rounding to the result, may be."""
    a, b = a.double(), b.double()
    expected = a @ b + plus
    bound = (a.abs() @ b.abs() + abs(plus)) * (a.shape[1] + 3) * 2**-24 + expected.abs() * torch.finfo(got.dtype).eps
    assert ((got.double() - expected).abs() <= bound + 1e-30).all()


RECIPES = {
    "current": recipes.Float8CurrentScaling(),
    "mxfp8": MXFP8,
    "block": recipes.Float8BlockScaling(),
    "nvfp4": recipes.NVFP4BlockScaling(),
    "custom": recipes.CustomRecipe(factories.mxfp8_fwd_nvfp4_bwd_factory),
    "high precision backward": recipes.MXFP8BlockScaling(backward_override="high_precision"),
    "dequantized backward": recipes.MXFP8BlockScaling(backward_override="dequantized"),
}


def values(part):
    return part.dequantize(dither.float32, undo_transform=part.transform is not None)


@pytest.mark.parametrize("name", RECIPES)
def test_linear(name):
    """Against float64, of the values that the recipe's quantizers give."""
    r, x = RECIPES[name], tensor(M, K)
    layer = Linear(K, N, dtype=torch.bfloat16)
    y, dx, grads = run(layer, x, r)
    q = {role: factory_of(r)(role) for role in ("input", "weight", "grad_output")}
    dy, weight = tensor(M, N, seed=3), layer.weight.detach()
    xq, wq = q["input"](x), q["weight"](weight)
    near(y, values(xq.rowwise), values(wq.rowwise).t(), layer.bias.detach().double())
    if r.backward_override == "high_precision":
        left, w, right, x = dy, weight, dy, x
    elif r.backward_override == "dequantized":
        left, w, right, x = dy, wq.dequantize(), dy, xq.dequantize()
    else:
        torch.manual_seed(7)
        dyq = q["grad_output"](dy)
        left, w, right, x = (values(p) for p in (dyq.rowwise, wq.colwise, dyq.colwise, xq.colwise))
    near(dx, left, w)
    near(grads["weight"], right.t(), x)
    # The gradient of the bias is that of what is not quantized.
    near(grads["bias"][None], torch.ones(1, M), dy)
    assert y.dtype == dx.dtype == grads["weight"].dtype == torch.bfloat16


def test_linear_in_float32_and_other_ranks():
    layer, x = Linear(K, N), tensor(4, 16, K, dtype=torch.float32)
    y, dx, grads = run(layer, x, MXFP8)
    assert y.shape == (4, 16, N) and dx.shape == x.shape
    flat = run(layer, x.reshape(M, K), MXFP8)
    assert same(y.reshape(M, N), flat[0])
    plain, *_ = run(layer, x, MXFP8, enabled=False)
    assert same(plain, torch.nn.functional.linear(x, layer.weight, layer.bias))
    with torch.autocast("cpu", torch.bfloat16):
        low, dx, grads = run(layer, x, MXFP8)
    assert low.dtype is torch.bfloat16 and dx.dtype is torch.float32 and grads["weight"].dtype is torch.float32


def test_gradients_that_are_not_needed():
    layer, x = Linear(K, N, dtype=torch.bfloat16), tensor(M, K)
    _, dx, grads = run(layer, x, MXFP8)
    layer.weight.requires_grad_(False)
    _, again, frozen = run(layer, x, MXFP8)
    assert same(again, dx) and frozen["weight"] is None and same(frozen["bias"], grads["bias"])
    layer.weight.requires_grad_(True)
    with autocast(recipe=MXFP8):
        layer(x).backward(tensor(M, N, seed=3))
    assert same(layer.weight.grad, grads["weight"])
    with torch.no_grad(), autocast(recipe=MXFP8):
        assert not layer(x).requires_grad


def test_gradients_of_biases_are_summed_in_one_order():
    """Whatever else needs a gradient, and whatever the backward pass multiplies."""
    layer, x, dy = Linear(K, N), tensor(1000, K, dtype=torch.float32), tensor(1000, N, seed=3, dtype=torch.float32)
    expected = dither.quantize_dbias(dy, format="mxfp8_e4m3").dbias
    names = ("mxfp8", "custom", "high precision backward", "dequantized backward")
    for r in (*(RECIPES[name] for name in names), recipes.CustomRecipe(factories.high_precision_factory)):
        for frozen in (False, True):
            layer.weight.requires_grad_(not frozen)
            layer.zero_grad()
            with autocast(recipe=r):
                layer(x).backward(dy)
            assert same(layer.bias.grad, expected)


def test_norms():
    """Against float64."""
    for kind, reference in ((RMSNorm, torch.nn.functional.rms_norm), (LayerNorm, torch.nn.functional.layer_norm)):
        norm, x = kind(K), tensor(8, K, dtype=torch.float32)
        for p in norm.parameters():
            torch.nn.init.normal_(p)
        y, dx, grads = run(norm, x, MXFP8)
        exact = copy.deepcopy(norm).double()
        x64 = x.double().requires_grad_()
        expected = reference(x64, (K,), *exact.parameters(), eps=norm.eps)
        exact.zero_grad()
        expected.backward(tensor(8, K, seed=3).double())
        torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(dx.double(), x64.grad, rtol=1e-4, atol=1e-5)
        for name, p in exact.named_parameters():
            torch.testing.assert_close(grads[name].double(), p.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda **kind: RMSNorm(K, zero_centered_gamma=True, **kind),
        lambda **kind: LayerNorm(K, **kind),
        lambda **kind: LayerNormLinear(K, N, **kind),
        lambda **kind: LayerNormMLP(K, N, activation="swiglu", **kind),
        lambda **kind: GroupedLinear(2, K, N, **kind),
    ],
)
def test_first_values_of_modules_that_begin_on_meta(make):
    torch.manual_seed(1)
    expected = make()
    module = make(device="meta").to_empty(device="cpu")
    for p in module.parameters():
        torch.nn.init.constant_(p, 7.0)
    torch.manual_seed(1)
    module.reset_parameters()
    for p, other in zip(module.parameters(), expected.parameters(), strict=True):
        assert same(p, other)


def copy_into(module, **tensors):
    with torch.no_grad():
        for name, value in tensors.items():
            getattr(module, name).copy_(value)


@pytest.mark.parametrize("normalization", ["RMSNorm", "LayerNorm"])
def test_layernorm_linear(normalization):
    """The bits of a norm and a linear layer."""
    x, kind = tensor(M, K), {"dtype": torch.bfloat16}
    fused = LayerNormLinear(K, N, normalization=normalization, **kind)
    torch.nn.init.normal_(fused.layer_norm_weight)
    norm, linear = (LayerNorm if normalization == "LayerNorm" else RMSNorm)(K, **kind), Linear(K, N, **kind)
    copy_into(norm, weight=fused.layer_norm_weight)
    copy_into(linear, weight=fused.weight, bias=fused.bias)
    y, dx, grads = run(fused, x, MXFP8)
    expected, expected_dx, apart = run(torch.nn.Sequential(norm, linear), x, MXFP8)
    assert same(y, expected) and same(dx, expected_dx)
    assert same(grads["weight"], apart["1.weight"]) and same(grads["bias"], apart["1.bias"])
    assert same(grads["layer_norm_weight"], apart["0.weight"])
    if normalization == "LayerNorm":
        assert same(grads["layer_norm_bias"], apart["0.bias"])
    exact = recipes.MXFP8BlockScaling(backward_override="high_precision")
    got, want = run(fused, x, exact), run(torch.nn.Sequential(norm, linear), x, exact)
    assert same(got[0], want[0]) and same(got[1], want[1]) and same(got[2]["weight"], want[2]["1.weight"])


class Apart(torch.nn.Module):
    """A norm, a linear layer, an activation and a linear layer, one after the other."""

    def __init__(self, fused, activation):
        super().__init__()
        kind = {"dtype": torch.bfloat16}
        self.norm = RMSNorm(K, **kind)
        self.fc1, self.fc2 = Linear(K, fused.fc1_weight.shape[0], **kind), Linear(N, K, **kind)
        copy_into(self.norm, weight=fused.layer_norm_weight)
        copy_into(self.fc1, weight=fused.fc1_weight, bias=fused.fc1_bias)
        copy_into(self.fc2, weight=fused.fc2_weight, bias=fused.fc2_bias)
        self.activation = activation

    def forward(self, x):
        from dither.torch.modules.layernorm_mlp import ActivationFunction

        return self.fc2(ActivationFunction.apply(self.fc1(self.norm(x)), self.activation))


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_layernorm_mlp(activation):
    """The bits of its parts, but for the first bias: its gradient is of what is not rounded."""
    fused = LayerNormMLP(K, N, normalization="RMSNorm", activation=activation, dtype=torch.bfloat16)
    apart, x = Apart(fused, activation), tensor(M, K)
    y, dx, grads = run(fused, x, MXFP8)
    expected, expected_dx, others = run(apart, x, MXFP8)
    assert same(y, expected) and same(dx, expected_dx)
    for name, other in (
        ("layer_norm_weight", "norm.weight"),
        ("fc1_weight", "fc1.weight"),
        ("fc2_weight", "fc2.weight"),
        ("fc2_bias", "fc2.bias"),
    ):
        assert same(grads[name], others[other]), name
    torch.testing.assert_close(grads["fc1_bias"], others["fc1.bias"], rtol=2**-6, atol=2**-6)
    plain = run(fused, x, MXFP8, enabled=False)
    assert (plain[0] - y).norm() < 0.1 * plain[0].norm()


def test_layernorm_mlp_of_other_backward_passes():
    """Of what is saved in high precision, and of its values."""
    fused, x = LayerNormMLP(K, N, normalization="RMSNorm", dtype=torch.bfloat16), tensor(M, K)
    apart = Apart(fused, "gelu")
    for override in ("high_precision", "dequantized"):
        r = recipes.MXFP8BlockScaling(backward_override=override)
        y, dx, grads = run(fused, x, r)
        expected, expected_dx, others = run(apart, x, r)
        assert same(y, expected) and same(dx, expected_dx) and same(grads["fc1_weight"], others["fc1.weight"])


GROUPED = {
    "mxfp8": MXFP8,
    "current": recipes.Float8CurrentScaling(),
    "block": recipes.Float8BlockScaling(),
    "nvfp4": recipes.NVFP4BlockScaling(disable_stochastic_rounding=True),
    "high precision backward": RECIPES["high precision backward"],
    # One after the other.
    "custom": RECIPES["custom"],
}


@pytest.mark.parametrize("sizes", [[32, 0, 16, 16], [33, 0, 7, 24]], ids=["runs of 16", "any sizes"])
@pytest.mark.parametrize("name", GROUPED)
def test_grouped_linear(name, sizes, monkeypatch):
    """The bits of a layer for each group; groups may be empty, and have any rows before a transform. Groups are
    quantized in one launch of each pass, and weights in one call."""
    x, recipe = tensor(M, K), GROUPED[name]
    grouped = GroupedLinear(4, K, N, dtype=torch.bfloat16)
    launches = []
    quantize = dither.torch.Quantizer.quantize
    with monkeypatch.context() as patch:
        patch.setattr(
            dither.torch.Quantizer,
            "quantize",
            lambda self, t, **options: launches.append(tuple(t.shape)) or quantize(self, t, **options),
        )
        y, dx, grads = run(grouped, x, recipe, sizes)
    assert (not launches) == (name in ("mxfp8", "current", "block", "nvfp4"))
    if name == "custom":
        return  # rounded at random
    start = 0
    for i, size in enumerate(sizes):
        layer = Linear(K, N, dtype=torch.bfloat16)
        copy_into(layer, weight=getattr(grouped, f"weight{i}"), bias=getattr(grouped, f"bias{i}"))
        rows = slice(start, start + size)
        part = x[rows].clone().requires_grad_()
        with autocast(recipe=recipe):
            out = layer(part)
        out.backward(tensor(M, N, seed=3)[rows])
        assert same(y[rows], out.detach()) and same(dx[rows], part.grad)
        assert same(grads[f"weight{i}"], layer.weight.grad) and same(grads[f"bias{i}"], layer.bias.grad)
        start += size
    assert [role.module_type for role in grouped.roles()] == ["grouped_linear"] * 12
    with pytest.raises(ValueError, match=r"m_splits is \[1\], expected 4 sizes that add up to 64"):
        grouped(x, [1])


def test_weights_of_groups_that_are_rounded_at_random():
    """Each draws one seed, in their order, as weights of layers do."""
    q = dither.torch.MXFP8Quantizer("e4m3")
    q.stochastic = True
    recipe = recipes.CustomRecipe(
        lambda role: q.copy() if role.tensor_type == "weight" else dither.torch.MXFP8Quantizer("e4m3")
    )
    grouped = GroupedLinear(2, K, N, bias=False, dtype=torch.bfloat16)
    x = tensor(M, K)
    with torch.no_grad(), autocast(recipe=recipe):
        torch.manual_seed(5)
        y = grouped(x, [M // 2] * 2)
        for i in range(2):
            layer = Linear(K, N, bias=False, dtype=torch.bfloat16)
            torch.manual_seed(5)
            torch.randint(2**62, (i,), dtype=torch.int64)
            copy_into(layer, weight=getattr(grouped, f"weight{i}"))
            rows = slice(i * M // 2, (i + 1) * M // 2)
            assert same(y[rows], layer(x[rows]))


def test_weights_are_cached_over_microbatches(monkeypatch):
    layer, x = Linear(K, N, dtype=torch.bfloat16), tensor(M, K)
    expected = run(layer, x, MXFP8)
    seen = []
    quantize = dither.torch.Quantizer.quantize
    monkeypatch.setattr(
        dither.torch.Quantizer,
        "quantize",
        lambda self, t, **options: seen.append(tuple(t.shape)) or quantize(self, t, **options),
    )
    first, second = run(layer, x, MXFP8, True), run(layer, x, MXFP8, False)
    assert seen.count((N, K)) == 1
    for got in (first, second):
        assert same(got[0], expected[0]) and same(got[1], expected[1]) and same(got[2]["weight"], expected[2]["weight"])
    # The same memory, unless the flag says that the weight did not change.
    storage = layer._weights["weight"]
    place = storage.data.data_ptr()
    copy_into(layer, weight=layer.weight * 2)
    assert same(run(layer, x, MXFP8, True, torch.ones(1))[0], expected[0])
    changed = run(layer, x, MXFP8, True, torch.zeros(1))[0]
    assert same(changed, run(layer, x, MXFP8)[0]) and not same(changed, expected[0])
    assert layer._weights["weight"] is storage and storage.data.data_ptr() == place
    with pytest.raises(RuntimeError, match="expected a first one before it"):
        run(Linear(K, N, dtype=torch.bfloat16), x, MXFP8, False)


def test_weights_in_high_precision_are_kept_over_microbatches():
    """What was kept is no parameter, which is written between steps."""
    x = tensor(M, K, dtype=torch.float32)
    hybrid = recipes.CustomRecipe(lambda role: HybridQuantizer(IdentityQuantizer(), MXFP8Quantizer("e4m3")))
    for r in (recipes.CustomRecipe(factories.high_precision_factory), hybrid):
        layer = Linear(K, N)
        expected = run(layer, x, r, True)
        copy_into(layer, weight=layer.weight * 2)
        for args in ((False,), (True, torch.ones(1))):
            kept = run(layer, x, r, *args)
            assert same(kept[0], expected[0]) and same(kept[1], expected[1])
        assert not same(run(layer, x, r, True, torch.zeros(1))[0], expected[0])
        # What saved the parameter before it was kept.
        head = x.clone().requires_grad_() @ layer.weight.t()
        with autocast(recipe=r):
            y = layer(x, is_first_microbatch=True)
        (y.sum() + head.sum()).backward()


@pytest.mark.parametrize("name", ["mxfp8", "custom"])
def test_first_microbatches_before_one_backward_pass(name):
    """A layer that is applied twice, and one that is called without gradients in between."""
    layer, r = Linear(K, K), RECIPES[name]

    def steps(first):
        found = []
        for seed in range(2):
            x = tensor(M, K, seed=seed, dtype=torch.float32).requires_grad_()
            layer.zero_grad()
            with autocast(recipe=r):
                y = layer(layer(x, first), first)
                with torch.no_grad():
                    layer(x, first)
            torch.manual_seed(seed)
            y.square().sum().backward()
            found += [y, x.grad, layer.weight.grad]
        return found

    assert all(same(a, b) for a, b in zip(steps(True), steps(None), strict=True))
    # A write that torch does not count is one, too.
    with torch.no_grad(), autocast(recipe=r):
        x = tensor(M, K, dtype=torch.float32)
        layer(x, True)
        layer.weight.data.mul_(2)
        assert same(layer(x, True), layer(x)) and same(layer(x, False), layer(x))


class Halves(dither.torch.Quantizer):
    """A quantizer of one's own, which makes tensors."""

    def __init__(self):
        super().__init__("nvfp4")

    def quantize_impl(self, x):
        return self._store(dither.quantize(x * 0.5, **self.options(x)))


@pytest.mark.parametrize(
    "q",
    [Halves(), IdentityQuantizer(), HybridQuantizer(IdentityQuantizer(), MXFP8Quantizer("e4m3"))],
    ids=["own", "identity", "hybrid"],
)
@pytest.mark.parametrize("make", [Linear, LayerNormLinear, LayerNormMLP, lambda k, n: GroupedLinear(2, k, n)])
def test_quantizers_that_make_tensors(make, q):
    """Modules have the bits of those that make storages."""
    layer, x, found = make(K, N), tensor(M, K, dtype=torch.float32), []
    layer.output_quantizer_role = layer.grad_input_quantizer_role = QuantizerRole("linear", "input", "next")
    rest = ([M // 2] * 2,) if isinstance(layer, GroupedLinear) else ()
    for internal in (True, False):
        q = q.copy()
        q.internal = internal
        recipe = recipes.CustomRecipe(lambda role, q=q: q)
        found.append([run(layer, x, recipe, *rest, first) for first in (None, True, True, False)])
    for (y, dx, grads), (expected, expected_dx, others) in zip(*found, strict=True):
        assert same(y, expected) and same(dx, expected_dx)
        assert all(same(grads[name], others[name]) for name in others)


def test_main_grad():
    layer, x = Linear(K, N, dtype=torch.bfloat16, fuse_wgrad_accumulation=True), tensor(M, K)
    with pytest.raises(RuntimeError, match="expected the weight to have a main_grad"):
        run(layer, x, MXFP8)
    layer.weight.main_grad = torch.ones(N, K)
    _, _, grads = run(layer, x, MXFP8)
    assert grads["weight"] is None
    layer.fuse_wgrad_accumulation = False
    # In float32, where the gradient itself is rounded to bfloat16.
    expected = run(layer, x, MXFP8)[2]["weight"].float()
    torch.testing.assert_close(layer.weight.main_grad - 1, expected, rtol=2**-7, atol=1e-5)


def test_boundaries():
    """Outputs and gradients of inputs have the values of their roles' quantizers, where roles are set."""
    layer, x = Linear(K, N, bias=False, dtype=torch.bfloat16), tensor(M, K)
    y, dx, _ = run(layer, x, MXFP8)
    layer.output_quantizer_role = QuantizerRole("linear", "output", "fc1")
    layer.grad_input_quantizer_role = QuantizerRole("linear", "grad_input", "fc1")
    rounded, rounded_dx, _ = run(layer, x, MXFP8)
    assert same(rounded, dither.quantize(y, "mxfp8_e4m3").dequantize())
    assert same(rounded_dx, dither.quantize(dx, "mxfp8_e4m3").dequantize())


def test_parameters_that_begin_quantized():
    x = tensor(M, K)
    torch.manual_seed(2)
    plain = LayerNormMLP(K, N, normalization="RMSNorm", dtype=torch.bfloat16)
    torch.manual_seed(2)
    with quantized_model_init(recipe=MXFP8, preserve_high_precision_init_val=True):
        made = LayerNormMLP(K, N, normalization="RMSNorm", dtype=torch.bfloat16)
    assert isinstance(made.fc1_weight, QuantizedTensor) and isinstance(made.fc1_weight, torch.nn.Parameter)
    assert same(made.fc1_weight.get_high_precision_init_val(), plain.fc1_weight.detach())
    made.fc1_weight.clear_high_precision_init_val()
    assert made.fc1_weight.get_high_precision_init_val() is None
    # Codes are those of the weights, and there is nothing else: products, and gradients, have the same bits.
    y, dx, grads = run(made, x, MXFP8)
    expected, expected_dx, others = run(plain, x, MXFP8)
    assert same(y, expected) and same(dx, expected_dx) and all(same(grads[name], others[name]) for name in others)
    assert same(run(made, x, MXFP8, True)[0], expected)
    high = 2 * made.fc1_weight.numel()
    assert sum(t.nbytes for t in made.fc1_weight._tensors().values()) == high * 33 // 32
    assert made(x).shape == (M, K)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    optimizer.step()
    assert not same(run(made, x, MXFP8)[0], expected)
    with quantized_model_init(recipe=recipes.DelayedScaling()):
        assert Linear(K, N).weight.format is dither.FP8_TENSOR_E4M3
    with pytest.raises(TypeError, match="formats of their own"), quantized_model_init(recipe=RECIPES["custom"]):
        Linear(K, N)
    assert type(Linear(K, N).weight) is torch.nn.Parameter


def test_activations_that_are_computed_again():
    """The bits of those that are saved, where the region is inside of what torch.utils.checkpoint calls."""
    layer, x = LayerNormLinear(K, N, normalization="RMSNorm", dtype=torch.bfloat16), tensor(M, K)
    expected = run(layer, x, MXFP8)

    class Again(torch.nn.Module):
        def forward(self, x):
            def inside(x):
                with autocast(recipe=MXFP8):
                    return layer(x)

            return torch.utils.checkpoint.checkpoint(inside, x, use_reentrant=False)

    layer.zero_grad()
    y, dx, _ = run(Again(), x, MXFP8, enabled=False)
    assert same(y, expected[0]) and same(dx, expected[1]) and same(layer.weight.grad, expected[2]["weight"])


class Checkpointed(torch.nn.Module):
    """Two layers, each computed again in the backward pass, as models of others do it."""

    def __init__(self, kind=torch.nn.Linear):
        super().__init__()
        self.layers = torch.nn.ModuleList([kind(K, N), kind(N, K)])
        self.reentrant = None

    def forward(self, x):
        for layer in self.layers:
            block = torch.utils.checkpoint.checkpoint
            x = layer(x) if self.reentrant is None else block(layer, x, use_reentrant=self.reentrant)
        return x


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", ["mxfp8", "current", "high precision backward"])
def test_regions_around_what_is_computed_again(name, reentrant):
    """It has the recipe of the first pass, also where a region of another is around the backward pass."""
    model, x, r = Checkpointed(Linear), tensor(M, K, dtype=torch.float32), RECIPES[name]
    expected = run(model, x, r)
    model.reentrant = reentrant
    got = run(model, x, r)
    assert same(got[0], expected[0]) and same(got[1], expected[1])
    assert all(same(got[2][key], expected[2][key]) for key in expected[2])
    z = x.clone().requires_grad_()
    with autocast(recipe=r):
        y = model(z)
    with autocast(recipe=recipes.NVFP4BlockScaling()):
        y.backward(tensor(M, K, seed=3))
    assert same(z.grad, expected[1])
    plain = run(model, x, MXFP8, enabled=False)
    model.reentrant = None
    assert same(plain[1], run(model, x, MXFP8, enabled=False)[1])


@pytest.mark.parametrize("reentrant", [False, True])
def test_converted_models_that_compute_again(reentrant):
    """Models with checkpoints inside, under a recipe of theirs."""
    x = tensor(M, K, dtype=torch.float32)

    def steps(recipe, reentrant):
        torch.manual_seed(0)
        model, found = convert(Checkpointed(), recipe), []
        model.reentrant = reentrant
        for scale in (1.0, 3.0, 2.0):
            z = (scale * x).requires_grad_()
            model.zero_grad()
            model(z).square().sum().backward()
            found += [z.grad, *(p.grad for p in model.parameters())]
        return found, [layer._state() for layer in model.layers]

    expected, _ = steps(MXFP8, None)
    assert all(same(a, b) for a, b in zip(steps(MXFP8, reentrant)[0], expected, strict=True))
    delayed = recipes.DelayedScaling(amax_history_len=4)
    expected, states = steps(delayed, None)
    got, again = steps(delayed, reentrant)
    if reentrant:  # others compute again with the scales of the next step
        assert all(same(a, b) for a, b in zip(got, expected, strict=True))
    for found, state in zip(again, states, strict=True):
        assert torch.equal(found["forward"]["amax_history"][:, 1], state["forward"]["amax_history"][:, 1])
        for direction in state:
            assert torch.equal(found[direction]["amax_history"] > 0, state[direction]["amax_history"] > 0)


@pytest.mark.parametrize("name", ["mxfp8", "high precision backward"])
@pytest.mark.parametrize("make", [Linear, LayerNormLinear, LayerNormMLP, lambda k, n: GroupedLinear(2, k, n)])
def test_backward_passes_of_a_graph_that_is_kept(make, name):
    """Each has the gradients of the first; then what was saved is gone, by torch's message."""
    layer, x = make(K, N), tensor(M, K, dtype=torch.float32).requires_grad_()
    rest = ([M // 2] * 2,) if isinstance(layer, GroupedLinear) else ()
    with autocast(recipe=RECIPES[name]):
        loss = layer(x, *rest).square().sum()
    inputs = [x, *layer.parameters()]
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    again = torch.autograd.grad(loss, inputs)
    assert all(same(a, b) for a, b in zip(again, first, strict=True))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


@pytest.mark.parametrize(
    "make", [RMSNorm, *(lambda k, c=c: c(k, N) for c in (Linear, LayerNormLinear, LayerNormMLP)), lambda k: Groups(k)]
)
def test_gradients_of_gradients(make):
    """Refused, as nothing that is quantized has any."""
    layer, x = make(K), tensor(M, K, dtype=torch.float32).requires_grad_()
    with autocast(recipe=MXFP8):
        y = layer(x)
    with pytest.raises(TypeError, match="the gradient of a gradient was asked for, which modules of dither have not"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


class Groups(GroupedLinear):
    def __init__(self, features):
        super().__init__(2, features, N)

    def forward(self, x):
        return super().forward(x, [M // 2] * 2)


def test_transforms_of_torch_func():
    """Refused where a module quantizes, or has a kernel of its own."""
    layer, x = Linear(K, N), tensor(M, K, dtype=torch.float32)

    def loss(x):
        with autocast(recipe=MXFP8):
            return layer(x).sum()

    for call in (
        lambda: torch.func.grad(loss)(x),
        lambda: torch.vmap(loss)(x[None]),
        lambda: torch.vmap(RMSNorm(K))(x),
    ):
        with pytest.raises(RuntimeError, match=r"module of dither is called under a transform of torch.func"):
            call()
    assert torch.func.grad(lambda x: layer(x).sum())(x).shape == x.shape


def test_quantizers_of_tensors():
    """What a quantizer makes is a tensor of torch's, where it is told so."""
    q = MXFP8Quantizer("e4m3")
    q.internal = False
    made, storage = q(tensor(M, K)), MXFP8Quantizer("e4m3")(tensor(M, K))
    assert isinstance(made, QuantizedTensor) and same(made.dequantize(), storage.dequantize())
    for dtype in (None, torch.bfloat16):
        q = IdentityQuantizer(dtype)
        q.internal = False
        x = tensor(M, K, dtype=torch.float32)
        assert same(q(x), x if dtype is None else x.bfloat16().float())
    q.internal = True
    inner = MXFP8Quantizer("e4m3")
    inner.internal = False
    assert same(HybridQuantizer(inner, q)(x).dequantize(), MXFP8Quantizer("e4m3")(x).dequantize())


def saved_bytes(module, x, recipe, enabled=True):
    sizes = {}

    def pack(t):
        sizes[t.data_ptr()] = t.nbytes
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), autocast(enabled=enabled, recipe=recipe):
        module(x.clone().requires_grad_())
    return sum(sizes.values())


def test_what_is_saved():
    """Codes and scales along columns alone: about half of bfloat16 in FP8, and about a quarter in FP4."""
    layer, x = Linear(K, N, dtype=torch.bfloat16), tensor(M, K)
    high = 2 * (M * K + N * K)
    assert saved_bytes(layer, x, MXFP8) == (M * K + N * K) * 33 // 32
    # Scales of weights are of 16 x 16.
    nvfp4 = saved_bytes(layer, x, recipes.NVFP4BlockScaling())
    assert nvfp4 == (M * K + N * K) // 2 + M * K // 16 + N * K // 256 + 8
    assert saved_bytes(layer, x, RECIPES["high precision backward"]) == high


def test_roles_and_strings():
    seen = []

    def factory(role):
        seen.append(role)
        return factories.mxfp8_factory("grad_output" if role == "grad_output" else "input")

    mlp, x = LayerNormMLP(K, N, normalization="RMSNorm", dtype=torch.bfloat16, name="mlp"), tensor(M, K)
    r = recipes.CustomRecipe(factory)
    y, dx, _ = run(mlp, x, r)
    assert [(role.module_type, role.tensor_type, role.name) for role in seen] == [
        ("linear", kind, name) for name in ("mlp.fc1", "mlp.fc2") for kind in ("input", "weight", "grad_output")
    ]
    expected = run(mlp, x, MXFP8)
    assert same(y, expected[0]) and same(dx, expected[1])
    run(mlp, x, r)
    assert len(seen) == 12  # once for each recipe that it runs under
    other = recipes.MXFP8BlockScaling()
    other.set_quantizer_factory(factories.high_precision_factory)
    plain, *_ = run(Linear(K, N), tensor(M, K, dtype=torch.float32), other)
    assert plain.shape == (M, N)


def test_regions():
    layer, x = Linear(K, N, dtype=torch.bfloat16), tensor(M, K)
    plain = layer(x)
    with autocast(recipe=MXFP8):
        outer = layer(x)
        with autocast(enabled=False):
            assert same(layer(x), plain)
        with autocast(recipe=recipes.NVFP4BlockScaling()):
            assert current().recipe.nvfp4() and not same(layer(x), outer)
        assert same(layer(x), outer)
    assert current() is None and same(layer(x), plain) and not same(outer, plain)
    with fp8_autocast(fp8_recipe=MXFP8):
        assert same(layer(x), outer)
    with fp8_model_init(recipe=MXFP8):
        assert isinstance(Linear(K, N).weight, QuantizedTensor)
    assert get_default_recipe() == recipes.DelayedScaling() and is_nvfp4_available(return_reason=True) == (True, "")
    aligned = (MXFP8, recipes.NVFP4BlockScaling(), recipes.Float8CurrentScaling(), RECIPES["custom"])
    assert [get_align_size_for_quantization(r) for r in aligned] == [32, 128, 16, 128]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(K, N), torch.nn.Linear(N, 8, bias=False)
        self.tied = self.first

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def test_convert():
    torch.manual_seed(0)
    model, x = Model().bfloat16(), tensor(M, K)
    before, weight, state = model(x), model.first.weight, model.state_dict()
    assert convert(model, MXFP8, lambda name, layer: name != "last") is model
    assert type(model.first) is Linear and model.tied is model.first and type(model.last) is torch.nn.Linear
    assert model.first.weight is weight and model.first.name == "first" and model.state_dict().keys() == state.keys()
    after = model(x)
    assert current() is None and not same(after, before)
    with autocast(recipe=MXFP8):
        assert same(model.last(torch.relu(model.first(x))), after)
    twin = copy.deepcopy(model)
    assert same(twin(x), after)
    model.load_state_dict(state)
    with pytest.raises(ValueError, match="expected"):
        model(x[:, :5])
    assert current() is None
    alone = convert(torch.nn.Linear(K, N).bfloat16())
    assert type(alone) is Linear and alone(x).shape == (M, N)


def test_convert_keeps_what_layers_have():
    """Hooks with all that they were registered with, buffers, and attributes; handles remove hooks as before."""
    model, x, seen = torch.nn.Sequential(torch.nn.Linear(K, N)), tensor(M, K, dtype=torch.float32), []
    layer = model[0]
    layer.register_forward_pre_hook(lambda module, args, kwargs: seen.append("before"), with_kwargs=True)
    handle = layer.register_forward_hook(lambda module, args, kwargs, y: seen.append("after"), with_kwargs=True)
    layer.register_forward_hook(lambda *_: seen.append("always"), always_call=True)
    layer.register_full_backward_hook(lambda *_: seen.append("backward"))
    layer.register_state_dict_post_hook(lambda *_: seen.append("saved"))
    layer.register_load_state_dict_post_hook(lambda *_: seen.append("loaded"))
    layer.register_buffer("mask", torch.ones(3))
    layer.register_buffer("scratch", torch.ones(3), persistent=False)
    layer.note, layer.name = "kept", "of its own"
    state = convert(model, MXFP8).state_dict()
    assert state.keys() == {"0.weight", "0.bias", "0.mask"} and model[0].scratch is layer.scratch
    assert model[0].note == "kept" and model[0].name == "0"
    model.load_state_dict(state)
    model(x).sum().backward()
    assert seen == ["saved", "loaded", "before", "after", "always", "backward"]
    handle.remove()
    seen.clear()
    with pytest.raises(ValueError, match="expected"):
        model(x[:, :5])
    assert seen == ["before", "always"]


@pytest.mark.parametrize(
    "change",
    [torch.nn.utils.spectral_norm, lambda layer: prune.l1_unstructured(layer, "weight", 0.5)],
    ids=["spectral_norm", "prune"],
)
def test_convert_of_layers_whose_weights_are_computed(change):
    """Hooks compute the weight, as before, and gradients go to what they compute it of."""
    model, x = torch.nn.Sequential(change(torch.nn.Linear(K, N))).eval(), tensor(M, K, dtype=torch.float32)
    expected, names = model(x), [name for name, _ in model.named_parameters()]
    convert(model, MXFP8)
    y = model(x)
    assert (y - expected).norm() < 0.1 * expected.norm() and not same(y, expected)
    y.sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is not None] == names == ["0.bias", "0.weight_orig"]


def patched():
    model = Model()
    model.first.forward = model.first.forward
    return model


class Waiting(torch.nn.Module):
    """Waits for another thread inside of a forward pass."""

    def __init__(self, barrier):
        super().__init__()
        self.barrier = barrier

    def forward(self, x):
        self.barrier.wait()
        return x


def test_threads_of_a_converted_model():
    """Each has a region of its own, whose end is where it began."""
    count = 3
    wait = Waiting(threading.Barrier(count, timeout=30))
    model, x = convert(torch.nn.Sequential(wait, torch.nn.Linear(K, N), wait), MXFP8), tensor(M, K, dtype=torch.float32)
    with autocast(recipe=MXFP8):
        expected = model[1](x)
    found = []

    def work():
        found.append((same(model(x), expected), current()))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(True, None)] * count


class Returns(torch.nn.Module):
    """Returns nothing, and raises an error where it is asked to."""

    def __init__(self):
        super().__init__()
        self.layer, self.outputs = torch.nn.Linear(K, N), []

    def forward(self, x, fails=False):
        self.outputs.append(self.layer(x))
        if fails:
            raise ZeroDivisionError


def test_converted_models_that_return_nothing():
    """Scales are updated, but where the model raised an error, inside of a handler of another one, too."""
    model, x = convert(Returns(), recipes.DelayedScaling(amax_history_len=3)), tensor(M, K, dtype=torch.float32)

    def steps():
        return int((model.layer._state()["forward"]["amax_history"][1:, 0] > 0).sum())

    model(x)
    assert steps() == 1
    try:
        raise KeyError
    except KeyError:
        model(x)
        assert steps() == 2
        with pytest.raises(ZeroDivisionError):
            model(8 * x, fails=True)
    amax = x.abs().amax()
    assert torch.equal(model.layer._state()["forward"]["scale"][0], 448 / amax) and current() is None


class Stops(torch.nn.Module):
    """Is stopped, as by Ctrl-C, where it is asked to."""

    stops = False

    def forward(self, x):
        if self.stops:
            raise KeyboardInterrupt
        return x


def test_converted_models_that_are_stopped():
    """Their region ends, and the step is none."""
    model, x = torch.nn.Sequential(torch.nn.Linear(K, N), Stops()), tensor(M, K, dtype=torch.float32)
    convert(model, recipes.DelayedScaling(amax_history_len=3))
    model(x)
    scale = model[0]._state()["forward"]["scale"]
    model[1].stops = True
    with pytest.raises(KeyboardInterrupt):
        model(8 * x)
    assert current() is None and torch.equal(model[0]._state()["forward"]["scale"], scale)
    model[1].stops = False
    model(8 * x)
    assert torch.equal(model[0]._state()["forward"]["scale"][0], 448 / (8 * x).abs().amax())


def test_converted_models_are_what_they_were():
    """In copies and files, too; of several recipes the last one is that of a call."""
    model, x = convert(Model(), MXFP8, lambda name, _: name == "first"), tensor(M, K, dtype=torch.float32)
    expected = model(x)
    assert isinstance(model, Model) and type(model).__name__ == "Model" and not model._forward_pre_hooks
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for twin in (copy.copy(model), copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert type(twin) is type(model) and same(twin(x), expected)
    again = recipes.Float8CurrentScaling()
    convert(model, again)
    with autocast(recipe=again):
        assert same(model(x), model.last(torch.relu(model.first(x))))


@pytest.mark.parametrize("recipe", [MXFP8, None])
def test_converted_encoders_in_evaluation(recipe):
    """torch's own fast path would read the weights of the layers."""
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x, mask = tensor(2, 8, 32, dtype=torch.float32), torch.arange(8).expand(2, 8) >= torch.tensor([[5], [8]])
    for rest in ({}, {"src_key_padding_mask": mask}):
        model = convert(copy.deepcopy(encoder), recipe)
        with autocast(recipe=MXFP8):
            expected = model(x, **rest).detach()
            with torch.no_grad():
                y, plain = model(x, **rest), encoder(x, **rest)
        valid = ~mask if rest else torch.ones(2, 8, dtype=torch.bool)
        # Attention is torch's own without gradients, too, with roundings of its own.
        assert (y - expected)[valid].norm() < 0.5 * (y - plain)[valid].norm() < 0.05 * plain[valid].norm()
    alone = convert(copy.deepcopy(layer).eval(), recipe)
    with torch.no_grad(), autocast(recipe=MXFP8):
        assert not same(alone(x), layer.eval()(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: convert(torch.nn.ReLU()), "no torch.nn.Linear is swapped"),
        (lambda: convert(patched()), "the layer 'first' has a forward of its own, expected that of torch.nn.Linear"),
        (lambda: convert(3), "argument 'model' is int, expected a torch.nn.Module"),
        (lambda: convert(Model(), "mxfp8"), "recipe is 'mxfp8', expected a recipe"),
        (lambda: autocast(recipe="mxfp8").__enter__(), "recipe is 'mxfp8', expected a recipe"),
        (lambda: autocast(enabled=1).__enter__(), "enabled is 1, expected True or False"),
        (lambda: Linear(K, N)(torch.ones(4, 5)), "argument 'x' has shape (4, 5), expected (.., 128)"),
        (lambda: Linear(K, N)(torch.ones(4, K).int()), "argument 'x' has data type torch.int32"),
        (
            lambda: GroupedLinear(3, K, N)(torch.ones(4, K), "abc"),
            "m_splits is 'abc', expected 3 sizes that add up",
        ),
        (lambda: GroupedLinear(3, K, N)(torch.ones(4, K), [1.5, 1.5, 1.0]), "m_splits is [1.5, 1.5, 1.0], expected 3"),
        (lambda: GroupedLinear(2, K, N)(torch.ones(4, K), 4), "m_splits is 4, expected 2 sizes that add up to 4"),
        (lambda: Linear(K, N, dtype=torch.float64), "argument 'dtype' has data type torch.float64, expected float32"),
        (lambda: LayerNormMLP(K, N, params_dtype=torch.float64), "argument 'dtype' has data type torch.float64"),
        (lambda: RMSNorm(K, dtype=torch.int32), "argument 'dtype' has data type torch.int32, expected float32"),
        (lambda: Linear(K, N).double()(torch.ones(4, K)), "parameter 'weight' has data type torch.float64, expected"),
        (lambda: Linear(K, N)([1.0]), "argument 'x' is list, expected a tensor"),
        (lambda: Linear(K, N, device="meta")(torch.ones(4, K, device="meta")), "found a tensor on device 'meta'"),
        (lambda: LayerNormLinear(K, N, normalization="BatchNorm"), "normalization is 'BatchNorm'"),
        (lambda: LayerNormMLP(K, N, activation="mish"), "activation is 'mish', expected gelu"),
        (lambda: RMSNorm((4, 4)), "normalized_shape is (4, 4), expected the last dimension alone"),
        (lambda: run(Linear(K, N), tensor(M, K), recipes.CustomRecipe(lambda role: None)), "gives None for Quantizer"),
        (
            lambda: run(Linear(K, N), tensor(M, K), recipes.CustomRecipe(lambda role: "mxfp8")),
            "gives a str for QuantizerRole",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert message in str(error.value)
