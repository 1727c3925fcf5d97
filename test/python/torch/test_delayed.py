"""Delayed scaling of modules: the rule over steps, one update of all, checkpoints, and what records nothing."""

import copy
import io
import threading

import dither
import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from dither import ops
from dither.recipe import CustomRecipe, DelayedScaling, Format, MXFP8BlockScaling
from dither.torch import GroupedLinear, Linear, MXFP8Quantizer, autocast
from dither.torch.delayed import History
from dither.torch.roles import DelayedScalingRequest, QuantizerRole

K, N, M = 64, 96, 32


def recipe(**options):
    return DelayedScaling(**{"amax_history_len": 3, **options})


def model(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(Linear(K, N, dtype=torch.bfloat16), Linear(N, K, dtype=torch.bfloat16))


def batch(step):
    return (torch.randn(M, K, generator=torch.Generator().manual_seed(step)) * (1 + step)).bfloat16()


def step(net, number, r, optimizer=None):
    x = batch(number)
    with autocast(recipe=r):
        y = net(x)
    loss = (y.float() ** 2).mean()
    if optimizer is not None:
        optimizer.zero_grad()
    loss.backward()
    if optimizer is not None:
        optimizer.step()
    return loss.detach()


def oracle(history, scale, amax, largest, margin, algorithm):
    """The rule of one tensor, in NumPy's float32."""
    history = history.copy()
    history[0] = amax
    a = history.max() if algorithm == "max" else history[0]
    if np.isfinite(a) and a > 0:
        scale = min(np.float32(largest * 2.0**-margin) / a, np.finfo(np.float32).max)
    history = np.concatenate([np.zeros(1, np.float32), history[2:], history[:1]]) if len(history) > 1 else history * 0
    return history, np.float32(scale)


def largest_of_call(layer, x, dy):
    """The amaxes of input, weight and gradient."""
    return [np.float32(t.detach().abs().amax().item()) for t in (x, layer.weight, dy)]


def last(history):
    return history.max(0).values


def doubled(amax, scale, largest, r):
    return 2 * largest / amax


RULES = [
    ({}, "max"),
    ({"margin": 3, "amax_compute_algo": "most_recent"}, "most_recent"),
    ({"amax_compute_algo": last}, "max"),
    ({"amax_history_len": 1, "fp8_format": Format.E4M3}, "max"),
]


@pytest.mark.parametrize(("options", "algorithm"), RULES, ids=["max", "recent", "function", "one"])
def test_rule_over_steps(options, algorithm):
    """Scales and histories after each step, with the bits of an oracle."""
    r, layer = recipe(**options), model()[0]
    backward = 448.0 if r.fp8_format is Format.E4M3 else 57344.0
    length = r.amax_history_len
    expected = [(np.zeros(length, np.float32), np.float32(1)) for _ in range(3)]
    for number in range(5):
        x = batch(number % 4)  # smaller ones follow
        with autocast(recipe=r):
            y = layer(x)
        dy = torch.full_like(y, 2.0**-number)
        amaxes = largest_of_call(layer, x, dy)
        y.backward(dy)
        largest = (448.0, 448.0, backward)
        expected = [
            oracle(h, s, a, top, r.margin, algorithm) for (h, s), a, top in zip(expected, amaxes, largest, strict=True)
        ]
        state = layer._state()
        for i, (h, s) in enumerate(expected):
            one = state["backward"] if i == 2 else state["forward"]
            at = 0 if i == 2 else i
            assert one["amax_history"][:, at].numpy().tobytes() == h.tobytes()
            assert one["scale"][at].numpy().tobytes() == s.tobytes()


def test_codes_have_the_scale_of_earlier_steps():
    r, layer = recipe(), model()[0]
    step(layer, 3, r)
    scale = layer._state()["forward"]["scale"]
    x = batch(1)
    with autocast(recipe=r):
        y = layer(x)
    xq = dither.quantize(x, "fp8_tensor_e4m3", encode_scale=scale[:1]).dequantize(dither.float32)
    wq = dither.quantize(layer.weight.detach(), "fp8_tensor_e4m3", encode_scale=scale[1:]).dequantize(dither.float32)
    assert torch.equal(y.detach(), (xq @ wq.t() + layer.bias.detach().float()).bfloat16())


def test_functions_of_scales():
    r, layer = recipe(scaling_factor_compute_algo=doubled), model()[0]
    step(layer, 0, r)
    amax = batch(0).abs().amax().float()
    assert layer._state()["forward"]["scale"][0] == torch.tensor(896.0) / amax
    for options, message in (
        ({"amax_compute_algo": lambda h: 3}, "amax_compute_algo gives int, expected a tensor of shape"),
        ({"scaling_factor_compute_algo": lambda *_: torch.ones(99)}, r"scaling_factor_compute_algo gives \(99,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            step(model()[0], 0, recipe(**options))


def test_one_update_of_all(monkeypatch):
    """However many layers there are: one launch forward, and one backward."""
    calls = []
    update = History.update
    monkeypatch.setattr(History, "update", lambda self: calls.append(self) or update(self))
    net, r = model(), recipe(margin=1)
    step(net, 0, r)
    assert len(calls) == 2 and calls[0] is not calls[1]
    step(net, 1, r)
    assert len(calls) == 4 and calls[2] is calls[0]
    forward = [layer._made.columns["forward"].history for layer in net]
    assert forward[0] is forward[1]
    # Two microbatches in one region are one step forward.
    calls.clear()
    with autocast(recipe=r):
        a, b = net(batch(0)), net(batch(1))
    (a.float().sum() + b.float().sum()).backward()
    assert len(calls) == 2


def state_bits(net):
    return [{k: v.numpy().tobytes() for k, v in d.items()} for layer in net for d in layer._state().values()]


def test_modules_that_do_not_run_keep_their_state():
    net, r = model(), recipe()
    step(net, 0, r)
    before = state_bits(net[1:])
    with autocast(recipe=r):
        net[0](batch(1)).float().sum().backward()
    assert state_bits(net[1:]) == before


def test_what_records_nothing():
    net, r = model(), recipe()
    step(net, 0, r)
    before = state_bits(net)
    net.eval()
    with autocast(recipe=r):
        net(batch(5))
    net.train()
    with torch.no_grad(), autocast(recipe=r):
        net(batch(5))
    with pytest.raises(ZeroDivisionError), autocast(recipe=r):
        net(batch(5))
        raise ZeroDivisionError
    assert state_bits(net) == before and len(before) == 4
    with autocast(recipe=MXFP8BlockScaling()):
        net(batch(5))
    step(net, 1, r)
    other = model()
    step(other, 0, r)
    step(other, 1, r)
    assert state_bits(net) == state_bits(other) != before


def test_calibrating():
    """Amaxes, and so scales, without quantizing."""
    net, r = model(), recipe()
    with autocast(enabled=False, calibrating=True, recipe=r):
        y = net(batch(2))
    assert torch.equal(y, net(batch(2)))
    state = net[0]._state()["forward"]
    assert state["scale"][0] == torch.tensor(448.0) / batch(2).abs().amax().float()
    assert state["amax_history"][-1][1] == net[0].weight.abs().amax().float()
    before = state_bits(net)
    net.eval()
    with autocast(enabled=False, calibrating=True, recipe=r):
        net(batch(3))
    assert state_bits(net) == before


def trained(net, optimizer, numbers, r):
    return [step(net, number, r, optimizer).item() for number in numbers]


def test_resuming_from_a_checkpoint():
    """The same bits as not stopping, through torch.save with weights_only."""
    r = recipe()
    whole = model()
    losses = trained(whole, torch.optim.AdamW(whole.parameters(), lr=1e-2), range(6), r)
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    assert trained(net, optimizer, range(3), r) == losses[:3]
    file = io.BytesIO()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    again = model(seed=1)
    optimizer = torch.optim.AdamW(again.parameters(), lr=1e-2)
    again.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert trained(again, optimizer, range(3, 6), r) == losses[3:]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters(), strict=True))
    assert state_bits(whole) == state_bits(again)
    # Into a model that has run, and a copy of one.
    net.load_state_dict(whole.state_dict())
    assert state_bits(net) == state_bits(whole)
    twin = copy.deepcopy(whole)
    assert step(twin, 9, r) == step(whole, 9, r)


def test_checkpoints_of_before_the_first_step():
    """What is loaded begins anew, as it did then; a module that the checkpoint has not stays as it is."""
    net, r = model(), recipe()
    first = copy.deepcopy(net.state_dict())
    losses = [step(net, number, r) for number in range(3)]
    before = state_bits(net)
    net.load_state_dict({key: value for key, value in first.items() if key.startswith("1.")}, strict=False)
    assert state_bits(net[:1]) == before[:2]
    net.load_state_dict(first)
    assert [step(net, number, r) for number in range(3)] == losses and state_bits(net) == before
    # Of one direction alone, and of a model that waits for its first step under the recipe.
    state = net.state_dict()
    for layer in range(2):
        del state[f"{layer}._extra_state"]["backward"]
    net.load_state_dict(state)
    assert state_bits(net)[::2] == before[::2]
    assert all((layer._state()["backward"]["scale"] == 1).all() for layer in net)
    step(net, 0, MXFP8BlockScaling())
    net.load_state_dict(first)
    assert not any("_extra_state" in key for key in net.state_dict())


def test_checkpoints_of_others():
    plain = torch.nn.Linear(K, N)
    layer = Linear(K, N)
    layer.load_state_dict(plain.state_dict())
    plain.load_state_dict(layer.state_dict())
    net = model()
    step(net, 0, recipe())
    other = model()
    state = net.state_dict()
    state["0._extra_state"]["forward"]["scale"] = torch.ones(3)
    other.load_state_dict(state)
    with pytest.raises(ValueError, match=r"found the state of delayed scaling with scales \(3,\) and amaxes \(3, 2\)"):
        step(other, 0, recipe())
    state = layer.state_dict() | {"_extra_state": 3}
    with pytest.raises((ValueError, RuntimeError), match="expected the state of delayed scaling"):
        layer.load_state_dict(state)


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("lengths", [(4, 6), (6, 4), (4, 1), (1, 4), (4, 2)], ids=str)
def test_histories_of_another_length(lengths, loads):
    """The newest amaxes stay, in training and from a checkpoint: scales are as if the length had been the new one."""
    before, after = (recipe(amax_history_len=length) for length in lengths)
    net, want = model(), model()
    for number in range(3):
        step(net, number, before)
        step(want, number, after)
    if loads:
        state, net = net.state_dict(), model()
        net.load_state_dict(state)
    with torch.no_grad(), autocast(recipe=after):
        net(batch(0))
    for layer, other in zip(net, want, strict=True):
        for direction, state in layer._state().items():
            found, expected = state["amax_history"], other._state()[direction]["amax_history"]
            both = min(lengths) - 1
            assert found.shape == expected.shape and not found[0].any()
            # What the first layer has forward depends on no scale.
            if layer is net[0] and direction == "forward":
                assert torch.equal(found[len(found) - both :], expected[len(found) - both :])
            assert not found[1 : len(found) - both].any()
    step(net, 3, after)


def test_other_slots():
    """A module whose roles or recipe have another number of delayed tensors: those of before keep their state."""
    net, r = model()[0], recipe()
    step(net, 0, r)
    before = net._state()
    net.output_quantizer_role = QuantizerRole("linear", "output", "next")

    def run(r):
        with torch.no_grad(), autocast(recipe=r):
            net(batch(1))
        return net._state()

    state = run(r)
    for name in ("scale", "amax_history"):
        assert torch.equal(state["forward"][name][..., :2], before["forward"][name])
        assert torch.equal(state["backward"][name], before["backward"][name])
    assert state["forward"]["scale"][2] == 1 and not state["forward"]["amax_history"][:, 2].any()
    of_input = CustomRecipe(lambda role: DelayedScalingRequest() if role == "weight" else MXFP8Quantizer("e4m3"))
    run(MXFP8BlockScaling())
    net = copy.deepcopy(net)
    assert torch.equal(run(of_input)["forward"]["scale"], before["forward"]["scale"][1:])
    # A checkpoint has to fit.
    loaded = model()[0]
    loaded.load_state_dict(net.state_dict())
    with pytest.raises(ValueError, match=r"with scales \(1,\) and amaxes"):
        step(loaded, 0, r)


def test_threads_have_states_of_their_own():
    # Made here: the seed of their weights is the process's.
    r, found = recipe(), [model(), model()]

    def work(name):
        for number in range(2):
            step(found[name], number, r)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state_bits(found[0]) == state_bits(found[1])
    histories = [net[0]._made.columns["forward"].history for net in found]
    assert histories[0] is not histories[1]


def same_amaxes(net, plain):
    """Those of as many steps. Checkpoints that are not reentrant compute again with the scales of the next step, so
    that gradients differ by a rounding."""
    for layer, other in zip(net, plain, strict=True):
        for direction, state in other._state().items():
            found = layer._state()[direction]["amax_history"]
            torch.testing.assert_close(found, state["amax_history"], rtol=0.2, atol=0.0)


def checkpointed(net, r, number, reentrant, between=lambda: None):
    """A step whose layers are computed again in the backward pass, each by itself, the first of them twice."""

    def forward(layer, x):
        with autocast(recipe=r):
            return layer(x)

    def call(layer, x):
        if reentrant is None:
            return forward(layer, x)
        return torch.utils.checkpoint.checkpoint(forward, layer, x, use_reentrant=reentrant)

    first, last = net
    y = call(last, call(first, batch(number).requires_grad_()))
    between()
    y.float().sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_computed_again_is_recorded_once(reentrant):
    """torch.utils.checkpoint, with the region inside of what it calls: amaxes of steps without it."""
    r, plain, net = recipe(), model(), model()
    for number in range(3):
        checkpointed(plain, r, number, None)
        checkpointed(net, r, number, reentrant)
        same_amaxes(net, plain)
        assert state_bits(net) == state_bits(plain) or not reentrant
    assert (net[0]._state()["forward"]["amax_history"][1:] > 0).all()
    before = state_bits(net)

    # Without gradients, and in evaluation mode, nothing is recorded: neither then, nor in a backward pass after it.
    def evaluate():
        with torch.no_grad(), autocast(recipe=r):
            net(batch(9))

    evaluate()
    assert state_bits(net) == before
    for number in range(3, 6):
        checkpointed(plain, r, number, None)
        checkpointed(net, r, number, reentrant, evaluate)
        same_amaxes(net, plain)
    net.eval()
    before = state_bits(net)
    checkpointed(net, r, 9, reentrant)
    assert state_bits(net) == before


def test_layers_that_run_twice_in_checkpoints():
    """One step of a layer, forward and backward, records the largest amax of both calls."""
    r = recipe()
    for reentrant in (False, True):
        layer = Linear(K, K, dtype=torch.bfloat16)

        def call(x, layer=layer):
            return layer(x)

        def both(x, call=call, reentrant=reentrant):
            x = torch.utils.checkpoint.checkpoint(call, x, use_reentrant=reentrant)
            return torch.utils.checkpoint.checkpoint(call, 8 * x, use_reentrant=reentrant)

        with autocast(recipe=r):
            both(batch(0).requires_grad_()).float().sum().backward()
        state = layer._state()
        with torch.no_grad():
            second = (8 * layer(batch(0))).abs().amax().float()
        assert (state["forward"]["amax_history"] > 0).sum() == 2 and (state["backward"]["amax_history"] > 0).sum() == 1
        torch.testing.assert_close(state["forward"]["amax_history"][-1, 0], second, rtol=0.2, atol=0.0)


@pytest.mark.parametrize(("outer", "inner"), [(False, True), (True, False), (True, True), (False, False)])
def test_checkpoints_in_checkpoints(outer, inner):
    r, plain, net = recipe(), model(), model()
    for number in range(3):
        checkpointed(plain, r, number, None)

        def forward(layer, x):
            with autocast(recipe=r):
                return layer(x)

        def body(x, forward=forward):
            x = forward(net[0], x)
            return torch.utils.checkpoint.checkpoint(forward, net[1], x, use_reentrant=inner)

        y = torch.utils.checkpoint.checkpoint(body, batch(number).requires_grad_(), use_reentrant=outer)
        y.float().sum().backward()
        same_amaxes(net, plain)


def test_columns_are_given_back():
    r = recipe(margin=2)
    net = model()
    step(net, 0, r)
    history = net[0]._made.columns["forward"].history
    free = len(history._free)
    other = model()
    step(other, 0, r)
    assert len(history._free) == free - 4
    # What goes while torch traces leaves memory as it is; what takes columns then finds them as new.
    with torch._subclasses.FakeTensorMode():
        del other
    assert history.take(0) == [] and len(history._free) == free
    assert (history.scale[history._free] == 1).all() and (history.amax_history[:, history._free] == 0).all()


def test_requests():
    """Of custom recipes: those of one direction are equal."""
    layer = model()[0]
    step(layer, 0, CustomRecipe(lambda role: DelayedScalingRequest(amax_history_len=2)))
    assert layer._state()["backward"]["amax_history"].shape == (2, 1)
    wrong = CustomRecipe(lambda role: DelayedScalingRequest(margin=int(role == "weight")))
    with pytest.raises(ValueError, match="gives forward requests that differ"):
        step(model()[0], 0, wrong)


@pytest.mark.parametrize("bias", [True, False])
def test_groups_have_the_bits_of_layers(bias, monkeypatch):
    """What is quantized together has a scale and an amax each."""
    r, sizes = recipe(), [16, 0, 9, 7]
    grouped = GroupedLinear(4, K, N, bias=bias, dtype=torch.bfloat16)
    layers = [Linear(K, N, bias=bias, dtype=torch.bfloat16) for _ in sizes]
    counts = []
    many = ops.quantize_many
    monkeypatch.setattr(ops, "quantize_many", lambda xs, *args, **kw: counts.append(len(xs)) or many(xs, *args, **kw))
    with torch.no_grad():
        for i, layer in enumerate(layers):
            for name, parameter in layer.named_parameters():
                parameter.copy_(getattr(grouped, f"{name}{i}"))
    for number in range(4):
        x = batch(number).requires_grad_()
        with autocast(recipe=r):
            y = grouped(x, sizes)
        dy = torch.randn_like(y)
        grouped.zero_grad()
        y.backward(dy)
        start = 0
        for i, (layer, size) in enumerate(zip(layers, sizes, strict=True)):
            rows = slice(start, start + size)
            part = x.detach()[rows].clone().requires_grad_()
            with autocast(recipe=r):
                out = layer(part)
            layer.zero_grad()
            out.backward(dy[rows])
            assert torch.equal(y[rows], out) and torch.equal(x.grad[rows], part.grad)
            for name, parameter in layer.named_parameters():
                assert torch.equal(getattr(grouped, f"{name}{i}").grad, parameter.grad)
            start += size
    scales = grouped.state_dict()["_extra_state"]
    for i, layer in enumerate(layers):
        own = layer.state_dict()["_extra_state"]
        assert torch.equal(scales["forward"]["scale"][2 * i : 2 * i + 2], own["forward"]["scale"])
        assert torch.equal(scales["backward"]["scale"][i : i + 1], own["backward"]["scale"])
    assert counts == [4] * (8 if bias else 12)
