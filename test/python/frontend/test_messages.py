"""Errors that a user meets are in the words of the language, not of the compiler."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import dither
import dither.language as dl
import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
#: Words that mean something to those who work on the compiler alone.
INTERNAL = re.compile(
    r"\b(memref|tensor<|vector<|layout|lanes?|fragments?|scf|arith|quant\.|lower(ed|ing)|distributed|operands?|blocks?"
    r" argument|decompos\w*|MLIR|LLVM|SSA|IR|pass(es)?|dialect|anchor|sinks?|nest)\b"
)


def messages() -> list[tuple[str, str]]:
    """(file, text) of each emitError of the passes: those are for users. An emitOpError is for developers."""
    found = []
    for source in sorted(ROOT.glob("lib/Transforms/*/*.cpp")) + sorted(ROOT.glob("lib/Target/*.cpp")):
        for call in re.findall(r"\bemitError\((.*?);", source.read_text(), re.S):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call))
            found.append((source.name, text))
    return found


def test_there_are_messages() -> None:
    assert len(messages()) > 8


@pytest.mark.parametrize(("file", "text"), messages(), ids=lambda part: part[:40])
def test_words_of_the_user(file: str, text: str) -> None:
    assert not INTERNAL.search(text), text
    assert text == text.lstrip()
    assert not text[:1].isupper()


X = np.ones((1, 8), np.float32)


@dither.jit
def unrolled(x, y, N: dl.constexpr, SHAPE: dl.constexpr):
    t = dl.load(x, (0, 0), SHAPE)
    for _ in dl.static_range(N):
        t = dl.where(t > 0.0, t + 1.0, t - 1.0)
    dl.store(y, (0, 0), t)


@dither.jit
def exponentials(x, y):
    t = dl.load(x, (0, 0), (64, 512))
    for _ in dl.static_range(4000):
        t = dl.exp(t)
    dl.store(y, (0, 0), t)


@dither.jit
def unrolled_twice(x, y):
    t = dl.load(x, (0, 0), (1, 8))
    for _ in dl.static_range(4000):
        for _ in dl.static_range(4000):
            t = t + 1.0
    dl.store(y, (0, 0), t)


def error_of(call) -> dither.CompileError:
    with pytest.raises(dither.CompileError) as info:
        call()
    return info.value


def test_thousands_of_unrolled_statements() -> None:
    y = np.zeros_like(X)
    unrolled[1](X, y, N=4000, SHAPE=(1, 8))
    assert (y == 4001).all()


def test_unrolled_statements_on_a_small_stack() -> None:
    y = np.zeros_like(X)
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: unrolled[1](X, y, N=300, SHAPE=(1, 8)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert (y == 301).all()


def test_errors_of_the_compiler_reach_the_caller_of_any_thread() -> None:
    found = []

    def run() -> None:
        found.append(error_of(lambda: exponentials.compile(X, X, target="host:avx2")))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    (error,) = found
    assert re.fullmatch(
        r"compiles to more than 200000 operations, \d+ of them for this line: use smaller tiles, or range in place of "
        r"dl.static_range",
        error.message,
    )
    assert error.span is not None
    assert error.span.file == __file__
    assert error.span.line == exponentials.fn.__code__.co_firstlineno + 4


def test_more_operations_than_anybody_waits_for() -> None:
    error = error_of(lambda: unrolled_twice.compile(X, X, target="sm_90a"))
    assert error.message == (
        "kernel has more than 65536 operations with its loops unrolled: use range in place of dl.static_range"
    )
    assert error.span is not None
    assert error.span.line == unrolled_twice.fn.__code__.co_firstlineno + 5


@dither.jit
def carried(x, y, N: dl.constexpr):
    t = dl.load(x, (0, 0), (N, 512))
    for _ in range(4):
        t = t * 2.0
    dl.store(y, (0, 0), t)


def test_a_large_tile_that_a_gpu_carries() -> None:
    x = np.ones((64, 512), np.float32)
    error = error_of(lambda: carried.compile(x, x.copy(), N=64, target="sm_90a"))
    assert error.message == (
        "a loop or a branch hands on a float32 tile of shape (64, 512), expected at most 8192 elements: use smaller "
        "tiles and more programs"
    )
    assert carried.compile(x, x.copy(), N=16, target="sm_90a").ptx
