"""Copies: pickled, deep, shallow, sent to other processes and through checkpoints."""

import copy
import io
import multiprocessing
import pickle
import subprocess
import sys

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.arrays import describe
from dither.devices import get_device
from dither.ops.scaled_tensor import restore
from dither.types import DTYPES
from ops import data
from ops.check import same_bits
from ops.reference import orders as orders_of

torch = pytest.importorskip("torch")


def through_torch(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


WAYS = {f"pickle {p}": (lambda x, p=p: pickle.loads(pickle.dumps(x, p))) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)}
WAYS |= {"deepcopy": copy.deepcopy, "copy": copy.copy, "torch": through_torch}
FORMATS = list(dither.formats.FORMATS.values())
VARIANTS = [dither.MXFP4.with_(scale_rounding="even"), dither.NVFP4.with_(order="div6_div")]
each_way = pytest.mark.parametrize("way", WAYS)


@each_way
def test_data_types_and_standard_formats_are_themselves(way):
    for x in (*DTYPES, *FORMATS, dl.swizzle_128x4, dl.linear, dl.exp, dl.constexpr):
        assert WAYS[way](x) is x
    for x in VARIANTS:
        again = WAYS[way](x)
        assert again == x and again.element is x.element and again.scale is x.scale
        assert repr(again) == repr(x)
    kind = dither.TensorType(dither.e8m0, (None, 4))
    assert WAYS[way](kind) == kind and WAYS[way](kind).dtype is dither.e8m0
    assert WAYS[way](get_device("cpu")) is get_device("cpu")


def results(x, formats):
    for fmt in formats:
        for scale_layout in orders_of(fmt):
            q = dither.quantize(x, fmt, "both", scale_layout)
            yield from (q, q.rowwise, q.colwise)


def parts(q):
    return [q.rowwise, q.colwise] if isinstance(q, dither.ScaledTensor2x) else [q]


def check_same(again, q):
    assert type(again) is type(q)
    for a, b in zip(parts(again), parts(q), strict=True):
        assert (a.format, a.shape, a.is_colwise) == (b.format, b.shape, b.is_colwise)
        assert a.dtype is b.dtype and a.scale_layout is b.scale_layout
        assert a.data.dtype == b.data.dtype and a.scale_inv.dtype == b.scale_inv.dtype
        same_bits(a.data, b.data)
        same_bits(a.scale_inv, b.scale_inv)
        if b.amax is None:
            assert a.amax is None
        else:
            same_bits(a.amax, b.amax)
        same_bits(a.dequantize(), b.dequantize())


@pytest.mark.parametrize("library", ["numpy", "torch"])
@each_way
def test_results_are_used_like_the_first(way, library):
    x = data.normal(33, 70)
    formats = FORMATS + VARIANTS if way == "pickle 5" else FORMATS[::4] + VARIANTS
    for q in results(torch.from_numpy(x) if library == "torch" else x, formats):
        again = WAYS[way](q)
        check_same(again, q)
        for a, b in zip(parts(again), parts(q), strict=True):
            shared = describe(a.data).pointer == describe(b.data).pointer
            assert shared == (way == "copy")


def test_norms_and_views():
    x = torch.from_numpy(data.normal(4, 64))
    norm = dither.rms_norm(x, x[0], format="nvfp4", return_amax=True)
    again = pickle.loads(pickle.dumps(norm))
    check_same(again.out, norm.out)
    same_bits(again.rsigma, norm.rsigma)
    view = copy.deepcopy(dither.view(np.zeros(4, np.uint8), dither.float4_e2m1))
    assert view.dtype is dither.float4_e2m1


def test_a_checkpoint_needs_one_function_to_be_trusted(tmp_path):
    q = dither.quantize(torch.from_numpy(data.normal(4, 64)), "mxfp8_e4m3")
    torch.save({"weight": q}, tmp_path / "checkpoint")
    with torch.serialization.safe_globals([restore]):
        again = torch.load(tmp_path / "checkpoint", weights_only=True)["weight"]
    check_same(again, q)


def test_the_two_parts_of_a_copy_share_an_amax_as_those_of_the_first():
    q = copy.deepcopy(dither.quantize(data.normal(32, 64), "nvfp4", "both"))
    assert q.rowwise.amax is q.colwise.amax


@dither.jit
def double(x, y):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * 2.0)


@each_way
def test_kernels_are_themselves_by_name(way, monkeypatch):
    module = sys.modules.get(__name__)
    if module is None:  # pytest imports tests without names
        import types

        module = types.ModuleType(__name__)
        monkeypatch.setitem(sys.modules, __name__, module)
        module.double = double
    assert WAYS[way](double) is double


def test_a_kernel_without_a_name_is_not_pickled():
    @dither.jit
    def local(x):
        pass

    assert copy.deepcopy(local) is local
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(local)


def test_addresses_are_not_pickled():
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="found the address of an array, which means nothing elsewhere"):
            way(describe(np.zeros(4, np.float32)))


CHILD = """
import dither, numpy as np

def quantize(args):
    x, format = args
    return dither.quantize(x, format), format
"""

MAIN = """
import multiprocessing, sys
import child, dither, numpy as np

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        x = np.linspace(-3, 3, 4 * 64, dtype=np.float32).reshape(4, 64)
        formats = [dither.NVFP4, dither.MXFP4.with_(scale_rounding="even"), dither.MXFP8_E4M3]
        for (q, format), asked in zip(pool.map(child.quantize, [(x, f) for f in formats]), formats, strict=True):
            here = dither.quantize(x, asked)
            assert format == asked and q.format.scale is asked.scale
            assert q.data.tobytes() == here.data.tobytes() and q.scale_inv.tobytes() == here.scale_inv.tobytes()
            assert q.dequantize().tobytes() == here.dequantize().tobytes()
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_formats_and_results_travel_between_processes(method, tmp_path):
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "main.py").write_text(MAIN)
    done = subprocess.run([sys.executable, "main.py", method], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_memory_of_a_device_is_not_copied():
    from dither.ops.allocate import DeviceArray

    memory = DeviceArray(get_device("sim:sm_90a"), dither.float32, (4,))
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="found memory of sim:sm_90a that no framework owns, which is neither"):
            way(memory)
