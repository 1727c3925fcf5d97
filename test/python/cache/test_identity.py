"""What of configurations is in a key: all that a kernel can read of them, and never what `repr` or `==` say."""

import dataclasses
import enum
import math
import struct
import threading
import typing

import dither
import dither.language as dl
import loaded
import numpy as np
import pytest
from dither import CompileError
from dither.compiler import captures_of

X = np.arange(8, dtype=np.float32)

#: Definitions of a configuration C from which a kernel reads V, by an expression.
CONFIGURATIONS = {
    "a field": ("@dataclass(frozen=True)\nclass A:\n    n: float\nC = A(V)", "C.n"),
    "a field that repr leaves out": (
        "@dataclass(frozen=True)\nclass A:\n    n: float = field(repr=False)\nC = A(V)",
        "C.n",
    ),
    "a field that == leaves out": (
        "@dataclass(frozen=True)\nclass A:\n    n: float = field(compare=False)\nC = A(V)",
        "C.n",
    ),
    "a class with a repr of its own": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    def __repr__(self): return 'A'\n"
        "    def __eq__(self, other): return True\n    def __hash__(self): return 1\nC = A(V)",
        "C.n",
    ),
    "a field of a field": (
        "@dataclass(frozen=True)\nclass A:\n    n: float = field(repr=False)\n"
        "@dataclass(frozen=True)\nclass B:\n    a: A\nC = B(A(V))",
        "C.a.n",
    ),
    "an entry of a tuple": (
        "@dataclass(frozen=True)\nclass A:\n    n: float = field(repr=False)\nC = (1, (A(V), 2))",
        "C[1][0].n",
    ),
    "a property": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    @property\n    def scale(self): return self.n * V\nC = A(1.0)",  # noqa: E501
        "C.scale",
    ),
    "a property that kernels could not compute": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    @property\n    def scale(self): return {1.0: V}[self.n]\n"
        "C = A(1.0)",
        "C.scale",
    ),
    "a property of what a property gives": (
        "@dataclass(frozen=True)\nclass A:\n    n: float = field(repr=False)\n    @property\n"
        "    def inner(self): return A(V)\nC = A(1.0)",
        "C.inner.n",
    ),
    "a cached property": (
        "from functools import cached_property\n@dataclass(frozen=True)\nclass A:\n    n: float\n"
        "    @cached_property\n    def scale(self): return self.n * V\nC = A(1.0)",
        "C.scale",
    ),
    "a method": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    def scale(self, k): return self.n * V * k\nC = A(1.0)",
        "C.scale(1)",
    ),
    "a method that calls": (
        "def f(n): return n * V\n@dataclass(frozen=True)\nclass A:\n    n: float\n"
        "    def scale(self): return f(self.n)\nC = A(1.0)",
        "C.scale()",
    ),
    "a method that reads what the kernel does not": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    def scale(self): return self.hidden\n"
        "    @property\n    def hidden(self): return V\nC = A(1.0)",
        "C.scale()",
    ),
    "a static method": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    @staticmethod\n    def scale(): return V\nC = A(1.0)",
        "C.scale()",
    ),
    "a variable of the class": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    SCALE: ClassVar[float] = V\nC = A(1.0)",
        "C.SCALE",
    ),
    "an attribute made on demand": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\n    def __getattr__(self, name):\n"
        "        if name == 'scale': return V\n        raise AttributeError(name)\nC = A(1.0)",
        "C.scale",
    ),
    "a field of a NamedTuple": ("class A(NamedTuple):\n    n: float\nC = A(V)", "C.n"),
    "an entry of a NamedTuple": (
        "class A(NamedTuple):\n    n: float\n    def __repr__(self): return 'A'\nC = A(V)",
        "C[0]",
    ),
    "a method of a NamedTuple": (
        "class A(NamedTuple):\n    n: float\n    def scale(self): return self.n * V\nC = A(1.0)",
        "C.scale()",
    ),
    "a property of a NamedTuple": (
        "class A(NamedTuple):\n    n: float\n    @property\n    def scale(self): return self.n * V\nC = A(1.0)",
        "C.scale",
    ),
    "the value of an enum": ("class A(Enum):\n    M = V\nC = A.M", "C.value"),
    "a property of an enum": ("class A(Enum):\n    M = 1\n    @property\n    def scale(self): return V\nC = A.M", "C.scale"),  # noqa: E501
    "an attribute of a member": (
        "class A(Enum):\n    M = 1\n    def __init__(self, n): self.scale = V\nC = A.M",
        "C.scale",
    ),
    "a number that is a member": ("class A(IntEnum):\n    M = int(V)\nC = A.M", "float(C * 1)"),
    "a string that is a member": ("class A(str, Enum):\n    M = str(V)\nC = A.M", "float(C.upper())"),
    "the class of an object": (
        "@dataclass(frozen=True)\nclass A:\n    n: float = 1.0\n@dataclass(frozen=True)\nclass B:\n    n: float = 1.0\n"
        "C = (A if V == 2 else B)()",
        "2.0 if isinstance(C, A) else 5.0",
    ),
    "a number of NumPy": ("import numpy\nC = numpy.float32(V)", "C"),
    "a number of NumPy in a field": ("import numpy\n@dataclass(frozen=True)\nclass A:\n    n: float\nC = A(numpy.float64(V))", "C.n"),  # noqa: E501
    "the bits of a zero": (
        "@dataclass(frozen=True)\nclass A:\n    n: float\nC = A(0.0 if V == 2 else -0.0)",
        "2.0 if str(C.n) == '0.0' else 5.0",
    ),
    "the type of a number": (
        "@dataclass(frozen=True)\nclass A:\n    n: object\nC = A(1 if V == 2 else True)",
        "5.0 if isinstance(C.n, bool) else 2.0",
    ),
}  # fmt: skip
PASSED = "    dl.store(y, (0,), dl.load(x, (0,), (8,)) * ({}))\n"
SOURCE = """from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import ClassVar, NamedTuple
import dither, dither.language as dl
V = {}
{}
@dither.jit
def captured(x, y):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * ({}))
@dither.jit
def passed(x, y, C: dl.constexpr):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * ({}))
@dither.jit
def indirect(x, y, C: dl.constexpr):
    dl.store(y, (0,), scaled(dl.load(x, (0,), (8,)), C))
def scaled(t, C):
    return t * ({})
"""


