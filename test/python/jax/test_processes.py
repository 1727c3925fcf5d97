"""Calls on arrays that are split over the devices of two processes."""

import socket

import pytest
import spawned

pytest.importorskip("jax")

PROGRAM = """
import sys

import jax

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=2, process_id=int(sys.argv[1]))

import dither
import ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

assert len(jax.devices()) == 4 and len(jax.local_devices()) == 2
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
whole = np.random.default_rng(3).standard_normal((64, 256), np.float32).astype(ml_dtypes.bfloat16)
x = jax.make_array_from_callback(whole.shape, NamedSharding(mesh, P("data", "model")), lambda at: whole[at])

calls = {
    "nvfp4": lambda x: dither.quantize(x, "nvfp4", layout="both"),
    "stochastic": lambda x: dither.quantize(x, "nvfp4", layout="both", rounding="stochastic", seed=5),
    "current": lambda x: dither.quantize(x, "fp8_tensor_e4m3", layout="both"),
    "values": lambda x: dither.dequantize(dither.quantize(x, "nvfp4", layout="both").colwise),
    "transpose": lambda x: dither.transpose(x),
    "sequences": lambda x: dither.quantize(x.reshape(2, 4, 8, 256), "mxfp8_e4m3", rounding="stochastic", seed=5).data,
    "stack": lambda x: dither.grouped_quantize(x.reshape(4, 16, 256), "nvfp4", rounding="stochastic", seed=5),
    "groups": lambda x: dither.grouped_quantize(x, "nvfp4", group_sizes=np.array([30, 0, 34], np.int32)),
    "sums": lambda x: dither.quantize_dbias(x, groups=dither.Groups(sizes=np.array([40, 24], np.int32))).dbias,
    "dbias": lambda x: dither.quantize_dbias(x, format="mxfp8_e4m3"),
}
for name, call in calls.items():
    found, want = jax.tree.leaves(jax.jit(call)(x)), jax.tree.leaves(call(jax.numpy.asarray(whole)))
    for one, other in zip(found, want, strict=True):
        other = np.asarray(other)
        for part in one.addressable_shards:
            assert np.asarray(part.data).tobytes() == other[part.index].tobytes(), name
    print(name, "ok")
"""


def test_two_processes_have_the_bits_of_one():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    spawned.check(
        [["-c", PROGRAM, str(i), port] for i in range(2)],
        ("nvfp4", "stochastic", "current", "values", "transpose", "sequences", "stack", "groups", "sums", "dbias"),
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
        JAX_PLATFORMS="cpu",
    )
