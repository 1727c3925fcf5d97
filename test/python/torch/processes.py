"""What one process of several does for test_distributed.py: `python processes.py RANK COUNT FILE`."""

import os
import sys

import dither
import dither.torch as dt
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from dither.recipe import DelayedScaling, MXFP8BlockScaling, NVFP4BlockScaling
from dither.torch import distributed as dd
from dither.torch.fields import tensors_of
from dither.torch.partial import quantize_master
from dither.torch.rows import rows_of
from dither.torch.tensor import QuantizedTensor
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultAllGather
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

RANK, COUNT = int(sys.argv[1]), int(sys.argv[2])
ROWS, COLS = 128 * COUNT, 256
WHOLE = torch.randn(ROWS, COLS, generator=torch.Generator().manual_seed(3)).bfloat16()
WHOLE[5] *= 100  # the amax is in one process
PART = WHOLE.chunk(COUNT)[RANK]
FIRST, LAST = 128 * RANK, 128 * (RANK + 1)


def bits(x):
    x = x.detach().contiguous()
    return x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def same(found, want, what):
    assert found.dtype is want.dtype and found.shape == want.shape, (what, found.shape, want.shape)
    assert torch.equal(bits(found), bits(want)), what


def same_tensors(found, want, what):
    ours, theirs = tensors_of(found), tensors_of(want)
    assert ours.keys() == theirs.keys(), what
    for name, tensor in ours.items():
        same(tensor, theirs[name], (what, name))


def raises(kind, message, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert message in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}: {message}")


def quantized_and_gathered(group):
    """Codes, scales, amaxes and random bits are those of one process; what is gathered is the whole."""
    for fmt, layout, options in (
        ("nvfp4", "both", {"rounding": "stochastic", "seed": 5}),
        ("mxfp8_e4m3", "both", {"rounding": "stochastic", "seed": 7, "offset": 3}),
        ("fp8_tensor_e4m3", "both", {}),
        ("mxfp8_e4m3", "rowwise", {"scale_layout": "128x4"}),
        ("fp8_128x128_e4m3", "both", {}),
    ):
        what = (fmt, layout, options)
        found = dd.sharded(dither.quantize, rows=group)(PART, fmt, layout, **options)
        want = dither.quantize(WHOLE, fmt, layout, **options)
        same_tensors(found, rows_of(want, FIRST, LAST), what)
        same_tensors(dd.all_gather(found, group), want, ("gathered", *what))
    gathered = dd.all_gather(QuantizedTensor(found), group)
    same(gathered.dequantize(), want.dequantize(), "gathered tensor")


def groups(group):
    """Groups of any sizes, which processes share as it happens, and of one size have the bits of one process."""
    sizes = torch.tensor([100, 0, ROWS - 150, 50])
    options = {"rounding": "stochastic", "seed": 5}
    found = dd.sharded(dither.grouped_quantize, rows=group)(PART, "nvfp4", group_sizes=sizes, **options)
    want = dither.grouped_quantize(WHOLE, "nvfp4", group_sizes=sizes, **options)
    for name in ("data", "scale_inv"):
        same(getattr(found, name), getattr(want, name)[FIRST:LAST], ("groups", name))
    for name in ("amax", "table", "wrong"):
        same(getattr(found, name), getattr(want, name), ("groups", name))
    stack = dd.sharded(dither.grouped_quantize, rows=group)(
        PART.view(4, 32, COLS), "nvfp4", "colwise", "128x4", **options
    )
    want = dither.grouped_quantize(WHOLE.view(4 * COUNT, 32, COLS), "nvfp4", "colwise", "128x4", **options)
    for name in ("data", "scale_inv", "amax"):
        same(getattr(stack, name), getattr(want, name).chunk(COUNT)[RANK], ("stack", name))
    same(stack.table, want.table, "table of a stack")


def quantizers(group):
    """A quantizer that reduces its amax has that of all processes, a NaN included: what `sharded` has."""
    for nan in (False, True):
        whole = WHOLE.clone()
        if nan:
            whole[ROWS - 1, 0] = float("nan")
        part = whole.chunk(COUNT)[RANK]
        quantizer = dt.Float8CurrentScalingQuantizer(
            torch.float8_e4m3fn, columnwise=False, with_amax_reduction=True, amax_reduction_group=group
        )
        same(quantizer(part).data, dd.sharded(dither.quantize, rows=group)(part, "fp8_tensor_e4m3").data, nan)


def columns(group):
    columns = WHOLE.chunk(COUNT, 1)[RANK].contiguous()
    found = dd.sharded(dither.quantize, cols=group)(columns, "nvfp4")
    want = dither.quantize(WHOLE, "nvfp4")
    same(found.data, want.data.chunk(COUNT, 1)[RANK], "columns")
    same(found.amax, want.amax, "amax of columns")