def aligned():
    memory = np.zeros(32, np.float32)
    start = -memory.ctypes.data // 4 % 16
    return memory[start : start + 8]


IN, OUT = aligned(), aligned()
IN[:] = X


def run(kernel, *args):
    """The factor that a kernel multiplies by: three times, the last ones in C++ if nothing changed."""
    found = set()
    for _ in range(3):
        OUT[:] = 0
        kernel[1](IN, OUT, *args)
        found.add(float(OUT[1]))
    assert len(found) == 1
    return found.pop()


@pytest.fixture
def load(tmp_path):
    """load(text): a module of this text, always of one file, as another process would have it."""

    def make(text):
        return loaded.load(tmp_path / "configured.py", text)

    return make


@pytest.mark.parametrize("what", CONFIGURATIONS)
def test_code_on_disk_is_of_what_is_read_of_a_configuration(load, what):
    setup, expression = CONFIGURATIONS[what]
    for value in (2.0, 5.0):
        module = load(SOURCE.format(value, setup, expression, expression, expression))
        for kernel in (module.captured, module.passed, module.indirect):
            args = () if kernel is module.captured else (module.C,)
            assert run(kernel, *args) == value, f"{kernel} for {value}"
    before = load(SOURCE.format(2.0, setup, expression, expression, expression))
    assert run(before.captured) == 2
    assert [build.source for build in before.captured.stats.builds] == ["disk"]


@pytest.mark.parametrize("what", CONFIGURATIONS)
def test_code_in_memory_is_of_what_is_read_of_a_configuration(load, what, tmp_path):
    setup, expression = CONFIGURATIONS[what]
    module = load(SOURCE.format(2.0, setup, expression, expression, expression))
    first = module.C
    assert [run(module.captured), run(module.passed, first), run(module.indirect, first)] == [2, 2, 2]
    module.V = 5.0
    (tmp_path / "again.py").write_text(setup)
    exec(compile(setup, str(tmp_path / "again.py"), "exec"), module.__dict__)
    assert [run(module.captured), run(module.passed, module.C), run(module.indirect, module.C)] == [5, 5, 5]


@dataclasses.dataclass(frozen=True)
class Config:
    n: float = 1.0
    factor: typing.ClassVar[float] = 2.0

    @property
    def scale(self):
        return self.n * FACTOR

    def times(self, t):
        return t * self.n * FACTOR


FACTOR = 2.0
CONFIG = Config()


@dither.jit
def reads_property(x, y, C: dl.constexpr):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * C.scale)


@dither.jit
def calls_method(x, y, C: dl.constexpr):
    dl.store(y, (0,), C.times(dl.load(x, (0,), (8,))))


@dither.jit
def reads_class(x, y, C: dl.constexpr):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * C.factor)


@dither.jit
def reads_captured(x, y):
    dl.store(y, (0,), CONFIG.times(dl.load(x, (0,), (8,))) * CONFIG.scale * CONFIG.factor)


