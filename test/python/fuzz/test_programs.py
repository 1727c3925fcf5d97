"""The fuzzer of tile programs: its arithmetic, its programs, what it notices, and what it survives."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.append(str(FUZZ))

import mutants  # noqa: E402
from programs import (  # noqa: E402
    arithmetic,
    driver,
    execute,
    expressions,
    generate,
    memory,
    program,
    reference,
    statements,
)
from programs import reduce as reduction  # noqa: E402
from programs.program import HEADER, Argument, Program  # noqa: E402

EVERY16 = np.arange(65536, dtype=np.uint16)


def floats(count: int, seed: int = 0) -> np.ndarray:
    """Random bits, and numbers around 1."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    near = (bits & 0x807FFFFF) | (120 + (bits >> 23) % 14) << 23
    return np.concatenate([bits, near]).view(np.float32)


# ---------------------------------------------------------------------------
# Arithmetic
# ---------------------------------------------------------------------------


def rounded(value: Fraction) -> np.float32:
    """Nearest binary32, ties to even."""
    if value == 0:
        return np.float32(0)
    exponent = max(math.frexp(float(value))[1] - 24, -149)
    if Fraction(2) ** (exponent + 24) <= abs(value):
        exponent += 1
    scaled = value / Fraction(2) ** exponent
    return np.float32(math.ldexp(round(scaled), exponent))


def test_fma_rounds_once():
    a, b, c = (floats(2000, seed)[2000:] for seed in (1, 2, 3))
    tiny = np.float32(2) ** np.arange(-60, 60, dtype=np.float32)
    c = np.concatenate([c, -(a * b), np.resize(tiny, len(a))]).astype(np.float32)
    a, b = np.tile(a, 3), np.tile(b, 3)
    got = arithmetic.fma(a, b, c)
    want = [
        rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)
    ]
    assert (got == np.array(want)).all()


def test_fma_keeps_the_sign_of_zero():
    minus = np.float32([-0.0])
    assert np.signbit(arithmetic.fma(np.float32([0]), minus, minus)) and not np.signbit(
        arithmetic.fma(minus, minus, minus)
    )


def test_bfloat16_and_float16_are_those_of_ml_dtypes():
    x = floats(50000)
    for encode, decode, dtype in (
        (arithmetic.encode_bf16, arithmetic.decode_bf16, ml_dtypes.bfloat16),
        (arithmetic.encode_f16, arithmetic.decode_f16, np.float16),
    ):
        number = ~np.isnan(x)
        with np.errstate(over="ignore"):
            want = x[number].astype(dtype).view(np.uint16)
        assert (encode(x)[number] == want).all()
        assert np.isnan(decode(encode(x)[~number])).all()
        np.testing.assert_array_equal(decode(EVERY16), EVERY16.view(dtype).astype(np.float32))


FUNCTIONS = {
    "exp": (np.exp, 1.65),
    "exp2": (np.exp2, 1.21),
    "log": (np.log, 1),
    "log2": (np.log2, 1.75),
    "tanh": (np.tanh, 3),
    "sigmoid": (lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))), 2.79),
    "erf": (np.vectorize(math.erf), 1.53),
    "sin": (np.sin, 1.54),
    "cos": (np.cos, 1.54),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_close_to_libm(name):
    exact, ulps = FUNCTIONS[name]
    x = np.linspace(-20, 20, 20001, dtype=np.float32)
    x = np.abs(x) if name.startswith("log") else x
    got = getattr(arithmetic, name)(x)
    with np.errstate(divide="ignore"):
        want = exact(x.astype(np.float64))
    finite = np.isfinite(want)
    assert (got[~finite] == want[~finite]).all()
    got, want = got[finite], want[finite]
    assert (np.abs(got - want) <= ulps * np.spacing(np.abs(want).astype(np.float32))).all()
    assert np.isnan(getattr(arithmetic, name)(np.float32([np.nan]))).all()


def test_functions_of_infinities():
    x = np.float32([np.inf, -np.inf])
    assert arithmetic.exp(x).tolist() == arithmetic.exp2(x).tolist() == [np.inf, 0]
    assert arithmetic.tanh(x).tolist() == arithmetic.erf(x).tolist() == [1, -1]
    assert arithmetic.sigmoid(x).tolist() == [1, 0]
    assert np.isnan(arithmetic.sin(x)).all() and np.isnan(arithmetic.cos(x)).all()
    assert arithmetic.log(x)[0] == arithmetic.log2(x)[0] == np.inf
    assert np.isnan(arithmetic.log(x)[1]) and np.isnan(arithmetic.log2(x)[1])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_all_sizes(name):
    x = floats(5000)
    x = x[np.isfinite(x)]
    got, want = getattr(arithmetic, name)(x), getattr(np, name)(x.astype(np.float64))
    assert (np.abs(got - want) <= 1.54 * np.spacing(np.abs(want).astype(np.float32))).all()