def sums(group):
    """Sums of columns of parts have the bits of one process; sums of tensors their written order."""
    gamma = torch.linspace(0.5, 2, COLS)
    _, dbias = dd.sharded(dither.quantize_dbias, rows=group)(PART, format="mxfp8_e4m3")
    same(dbias, dither.quantize_dbias(WHOLE, format="mxfp8_e4m3")[1], "dbias")
    norm = dd.sharded(dither.rms_norm, rows=group)(PART, gamma, format="nvfp4")
    want = dither.rms_norm(WHOLE, gamma, format="nvfp4")
    same_tensors(norm.out, rows_of(want.out, FIRST, LAST), "norm")
    back = dd.sharded(dither.rms_norm_backward, rows=group)(PART, PART, norm.rsigma, gamma)
    want = dither.rms_norm_backward(WHOLE, WHOLE, want.rsigma, gamma)
    same(back[1], want[1], "dgamma")
    terms = [torch.randn(4 * COUNT, 8, generator=torch.Generator().manual_seed(i)) for i in range(COUNT)]
    want = terms[0] + terms[1]
    if COUNT == 4:
        want = want + (terms[2] + terms[3])
    same(dd.all_reduce_sum(terms[RANK], group), want, "sum")
    same(dd.reduce_scatter_sum(terms[RANK], group), want.chunk(COUNT)[RANK], "share of the sum")


def gradients(mesh):
    """DDP and FSDP2 add gradients of different batches in that order, too."""

    def net():
        torch.manual_seed(2)
        return torch.nn.Linear(64, 32 * COUNT, bias=False)

    batches = [torch.randn(8, 64, generator=torch.Generator().manual_seed(i)) for i in range(COUNT)]
    found = []
    for batch in batches:
        one = net()
        (one(batch) ** 2).sum().backward()
        found.append(one.weight.grad)
    want = dd.ordered_sum(found) / COUNT
    parallel = torch.nn.parallel.DistributedDataParallel(net())
    parallel.register_comm_hook(None, dd.ordered_hook)
    (parallel(batches[RANK]) ** 2).sum().backward()
    same(parallel.module.weight.grad, want, "gradient of DDP")
    parted = net()
    fully_shard(parted, mesh=mesh)
    parted.set_custom_reduce_scatter(dd.OrderedReduceScatter())
    (parted(batches[RANK]) ** 2).sum().backward()
    same(parted.weight.grad.to_local(), want.chunk(COUNT)[RANK], "gradient of FSDP2")


def masters(group):
    """Shares that begin inside blocks and rows."""
    shape = (200, 192)
    weight = WHOLE.float().reshape(-1)[: 200 * 192].reshape(shape)
    cuts = [0, 5002, *(5002 + 9000 * i for i in range(1, COUNT - 1)), 200 * 192]
    start, end = cuts[RANK], cuts[RANK + 1]
    for fmt in ("fp8_128x128_e4m3", dither.NVFP4.with_(block=(16, 16)), "mxfp8_e5m2"):
        found = quantize_master(weight.reshape(-1)[start:end], start, shape, fmt, group)
        same_tensors(found.quantized, dither.quantize(weight, fmt), ("master", fmt))
    raises(ValueError, "in the processes, expected 0 to 38400", quantize_master, weight[0], 0, shape, fmt, group)


def mistakes(group):
    """Errors are the same in all processes, and nothing waits for ever."""
    share = PART[: 32 + 32 * (RANK == 1)]
    raises(
        ValueError,
        "processes 1 of the group have other shapes",
        dd.sharded(dither.quantize, rows=group),
        share,
        "nvfp4",
    )
    call = dd.sharded(dither.layer_norm, cols=group)
    gamma = torch.ones(COLS)
    raises(ValueError, "layer_norm: the columns are split over", call, PART, gamma, gamma)
    raises(
        ValueError,
        "expected them in multiples of",
        dd.sharded(dither.quantize, rows=group),
        PART[:40],
        "mxfp8_e4m3",
        "colwise",
    )
    alone = dither.quantize(PART, "nvfp4")
    raises(ValueError, "argument 'q' has another amax in other processes", dd.all_gather, alone, group)
    raises(
        TypeError,
        "found a ndarray among the arguments, expected tensors",
        dd.sharded(dither.quantize, rows=group),
        WHOLE.float().numpy(),
        "nvfp4",
    )


def model(fmt, layout, rows=256):
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(128, rows, bias=False), torch.nn.ReLU(), torch.nn.Linear(rows, 128, bias=False)
    )
    for layer in (net[0], net[2]):
        layer.weight = torch.nn.Parameter(QuantizedTensor.of(layer.weight, fmt, layout))
    return net