@pytest.mark.parametrize("kernel", [reads_property, calls_method, reads_class])
def test_what_an_object_reads_may_change_between_launches(monkeypatch, kernel):
    assert run(kernel, CONFIG) == 2
    monkeypatch.setattr(Config, "factor", 5.0)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert run(kernel, CONFIG) == 5
    monkeypatch.undo()
    assert run(kernel, CONFIG) == 2


def test_what_a_captured_object_reads_may_change_between_launches(monkeypatch):
    assert run(reads_captured) == 8
    monkeypatch.setattr(Config, "factor", 3.0)
    assert run(reads_captured) == 12
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert run(reads_captured) == 75


@pytest.mark.parametrize("kernel", [reads_property, calls_method, reads_class])
def test_launches_with_an_object_stay_in_cpp(kernel):
    run(kernel, CONFIG)
    before = kernel._launcher.hits
    run(kernel, CONFIG)
    assert kernel._launcher.hits == before + 3


def text_of(value, name="C"):
    def kernel(x):
        pass

    return captures_of(kernel, {name: value}).constexprs


class Color(enum.Enum):
    RED = 1
    CRIMSON = 1  # noqa: PIE796
    BLUE = 2


class Point(typing.NamedTuple):
    x: int
    y: int


def test_values_that_are_not_one():
    nans = [
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1)
    ]
    values = [0, False, 0.0, -0.0, 1, True, 1.0, None, "", "None", "1", (), (1,), ((1,),), (1, (1,)), (True,), (1.0,)]
    values += [
        *nans,
        math.inf,
        -math.inf,
        2**70,
        float(2**70),
        "a, b",
        ("a", "b"),
        Color.RED,
        Color.BLUE,
        Point(1, 2),
        (1, 2),
    ]
    values += [dither.NVFP4, dither.NVFP4.with_(order="div6_mul"), dl.float32, "float32", dl.linear, dl.swizzle_128x4]
    values += [Config(1.0), Config(1), Config(True), Config(0.0), Config(-0.0), Config("1.0"), Config((1.0,))]
    texts = [text_of(value) for value in values]
    assert len(set(texts)) == len(values)
    assert texts == [text_of(value) for value in values]
    assert text_of(Color.RED) == text_of(Color.CRIMSON)
    assert text_of(np.float64(0.5)) == text_of(np.float32(0.5)) == text_of(0.5)
    assert text_of(np.int64(1)) == text_of(1)
    assert text_of(np.bool_(True)) == text_of(True)


def test_two_classes_of_one_name():
    def make():
        @dataclasses.dataclass(frozen=True)
        class Same:
            n: int = 1

        return Same()

    one, two = make(), make()
    assert text_of((one, one)) != text_of((one, two))
    assert text_of(one) == text_of(two)


def double(t):
    return t * 2.0


def triple(t):
    return t * 3.0


first = second = double
third = triple


def test_which_name_means_which_function(monkeypatch):
    """The same functions in the same order, by other names."""

    @dither.jit
    def kernel(x, y):
        t = dl.load(x, (0,), (8,))
        dl.store(y, (0,), first(t) + second(second(t)) + third(third(third(t))))

    assert run(kernel) == 2 + 4 + 27
    monkeypatch.setitem(globals(), "second", triple)
    monkeypatch.setitem(globals(), "third", double)
    assert run(kernel) == 2 + 9 + 8


def test_a_name_of_python_that_is_replaced(monkeypatch):
    import builtins

    @dither.jit
    def kernel(x, y):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * abs(-2.0))

    assert run(kernel) == 2
    monkeypatch.setattr(builtins, "abs", triple)
    assert run(kernel) == -6


class Celsius(float):
    unit = "C"


class Loud(enum.Enum):
    A = 1

    def __eq__(self, other):
        return True

    __hash__ = None


class Sized(typing.NamedTuple):
    n: int

    def __len__(self):
        return 5


@dataclasses.dataclass(frozen=True)
class Falsy:
    n: int = 1

    def __bool__(self):
        return False


@dataclasses.dataclass
class Mutable:
    n: int = 1


@dataclasses.dataclass(frozen=True)
class Holds:
    n: object


class Decides(type):
    def __instancecheck__(cls, value):
        return True


class Anything(metaclass=Decides):
    pass


VALUE = None


