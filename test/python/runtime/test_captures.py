"""What a kernel captures is part of its key: changing it compiles anew, also where launches stay in C++."""

import dataclasses
import types

import dither
import dither.language as dl
import loaded
import numpy as np
import pytest
from dither import stats

FACTOR = 2.0
config = types.ModuleType("config")
config.FACTOR = 1.0


class Settings:
    FACTOR = 1.0


def double(t):
    return t * 2.0


def triple(t):
    return t * 3.0


helper = double


def inner(t):
    return helper(t)


def default(t, factor=2.0):
    return t * factor


def keyword(t, *, factor=2.0):
    return t * factor


X = np.arange(8, dtype=np.float32)
Y = np.zeros_like(X)


def run(kernel):
    """The factor that a kernel multiplies by: three times, the last two in C++ if nothing changed."""
    found = set()
    for _ in range(3):
        Y[:] = 0
        kernel[1](X, Y)
        found.add(float(Y[1]))
        np.testing.assert_array_equal(Y, X * Y[1])
    assert len(found) == 1
    return found.pop()


@pytest.fixture
def stays():
    """stays(kernel): that another launch is a hit in C++."""

    def check(kernel):
        before = kernel._launcher.hits
        run(kernel)
        assert kernel._launcher.hits >= before + 2

    return check


def test_globals(monkeypatch, stays):
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * FACTOR)

    assert run(kernel) == 2
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert run(kernel) == 5
    stays(kernel)
    monkeypatch.undo()
    builds = len(kernel.stats.builds)
    assert run(kernel) == 2
    assert len(kernel.stats.builds) == builds  # the first is still there
    name, before, now = kernel.stats.builds[-1].differs[0]
    assert (name.split()[0], before, now) == ("'FACTOR'", "2.0", "5.0")


def test_builds_are_compared_when_they_are_asked(monkeypatch):
    """Not at each compilation, which took longer with each variant of a kernel."""

    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * FACTOR)

    compared = []
    differences = stats.differences
    monkeypatch.setattr(stats, "differences", lambda *given: compared.append(given) or differences(*given))
    for factor in (2.0, 3.0, 4.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        run(kernel)
    builds = kernel.stats.builds
    assert not compared
    assert [build.reason.partition(" is ")[2] for build in builds[1:]] == ["3.0, was 2.0", "4.0, was 3.0"]
    assert (builds[0].reason, len(compared)) == ("the first launch", 3)


def test_attributes_of_modules_and_classes(monkeypatch, stays):
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * config.FACTOR * Settings.FACTOR)

    assert run(kernel) == 1
    monkeypatch.setattr(config, "FACTOR", 2.0)
    assert run(kernel) == 2
    monkeypatch.setattr(Settings, "FACTOR", 3.0)
    assert run(kernel) == 6
    stays(kernel)


def test_closures(stays):
    factor = 2.0

    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * factor)

    assert run(kernel) == 2
    factor = 4.0
    assert run(kernel) == 4
    stays(kernel)


def test_callees_and_what_they_call(monkeypatch, stays):
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), inner(dl.load(x, (0,), (8,))))

    assert run(kernel) == 2
    monkeypatch.setitem(globals(), "helper", triple)
    assert run(kernel) == 3
    stays(kernel)


@pytest.mark.parametrize("callee", [default, keyword])
def test_defaults_of_callees(monkeypatch, callee, stays):
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), callee(dl.load(x, (0,), (8,))))

    assert run(kernel) == 2
    if callee is default:
        monkeypatch.setattr(callee, "__defaults__", (7.0,))
    else:
        monkeypatch.setitem(callee.__kwdefaults__, "factor", 7.0)
    assert run(kernel) == 7
    stays(kernel)


def test_a_name_that_appears_later(monkeypatch):
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * float(2))

    assert run(kernel) == 2
    monkeypatch.setitem(globals(), "float", lambda x: 6.0)
    with pytest.raises(dither.CompileError):  # no function to be compiled
        run(kernel)
    monkeypatch.undo()
    assert run(kernel) == 2


def test_moving_a_function_compiles_nothing(tmp_path):
    source = (
        "import dither, dither.language as dl\n\n@dither.jit\ndef kernel(x, y):\n"
        "    dl.store(y, (0,), dl.load(x, (0,), (8,)) * 9.0)\n"
    )
    moved = source.replace("\n\n@", "\n# a comment\n\n\nother = 1\n\n\n@").replace("    dl.store", "\n    dl.store")
    found = []
    for name, text in (("one.py", source), ("two.py", moved)):
        module = loaded.load(tmp_path / name, text)
        assert run(module.kernel) == 9
        found.append([build.source for build in module.kernel.stats.builds])
    assert found[1] == ["disk"]


@pytest.fixture
def reads(monkeypatch):
    """The kernels whose captures were read, each time that they were."""
    from dither.compiler import capture_memory

    read, captures_of = [], capture_memory.captures_of

    def count(kernel, constexprs):
        read.append(kernel.__name__)
        return captures_of(kernel, constexprs)

    monkeypatch.setattr(capture_memory, "captures_of", count)
    return read


def test_variants_share_what_was_read(monkeypatch, reads):
    @dither.jit
    def kernel(x, y, N: dl.constexpr):
        dl.store(y, (0,), inner(dl.load(x, (0,), (8,))) * N)

    def text(n):
        return kernel.lower(X, Y, N=n).text

    two = text(2)
    assert two != text(3) and text(2) == two
    assert reads == ["kernel"]
    monkeypatch.setitem(globals(), "helper", triple)
    assert text(2) != two
    assert reads == ["kernel"] * 2
    monkeypatch.setitem(globals(), "helper", double)
    assert text(2) == two


def test_functions_that_are_passed_are_read_each(reads):
    @dither.jit
    def kernel(x, y, F: dl.constexpr):
        dl.store(y, (0,), F(dl.load(x, (0,), (8,))))

    texts = {f.__name__: kernel.lower(X, Y, F=f).text for f in (double, triple, inner)}
    assert len(set(texts.values())) == 2 and texts["inner"] == texts["double"]
    before = len(reads)
    assert all(kernel.lower(X, Y, F=f).text == texts[f.__name__] for f in (inner, double, triple))
    assert len(reads) == before == 3


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: float


@pytest.mark.parametrize("holder", [Settings, Frozen(1.0)], ids=["class", "dataclass"])
def test_an_attribute_that_appears_later(monkeypatch, holder):
    monkeypatch.setattr(config, "holder", holder, raising=False)

    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * config.holder.LATER)

    for _ in range(2):
        with pytest.raises(dither.CompileError, match="LATER"):
            kernel.lower(X, Y)
    monkeypatch.setattr(holder if isinstance(holder, type) else type(holder), "LATER", 4.0, raising=False)
    assert run(kernel) == 4
