"""Functions in configurations: fields of frozen dataclasses and NamedTuples, and tuples in them."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError
from ops import check

F32 = np.float32
FACTOR = 3.0


def doubled(t):
    return t * 2.0


def fivefold(t):
    return t * 5.0


def scaled(t):
    return t * FACTOR


@dataclasses.dataclass(frozen=True)
class Layer:
    activation: Callable
    bias: float = 0.0
    after: tuple = ()

    def apply(self, t):
        t = self.activation(t) + self.bias
        for function in self.after:
            t = function(t)
        return t


class Pair(NamedTuple):
    first: Any
    second: Any


GLOBAL = Layer(doubled, 1.0, (scaled, dl.abs))


@dither.jit
def of_global(x, y):
    t = dl.load(x, (0, 0), (4, 64))
    dl.store(y, (0, 0), GLOBAL.apply(t))


@dither.jit
def of_constexpr(x, y, WHAT: dl.constexpr):
    t = dl.load(x, (0, 0), (4, 64))
    dl.store(y, (0, 0), WHAT.activation(t) + WHAT.bias)


@dither.jit
def of_pair(x, y, WHAT: dl.constexpr):
    t = dl.load(x, (0, 0), (4, 64))
    dl.store(y, (0, 0), WHAT.second(WHAT[0](t)))


def run(kernel, *rest, device="cpu", **constexprs):
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(F32)
    y = np.zeros_like(x)
    kernel[1](x, y, *rest, **constexprs, device=device)
    return x, y


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_captured(device):
    x, y = run(of_global, device=device)
    check.same_bits(y, np.abs((x * F32(2) + F32(1)) * F32(3)))


def test_what_a_held_function_reads_is_part_of_the_code(monkeypatch):
    for factor in (3.0, 0.5, 3.0):
        monkeypatch.setattr(f"{__name__}.FACTOR", factor)
        x, y = run(of_constexpr, WHAT=Layer(scaled))
        check.same_bits(y, x * F32(factor))
        monkeypatch.setattr(f"{__name__}.GLOBAL", Layer(scaled, factor))
        x, y = run(of_global)
        check.same_bits(y, x * F32(factor) + F32(factor))


def test_each_function_is_code_of_its_own():
    kernel = dither.jit(of_constexpr.fn)
    for _ in range(2):
        for function, want in ((doubled, 2), (fivefold, 5), (dl.abs, None)):
            x, y = run(kernel, WHAT=Layer(function, 1.0))
            check.same_bits(y, (np.abs(x) if want is None else x * F32(want)) + F32(1))
    assert kernel.stats().compiles + kernel.stats().disk_hits == 3


def test_named_tuples_and_kernels():
    x, y = run(of_pair, WHAT=Pair(doubled, dither.jit(scaled)))
    check.same_bits(y, x * F32(2) * F32(3))
    x, y = run(of_pair, WHAT=Pair(dither.fuse(doubled), dl.abs))
    check.same_bits(y, np.abs(x * F32(2)))


@dither.jit
def of_list(x, y):
    dl.store(y, (0, 0), LISTS.activation[0](dl.load(x, (0, 0), (4, 64))))


LISTS = Layer([doubled])


def test_what_can_change_is_still_refused():
    with pytest.raises(TypeError, match="argument 'WHAT' is a Layer, expected a constexpr"):
        run(of_constexpr, WHAT=LISTS)
    with pytest.raises(CompileError, match="is a list, which can change: expected a tuple"):
        run(of_list)
    with pytest.raises(TypeError, match=r"argument 'WHAT' is a Layer, expected a constexpr"):
        run(of_constexpr, WHAT=Layer(np.zeros(3)))
