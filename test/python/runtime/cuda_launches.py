"""Launches on the fake CUDA driver, by tensors of libraries made up for it; prints what happened as JSON.

python cuda_launches.py FAKE_LIBRARY, with DITHER_LIBCUDA set to the same.
"""

import ctypes
import json
import sys
import types


class DLTensor(ctypes.Structure):
    """Of DLPack."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 3),
        ("tensor", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
        ("stream", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))),
    )


current = {"torch": None, "cupy": None}


def fill(tensor, out):
    """dltensor_from_py_object_no_sync."""
    about = out.contents
    about.data, about.device_type, about.device_id, about.ndim = tensor.pointer, 2, 0, 2
    about.code, about.bits, about.lanes, about.offset = 2, 32, 1, 0
    about.shape, about.strides = tensor.extents, tensor.steps
    return 0


def work_stream(kind, ordinal, out):
    """current_work_stream."""
    assert (kind, ordinal) == (2, 0)
    out[0] = current["torch"]
    return 0


API = ExchangeApi((ctypes.c_uint32 * 2)(1, 3), None, (ctypes.c_void_p * 3)())
API.tensor = ExchangeApi._fields_[3][1](fill)
API.stream = ExchangeApi._fields_[4][1](work_stream)
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Tensor:
    """As torch's."""

    __dlpack_c_exchange_api__ = capsule(ctypes.addressof(API), b"dlpack_exchange_api", None)
    __torch_dispatch__ = None
    layout = "strided"
    is_nested = False
    requires_grad = False
    dtype = "torch.float32"
    device = types.SimpleNamespace(type="cuda", index=0)

    def __init__(self, pointer, shape):
        self.pointer, self.shape = pointer, shape
        self.extents = (ctypes.c_int64 * 2)(*shape)
        self.steps = (ctypes.c_int64 * 2)(shape[1], 1)

    def detach(self):
        return self

    def is_neg(self):
        return False

    def data_ptr(self):
        return self.pointer

    def stride(self):
        return tuple(self.steps)


class Array:
    """As cupy's."""

    def __init__(self, pointer, shape):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (pointer, False), "version": 3}


def framework(name, **members):
    """A module that dither finds where the real one is imported."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def stream_of(name, attribute):
    return lambda ordinal: types.SimpleNamespace(**{attribute: current[name] or 0})


written = []
framework("torch", Tensor=Tensor, SymInt=type("SymInt", (), {}), strided="strided")
graph = types.SimpleNamespace(increment_version=written.append)
sys.modules["torch"].autograd = types.SimpleNamespace(graph=graph)
sys.modules["torch"].compiler = types.SimpleNamespace(is_dynamo_compiling=lambda: False)
sys.modules["torch"].cuda = types.SimpleNamespace(current_stream=stream_of("torch", "cuda_stream"))
framework("cupy", ndarray=Array)
sys.modules["cupy"].cuda = types.SimpleNamespace(get_current_stream=stream_of("cupy", "ptr"))

import dither  # noqa: E402
import dither.language as dl  # noqa: E402
from dither.devices import get_device  # noqa: E402


@dither.jit
def copy(x, y, ROWS: dl.constexpr = 4):
    r = dl.program_id(0) * ROWS
    dl.store(y, (r, 0), dl.load(x, (r, 0), (ROWS, x.shape[1])))


def main():
    fake = ctypes.CDLL(sys.argv[1])
    fake.fakeCudaLaunches.restype = ctypes.c_char_p
    fake.fakeCudaStream.restype = ctypes.c_void_p
    stream = fake.fakeCudaStream()
    device = get_device("cuda:0")
    x, y = device.allocate(4096), device.allocate(4096)
    found = {"x": f"{x:#x}", "y": f"{y:#x}"}

    def calls():
        names = ("cuMemAlloc_v2", "cuMemFree_v2", "cuStreamSynchronize", "cuModuleLoadDataEx", "cuLaunchKernel")
        return [fake.fakeCudaCalls(name.encode()) for name in names]

    for name, kind in (("torch", Tensor), ("cupy", Array)):
        one, two = kind(x, (16, 64)), kind(y, (16, 64))
        hits = copy._launcher.hits
        copy[(4,)](one, two)  # compiles and loads
        before = calls()
        steps = []
        for asked, now in ((None, None), (None, stream), (stream, None), (None, None)):
            current[name] = now
            copy.launch((4,), one, two, stream=asked)
            steps.append(fake.fakeCudaLaunches().decode().splitlines()[-1])
        prepared = copy.prepare((4,), one, two)
        current[name] = stream
        prepared()
        steps.append(fake.fakeCudaLaunches().decode().splitlines()[-1])
        prepared(two, one)
        steps.append(fake.fakeCudaLaunches().decode().splitlines()[-1])
        current[name] = None
        after = calls()
        found[name] = {
            "launches": steps,
            "hits": copy._launcher.hits - hits,
            "other calls": [b - a for a, b in zip(before, after, strict=True)],
        }
    # An amax that lies on the GPU is copied by the launch that uses it.
    codes = dither.quantize(Array(x, (16, 64)), "nvfp4", amax=Array(y, ()))
    line = fake.fakeCudaLaunches().decode().splitlines()
    own = codes.amax.__cuda_array_interface__["data"][0]
    found["quantize"] = {"lines": line[-2:], "amax": f"{own:#x}"}
    try:
        copy[(4, 70000)](Tensor(x, (16, 64)), Tensor(y, (16, 64)))
    except dither._dither.RuntimeFailure as error:
        found["error"] = str(error)
    print(json.dumps(found))
    copy.clear()


if __name__ == "__main__":
    main()