@dither.jit
def kernel_of(x, y, E: dl.constexpr):
    if E == "value":
        v = VALUE
    if E == "same":
        v = VALUE == VALUE
    if E == "in":
        v = VALUE in (VALUE, VALUE)
    if E == "text":
        v = str(VALUE)
    if E == "format":
        v = f"{VALUE}"
    if E == "is":
        v = VALUE is VALUE
    if E == "isinstance":
        v = isinstance(1, VALUE)
    if E == "attribute":
        v = VALUE.missing
    if E == "property":
        v = VALUE.broken
    if E == "module":
        m = VALUE
        v = m.pi
    if v is not None:
        dl.store(y, (0,), dl.load(x, (0,), (8,)))


@dataclasses.dataclass(frozen=True)
class Broken:
    @property
    def broken(self):
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("value", "use", "message"),
    [
        (Celsius(1.0), "value", "'VALUE' is a .*Celsius, a class derived from float: expected a plain float"),
        ((1, Celsius(1.0)), "value", "an entry of 'VALUE' is a .*Celsius"),
        (Loud.A, "value", "'VALUE' is a .*Loud, which defines __eq__: kernels run no operators of classes"),
        (Sized(1), "value", "'VALUE' is a .*Sized, which defines __len__"),
        (Falsy(), "value", "'VALUE' is a .*Falsy, which defines __bool__"),
        (Mutable(), "value", "'VALUE' is a .*Mutable from outside the kernel"),
        (Holds([1]), "value", "'VALUE'.n is a list, which can change: expected a tuple"),
        (Holds(Mutable()), "value", "'VALUE'.n is a .*Mutable from outside"),
        (Config(), "same", "an operation of a Config, expected its fields"),
        (Config(), "in", "an operation of a Config, expected its fields"),
        ((1, Config()), "same", "an operation of a Config, expected its fields"),
        (Config(), "text", "the text of a Config, expected its fields"),
        (Point(1, 2), "format", "the text of a Point, expected its fields"),
        (Color.RED, "text", "the text of a Color, expected its fields"),
        (300, "is", "'is' of 300 and 300, expected '=='"),
        (Config(), "is", "'is' of .*, expected '=='"),
        (Anything, "isinstance", "isinstance of 'Anything', which decides itself: expected an ordinary class"),
        (Config(), "attribute", "has no attribute 'missing'"),
        (Broken(), "property", "RuntimeError: not today"),
        (math, "module", "'pi' of a module in a variable, expected the module by its own name"),
    ],
)
def test_what_is_refused(monkeypatch, value, use, message):
    monkeypatch.setitem(globals(), "VALUE", value)
    with pytest.raises(CompileError, match=message):
        kernel_of[1](IN, OUT, use)


@pytest.mark.parametrize(
    ("value", "use"),
    [
        *[(Color.RED, "same"), (Color.RED, "is"), (Point(1, 2), "same"), (None, "is"), (True, "is")],
        *[(dither.NVFP4, "is"), (Point(1, 2), "in"), (Config(), "value"), (int, "isinstance"), (Falsy, "isinstance")],
        (1.5, "format"),
    ],
)
def test_what_is_allowed(monkeypatch, value, use):
    monkeypatch.setitem(globals(), "VALUE", value)
    kernel_of[1](IN, OUT, use)


@dataclasses.dataclass(frozen=True)
class Endless:
    n: int = 0

    @property
    def next(self):
        return Endless(self.n + 1)


@dither.jit
def reads_endless(x, y, C: dl.constexpr, N: dl.constexpr):
    for _ in dl.static_range(N):
        C = C.next
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * float(C.n))


def test_a_property_that_makes_objects_without_end():
    assert run(reads_endless, Endless(), 3) == 3
    assert run(reads_endless, Endless(1), 3) == 4
    with pytest.raises(CompileError, match="'next' of a Endless that more than 4 properties lead to"):
        run(reads_endless, Endless(), 5)


def test_what_changes_while_a_kernel_compiles_is_not_read_again(load):
    """A thread changes a global all the time; later launches tell whether code was kept under a wrong key."""
    text = "import dither, dither.language as dl\nG = 0\ndef scale(t):\n    return t + float(G)\n"
    text += "@dither.jit\ndef kernel(x, y, I: dl.constexpr):\n    t = dl.load(x, (0,), (8,)) * 0.0\n"
    text += "    t = t + float(G) - float(G)\n" * 30 + "    dl.store(y, (0,), scale(t))\n"
    module = load(text)
    stop = threading.Event()

    def flip():
        while not stop.is_set():
            module.G ^= 1

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for i in range(20):
            module.kernel[1](IN, OUT, i)
    finally:
        stop.set()
        thread.join()
    again = load(text)  # reads what was kept on disk
    for i in range(20):
        for value in (0, 1):
            for one in (module, again):
                one.G = value
                one.kernel[1](IN, OUT, i)
                assert (value == OUT).all(), (i, value, one is again)
