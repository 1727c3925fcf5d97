"""The library's kernels as GPU code: ptxas takes all of it, spills nothing, and memory is accessed in wide pieces.

Entries that together take every path of the compiler are assembled for every generation of GPUs and one more target,
of the others so many that each pair of two parts of a name, or of one and a target, is there; `--exhaustive`
assembles all for all.
"""

import functools
import itertools
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import dither
import pytest
from dither.ops.library import library, listing
from dither.ptxas import chip, name_in_wheel
from sampling import sample
from simulated import TARGETS

ENTRIES = {entry.name: entry for entry in library("sm_90a")}
#: Of operators that `library` leaves out, one for each way in which they differ from those that it has.
OTHERS = (
    "gelu-none-bfloat16",
    "dbias_dgelu-mxfp8_e4m3-both-128x4-bfloat16",
    "dswiglu-bfloat16",
    "dswiglu-nvfp4-both-128x4-bfloat16",
    "dbias_dswiglu-mxfp8_e4m3-colwise-linear-bfloat16",
    "dfactor_dclamped_swiglu-mxfp8_e4m3-rowwise-128x4-bfloat16",
    "add_rms_norm-mxfp8_e4m3-rowwise-128x4-bfloat16",
    "rms_norm_backward-mxfp8_e4m3-both-128x4-bfloat16",
    "layer_norm_backward-float32",
    "column_sum-last-bfloat16",
)
#: Matrices that kernels read, and write.
INPUTS = ("x", "gate", "up", "data")
OUTPUTS = ("y", "out", "row_data", "col_data")


#: One target of each generation; each other one has the rules of one of them, but for a few.
GENERATIONS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")


def combinations():
    """(entry, target) for those that always run, and for the rest."""
    every = list(itertools.product(ENTRIES, TARGETS))
    others = [target for target in TARGETS if target not in GENERATIONS]
    always = {every[i] for i in sample([(*name.split("-"), target) for name, target in every], 2)}
    for turn, name in enumerate(name for name, entry in ENTRIES.items() if entry.core):
        always |= {(name, target) for target in (*GENERATIONS, others[turn % len(others)])}
    for name, target in every:
        marks = [] if (name, target) in always else [pytest.mark.exhaustive]
        yield pytest.param(name, target, id=f"{name}-{target}", marks=marks)


@functools.cache
def find_ptxas(target):
    """Triton's ptxas, the one for Blackwell where the target is; else DITHER_PTXAS, CUDA's, or that on the PATH."""
    candidates = [os.environ.get("DITHER_PTXAS")]
    try:
        import triton

        place = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
        candidates.append(place / name_in_wheel(target))
    except ImportError:
        pass
    candidates += ["/usr/local/cuda/bin/ptxas", shutil.which("ptxas")]
    found = next((str(c) for c in candidates if c and os.access(c, os.X_OK)), None)
    if found is None:
        pytest.skip("ptxas was not found: neither Triton's (pip install triton), nor DITHER_PTXAS, nor CUDA's")
    return found


def compiled(name, target):
    """The code of an entry."""
    return ENTRIES[name].compile(target)