def fsdp(mesh):
    """Quantized parameters, sharded and gathered as codes, have the bits of one process through training steps."""
    for fmt, layout in (("mxfp8_e4m3", "both"), ("nvfp4", "both")):
        one, parted = model(fmt, layout), model(fmt, layout)
        for layer in (parted[0], parted[2], parted):
            fully_shard(layer, mesh=mesh)
        losses = []
        for net in (one, parted):
            optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
            for step in range(2):
                y = torch.randn(16, 128, generator=torch.Generator().manual_seed(step))
                loss = (net(y) - y).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
        same(losses[0], losses[1], ("loss", fmt))
        for i in (0, 2):
            local, whole = parted[i].weight.to_local(), one[i].weight
            assert type(local) is QuantizedTensor
            n = whole.shape[0] // COUNT
            same_tensors(local.quantized, rows_of(whole.quantized, n * RANK, n * RANK + n), ("weights", fmt, i))
    # A checkpoint has codes and scales of each shard.
    folder, fresh = sys.argv[3] + ".codes", model(fmt, layout)
    checkpoint.save({"model": get_model_state_dict(parted)}, checkpoint_id=folder)
    fresh[0].weight.data.copy_(torch.zeros(256, 128))
    for layer in (fresh[0], fresh[2], fresh):
        fully_shard(layer, mesh=mesh)
    checkpoint.load({"model": get_model_state_dict(fresh)}, checkpoint_id=folder)
    for i in (0, 2):
        same_tensors(fresh[i].weight.to_local().quantized, parted[i].weight.to_local().quantized, "checkpoint")
    uneven = model("mxfp8_e4m3", "rowwise", rows=COUNT * 32 + 1)
    fully_shard(uneven[0], mesh=mesh)
    raises(ValueError, "found a quantized parameter of", uneven[0], torch.zeros(2, 128))


class Gathers(DefaultAllGather):
    """Counts the bytes that a process sends."""

    def __init__(self):
        self.bytes = []

    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        self.bytes.append(input_tensor.nbytes)
        return super().__call__(output_tensor, input_tensor, group, async_op)


def layers():
    torch.manual_seed(1)
    return torch.nn.Sequential(dt.LayerNormLinear(64, 64 * COUNT), dt.Linear(64 * COUNT, 32 * COUNT))


def master_weights(mesh):
    """Weights in high precision, gathered as codes, train with the bits of one process, and are saved as any others."""
    for recipe in (MXFP8BlockScaling(), NVFP4BlockScaling(disable_stochastic_rounding=True)):
        one, parted = layers(), dt.gather_quantized(layers(), recipe)
        sent = Gathers()
        for layer in (*parted, parted):
            fully_shard(layer, mesh=mesh)
            layer.set_custom_all_gather(sent)
        losses = []
        for net in (one, parted):
            optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
            for step in range(2):
                x = torch.randn(16, 64, generator=torch.Generator().manual_seed(step)).bfloat16()
                with dt.autocast(recipe=recipe):
                    loss = net(x).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
        same(losses[0], losses[1], ("loss", recipe))
        for layer, whole in zip(parted, one, strict=True):
            assert type(layer.weight.to_local()) is dt.MasterWeight
            same(layer.weight.to_local().weight, whole.weight.chunk(COUNT)[RANK], ("weight", recipe))
        # Codes and scales of both directions, and vectors in float32, are less than half of the weights.
        assert sent.bytes and max(sent.bytes) < 0.6 * 4 * 32 * 64 * COUNT, sent.bytes
    folder = sys.argv[3] + ".saved"
    checkpoint.save({"model": get_model_state_dict(parted)}, checkpoint_id=folder)
    again = layers()
    torch.nn.init.zeros_(again[0].weight)
    checkpoint.load({"model": again.state_dict()}, checkpoint_id=folder)
    same(again[0].weight, one[0].weight, "weight of a checkpoint")
    fresh = dt.gather_quantized(layers(), recipe)
    fully_shard(fresh, mesh=mesh)
    state = get_model_state_dict(fresh)
    checkpoint.load({"model": state}, checkpoint_id=folder)
    same(fresh[1].weight.to_local().weight, parted[1].weight.to_local().weight, "shard of a checkpoint")
    uneven = dt.gather_quantized(dt.Linear(64, 16 * COUNT), MXFP8BlockScaling())
    fully_shard(uneven, mesh=mesh)
    raises(ValueError, "expected them in multiples of", uneven, torch.zeros(2, 64))
    raises(TypeError, "have state", dt.gather_quantized, layers(), DelayedScaling())
    raises(ValueError, "no linear layer of dither.torch", dt.gather_quantized, torch.nn.Linear(2, 2), recipe)


def tensor_parallel(mesh):
    """A linear layer whose output features are split: each process has some rows of the quantized weight."""
    local = QuantizedTensor(dd.sharded(dither.quantize, rows=mesh)(PART.float(), "nvfp4"))
    weight = DTensor.from_local(local, mesh, [Shard(0)])
    x = distribute_tensor(torch.ones(4, COLS), mesh, [Replicate()])
    want = torch.ones(4, COLS) @ dither.quantize(WHOLE.float(), "nvfp4").dequantize().t()
    found = torch.nn.functional.linear(x, weight)
    torch.testing.assert_close(found.full_tensor(), want, rtol=1e-5, atol=1e-3)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=RANK, world_size=COUNT)
    mesh, group = init_device_mesh("cpu", (COUNT,)), dist.group.WORLD
    for check in (quantized_and_gathered, groups, quantizers, columns, sums, masters, mistakes):
        check(group)
        print(check.__name__, "ok", flush=True)
    for check in (gradients, fsdp, master_weights, tensor_parallel):
        check(mesh)
        print(check.__name__, "ok", flush=True)
    # No process leaves while others still exchange. Threads of the backend may let go of tensors while Python ends,
    # which has ended the process with an error: what is checked is done by then.
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
