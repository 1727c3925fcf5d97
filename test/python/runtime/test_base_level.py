"""Code for any x86 (`host:base`) has no fused multiply-add and no conversions of float16 in hardware: what it computes
instead has the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import dither
import dither.language as dl
import numpy as np
from dither.devices import get_device
from ops import data
from ops.check import FORMATS, parts, same_bits, same_values

COLUMNS = 1024


def run(kernel, target, *arrays, **constants):
    """Compiles for a level of CPUs, whatever this one has, and launches a program for each row."""
    compiled = kernel.lower(*arrays, **constants, target=target).compile()
    assert compiled.image.target == target
    compiled.launch(get_device("cpu"), (len(arrays[0]), 1, 1), kernel.signature.bind(arrays, constants).arguments)


def rows(values, dtype):
    """Bit patterns as rows of `COLUMNS`, padded with zeros."""
    bits = np.asarray(values, f"u{np.dtype(dtype).itemsize}")
    bits = np.concatenate([bits, np.zeros(-len(bits) % COLUMNS, bits.dtype)])
    return data.aligned(bits.reshape(-1, COLUMNS).view(dtype))


# -- fused multiply-adds ---------------------------------------------------------------------------


@dither.jit
def multiply_add(x, y, z, out, N: dl.constexpr):
    at = (dl.program_id(0), 0)
    t = dl.fma(dl.load(x, at, (1, N)), dl.load(y, at, (1, N)), dl.load(z, at, (1, N)))
    dl.store(out, at, t)


def rounded(n):
    """The float32 nearest to n 2^-298, n > 0, ties to even, as bits."""
    # There are 24 bits, and none below 2^-149.
    drop = max(n.bit_length() - 24, 149)
    kept, rest, half = n >> drop, n & ((1 << drop) - 1), 1 << (drop - 1)
    kept += rest > half or (rest == half and kept & 1)
    # The leading bit adds one to the exponent field.
    return min((drop - 149 << 23) + kept, 0x7F800000)


def exact(x, y, z):
    """fl(x y + z) of finite floats, from integers: x y and z are multiples of 2^-298."""
    a, b, c = (int(np.ldexp(np.float64(v), 149)) for v in (x, y, z))
    total = a * b + (c << 149)
    if total == 0:
        negative = np.signbit(z) and np.signbit(x) != np.signbit(y)
        return 0x80000000 if negative else 0
    return (0x80000000 if total < 0 else 0) | rounded(abs(total))


def from_bits(bits):
    return np.asarray(bits, np.uint32).view(np.float32)


def to_bits(values):
    return np.asarray(values, np.float32).view(np.uint32)


def hard_cases(rng, n):
    """Sums that lie halfway between two floats, or hardly off it; that cancel; that are subnormal; that overflow."""
    any_bits = rng.integers(0, 1 << 32, (3, n), np.uint32)
    near = to_bits(rng.standard_normal((3, n)).astype(np.float32))
    # A product of 48 bits, and an addend that leaves its last ones at the rounding's edge.
    x, y = from_bits(near[:2])
    scale = np.exp2(rng.integers(-30, 31, n)).astype(np.float32)
    edge = np.stack([near[0], near[1], to_bits((x * y).astype(np.float32) * scale)])
    cancel = np.stack([near[0], near[1], to_bits(-(x * y))])
    # 1 + 2^-24 and its like: a power of two whose half ulp the product is, a little more or less.
    big = np.exp2(rng.integers(-100, 100, n))
    odd = 1 + rng.integers(0, 1 << 23, n) * 2.0**-23
    ties = [to_bits((1 + rng.integers(-2, 3, n) * 2.0**-23) * rng.choice([-1, 1], n))]
    ties += [to_bits(big * 2.0**-24 * (1 + rng.integers(-1, 2, n) * 2.0**-23)), to_bits(big * odd)]
    tiny = np.stack(
        [
            to_bits(np.ldexp(1 + rng.random(n), rng.integers(-80, -60, n))),
            to_bits(np.ldexp(1 + rng.random(n), rng.integers(-90, -60, n))),
            rng.integers(0, 1 << 25, n, np.uint32) | rng.integers(0, 2, n, np.uint32) << 31,
        ]
    )
    huge = np.stack(
        [
            to_bits(np.ldexp(1 + rng.random(n), 64)),
            to_bits(np.ldexp(1 + rng.random(n), rng.integers(60, 64, n))),
            rng.integers(0x7E000000, 0x7F800000, n, np.uint32) | rng.integers(0, 2, n, np.uint32) << 31,
        ]
    )
    specials = np.array(
        [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F7FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001]
    )
    specials = np.concatenate([specials, specials | 1 << 31]).astype(np.uint32)
    of_specials = np.stack([g.ravel() for g in np.meshgrid(specials, specials, specials)])
    return np.concatenate([any_bits, edge, cancel, np.stack(ties), tiny, huge, of_specials], axis=1)


def multiply_adds(cases, target):
    x, y, z = (rows(c, np.float32) for c in cases)
    out = data.aligned(np.full_like(x, 7))
    run(multiply_add, target, x, y, z, out, N=COLUMNS)
    return out.ravel()[: cases.shape[1]]


def test_multiply_adds_are_rounded_once():
    cases = hard_cases(np.random.default_rng(1), 4000)
    found = multiply_adds(cases, "host:base")
    x, y, z = (from_bits(c) for c in cases)
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
        # With an operand that is none, doubles say which special value it is.
        other = (x.astype(float) * y.astype(float) + z.astype(float)).astype(np.float32)
    assert finite.sum() > 20000 and (~finite).sum() > 1000
    expected = [exact(*v) for v in zip(x[finite], y[finite], z[finite], strict=True)]
    same_values(found[finite], from_bits(expected))
    same_values(found[~finite], other[~finite])
    # The cases are those where a plain sum of doubles is rounded twice.
    with np.errstate(all="ignore"):
        twice = (x.astype(float) * y.astype(float) + z.astype(float)).astype(np.float32)
    assert (to_bits(twice[finite]) != np.array(expected)).sum() > 50


def test_multiply_adds_are_those_of_this_cpu():
    """Where it has an instruction for them."""
    cases = hard_cases(np.random.default_rng(2), 200_000)
    same_values(multiply_adds(cases, "host:base"), multiply_adds(cases, get_device("cpu").target))


# -- float16 ---------------------------------------------------------------------------------------


@dither.jit
def convert(x, y, N: dl.constexpr, TO: dl.constexpr):
    at = (dl.program_id(0), 0)
    dl.store(y, at, dl.load(x, at, (1, N)).to(TO))


def test_every_half_widens_exactly():
    x = rows(np.arange(1 << 16), np.float16)
    y = data.aligned(np.full(x.shape, 7, np.float32))
    run(convert, "host:base", x, y, N=COLUMNS, TO=dl.float32)
    same_values(y, x.astype(np.float32))
    back = data.aligned(np.full(x.shape, 7, np.float16))
    run(convert, "host:base", y, back, N=COLUMNS, TO=dl.float16)
    same_values(back, x)


def test_floats_round_to_halves():
    rng = np.random.default_rng(3)
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    # What lies halfway between two, the last to infinity included, and beside it.
    middle = (halves[:-1].astype(float) + halves[1:]) / 2
    middle = to_bits(np.append(middle, 65520.0))
    edges = np.concatenate([middle - 1, middle, middle + 1, to_bits(halves) + 1, to_bits(halves)])
    edges = np.concatenate(
        [edges, edges | 1 << 31, np.arange(0x7F7FFFF0, 0x7F800010), np.arange(0x7FC00000, 0x7FC00010)]
    )
    x = rows(np.concatenate([edges, rng.integers(0, 1 << 32, 1 << 20)]), np.float32)
    expected = []
    for target in ("host:base", get_device("cpu").target):
        y = data.aligned(np.full(x.shape, 7, np.float16))
        run(convert, target, x, y, N=COLUMNS, TO=dl.float16)
        expected.append(y)
    with np.errstate(over="ignore"):
        same_values(expected[0], x.astype(np.float16))
    # NaNs too: all have one code.
    same_bits(*expected)
    assert set(expected[0].view(np.uint16)[np.isnan(expected[0])]) == {0x7FFF}


# -- operators -------------------------------------------------------------------------------------


@dither.jit
def functions(x, exp, tanh, sigmoid, N: dl.constexpr):
    at = (dl.program_id(0), 0)
    t = dl.load(x, at, (1, N)).to(dl.float32)
    dl.store(exp, at, dl.exp(t))
    dl.store(tanh, at, dl.tanh(t))
    dl.store(sigmoid, at, dl.sigmoid(t))


def results():
    """What operators and functions give for this process's level, by name."""
    found = {}
    for dtype, formats in (("bfloat16", FORMATS), ("float16", ["nvfp4"]), ("float32", ["mxfp8_e5m2"])):
        x, gamma = data.adversarial(96, 160, dtype), data.normal(1, 160, dtype, seed=1)[0]
        for fmt in formats:
            amax = 30.0 if fmt == "nvfp4" else None
            for part, q in zip("rc", parts(dither.quantize(x, fmt, "both", amax=amax)), strict=True):
                name = f"{dtype} {fmt} {part}"
                found[f"{name} data"], found[f"{name} scale"] = np.asarray(q.data), np.asarray(q.scale_inv)
                found[f"{name} values"] = dither.dequantize(q)
            norm = dither.rms_norm(x, gamma, format=fmt, **({"amax": 30.0} if amax else {}))
            found[f"{dtype} {fmt} norm"], found[f"{dtype} {fmt} rsigma"] = np.asarray(norm.out.data), norm.rsigma
        outputs = [data.aligned(np.zeros(x.shape, np.float32)) for _ in range(3)]
        functions[len(x),](x, *outputs, N=x.shape[1], device="cpu")
        found |= {f"{dtype} {name}": out for name, out in zip(("exp", "tanh", "sigmoid"), outputs, strict=True)}
    # Files of NumPy know no types of ml_dtypes.
    found = {name: np.asarray(array) for name, array in found.items()}
    return {name: a if a.dtype == np.float32 else a.view(f"u{a.dtype.itemsize}") for name, a in found.items()}


WRITE = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parents[1]), str(Path(__file__).parent)]!r}
import numpy as np
from dither.devices import get_device
from {Path(__file__).stem} import results
assert get_device("cpu").target == "host:base"
np.savez(sys.argv[1], **results())
"""


def test_operators_have_the_bits_of_this_cpu(tmp_path):
    file = tmp_path / "results.npz"
    # The device of a process is opened once.
    environment = {**os.environ, "DITHER_HOST_FEATURES": "base"}
    subprocess.run([sys.executable, "-c", WRITE, file], env=environment, check=True, timeout=600)
    base, own = np.load(file), results()
    assert set(base) == set(own) and len(own) > 50
    for name, expected in own.items():
        (same_values if expected.dtype == np.float32 else same_bits)(base[name], expected, name)
