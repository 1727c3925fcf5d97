"""Quantized tensors as tensors of torch, beside the plain tensors of their values."""

import copy
import io
import pickle
import random

import dither
import pytest
import torch
from dither.recipe import MXFP8BlockScaling
from dither.torch import Linear, autocast, quantized_model_init
from dither.torch.fields import options_of, parts_of, tensors_of
from dither.torch.tensor import QuantizedTensor, restore

#: Formats whose scales depend on their blocks alone, and others; with what they are quantized by.
OWN = [
    ("mxfp8_e4m3", "both", {}),
    ("mxfp4", "rowwise", {}),
    (dither.MXFP8_E5M2.with_(block=(32, 32)), "both", {"repeat_scales": True}),
    ("mxfp8_e4m3", "rowwise", {"scale_layout": "128x4"}),
]
WHOLE = [
    ("nvfp4", "both", {}),
    ("fp8_tensor_e4m3", "both", {}),
    ("nvfp4", "colwise", {"transform": dither.RandomHadamard()}),
    (dither.NVFP4.with_(tensor_scale_as="decode", order="div6_div"), "both", {"scale_layout": "128x4"}),
]
CASES = OWN + WHOLE


def bits(x):
    x = x.detach().contiguous()
    return x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def same(found, want):
    """Values, plain or of a view, of the same bits."""
    assert not isinstance(found, QuantizedTensor)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    assert torch.equal(bits(found), bits(want))


def same_tensors(found, want):
    """Quantized tensors of the same codes and scales."""
    ours, theirs = tensors_of(found), tensors_of(want)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert tensor.dtype is theirs[name].dtype and torch.equal(bits(tensor), bits(theirs[name])), name