@pytest.mark.parametrize("order", ["te", "div6_mul", "div6_div"])
@pytest.mark.parametrize("name", ["nvfp4", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2", "mxint8"])
def test_quantization_is_that_of_the_oracle(name, order):
    if order != "te" and name != "nvfp4":
        pytest.skip("one order")
    x = floats(2048)[2048:].reshape(32, 64)
    g = oracle.amax(x) if name == "nvfp4" else None
    want = oracle.quantize(x, name, 1, g, order)
    rounding = arithmetic.FORMATS[name][-1]
    scale = arithmetic.block_scale(x, name, rounding, order, g)
    assert (scale == want.scale).all()
    codes = arithmetic.cast(x, scale, name, order, g)
    assert (codes == want.codes).all()
    got = arithmetic.dequantize(codes, scale, name, order, g)
    values = oracle.dequantize(codes, scale, name, 1, g)
    if order != "te":
        factor = (oracle.decode_e4m3(scale) * oracle.nvfp4_decode_scale(g)).astype(np.float32)
        values = oracle.decode_e2m1(codes) * np.repeat(factor, 16, axis=1)
    assert (got.view(np.uint32) == values.view(np.uint32)).all()


@pytest.mark.parametrize("order", ["te", "div6_mul", "div6_div"])
@pytest.mark.parametrize("g", [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e-45, -1e-45, 7e-36, 3e38])
def test_quantization_is_that_of_the_oracle_for_any_amax(g, order):
    x, g = floats(2048)[2048:].reshape(32, 64), np.float32(g)
    with np.errstate(all="ignore"):
        want, factor = oracle.nvfp4_scale(oracle.amax(x.reshape(32, 4, 16), axis=2), g, order)
        scale = arithmetic.block_scale(x, "nvfp4", "", order, g)
        assert (scale == want).all()
        codes = oracle.encode_e2m1(x * np.repeat(factor, 16, axis=1))
        assert (arithmetic.cast(x, scale, "nvfp4", order, g) == codes).all()


def test_signed_zeros_and_nans_of_extrema():
    zero, minus = np.float32([0.0]), np.float32([-0.0])
    assert not np.signbit(arithmetic.maximum(minus, zero)) and np.signbit(arithmetic.minimum(zero, minus))
    assert np.isnan(arithmetic.maximum(zero, np.float32([np.nan])))
    row = np.float32([[np.nan, -3, -0.0]])
    assert arithmetic.reduce("max", row, None) == 0 and not np.signbit(arithmetic.reduce("max", row, None))
    assert arithmetic.reduce("min", row, None) == -3
    assert np.isnan(arithmetic.reduce("max", np.float32([[np.nan, np.nan]]), None))
    assert arithmetic.reduce("amax", np.float32([[np.nan, np.nan]]), None) == 0


# ---------------------------------------------------------------------------
# Programs
# ---------------------------------------------------------------------------


def test_a_seed_gives_the_same_program_in_every_process():
    code = "import sys; from programs.generate import generate; print([generate(s).text() for s in range(30)])"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
            cwd=FUZZ,
        ).stdout
        for seed in (1, 2)
    }
    assert len(texts) == 1 and len(texts.pop()) > 10000


def test_every_row_of_the_grammar_is_used():
    rows = {row for table in expressions.EXPRESSIONS.values() for row in table} | {
        *statements.STATEMENTS,
        *statements.BODY,
    }
    left = {row.__name__ for row in rows}
    for seed in range(400):
        made = generate.Generator(seed)
        made.program()
        left -= made.drawn
    assert not left


def test_a_program_is_what_its_file_says():
    for seed in range(20):
        made = generate.generate(seed)
        again = program.load(made.text("a note\nof two lines"))
        assert repr(again) == repr(made)


def test_programs_write_their_own_cells_alone():
    """The order of programs does not matter: on a GPU there is none."""
    for seed in range(150):
        made = generate.generate(seed)
        try:
            assert not execute.has_order(made, execute.expect(made)), made.source
        except reference.Undefined:
            continue


# ---------------------------------------------------------------------------
# What it notices
# ---------------------------------------------------------------------------

ADD = Program(
    HEADER
    + """
@dither.jit
def k(x, o):
    t = dl.load(x, (0, 0), (4, 32))
    dl.store(o, (0, 0), t + 1.0)
""",
    [Argument("x", "float32", (4, 30), "special", 1), Argument("o", "float32", (4, 31), "normal", 2, 1, 3)],
    {},
    {},
    (1, 1, 1),
)


def test_a_right_program_is_found_right():
    expected = execute.expect(ADD)
    host = next(level for level, target in execute.HOSTS.items() if target == driver_target())
    for target in (host, "sm_90a"):
        assert execute.run(ADD, target, expected).kind == "ok"


def driver_target():
    from dither.devices import get_device

    return get_device("cpu").target


@pytest.mark.parametrize("byte", ["before", "element", "between", "after"])
def test_a_changed_byte_is_found(byte):
    expected = execute.expect(ADD)
    got, want, loose = memory.copies(expected.after)[1], expected.after[1], expected.loose[1]
    assert execute.difference(got, want, loose) == ""
    at = {
        "before": got.begin - 1,
        "element": got.begin + 4,
        "between": got.begin + 31 * 4,
        "after": len(got.whole) - 1,
    }[byte]
    got.whole[at] ^= 1
    detail = execute.difference(got, want, loose)
    assert detail.startswith("element of o(0, 1)" if byte == "element" else "guard of o")


