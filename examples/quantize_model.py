"""Quantizes the weights of a real model with dither and shows what that costs and what it changes.

    python examples/quantize_model.py [--formats nvfp4,mxfp4] [--plot FILE.png] [--device cpu]

Every matrix of a sentence encoder becomes NVFP4, MXFP8 and MXFP4 and comes back; the encoder then runs with
what came back. A second run compiles nothing: kernels are kept on disk.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import pathlib
import sys
import time
from typing import Any

import dither
import numpy as np
from dither.devices import default_device, get_device, why_no_gpu
from dither.ops import kernels
from dither.ops.quantize import QUANTIZE
from minilm import Tokenizer, directory, encode, load_weights
from tqdm import tqdm

KERNELS = (QUANTIZE.kernel, kernels.dequantize_kernel)
#: Neighbours belong together.
SENTENCES = (
    "The cat is sleeping on the sofa.",
    "A kitten naps on the couch.",
    "The central bank raised interest rates again.",
    "Borrowing money has become more expensive.",
    "She compiled the kernel with a new optimization pass.",
    "The compiler emits faster code than before.",
)


@dataclasses.dataclass
class Report:
    """What one format did to the model."""

    format: dither.Format
    weights: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # what came back
    snr: dict[str, float] = dataclasses.field(default_factory=dict)  # dB by matrix
    signal: float = 0.0
    noise: float = 0.0
    bytes: int = 0
    quantize_seconds: float = 0.0
    dequantize_seconds: float = 0.0
    compiles: int = 0
    disk_hits: int = 0
    memory_hits: int = 0
    compile_ms: float = 0.0


def counts() -> np.ndarray:
    """Compilations, disk hits, memory hits and milliseconds of all kernels so far."""
    return np.array(
        [[k.stats.compiles, k.stats.disk_hits, k.stats.memory_hits, k.stats.compile_ms] for k in KERNELS]
    ).sum(0)


def on_device(array: np.ndarray, device: Any) -> Any:
    """A tensor of torch on a GPU, where both are here; else the array, which dither copies for each launch."""
    if device.is_cpu or importlib.util.find_spec("torch") is None:
        return array
    import torch

    return torch.from_numpy(array).to(device.name)


def on_host(x: Any) -> np.ndarray:
    """The inverse."""
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


def timed(device: Any, call: Any) -> tuple[Any, float]:
    """The result of a call, and the least seconds of three that compiled nothing."""
    seconds = []
    while len(seconds) < 3:
        before = counts()
        device.synchronize()
        start = time.perf_counter()
        result = call()
        device.synchronize()
        if (counts()[:2] == before[:2]).all():
            seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def quantize_all(matrices: dict[str, np.ndarray], fmt: dither.Format, device: Any, bar: tqdm) -> Report:
    """Quantizes every matrix along its rows and back."""
    report = Report(fmt)
    before = counts()
    for name, matrix in matrices.items():
        bar.set_postfix_str(f"{fmt.name} {name.removesuffix('.weight')}"[-40:])
        x = on_device(matrix, device)
        q, seconds = timed(device, lambda x=x: dither.quantize(x, fmt, device=device))
        report.quantize_seconds += seconds
        y, seconds = timed(device, lambda q=q: dither.dequantize(q, device=device))
        report.dequantize_seconds += seconds
        report.bytes += q.data.nbytes + q.scale_inv.nbytes + (4 if fmt.tensor_scale else 0)
        back = report.weights[name] = on_host(y)
        signal = float(np.square(matrix, dtype=np.float64).sum())
        noise = float(np.square(matrix - back, dtype=np.float64).sum())
        report.snr[name] = decibel(signal, noise)
        report.signal += signal
        report.noise += noise
        bar.update()
    compiles, disk, memory, report.compile_ms = counts() - before
    report.compiles, report.disk_hits, report.memory_hits = int(compiles), int(disk), int(memory)
    return report


def decibel(signal: float, noise: float) -> float:
    """Signal to noise ratio."""
    return 10 * np.log10(signal / noise) if noise else np.inf


def table(reports: list[Report], size: int) -> str:
    """One line for each format; GB/s counts bytes read and written."""
    lines = [
        f"{'format':<11}{'MB':>7}{'ratio':>7}{'SNR dB':>8}  {'worst matrix':<38}{'dB':>6}"
        f"{'quant GB/s':>12}{'dequant GB/s':>14}{'compiled':>10}{'in s':>6}{'from disk':>11}"
    ]
    lines.append("-" * len(lines[0]))
    for r in reports:
        worst = min(r.snr, key=r.snr.__getitem__)
        moved = (size + r.bytes) / 1e9
        lines.append(
            f"{r.format.name:<11}{r.bytes / 1e6:7.1f}{size / r.bytes:7.2f}{decibel(r.signal, r.noise):8.2f}  "
            f"{worst.removesuffix('.weight').removeprefix('encoder.'):<38}{r.snr[worst]:6.2f}"
            f"{moved / r.quantize_seconds:12.2f}{moved / r.dequantize_seconds:14.2f}"
            f"{r.compiles:10}{r.compile_ms / 1e3:6.2f}{r.disk_hits:11}"
        )
    return "\n".join(lines)


def plot(reports: list[Report], path: pathlib.Path) -> None:
    """SNR of every matrix, as PNG (or what the file's name ends in)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name.removesuffix(".weight").removeprefix("encoder.") for name in reports[0].snr]
    figure, axes = pyplot.subplots(figsize=(11, 5.5), layout="constrained")
    for report, marker in zip(reports, "osD^", strict=False):
        total = decibel(report.signal, report.noise)
        label = f"{report.format.name}: {total:.1f} dB, {report.bytes / 1e6:.1f} MB"
        axes.plot(range(len(names)), list(report.snr.values()), marker=marker, markersize=4, linewidth=1, label=label)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_ylabel("signal to noise ratio, dB")
    axes.set_title("all-MiniLM-L6-v2, each matrix quantized along its rows")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def similarities(weights: dict[str, np.ndarray], reports: list[Report]) -> bool:
    """Prints how close the sentences are with each set of weights; whether neighbours are closer than all others."""
    tokenizer = Tokenizer(directory() / "vocab.txt")
    tokens = [tokenizer(sentence) for sentence in SENTENCES]
    sets = {"float32": weights} | {r.format.name: {**weights, **r.weights} for r in reports}
    embeddings = {name: np.stack([encode(w, t) for t in tokens]) for name, w in sets.items()}
    related = [(i, i + 1) for i in range(0, len(SENTENCES), 2)]
    others = [(i, j) for i in range(len(SENTENCES)) for j in range(i) if (j, i) not in related]
    print(f"\n{'cosine similarity':<58}" + "".join(f"{name:>11}" for name in sets))
    cosines = {name: e @ e.T for name, e in embeddings.items()}
    for i, j in related:
        print(f"{SENTENCES[i][:56]:<58}" + "".join(f"{c[i, j]:11.3f}" for c in cosines.values()))
        print(f"  {SENTENCES[j]}")
    closest = {name: max(c[i, j] for i, j in others) for name, c in cosines.items()}
    print(f"{'closest of sentences that do not belong together':<58}" + "".join(f"{c:11.3f}" for c in closest.values()))
    same = [float((embeddings["float32"] * e).sum(1).min()) for e in embeddings.values()]
    print(f"{'with the embedding by the original weights, at least':<58}" + "".join(f"{c:11.3f}" for c in same))
    return all(c[i, j] > closest[name] for name, c in cosines.items() for i, j in related)


def run(args: argparse.Namespace) -> int:
    """Everything, in order."""
    begin = time.perf_counter()
    device = get_device(args.device) if args.device else default_device()
    where = "" if not device.is_cpu or args.device else f" ({why_no_gpu()})"
    print(f"{device.name}: {device.description}, {device.target}{where}")
    weights = load_weights(directory() / "model.safetensors")
    matrices = {name: tensor for name, tensor in weights.items() if tensor.ndim == 2}
    size = sum(matrix.nbytes for matrix in matrices.values())
    print(f"all-MiniLM-L6-v2: {len(matrices)} matrices, {size / 1e6:.1f} MB of float32", flush=True)

    reports = []
    with tqdm(total=len(args.formats) * len(matrices), unit="matrix", disable=None, leave=False) as bar:
        for fmt in args.formats:
            reports.append(quantize_all(matrices, fmt, device, bar))
            if bar.disable:  # not a terminal
                print(f"  {fmt.name}: {len(matrices)} matrices", flush=True)
    print("\n" + table(reports, size))
    print(
        f"kernels: {sum(r.compiles for r in reports)} compiled, {sum(r.disk_hits for r in reports)} from disk, "
        f"{sum(r.memory_hits for r in reports)} launches of those in memory"
    )
    sane = similarities(weights, reports)
    if args.plot:
        plot(reports, args.plot)
        print(f"\nSNR of each matrix: {args.plot}")
    print(f"{time.perf_counter() - begin:.1f} s in all")
    if not sane:
        print("error: sentences that belong together are not the closest", file=sys.stderr)
    return 0 if sane else 1


def main() -> int:
    p = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = "nvfp4,mxfp8_e4m3,mxfp4"
    p.add_argument("--formats", type=formats, default=formats(names), help=f"default {names}")
    p.add_argument("--device", help="cpu, cuda:0, ..; default the first GPU, else the CPU")
    p.add_argument("--plot", type=pathlib.Path, default=pathlib.Path("build/quantize_model.png"), metavar="FILE")
    p.add_argument("--no-plot", dest="plot", action="store_const", const=None)
    try:
        return run(p.parse_args())
    except (OSError, ValueError, dither.CompileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def formats(text: str) -> list[dither.Format]:
    """Formats by name, separated by commas."""
    try:
        return [dither.formats.get_format(name) for name in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
