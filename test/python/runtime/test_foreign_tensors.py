"""Tensors of other libraries that are not what their memory says: refused, whether or not the launch is known."""

import dither
import dither.language as dl
import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def copy():
    @dither.jit
    def kernel(x, y):
        r = dl.program_id(0)
        dl.store(y, (r, 0), dl.load(x, (r, 0), (1, 4)))

    return kernel


def values():
    return torch.arange(1.0, 17).reshape(4, 4)


class Wrapper(torch.Tensor):
    """A tensor that stands for another one."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError(function)


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(4, 4)


def resized_to_nothing():
    x = values()
    x.untyped_storage().resize_(0)
    return x


class Interface:
    """What CuPy and Numba show of an array."""

    def __init__(self, **about):
        plain = {"data": (4096, False), "shape": (4, 4), "typestr": "<f4", "strides": None, "version": 3}
        self.__cuda_array_interface__ = {**plain, **about}


class Capsule:
    """A DLPack producer whose tensor has no memory."""

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kwargs):
        return resized_to_nothing().__dlpack__()


NO_MEMORY = r"argument 'x': found a tensor of shape \(4, 4\) without memory"
REFUSED = {
    "sign": (lambda: torch._neg_view(values()), TypeError, r"with the sign .* x\.resolve_neg\(\)"),
    "fake": (fake, TypeError, "argument 'x': found a FakeTensor, which stands for other tensors"),
    "wrapper": (lambda: Wrapper(values()), TypeError, "argument 'x': found a Wrapper"),
    "functional": (lambda: torch._to_functional_tensor(values()), ValueError, NO_MEMORY),
    "zero": (lambda: torch._efficientzerotensor((4, 4)), ValueError, NO_MEMORY),
    "freed": (resized_to_nothing, ValueError, NO_MEMORY),
    "capsule": (Capsule, ValueError, NO_MEMORY),
    "interface": (lambda: Interface(data=(0, False)), ValueError, NO_MEMORY),
    "mask": (lambda: Interface(mask=Interface()), TypeError, "found an array with a mask"),
    "bytes between": (lambda: Interface(strides=(18, 4)), ValueError, r"strides \(18, 4\) are not multiples of 4"),
    "meta": (lambda: values().to("meta"), TypeError, "found a tensor on device 'meta'"),
    "sparse": (lambda: values().to_sparse(), TypeError, r"found a torch.sparse_coo tensor.*to_dense\(\)"),
    "rows": (lambda: values().to_sparse_csr(), TypeError, "found a torch.sparse_csr tensor"),
    "mkldnn": (lambda: values().to_mkldnn(), TypeError, "found a torch._mkldnn tensor"),
    "nested": (lambda: torch.nested.nested_tensor([values()[0]] * 4), TypeError, "found a nested tensor"),
    "quantized": (lambda: torch.quantize_per_tensor(values(), 0.1, 0, torch.qint8), TypeError, "data type qint8"),
    "complex": (lambda: torch.complex(values(), values()).conj(), TypeError, "data type complex64"),
    "masked": (lambda: np.ma.masked_array(values().numpy(), values().numpy() > 9), TypeError, r"x\.filled\(value\)"),
    "fields": (lambda: np.zeros((4, 4), [("a", np.float32)]), TypeError, "argument 'x' has data type void32"),
    "no bytes": (lambda: np.zeros((4, 4), "V0"), TypeError, "argument 'x' has data type void"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("known", [False, True], ids=["first", "known"])
@pytest.mark.parametrize(("make", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_its_memory(copy, make, error, text, known):
    y = torch.zeros(4, 4)
    if known:
        copy[4](values(), y)
        assert torch.equal(y, values())
        y.zero_()
    for _ in range(2):
        with pytest.raises(error, match=text):
            copy[4](make(), y)
    assert not y.any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["sign", "fake", "freed", "wrapper"])
def test_outputs_and_prepared_launches(copy, name):
    make, error, text = REFUSED[name]
    with pytest.raises(error, match=text.replace("'x'", "'y'")):
        copy[4](values(), make())
    launch = copy.prepare(4, values(), y := torch.zeros(4, 4))
    with pytest.raises((ValueError, TypeError)):
        launch(make(), y)
    with pytest.raises(error, match=text):
        copy.prepare(4, make(), y)
    assert not y.any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [REFUSED["sign"][0], REFUSED["wrapper"][0], REFUSED["freed"][0]])
def test_operators(make):
    for call in (
        lambda: dither.quantize(make(), "mxfp8_e4m3"),
        lambda: dither.rms_norm(make(), torch.ones(4)),
        lambda: dither.quantize(dither.view(make(), dither.float32), "mxfp8_e4m3"),
    ):
        with pytest.raises((TypeError, ValueError), match=r"argument 'x'(: found| is) a"):
            call()


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp"])
def test_transformed_functions(copy, transform):
    def run(x):
        copy[4](x, torch.zeros(4, 4))
        return x.sum()

    calls = {
        "vmap": lambda: torch.func.vmap(run)(values().expand(2, 4, 4)),
        "grad": lambda: torch.func.grad(run)(values()),
        "jvp": lambda: torch.func.jvp(run, (values(),), (values(),)),
    }
    copy[4](values(), torch.zeros(4, 4))
    with pytest.raises(ValueError, match=r"without memory.* while code is transformed"):
        calls[transform]()


def test_a_column_of_a_conjugate(copy):
    column = torch.complex(torch.zeros(4, 1), torch.ones(4, 1)).conj().imag
    out = torch.zeros(4, 1)
    with pytest.raises(TypeError, match="resolve_neg"):
        copy[4](column, out)
    copy[4](column.resolve_neg(), out)
    assert out.flatten().tolist() == [-1.0] * 4


class Plain(torch.Tensor):
    """A subclass that is its memory."""


TAKEN = {
    "parameter": lambda a: torch.nn.Parameter(torch.from_numpy(a)),
    "buffer": lambda a: torch.nn.Buffer(torch.from_numpy(a)),
    "subclass": lambda a: torch.from_numpy(a).as_subclass(Plain),
    "no sign": lambda a: torch._neg_view(torch.from_numpy(-a)).resolve_neg(),
    "inference": lambda a: torch.inference_mode()(torch.clone)(torch.from_numpy(a)),
    "broadcast": lambda a: np.broadcast_to(a[0], (4, 4)),
    "matrix": lambda a: np.matrix(a),
    "read-only": lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(4, 4),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", TAKEN)
def test_what_is_its_memory(copy, name):
    x = TAKEN[name](values().numpy())
    want = np.array(x.detach() if isinstance(x, torch.Tensor) else x)
    for _ in range(2):
        y = torch.zeros(4, 4)
        copy[4](x, y)
        np.testing.assert_array_equal(y.numpy(), want)
    assert copy._launcher.hits == 1


def test_a_mapped_file(copy, tmp_path):
    values().numpy().tofile(tmp_path / "x")
    y = np.memmap(tmp_path / "y", np.float32, "w+", shape=(4, 4))
    copy[4](np.memmap(tmp_path / "x", np.float32, "r", shape=(4, 4)), y)
    np.testing.assert_array_equal(y, values().numpy())
    with pytest.raises(ValueError, match="argument 'y' is read-only"):
        copy[4](y, np.memmap(tmp_path / "x", np.float32, "r", shape=(4, 4)))


def test_distributed_tensors(copy, tmp_path):
    dist = pytest.importorskip("torch.distributed")
    tensors = pytest.importorskip("torch.distributed.tensor")
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        x = tensors.distribute_tensor(values(), init_device_mesh("cpu", (1,)), [tensors.Shard(0)])
        y = torch.zeros(4, 4)
        with pytest.raises(TypeError, match="argument 'x': found a DTensor"):
            copy[4](x, y)
        copy[4](x.to_local(), y)
    finally:
        dist.destroy_process_group()
    assert torch.equal(y, values())


def test_arrays_of_jax_are_read_only(copy):
    jax = pytest.importorskip("jax")
    x = jax.device_put(values().numpy(), jax.devices("cpu")[0])
    y = torch.zeros(4, 4)
    for _ in range(2):
        copy[4](x, y)
        assert torch.equal(y, values())
        with pytest.raises(ValueError, match="argument 'y' is read-only"):
            copy[4](y, x + 1)
    out = dither.quantize(x, "mxfp8_e4m3")
    with pytest.raises(
        ValueError, match=r"argument 'out.data' is an array of JAX, which does not change, expected memory"
    ):
        dither.quantize(x, "mxfp8_e4m3", out=out)