def test_any_nan_will_do_where_arithmetic_made_it_and_no_other_where_it_was_moved():
    made = dataclasses.replace(ADD, source=ADD.source.replace("t + 1.0", "dl.where(t != t, t, t + 1.0)"))
    moved = dataclasses.replace(ADD, source=ADD.source.replace("t + 1.0", "t"))
    for given, exact in ((made, False), (moved, True)):
        expected = execute.expect(given)
        got, want, loose = memory.copies(expected.after)[1], expected.after[1], expected.loose[1]
        elements = np.flatnonzero(np.isnan(want.array().ravel()))
        assert len(elements)
        row, column = divmod(int(elements[0]), 31)
        got.whole[got.begin + (row * 34 + column) * 4] ^= 1
        assert bool(execute.difference(got, want, loose)) == exact


def test_every_level_computes_what_it_has_no_instruction_for():
    given = dataclasses.replace(ADD, source=ADD.source.replace("t + 1.0", "dl.fma(t, t, t)"))
    assert execute.run(given, "base", execute.expect(given)).kind == "ok"


@pytest.mark.parametrize("what", ["os.abort()", "time.sleep(1000)"])
def test_a_crash_and_a_hang_are_findings_and_the_next_program_runs(what):
    bad = ADD.source.replace(
        "@dither.jit", f"import os\nimport time\nif hasattr(dither, 'quantize'):\n    {what}\n\n@dither.jit"
    )
    jobs = [
        {"name": "bad", "source": bad, "spec": ADD.spec(), "targets": ["sm_90a"]},
        {"name": "good", "source": ADD.source, "spec": ADD.spec(), "targets": ["sm_90a"]},
    ]
    found = {}

    def done(job, outcomes):
        found[job["name"]] = outcomes["sm_90a"].kind
        return True

    driver.run_all(jobs, 1, 20, done)
    assert found == {"bad": "crash" if "abort" in what else "hang", "good": "ok"}


# ---------------------------------------------------------------------------
# Reduction
# ---------------------------------------------------------------------------

LONG = Program(
    HEADER
    + """
def helper(a, b):
    return a * b


@dither.jit(shapes='dynamic')
def k(x, y, o, o2, n, MODE: dl.constexpr):
    p0 = dl.program_id(0)
    v1 = dl.load(x, (p0 * 4, 0), (4, 32))
    v2 = dl.load(y, (p0 * 4, 0), (4, 32)).to(dl.float32)
    for i in range(n):
        v2 = helper(v2, 0.5)
        if MODE:
            v1 = v1 + dl.tanh(v2) * dl.sum(v1, 1)
    s = dl.block_scale(v1, "mxfp8_e4m3", axis=1)
    dl.store(o, (p0 * 4, 0), dl.maximum(dl.exp(v1), 0.0))
    dl.store(o2, (p0 * 4, 0), s)
""",
    [
        Argument("x", "float32", (8, 32), "normal", 1, 3, 2),
        Argument("y", "bfloat16", (8, 30), "wide", 2),
        Argument("o", "float32", (8, 33), "normal", 3, 1, 5),
        Argument("o2", "e8m0", (8, 1), "normal", 4),
    ],
    {"n": 2},
    {"MODE": True},
    (2, 1, 1),
    4,
    "dynamic",
)


def test_a_planted_failure_is_reduced_to_what_fails(monkeypatch):
    """A launch that is wrong wherever the text calls dl.tanh."""

    class Planted:
        def __init__(self, limit):
            pass

        def stop(self):
            pass

        def run(self, job):
            given = program.from_spec(job["source"], job["spec"])
            try:
                expected = execute.expect(given)
                if execute.has_order(given, expected):
                    return {}
            except Exception:
                return {}
            wrong = "dl.tanh(" in given.source
            return {"sm_90a": execute.Outcome("mismatch" if wrong else "ok")}

    monkeypatch.setattr(reduction, "Worker", Planted)
    smaller, _ = reduction.reduce(LONG, "sm_90a", execute.Outcome("mismatch"), 10)
    lines = smaller.source.strip().splitlines()
    assert "dl.tanh(" in smaller.source and len(lines) <= 10, smaller.source
    assert smaller.grid == (1, 1, 1) and smaller.shapes is None and smaller.num_warps is None
    assert len(smaller.arguments) <= 1
    execute.expect(smaller)


def test_messages_that_differ_in_numbers_are_one_failure():
    one = execute.Outcome("refused", "<program 3>:7:5: extent 33 of 'v1' is odd")
    two = execute.Outcome("refused", "<program 8>:2:9: extent 5 of 'q' is odd")
    other = execute.Outcome("refused", "<program 8>:2:9: found a tuple")
    assert reduction.signature(one) == reduction.signature(two) != reduction.signature(other)


# ---------------------------------------------------------------------------
# Fixes that can be taken back
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_of_the_code_as_it_is(mutant):
    assert mutants.stale(mutant) == []
