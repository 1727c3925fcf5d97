"""`dl.print`: what it writes, where it runs, and what it refuses."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError, printing

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


@dither.jit
def show(x, ROWS: dl.constexpr, KIND: dl.constexpr):
    t = dl.load(x, (dl.program_id(0) * ROWS, dl.program_id(1) * 64), (ROWS, 64))
    dl.print("t", t.to(KIND))


def lines_of(name, t, program):
    return [f"{name}({program}): t[{i}, {j}] = {t[i, j]}" for i in range(t.shape[0]) for j in range(t.shape[1])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [dl.float32, dl.bfloat16, dl.float8_e4m3])
def test_all_elements_of_all_programs(device, dtype, capsys):
    x = np.random.default_rng(0).integers(-8, 8, (7, 100)).astype(np.float32)
    show[2, 2](x, ROWS=4, KIND=dtype, device=device)
    padded = np.zeros((8, 128), np.float32)
    padded[:7, :100] = x
    want = []
    for j in range(2):
        for i in range(2):
            want += lines_of("show", padded[4 * i : 4 * i + 4, 64 * j : 64 * j + 64], f"{i}, {j}")
    assert capsys.readouterr().out.splitlines() == want


@dither.jit
def kinds(x, n):
    i = dl.arange(3)
    dl.print("program", dl.program_id(0))
    dl.print("n", n)
    dl.print("half", n * 0.5)
    dl.print("wide", i.to(dl.int64) * 2**40 - 1)
    dl.print("small", dl.load(x, 0, 3))
    dl.print("odd", (i & 1) == 1)
    dl.print("constant", 7)
    dl.print("chosen", i * 10, where=(i & 1) == 0)
    dl.print("none", i, where=i > 5)


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_of_every_kind(device, capsys):
    kinds[1](np.array([-128, 0, 127], np.int8), -5, device=device)
    assert capsys.readouterr().out.replace("kinds(0): ", "").splitlines() == [
        "program = 0",
        "n = -5",
        "half = -2.5",
        *(f"wide[{i}] = {i * 2**40 - 1}" for i in range(3)),
        "small[0] = -128",
        "small[1] = 0",
        "small[2] = 127",
        "odd[0] = False",
        "odd[1] = True",
        "odd[2] = False",
        "constant = 7",
        "chosen[0] = 0",
        "chosen[2] = 20",
    ]


def report(t, label):
    dl.print(label, dl.max(t, axis=1))


@dither.jit
def often(x, n):
    """From loops, branches and helpers; a program prints in the order of its source."""
    total = dl.zeros((2, 1), dl.float32)
    for i in range(n):
        t = dl.load(x, (0, i * 64), (2, 64))
        total += dl.sum(t, axis=1)
        if i == 1:
            report(t, "second")
        dl.print("i", i)
    dl.print("total", total)


@pytest.mark.parametrize("device", DEVICES)
def test_loops_and_branches(device, capsys):
    x = np.arange(2 * 192, dtype=np.float32).reshape(2, 192)
    often[1](x, 3, device=device)
    assert capsys.readouterr().out.replace("often(0): ", "").splitlines() == [
        "i = 0",
        f"second[0, 0] = {x[0, 127]}",
        f"second[1, 0] = {x[1, 127]}",
        "i = 1",
        "i = 2",
        f"total[0, 0] = {x[0].sum()}",
        f"total[1, 0] = {x[1].sum()}",
    ]


@dither.jit
def doubled(x, y):
    t = dl.load(x, (0, 0), (4, 64))
    dl.print("largest", dl.amax(dl.amax(t, axis=1), axis=0))
    dl.store(y, (0, 0), t * 2.0)


@pytest.mark.parametrize("device", DEVICES)
def test_results_stay(device, capsys):
    """And a launch like an earlier one, or with code from the disk, prints again."""
    x, y = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32), np.zeros((4, 64), np.float32)
    for kernel in (doubled, doubled, dither.jit(doubled.fn)):
        y[:] = 0
        kernel[1](x, y, device=device)
        assert (y == x * 2).all()
        assert capsys.readouterr().out == f"doubled(0): largest[0, 0] = {np.abs(x).max()}\n"


def test_what_does_not_fit(monkeypatch, capsys):
    monkeypatch.setattr(printing, "_ROOM", 4 * 256 * 6)
    show[3, 2](np.ones((12, 100), np.float32), ROWS=4, KIND=dl.float32, device="cpu")
    lines = capsys.readouterr().out.splitlines()
    # A record is five rows of 64 words; there is room for 24 of the 30 rows.
    assert len(lines) == 4 * 256 + 1
    assert lines[-1] == "show: 6 more rows were printed than fit into 0 MiB"


def test_gpus_refuse_it():
    x = np.ones((4, 64), np.float32)
    compiled = show.lower(x, ROWS=4, KIND=dl.float32, target="sm_90a").compile()

    class Gpu:
        name, is_cpu = "cuda:0", False

    with pytest.raises(ValueError, match=r"dl\.print, which runs on the CPU and the simulator, found cuda:0"):
        compiled.launch(Gpu(), (1, 1, 1), {})


def test_launches_that_cannot_print():
    with pytest.raises(ValueError, match="kernel 'doubled' cannot be prepared: each launch writes what it prints"):
        doubled.prepare(1, np.ones((4, 64), np.float32), np.ones((4, 64), np.float32), device="cpu")


@dither.jit
def wrong(x, WHAT: dl.constexpr):
    t = dl.load(x, (0, 0), (4, 64))
    if WHAT == "label":
        dl.print(t, t)
    elif WHAT == "value":
        dl.print("x", x)
    elif WHAT == "where":
        dl.print("t", t, where=t)
    else:
        dl.print("t", t, where=dl.arange(32) > 3)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("label", "label is a float32 tile of shape (4, 64), expected text"),
        ("value", "value is tensor 'x', expected a tile or a number"),
        ("where", "where is a float32 tile of shape (4, 64), expected a bool tile"),
        ("shape", "operands of dl.print have shapes (4, 64) and (32,), expected shapes that broadcast"),
    ],
)
def test_mistakes(what, message):
    with pytest.raises(CompileError) as caught:
        wrong[1](np.ones((4, 64), np.float32), WHAT=what, device="cpu")
    assert message in str(caught.value)
