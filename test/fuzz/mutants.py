"""Takes fixes back, one at a time, and shows that random programs find each defect again.

    .venv/bin/python test/fuzz/mutants.py                 # all of them; minutes each
    .venv/bin/python test/fuzz/mutants.py masked_stores

Works in a worktree of its own under build/mutants, of what is committed. A finding must pass on build/python, which
must be of that, too.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """What was wrong once, and edits that make it so again: (file, text, text in its place).

    `target` is where it was, if it was on one kind of device alone.
    """

    name: str
    defect: str
    edits: tuple[tuple[str, str, str], ...]
    target: str | None = None


MUTANTS = (
    Mutant(
        "int_to_half",
        "integer tiles stored as bfloat16 or float16 keep the integer's bits",
        (
            (
                "lib/Transforms/Prepare/PreparePrograms.cpp",
                "op.setRoundingmode(arith::RoundingMode::to_nearest_even);",
                "(void)op;",
            ),
            ("lib/Transforms/Distribute/Elementwise.cpp", "llvm::append_range(values, op->getResults());", ""),
        ),
    ),
    Mutant(
        "masked_stores",
        "LLVM widens masked stores of one lane: bytes past the tensor are written on avx512",
        (
            (
                "lib/Target/CodeGenerator.cpp",
                "passes.addPass(createModuleToFunctionPassAdaptor(MaskedAccessesPass()));",
                "",
            ),
        ),
        "avx512",
    ),
    Mutant(
        "zeros_of_selections",
        "LLVM makes a minimum of x < 0 ? x : 0: a zero of another sign on GPUs",
        (
            (
                "lib/Target/CodeGenerator.cpp",
                "passes.addPass(SignedZerosPass());\n  passes.addPass(HighWordsPass());",
                "passes.addPass(HighWordsPass());",
            ),
        ),
        "sm_90a",
    ),
    Mutant(
        "zeros_of_halves",
        "LLVM compares the half that a number was and selects +0 for -0",
        (("lib/Target/CodeGenerator.cpp", "passes.addPass(HideSelectionsPass());", ""),),
    ),
    Mutant(
        "halves_of_bytes",
        "FP4 tiles that begin or end inside of a byte take the one below, and zero what is beside them",
        (
            (
                "lib/Transforms/Emit/EmitMemory.cpp",
                "return a.divisor.back() % 2 == 0 ? Bytes::Whole : Bytes::Unknown;",
                "return Bytes::Whole;",
            ),
        ),
    ),
    Mutant(
        "overwritten_in_parts",
        "a large tile is overwritten, part by part, before other parts have read it: transposes in place on CPUs",
        (
            (
                "lib/Transforms/Fragments/FragmentOrder.cpp",
                "isInPlace(load, *sink)))\n      return true;",
                "isInPlace(load, *sink)))\n      continue;",
            ),
        ),
    ),
    Mutant(
        "blocks_of_vectors",
        "block_scale of a vector reads a second offset that there is not, and crashes on CPUs",
        (
            (
                "lib/Transforms/Phases/PhaseParts.cpp",
                "if (block.size() == 2 && sizes.front() == 1 &&",
                "if (sizes.front() == 1 &&",
            ),
        ),
        "avx512",
    ),
    Mutant(
        "functions_of_constants",
        "exp and tanh of constants are those of the C library",
        (
            (
                "dialect/Quant/QuantFolds.cpp",
                "APFloat(numerics::evaluate(function, x.convertToFloat()))",
                "APFloat(function == numerics::Function::Exp    ? std::exp(x.convertToFloat())\n"
                "                       : function == numerics::Function::Tanh ? std::tanh(x.convertToFloat())\n"
                "                       : numerics::evaluate(function, x.convertToFloat()))",
            ),
        ),
    ),
    Mutant(
        "far_offsets",
        "constant offsets near 2^63 wrap: stores before the first element",
        (
            ("lib/Transforms/Prepare/PreparePrograms.cpp", "func.walk(clampIndices);", "(void)clampIndices;"),
            (
                "lib/Transforms/Tiling/VersionBounds.cpp",
                "*at > type.getDimSize(d) - size",
                "*at + size > type.getDimSize(d)",
            ),
        ),
    ),
    Mutant(
        "order_of_accesses",
        "warps of a block load what others have not stored yet",
        (("lib/Pipelines/Pipelines.cpp", "pm.addNestedPass<func::FuncOp>(createDitherOrderAccesses());", ""),),
    ),
)


def stale(mutant: Mutant, root: Path = ROOT) -> list[str]:
    """Edits whose text is not there exactly once."""
    return [f"{file}: {old}" for file, old, _ in mutant.edits if (root / file).read_text().count(old) != 1]


def build(tree: Path) -> None:
    """The Python module of a worktree."""
    configure = ["cmake", "--preset", "release", "-B", str(tree / "build"), f"-DPython3_EXECUTABLE={sys.executable}"]
    for command in (configure, ["ninja", "-C", str(tree / "build"), "dither-python"]):
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)


def fuzz(tree: Path, module: Path, *options: str) -> str:
    """What the fuzzer of a worktree prints about the Python module of a build."""
    env = {**os.environ, "PYTHONPATH": str(module / "build" / "python")}
    command = [sys.executable, "test/fuzz/programs", *options]
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True).stdout


def hunt(tree: Path, target: str | None, seed: int, seconds: int, jobs: int) -> tuple[float, str]:
    """Seconds until a finding that code without the mutant does not have, and the finding; empty for none."""
    start = time.monotonic()
    where = [f"--target={target}"] if target else []
    while (left := seconds - (time.monotonic() - start)) > 0:
        text = fuzz(tree, tree, f"--seed={seed}", f"--seconds={left:.0f}", f"--jobs={jobs}", "--stop=1", *where)
        found = re.search(r"^FINDING (seed (\d+), (\w+).*)$", text, re.MULTILINE)
        if not found:
            break
        again = fuzz(tree, ROOT, f"--seed={found[2]}", f"--target={found[3]}", f"--output={tree / 'build' / 'fuzz'}")
        if " 0 findings" in again:
            return time.monotonic() - start, found[1]
        print(f"  not of the mutant: {found[1]}", flush=True)
        seed = int(found[2]) + 1
    return time.monotonic() - start, ""


def main() -> int:
    """Builds and hunts each mutant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(m.name for m in MUTANTS)}")
    parser.add_argument("--seconds", type=int, default=600, help="for each (default 600)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    tree = ROOT / "build" / "mutants"
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(tree)], cwd=ROOT, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    missed = 0
    for mutant in [m for m in MUTANTS if not args.names or m.name in args.names]:
        for command in (["git", "checkout", "-q", "--detach", head.strip()], ["git", "checkout", "-q", "."]):
            subprocess.run(command, cwd=tree, check=True)
        if stale(mutant, tree):
            print(f"{mutant.name}: stale: {stale(mutant, tree)}", flush=True)
            missed += 1
            continue
        for file, old, new in mutant.edits:
            path = tree / file
            path.write_text(path.read_text().replace(old, new))
        build(tree)
        seconds, found = hunt(tree, mutant.target, args.seed, args.seconds, args.jobs)
        missed += not found
        print(f"{mutant.name}: {f'found in {seconds:.0f} s: {found}' if found else 'NOT FOUND'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