def made(case, *shape, dtype=torch.float32, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    fmt, layout, options = case
    return QuantizedTensor.of(x, fmt, layout, **options)


def again(q, x):
    """The values of `x` quantized as `q` is, by dither's operator."""
    some = next(iter(parts_of(q.quantized).values()))
    result = dither.quantize(x.reshape(some.shape), **options_of(q.quantized))
    row = getattr(result, "rowwise", result)
    return dither.dequantize(row, undo_transform=row.transform is not None).reshape(x.shape)


class Chain:
    """A tensor and the plain one of its values, through operations drawn at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.case = CASES[seed % len(CASES)]
        # Each case in one type, so that few kernels are compiled.
        dtype = (torch.float32, torch.bfloat16)[seed % len(CASES) % 2]
        self.q = made(self.case, 128, 128, dtype=dtype, seed=seed)
        self.x = self.q.dequantize()
        self.numbers = torch.Generator().manual_seed(seed)

    def plain(self):
        return torch.randn(128, 128, generator=self.numbers).to(self.x.dtype)

    def write(self, function):
        result = function(self.q)
        assert result is self.q or result is None
        self.x = again(self.q, function(self.x.clone()))

    def add(self):
        other = self.plain()
        self.write(lambda t: t.add_(other, alpha=0.5))

    def scale(self):
        self.write(lambda t: t.mul_(1.25))

    def clamp(self):
        self.write(lambda t: t.clamp_(-1, 1))

    def masked(self):
        mask = self.plain() > 0
        self.write(lambda t: t.masked_fill_(mask, 0.5))

    def quantize(self):
        other = self.plain()
        self.q.quantize_(other, skip=False)
        self.x = again(self.q, other)

    def skipped(self):
        self.q.quantize_(self.plain(), skip=torch.ones(1))

    def copied(self):
        other = made(self.case, 128, 128, dtype=self.x.dtype, seed=self.random.randrange(99))
        self.q.copy_(other)
        self.x = other.dequantize()

    def turned(self):
        """Through a view of other rows."""
        view = self.q.view(4, 32, 128)
        assert type(view) is QuantizedTensor and view.shape == (4, 32, 128)
        view.sub_(0.25)
        self.x = again(self.q, self.x - 0.25)
        same(view.dequantize(), self.x.view(4, 32, 128))
        self.q = view.reshape(128, 128)

    def flat(self):
        row = self.q.flatten()
        same(row.dequantize(), self.x.flatten())
        self.q = row.view(128, 128)

    def parts(self):
        """Rows of it: written where scales are theirs, and otherwise a tensor of its own."""
        for part, want in zip(self.q.split([32, 64, 32]), self.x.split([32, 64, 32]), strict=True):
            if type(part) is QuantizedTensor:
                same(part.dequantize(), want)
            else:
                same(part, want)
        top = self.q[:128:1].narrow(0, 0, 128)
        same(top.dequantize(), self.x)
        half = self.q[:64]
        if self.case in OWN and type(half) is QuantizedTensor:
            half.mul_(2.0)
            self.x = torch.cat([again(half, self.x[:64] * 2), self.x[64:]])

    def moved(self):
        way = self.random.choice(
            [
                torch.clone,
                torch.detach,
                copy.copy,
                copy.deepcopy,
                lambda t: pickle.loads(pickle.dumps(t)),
                lambda t: t.to("cpu"),
                lambda t: t.cpu(),
                lambda t: t.to(t.dtype),
                lambda t: t.make_like(),
                lambda t: t.contiguous(),
                saved,
            ]
        )
        self.q = way(self.q)
        assert type(self.q) is QuantizedTensor

    def computed(self):
        """What torch computes of it is what it computes of the values."""
        other = self.plain()
        for function in (
            lambda t: t @ other,
            lambda t: t.t(),
            lambda t: torch.exp(t).sum(0),
            lambda t: torch.cat([t, other]),
            lambda t: t[3:50:2, 5],
            lambda t: t.expand(2, 128, 128).clone(),
            lambda t: torch.nn.functional.linear(other, t),
            lambda t: torch.where(other > 0, t, other),
            lambda t: t.abs().amax(),
            lambda t: torch.zeros_like(t),
            lambda t: other.clone().copy_(t),
            lambda t: t.to(torch.float64, copy=True),
        ):
            same(function(self.q), function(self.x))
        for dtype, method in (("float32", "float"), ("float16", "half"), ("bfloat16", "bfloat16")):
            want = self.q.dequantize(getattr(torch, dtype))
            same(getattr(self.q, method)(), want)
            if want.dtype is not self.x.dtype:
                same(self.q.to(want.dtype), want)

    def step(self):
        names = ("add", "scale", "clamp", "masked", "quantize", "skipped", "copied", "turned", "flat", "parts", "moved")
        getattr(self, self.random.choice((*names, "moved", "computed")))()
        same(self.q.dequantize(), self.x)
        assert (self.q.shape, self.q.dtype, self.q.device) == (self.x.shape, self.x.dtype, self.x.device)


def saved(q):
    memory = io.BytesIO()
    torch.save({"weight": q}, memory)
    memory.seek(0)
    return torch.load(memory, weights_only=True)["weight"]


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_chains(first):
    for seed in range(first, first + 25):
        chain = Chain(seed)
        for _ in range(8):
            chain.step()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]!s:.24}-{case[1]}")
def test_codes_stay(case):
    """Moves keep codes and scales, bit for bit; views and slices share their memory."""
    q = made(case, 256, 128, dtype=(torch.float32, torch.bfloat16)[CASES.index(case) % 2])
    for moved in (
        q.clone(),
        copy.deepcopy(q),
        pickle.loads(pickle.dumps(q)),
        saved(q),
        q.cpu(),
        torch.empty_like(q).copy_(q),
    ):
        same_tensors(moved.quantized, q.quantized)
    for name, tensor in tensors_of(q.detach().quantized).items():
        assert tensor is getattr(q, name)
    zeros = q.new_zeros(256, 128)
    same_tensors(zeros.quantized, dither.quantize(torch.zeros(256, 128, dtype=q.dtype), **options_of(q.quantized)))
    zeros.narrow(0, 0, 256).copy_(q)
    same_tensors(zeros.quantized, q.quantized)
    half = q[128:]
    if type(half) is QuantizedTensor:
        part = next(iter(tensors_of(half.quantized).values()))
        assert (
            part.untyped_storage().data_ptr()
            == next(iter(tensors_of(q.quantized).values())).untyped_storage().data_ptr()
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]!s:.24}-{case[1]}")
def test_copies_between_data_types(case):
    """`copy_`, and so `load_state_dict`, takes codes and scales of a tensor whose values are of another type."""
    source, target = made(case, 128, 128, dtype=torch.bfloat16), made(case, 128, 128, seed=1)
    assert target.copy_(source) is target and target.dtype is torch.float32
    same_tensors(target.quantized, source.quantized)
    source, target = (torch.nn.ParameterList([torch.nn.Parameter(q)]) for q in (source, made(case, 128, 128, seed=1)))
    target.load_state_dict(source.state_dict())
    same_tensors(target[0].quantized, source[0].quantized)


#: Formats whose rows are parts of their memory.
EMPTY = [
    *OWN,
    *WHOLE[:-1],
    ("int8_tensor", "rowwise", {}),
    ("fp8_row_e4m3", "colwise", {}),
    ("int8_row", "both", {}),
    ("fp8_128x128_e4m3", "both", {"repeat_scales": True}),
]


@pytest.mark.parametrize("case", EMPTY, ids=lambda case: f"{case[0]!s:.24}-{case[1]}")
def test_no_rows(case):
    """Slices of no rows are those of plain tensors, and have the arrays of what is quantized of no rows."""
    q, empty = made(case, 256, 384), made(case, 0, 384)
    shapes = {name: x.shape for name, x in tensors_of(empty.quantized).items()}
    for found in (q[0:0], q.split([256, 0])[1], q[256:], q[0:0].clone(), saved(q[0:0])):
        assert isinstance(found, QuantizedTensor) and found.shape == found.dequantize().shape == (0, 384)
        assert {name: x.shape for name, x in tensors_of(found.quantized).items()} == shapes
    assert (q.narrow(0, 5, 0) + 1).shape == (0, 384)
    assert torch.equal(torch.cat([q[0:0], q]), q.dequantize())


@pytest.mark.parametrize(
    "case",
    [*EMPTY, ("nvfp4", "colwise", {}), ("fp8_1x128_e4m3", "both", {})],
    ids=lambda case: f"{case[0]!s:.24}-{case[1]}",
)
@pytest.mark.parametrize("shape", [(256, 1, 128), (256, 128, 1), (2, 128, 128)], ids=str)
def test_rows_of_more_dimensions(case, shape):
    """Slices have the values of the rows, of the same memory where they are dense, and otherwise as a copy."""
    n = shape[0] // 2
    whole = made(case, *shape)
    for q in (whole, made(case, 256, 128).view(shape) if shape[-1] == 128 else whole):
        values = q.dequantize()
        for first, last in ((0, n), (n, 2 * n), (0, 1), (n, n)):
            found = q[first:last]
            same(found.dequantize() if isinstance(found, QuantizedTensor) else found.clone(), values[first:last])
            if isinstance(found, QuantizedTensor):
                for part in parts_of(found.quantized).values():
                    undo = part.transform is not None
                    assert dither.dequantize(part, undo_transform=undo).shape == values[first:last].shape


@pytest.mark.parametrize("made", ["outside", "inside"])
@pytest.mark.parametrize("case", OWN + WHOLE[1:2], ids=lambda case: str(case[0]))
def test_views_in_inference_mode(case, made):
    """A view of a normal tensor is one, also where new tensors have no versions."""
    fmt, layout, options = case
    x = torch.randn(128, 256)
    with torch.inference_mode(made == "inside"):
        w = QuantizedTensor.of(x, fmt, layout=layout, **options)
    want = w.dequantize()
    views = {
        "slice": lambda t: t[32:64],
        "view": lambda t: t.view(128, 256),
        "transpose": lambda t: t.t(),
        "split": lambda t: t.split(64)[1],
        "detach": lambda t: t.detach(),
    }
    for view in views.values():
        with torch.inference_mode():
            found = view(w)
            values = found.dequantize() if isinstance(found, QuantizedTensor) else found
            assert torch.equal(torch.as_tensor(values), view(want))
            assert found.is_inference() == (made == "inside")


def test_native_types():
    q = made(("nvfp4", "both", {}), 32, 64)
    assert q.codes().dtype is torch.float4_e2m1fn_x2 and q.codes().shape == (32, 32)
    assert q.codes(columnwise=True).shape == (64, 16) and q.scales().dtype is torch.float8_e4m3fn
    assert q.codes().data_ptr() == q.quantized.rowwise.data.data_ptr()
    assert torch.from_dlpack(q.codes().view(torch.uint8)).dtype is torch.uint8
    q = made(("mxfp8_e5m2", "rowwise", {}), 32, 64)
    assert (q.codes().dtype, q.scales().dtype) == (torch.float8_e5m2, torch.float8_e8m0fnu)
    with pytest.raises(RuntimeError, match="the tensor has no codes along columns"):
        q.codes(columnwise=True)
    with pytest.raises(BufferError, match="is no memory of its values: export dequantize"):
        torch.from_dlpack(q)
    with pytest.raises(TypeError, match="found a QuantizedTensor, which stands for other tensors"):
        dither.quantize(q, "nvfp4")


def test_usages():
    x = torch.randn(64, 128)
    q = QuantizedTensor.of(x, "fp8_tensor_e4m3")
    q.update_usage(columnwise_usage=True)
    same_tensors(q.quantized, dither.quantize(x, "fp8_tensor_e4m3", "both"))
    q.add_(1.0)
    x = dither.quantize(x, "fp8_tensor_e4m3").dequantize() + 1
    same_tensors(q.quantized, dither.quantize(x, "fp8_tensor_e4m3", "both"))
    q.update_usage(rowwise_usage=False)
    assert q.get_usages() == {"rowwise": False, "columnwise": True}
    same(q.dequantize(), dither.quantize(x, "fp8_tensor_e4m3").dequantize())
    with pytest.raises(RuntimeError, match="both directions are to be dropped"):
        q.update_usage(columnwise_usage=False)
    q = QuantizedTensor.of(x, "mxfp8_e4m3")
    with pytest.raises(RuntimeError, match="codes along columns are asked of mxfp8_e4m3 along rows"):
        q.update_usage(columnwise_usage=True)
    q.update_usage(columnwise_usage=True, requantize=True)
    same_tensors(q.quantized, dither.requantize(dither.quantize(x, "mxfp8_e4m3")))


def test_groups():
    x = torch.randn(96, 64)
    sizes = torch.tensor([32, 0, 64], dtype=torch.int32)
    q = QuantizedTensor.of(x, "nvfp4", "both", group_sizes=sizes)
    same(q.dequantize(), dither.grouped_quantize(x, "nvfp4", group_sizes=sizes).dequantize())
    parts = q.split_into_quantized_tensors()
    assert [tuple(part.shape) for part in parts] == [(32, 64), (0, 64), (64, 64)]
    same(parts[2].dequantize(), dither.quantize(x[32:], "nvfp4").dequantize())
    for moved in (q.clone(), saved(q), copy.deepcopy(q)):
        same_tensors(moved.quantized, q.quantized)
    want = dither.grouped_quantize(q.dequantize() + 1, "nvfp4", "both", group_sizes=sizes)
    q.add_(1.0)
    for found, expected in zip(q.quantized.split(), want.split(), strict=True):
        same_tensors(found, expected)
    same(q[:10], q.dequantize()[:10])
    with pytest.raises(ValueError, match="argument 'skip' was given for groups of rows"):
        q.quantize_(x, skip=True)
    with pytest.raises(RuntimeError, match="splits blocks of a tensor of shape"):
        q.view(48, 128)


def test_stochastic_and_given_scales():
    x = torch.randn(64, 128)
    q = QuantizedTensor.of(torch.zeros(64, 128), "mxfp4")
    q.quantize_(x, rounding="stochastic", seed=3)
    same_tensors(q.quantized, dither.quantize(x, "mxfp4", rounding="stochastic", seed=3))
    q = QuantizedTensor.of(torch.zeros(64, 128), "fp8_tensor_e4m3")
    q.quantize_(x, encode_scale=2.0)
    same_tensors(q.quantized, dither.quantize(x, "fp8_tensor_e4m3", encode_scale=2.0))


def model(case):
    torch.manual_seed(5)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128, bias=False), torch.nn.ReLU(), torch.nn.Linear(128, 32))
    fmt, layout, options = case
    for layer in (layers[0], layers[2]):
        layer.weight = torch.nn.Parameter(QuantizedTensor.of(layer.weight, fmt, layout, **options))
    return layers


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def test_views_that_are_copies():
    """Are read as values, and refuse to be written; indices of the tensor itself may be assigned."""
    q = made(("mxfp8_e4m3", "both", {}), 64, 64)
    x = q.dequantize()
    for write in (
        lambda: q.t().add_(1),
        lambda: q[1].fill_(2.0),
        lambda: q[1].__setitem__(3, 4.0),
        lambda: q[1][3:5].mul_(2.0),
        lambda: q[:, :16].zero_(),
        lambda: q.t().__iadd__(1.0),
        lambda: q[3:7].add_(1.0),
        lambda: torch.add(x[0], 1, out=q[1]),
    ):
        with pytest.raises(
            RuntimeError, match="writes a copy of the values of a quantized tensor, expected rows of whole"
        ):
            write()
    same(q.dequantize(), x)
    for found in (q.t() @ x, q[1] + 1, q.t().clone(), torch.nn.functional.linear(x, q)):
        assert type(found) is torch.Tensor
    q[3:5, 7] = 2.5
    x[3:5, 7] = 2.5
    same(q.dequantize(), again(q, x))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    """A step is that on the values, quantized again; loss goes down, and a checkpoint goes on."""
    net = model(("mxfp8_e4m3", "both", {}))
    plain = [p.dequantize().detach() if isinstance(p, QuantizedTensor) else p.detach() for p in net.parameters()]
    plain = [torch.nn.Parameter(p.clone()) for p in plain]
    ours, theirs = OPTIMIZERS[optimizer](net.parameters()), OPTIMIZERS[optimizer](plain)
    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(1))
    losses = []

    def step():
        loss = (net(x) - x[:, :32]).square().mean()
        loss.backward()
        for p, q in zip(plain, net.parameters(), strict=True):
            p.grad = q.grad.clone()
        ours.step()
        ours.zero_grad()
        losses.append(loss.item())

    for _ in range(4):
        step()
        theirs.step()
        for p, q in zip(plain, net.parameters(), strict=True):
            if isinstance(q, QuantizedTensor):
                assert isinstance(q, torch.nn.Parameter)
                # The order in which a step writes is the optimizer's: weight decay of AdamW is a write of its own.
                if optimizer != "AdamW":
                    same(q.dequantize(), again(q, p.detach()))
                with torch.no_grad():
                    p.copy_(q.dequantize())
            else:
                same(q.detach(), p.detach())
    assert losses[-1] < losses[0]
    memory = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": ours.state_dict()}, memory)
    step()
    after = [bits(p.dequantize() if isinstance(p, QuantizedTensor) else p) for p in net.parameters()]
    net = model(("mxfp8_e4m3", "both", {}))
    ours = OPTIMIZERS[optimizer](net.parameters())
    memory.seek(0)
    state = torch.load(memory, weights_only=True)
    net.load_state_dict(state["net"])
    ours.load_state_dict(state["optimizer"])
    step()
    for found, want in zip(net.parameters(), after, strict=True):
        assert torch.equal(bits(found.dequantize() if isinstance(found, QuantizedTensor) else found), want)
    assert losses[-1] == losses[-2]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_modules_of_another_type(dtype):
    """Codes stay, and values are rounded where they are read."""
    net = torch.nn.Linear(64, 32, bias=False)
    net.weight = torch.nn.Parameter(made(("mxfp8_e4m3", "both", {}), 32, 64))
    before, values = net.weight.detach(), net.weight.dequantize().detach()
    net.to(dtype)
    weight = net.weight
    assert isinstance(weight, QuantizedTensor) and isinstance(weight, torch.nn.Parameter)
    for each in (
        weight,
        weight.detach(),
        weight.clone(),
        copy.deepcopy(weight),
        weight[:32],
        net.state_dict()["weight"],
    ):
        same(each.dequantize().detach(), values.to(dtype))
    assert net.state_dict()["weight"].dtype is dtype
    net(torch.randn(4, 64, dtype=dtype)).sum().backward()
    assert weight.grad.dtype is dtype
    same_tensors(net.float().weight.quantized, before.quantized)
    same(net.weight.dequantize().detach(), values)


def test_modules_whose_parameters_are_swapped():
    """Where torch swaps parameters for what a conversion gives, values do not take the place of codes in silence."""
    net = torch.nn.Linear(64, 32, bias=False)
    net.weight = torch.nn.Parameter(made(("mxfp8_e4m3", "both", {}), 32, 64))
    before = net.weight.detach().clone()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        for convert in (net.bfloat16, net.half, net.float, lambda: net.to(torch.float16)):
            with pytest.raises(RuntimeError, match=r"Couldn't swap Linear.weight"):
                convert()
        net.to("cpu", torch.float32)
        net.load_state_dict({"weight": before})
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert isinstance(net.weight, QuantizedTensor) and isinstance(net.weight, torch.nn.Parameter)
    same_tensors(net.weight.quantized, before.quantized)


def test_data():
    """What is set as data is written, of the types that quantized tensors have."""
    net = torch.nn.Linear(64, 32, bias=False)
    weight = net.weight = torch.nn.Parameter(made(("mxfp8_e4m3", "both", {}), 32, 64))
    weight.data = torch.randn(32, 64, generator=torch.Generator().manual_seed(1))
    same_tensors(weight.quantized, made(("mxfp8_e4m3", "both", {}), 32, 64, seed=1).quantized)
    weight.data = QuantizedTensor.of(torch.zeros(32, 64), "nvfp4")
    assert weight.format == dither.NVFP4 and not weight.dequantize().any() and not weight.data.requires_grad
    with pytest.raises(TypeError, match=r"data of a quantized tensor has data type torch.float64, expected float32"):
        net.double()
    same(net.weight.dequantize().detach(), torch.zeros(32, 64))


def test_gradients():
    q = torch.nn.Parameter(made(("nvfp4", "both", {}), 32, 64))
    assert isinstance(q, torch.nn.Parameter) and q.is_leaf and type(q) is QuantizedTensor
    x = torch.randn(8, 64, requires_grad=True)
    y = torch.nn.functional.linear(x, q)
    y.square().sum().backward()
    w, z = q.dequantize().detach().requires_grad_(), x.detach().requires_grad_()
    torch.nn.functional.linear(z, w).square().sum().backward()
    same(q.grad, w.grad)
    same(x.grad, z.grad)
    q.grad = None
    (q.dequantize(torch.bfloat16).float() * 3).sum().backward()
    same(q.grad, torch.full((32, 64), 3.0))
    with pytest.raises(RuntimeError, match=r"leaf Variable that requires grad is being used in an in-place"):
        q.add_(1.0)
    with pytest.raises(RuntimeError, match="quantize_ writes a tensor that requires a gradient"):
        q.quantize_(torch.zeros(32, 64))
    twin = copy.deepcopy(q)
    assert isinstance(twin, torch.nn.Parameter) and torch.equal(twin.grad, q.grad) and twin.requires_grad


WRITES = {
    "mul_": lambda w, other: w.mul_(2.0),
    "copy_ of plain": lambda w, other: w.copy_(other.dequantize()),
    "copy_": lambda w, other: w.copy_(other),
    "quantize_": lambda w, other: w.quantize_(other),
    "rows": lambda w, other: w[:32].mul_(2.0),
    "copy_ to rows": lambda w, other: w[:32].copy_(other[:32]),
    "copy_ to a part": lambda w, other: w.split(32)[1].copy_(other.split(32)[1]),
    "copy_ to a view": lambda w, other: w.view(2, 32, 64).copy_(other.view(2, 32, 64)),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_before_backward(write):
    """An error, as with tensors of torch: what the forward pass saved is no longer there."""
    other = made(("mxfp8_e4m3", "both", {}), 64, 64, seed=1)
    with quantized_model_init(recipe=MXFP8BlockScaling()):
        layer = Linear(64, 64, bias=False)
    x = torch.randn(8, 64, requires_grad=True)
    with autocast(recipe=MXFP8BlockScaling()):
        y = layer(x)
    WRITES[write](layer.weight.detach(), other)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("case", [("nvfp4", "both", {}), ("mxfp8_e4m3", "rowwise", {})], ids=["nvfp4", "mxfp8"])
def test_compiled(case):
    """In one graph: read, written and differentiated."""
    torch._dynamo.reset()
    q = made(case, 64, 128)
    x = torch.randn(4, 128)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(q, x):
        y = x @ q.t()
        q.mul_(1.5)
        return y, q.dequantize() + 1

    want = q.clone().mul_(1.5)
    first = x @ q.t()
    y, z = step(q, x)
    same(y, first)
    same_tensors(q.quantized, want.quantized)
    same(z, want.dequantize() + 1)
    net = torch.nn.Linear(128, 64, bias=False)
    net.weight = torch.nn.Parameter(made(case, 64, 128))
    torch.compile(net, fullgraph=True, backend="aot_eager")(x).sum().backward()
    same(net.weight.grad, x.sum(0).expand(64, 128).contiguous())


@pytest.mark.parametrize("case", [("nvfp4", "both", {}), ("mxfp4", "rowwise", {})], ids=["nvfp4", "mxfp4"])
def test_operators_of_graphs(case):
    """What graphs have in place of the values, and of writing them, is as torch wants operators to be."""
    q = made(case, 32, 64)
    named = tensors_of(q.quantized)
    # As bytes: opcheck multiplies what it compares, which torch has not for float8_e8m0fnu.
    tensors = [x.view(torch.uint8) if x.element_size() == 1 else x for x in named.values()]
    text = repr((q.description, list(named)))
    operators = torch.ops.dither
    torch.library.opcheck(operators.values_of_quantized, (tensors, text, [32, 64], torch.bfloat16))
    torch.library.opcheck(operators.write_quantized, (tensors, torch.randn(32, 64), text))


def test_printing():
    text = repr(made(("nvfp4", "both", {}), 32, 64))
    assert text.startswith("QuantizedTensor(nvfp4 along rows and columns, shape=(32, 64), dtype=torch.float32, [[")
    q = QuantizedTensor.of(torch.ones(4, 32, dtype=torch.bfloat16), "mxfp8_e4m3")
    assert repr(q.requires_grad_()) == (
        "QuantizedTensor(mxfp8_e4m3 along rows, shape=(4, 32), dtype=torch.bfloat16, requires_grad=True, "
        + repr(torch.ones(4, 32)).removeprefix("tensor(")
    )


def test_what_is_refused():
    x = torch.randn(64, 128)
    q = QuantizedTensor.of(x, "mxfp8_e4m3")
    with pytest.raises(
        RuntimeError, match=r"a view of shape \(128, 64\) splits blocks of a tensor of shape \(64, 128\)"
    ):
        q.view(128, 64)
    whole = QuantizedTensor.of(x, "nvfp4")
    with pytest.raises(RuntimeError, match="a part of a tensor in nvfp4 is written, whose scales depend on all of it"):
        whole[:32].add_(1.0)
    with pytest.raises(TypeError, match="argument 'quantized' is Tensor, expected one of ScaledTensor1x"):
        QuantizedTensor(x)
    with pytest.raises(TypeError, match="argument 'quantized' has rowwise_data of ndarray, expected torch's"):
        QuantizedTensor(dither.quantize(x.numpy(), "nvfp4"))
    with pytest.raises(TypeError, match=r"the tensor has no groups: split\(rows\) takes it apart"):
        q.split_into_quantized_tensors()
    with pytest.raises(RuntimeError, match="expand"):
        q.copy_(torch.zeros(3, 128))
    net = model(("mxfp8_e4m3", "both", {}))
    with pytest.raises(
        RuntimeError, match=r"found a tensor in dither.NVFP4 to be copied into one in dither.MXFP8_E4M3"
    ):
        net.load_state_dict(model(("nvfp4", "both", {})).state_dict())
    with pytest.raises(TypeError, match="found a tensor on device 'meta'"):
        QuantizedTensor.of(torch.empty(4, 32, device="meta"), "mxfp8_e4m3")
    context, tensors, _ = restore_arguments(q)
    with pytest.raises(ValueError, match="found a saved tensor of 'save', expected a data type of codes and scales"):
        restore(context, {name: (tensor, "save") for name, (tensor, _) in tensors.items()}, False)


def restore_arguments(q):
    function, arguments = q.__reduce_ex__(2)
    assert function is restore
    return arguments
