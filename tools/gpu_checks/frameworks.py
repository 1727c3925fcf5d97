"""The operators on tensors that frameworks hold on a GPU: results in their own memory, equal to the CPU's.

python tools/gpu_checks/frameworks.py --device cuda:0 --json FILE
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import dither
import numpy as np

SHAPE = (300, 1056)


class Skip(Exception):
    """Why a check cannot be made here."""


def host(array: Any) -> np.ndarray:
    """Bytes of a tensor of NumPy, torch or dither, on the host."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array).view(np.uint8)
    if hasattr(array, "cpu"):
        import torch

        return array.contiguous().view(torch.uint8).cpu().numpy()
    import torch  # what else reads __cuda_array_interface__

    return torch.as_tensor(array, device="cuda").view(torch.uint8).cpu().numpy()


def same(found: Any, x: np.ndarray, fmt: str) -> None:
    """Fails unless a rowwise result holds the bits of the CPU's."""
    want = dither.quantize(x, fmt, device="cpu")
    for name in ("data", "scale_inv"):
        got, expected = host(getattr(found, name)), host(getattr(want, name))
        assert got.shape == expected.shape, f"{name} has shape {got.shape}, expected {expected.shape}"
        assert (got == expected).all(), f"{name} differs in {int((got != expected).sum())} of {got.size} bytes"


def values() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(SHAPE, np.float32)


def torch_module() -> Any:
    try:
        import torch
    except ImportError as error:
        raise Skip(str(error)) from None
    if not torch.cuda.is_available():
        raise Skip("torch finds no CUDA device")
    return torch


def torch_tensor(device: str) -> None:
    """Where the tensor is, on the default stream."""
    torch = torch_module()
    x = values()
    result = dither.quantize(torch.from_numpy(x).to(device), "nvfp4")
    assert str(result.data.device) == device, f"codes are on {result.data.device}, expected {device}"
    torch.cuda.synchronize()
    same(result, x, "nvfp4")


def torch_stream(device: str) -> None:
    """On a stream, in order with what the framework put there."""
    torch = torch_module()
    x = values()
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        tensor = torch.from_numpy(x).to(device, non_blocking=True) * 1.0
        results = [dither.quantize(tensor, "mxfp8_e4m3", stream=asked) for asked in (None, stream.cuda_stream)]
    stream.synchronize()
    for result in results:
        same(result, x, "mxfp8_e4m3")


def torch_two_streams(device: str) -> None:
    """On two streams by turns, each waiting for its own input: launches take the current one."""
    torch = torch_module()
    streams = [torch.cuda.Stream(device) for _ in range(2)]
    inputs = [np.random.default_rng(i).standard_normal(SHAPE, np.float32) for i in range(8)]
    results = []
    for i, x in enumerate(inputs):
        with torch.cuda.stream(streams[i % 2]):
            torch.cuda._sleep(2_000_000 * (1 + i % 2))
            results.append(dither.quantize(torch.from_numpy(x).to(device) * 1.0, "mxfp4"))
    torch.cuda.synchronize()
    for x, result in zip(inputs, results, strict=True):
        same(result, x, "mxfp4")


def torch_out(device: str) -> None:
    """Into outputs that exist; nothing is allocated, and the pointers stay."""
    torch = torch_module()
    x = values()
    tensor = torch.from_numpy(x).to(device)
    first = dither.quantize(torch.zeros_like(tensor), "mxfp4")
    result = dither.quantize(tensor, "mxfp4", out=first)
    torch.cuda.synchronize()
    assert result.data.data_ptr() == first.data.data_ptr(), "the output was not reused"
    same(result, x, "mxfp4")


def torch_strided(device: str) -> None:
    """Rows of a wider tensor."""
    torch = torch_module()
    x = values()
    wide = torch.zeros((SHAPE[0], SHAPE[1] + 40), device=device)
    wide[:, :-40] = torch.from_numpy(x).to(device)
    result = dither.quantize(wide[:, :-40], "mxfp8_e4m3")
    torch.cuda.synchronize()
    same(result, x, "mxfp8_e4m3")


def torch_graph(device: str) -> None:
    """Captured in a CUDA graph and replayed on other contents."""
    torch = torch_module()
    x = values()
    tensor = torch.zeros(SHAPE, device=device)
    first = dither.quantize(tensor, "mxfp4")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dither.quantize(tensor, "mxfp4", out=first)
    tensor.copy_(torch.from_numpy(x))
    graph.replay()
    torch.cuda.synchronize()
    same(first, x, "mxfp4")


def jax_array(device: str) -> None:
    """An array of JAX, through DLPack or the CUDA array interface."""
    torch_module()  # reads the result
    try:
        import jax

        gpus = jax.devices("cuda")
    except (ImportError, RuntimeError) as error:
        raise Skip(str(error).splitlines()[0]) from None
    x = values()
    array = jax.device_put(x, gpus[0]).block_until_ready()
    result = dither.quantize(array, "mxfp8_e4m3")
    dither.devices()[1].synchronize()
    same(result, x, "mxfp8_e4m3")


def numpy_staged(device: str) -> None:
    """An array of the host, copied there and back."""
    x = values()
    same(dither.quantize(x, "nvfp4", device=device), x, "nvfp4")


CHECKS: tuple[Callable[[str], None], ...] = (
    numpy_staged,
    torch_tensor,
    torch_stream,
    torch_two_streams,
    torch_out,
    torch_strided,
    torch_graph,
    jax_array,
)


def main() -> int:
    p = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--json", required=True)
    args = p.parse_args()
    results = []
    for check in CHECKS:
        start = time.perf_counter()
        result: dict[str, Any] = {"name": check.__name__, "error": ""}
        try:
            check(args.device)
        except Skip as reason:
            result["skipped"] = str(reason)
        except Exception as error:  # whatever it is, it is this check's result
            result["error"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            print(f"{check.__name__}: {result['error']}", file=sys.stderr)
        results.append({**result, "seconds": round(time.perf_counter() - start, 3)})
    with open(args.json, "w") as file:
        json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