def assemble(ptx, target, folder):
    """(registers, bytes of spills, bytes of stack) that ptxas reports; fails where it refuses."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    command = [find_ptxas(target), "-v", "--warn-on-spills", f"--gpu-name={chip(target)}", str(source)]
    done = subprocess.run([*command, "-o", str(folder / "kernel.cubin")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    registers = int(re.search(r"Used (\d+) registers", done.stderr).group(1))
    stack, stores, loads = map(
        int,
        re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr).groups(),
    )
    return registers, stores + loads, stack


ACCESS = re.compile(r"\b(ld|st)\.global(?:\.(?!v\d|[bfus]\d)[\w:]+)*(?:\.v(\d))?\.[bfus](\d+)")


def accesses(ptx):
    """How often PTX loads and stores pieces of each number of bits in global memory."""
    return Counter((kind, int(count or 1) * int(bits)) for kind, count, bits in ACCESS.findall(ptx))


def matrix_bytes(entry, names, threads, known=True):
    """Bytes of a program's tile of these matrices for each thread; of those whose rows have a length that is known."""
    elements = entry.constexprs["ROWS"] * entry.constexprs["COLS"] // threads
    given = [kind for kind in map(entry.arguments.get, names) if kind is not None]
    return [elements * kind.dtype.bits // 8 for kind in given if (kind.shape[-1] is not None) is known]


#: Bytes that ptxas may keep in memory for a thread, stored and loaded, by parts of names: room for another block is
#: predicted to be worth them (benchmarks/occupancy.py). Of column sums beside NVFP4 both ways it saves a third.
SPILLS = {
    "quantize_dbias-nvfp4-both-": 344,
    "-nvfp4-both-": 160,
    "-colwise-column_major-": 624,
    "quantize-fp8_1x128_": 476,
    "quantize-fp8_row_": 76,
    "-fp8_128x128_": 276,
    "layer_norm-": 136,
    "layer_norm_backward-": 72,
    "rms_norm_backward-": 180,
    "swiglu-bfloat16": 128,
    "swiglu-float32": 176,
}


def spills(name):
    """Bytes that ptxas may keep in memory for a thread: eight registers, stored and loaded, where nothing else is
    said."""
    return next((size for part, size in SPILLS.items() if part in name), 64)


@pytest.mark.parametrize(("name", "target"), combinations())
def test_assembles(name, target, tmp_path):
    code = compiled(name, target)
    assert re.search(rf"^\.target {chip(target)}\b", code.ptx, re.M)
    registers, spilled, stack = assemble(code.ptx, target, tmp_path)
    assert spilled <= spills(name)
    assert stack <= spills(name)
    assert registers <= 255
    assert registers * code.image.num_threads <= 65536


@pytest.mark.parametrize(("name", "target"), zip(OTHERS, (*TARGETS, *TARGETS), strict=False))
def test_other_operators_assemble(name, target, tmp_path):
    (entry,) = (entry for entry in listing(target) if entry.name == name)
    code = entry.compile(target)
    registers, spilled, stack = assemble(code.ptx, target, tmp_path)
    assert max(spilled, stack) <= spills(name)
    assert registers * code.image.num_threads <= 65536


#: Registers of a thread, where columns are summed beside codes.
REGISTERS = {
    ("quantize_dbias-mxfp8_e4m3-rowwise-128x4-bfloat16", "sm_90a"): 80,
    ("quantize_dbias-mxfp8_e4m3-both-128x4-bfloat16", "sm_90a"): 112,
    ("quantize_dbias-nvfp4-both-128x4-bfloat16", "sm_90a"): 128,
    ("quantize_dbias-nvfp4-both-128x4-bfloat16", "sm_100a"): 112,
}


@pytest.mark.parametrize(("name", "target"), REGISTERS)
def test_registers_of_sums(name, target, tmp_path):
    """A multiprocessor has two blocks of 256 threads at least."""
    (entry,) = (entry for entry in listing(target, (128, 4096)) if entry.name == name)
    registers, spilled, stack = assemble(entry.compile(target).ptx, target, tmp_path)
    assert max(spilled, stack) <= spills(name)
    assert registers <= REGISTERS[name, target]


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.core])
def test_accesses_are_wide(name, target):
    """Each lane moves 128 bits or more at a time in the version for whole tiles, and codes of 8 elements of what it
    decodes along rows: it stores 128 bits of these.

    That for ragged ones has loops over parts of 8 elements a lane, in pieces that may be a quarter as wide. Where rows
    end is not known of tensors stored transposed, which it stores by the element. FP4 codes of 16 elements are 64 bits,
    and so are the pieces that a transposition leaves. Of codes of a LayerNorm a lane has half as many one after the
    other: it holds fewer elements of a row, whose differences from the mean wait in registers. Of FP4 codes that become
    columns of 16 bits a lane has two rows of 16.
    """
    entry = ENTRIES[name]
    code = compiled(name, target)
    count = accesses(code.ptx)
    threads = code.image.num_threads
    inputs = matrix_bytes(entry, INPUTS, threads)
    outputs = matrix_bytes(entry, OUTPUTS, threads)
    fp4_out = any(
        kind is not None and kind.dtype is dither.float4_e2m1
        for kind in (entry.arguments.get("row_data"), entry.arguments.get("col_data"))
    )
    narrowest = 64 if fp4_out or entry.constexprs.get("TRANSPOSED") else 128
    if name.startswith("layer_norm-") and "y" not in entry.arguments and "rowwise" in name:
        narrowest //= 2
    least = 128
    if name.startswith("dequantize-"):
        bits = entry.arguments["data"].dtype.bits
        least = min(least, 16 * bits) if entry.constexprs["TRANSPOSED"] else 8 * bits
    loaded = sum(bits // 8 * n for (kind, bits), n in count.items() if kind == "ld" and bits >= least)
    stored = sum(bits // 8 * n for (kind, bits), n in count.items() if kind == "st" and bits >= narrowest)
    if entry.constexprs["ROWS"] * entry.constexprs["COLS"] > 64 * threads:
        # More than a lane's registers hold: loops over parts of the tile, which the text shows once.
        assert loaded and stored
    else:
        for moved, known, names in ((loaded, inputs, INPUTS), (stored, outputs, OUTPUTS)):
            assert moved >= sum(known) + sum(matrix_bytes(entry, names, threads, known=False))
    # What is left: the ragged version, and there gamma; scales, two of which a lane may have, a tensor's amax, rsigma.
    rest = {(kind, bits) for kind, bits in count if bits < (narrowest if kind == "st" else 128)}
    allowed = {("ld", 8), ("ld", 16), ("ld", 32), ("ld", 64), ("st", 8), ("st", 16), ("st", 32)}
    allowed |= {("st", narrowest // 2), ("st", narrowest // 4)}
    assert rest <= allowed


def test_accesses_are_counted():
    ptx = """
    ld.global.b16 %rs1, [%rd1];
    ld.global.nc.L1::no_allocate.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
    @%p1 st.global.v2.b64 [%rd2], {%rd3, %rd4};
    st.global.L1::no_allocate.v8.f32 [%rd2], {};
    ld.param.b64 %rd1, [p];
    ld.shared.v4.b32 {}, [%r1];
    """
    assert accesses(ptx) == {("ld", 16): 1, ("ld", 128): 1, ("st", 128): 1, ("st", 256): 1}


def test_spills_are_seen(tmp_path):
    """A kernel with more live values than a limit of 24 registers allows: the report that the tests above read."""
    name, target = "quantize-nvfp4-rowwise-linear-bfloat16", "sm_90a"
    # Where blocks are asked for, ptxas does not look at the limit.
    ptx = re.sub(r"^\.minnctapersm .*\n", "", compiled(name, target).ptx, count=1, flags=re.M)
    ptx = re.sub(r"^(\.reqntid .*)$", r"\1\n.maxnreg 24", ptx, count=1, flags=re.M)
    assert ".maxnreg" in ptx
    _, spilled, _ = assemble(ptx, target, tmp_path)
    assert spilled > 0
