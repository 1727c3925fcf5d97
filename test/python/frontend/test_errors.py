"""Every error of the frontend, in full: errors.txt holds bodies of a kernel and what compiling them must print."""

import linecache
import pickle
import textwrap
from pathlib import Path

import dither.language as dl
import pytest
from dither import CompileError, ScalarType, TensorType
from dither.compiler import lower
from dither.compiler.hints import INSTEAD

HEADER = """import math

import numpy

import dither
import dither.language as dl

NUMBERS = [1, 2]
ARRAY = numpy.zeros(3)


def helper(t, u):
    return t @ u


def outer(t):
    return 1 + helper(t, 2)


def recursive(t):
    return recursive(t)


def needs_constexpr(n: dl.constexpr):
    return n


def branches(n):
    if n > 0:
        return dl.zeros((1, 64))
    return 2.0


def variadic(*values):
    return values


short = lambda t: t


def kernel(x, n, v=None):
"""
ARGS = {"x": TensorType(dl.float32, (None, 64)), "n": ScalarType(dl.int32)}
CASES = [
    tuple(part.strip("\n") for part in case.split("--- error\n"))
    for case in (Path(__file__).parent / "errors.txt").read_text().split("=== kernel\n")[1:]
]


@pytest.fixture
def load(tmp_path, monkeypatch):
    """load(text, name) -> what the text defines under this name; its file is k.py here."""
    monkeypatch.chdir(tmp_path)
    linecache.clearcache()

    def define(text, name="kernel"):
        Path("k.py").write_text(text)
        names = {"__name__": "k"}
        exec(compile(text, "k.py", "exec"), names)
        return names[name]

    yield define
    linecache.clearcache()


def error_of(kernel, args=ARGS, constexprs=None):
    with pytest.raises(CompileError) as info:
        lower(kernel, args, constexprs or {}, "host")
    return info.value


@pytest.mark.parametrize(("body", "expected"), CASES, ids=lambda text: text.split("\n")[0][:60])
def test_message(load, body, expected):
    error = error_of(
        load(HEADER + textwrap.indent(body, "    ") + "\n"), {**ARGS, "v": TensorType(dl.float32, (None,))}
    )
    assert str(error) == expected


def test_cases_are_distinct():
    assert len({body for body, _ in CASES}) == len(CASES) > 100


def test_hints_are_of_names_that_there_are_not():
    assert {name for name in INSTEAD if hasattr(dl, name)} == {"cast"}  # of tiles


def test_no_frame_of_the_walker_is_shown(load):
    error = error_of(load("def kernel(x, n):\n    y = n @ 2\n"))
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert frames == ["error_of", "lower"]
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_condition_of_a_branch_that_returns(load):
    helper = "def helper(t):\n    if t > 0.0:\n        return t\n    return -t\n\n\n"
    kernel = "def kernel(x, n):\n    helper(dl.load(x, (0, 0), (4, 64)))\n"
    error = error_of(load("import dither.language as dl\n" + helper + kernel))
    assert str(error) == (
        "k.py:3:8: condition is a bool tile of shape (4, 64), expected a scalar or a constexpr: use dl.where to choose"
        " elements\n    if t > 0.0:\n       ^~~~~~~\n"
        "in helper, called from k.py:9:5\n    helper(dl.load(x, (0, 0), (4, 64)))\n    " + "^" + 34 * "~"
    )


def test_an_expression_is_nested_too_deeply(load):
    error = error_of(load("def kernel(x, n):\n    y = n" + " + 1" * 1000 + "\n"))
    assert "nested too deeply" in str(error)
    assert str(error).startswith("k.py:")


def test_attributes_and_pickling(load):
    error = error_of(load(HEADER + "    y = outer(n)\n"))
    assert error.message.startswith("'@' of an int32 scalar and 2")
    assert (error.span.file, error.span.line, error.span.col, error.span.width) == ("k.py", 13, 12, 5)
    assert [(span.function, span.line) for span in error.callers] == [("outer", 17), ("kernel", 42)]
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.callers == error.callers


@pytest.mark.parametrize(
    ("args", "constexprs", "expected"),
    [
        ({}, {}, "k.py:1:12: no value for parameter 'x'\n    def kernel(x, rows=4, *, flag):\n               ^"),
        (
            {"x": ARGS["x"]},
            {"flag": 1, "row": 2},
            "k.py:1:5: 'kernel' has no parameter 'row'; did you mean 'rows'?\n"
            "    def kernel(x, rows=4, *, flag):\n        ^~~~~~",
        ),
        (
            {"x": ARGS["x"]},
            {"flag": [1]},
            "k.py:1:26: constexpr 'flag' is an object of type list, expected a number, string, tuple, format, data "
            "type or function (of dl, or written in Python)\n"
            "    def kernel(x, rows=4, *, flag):\n                             ^~~~",
        ),
        (
            {"x": 3},
            {"flag": 1},
            "k.py:1:12: argument 'x' is 3, expected a TensorType or ScalarType\n"
            "    def kernel(x, rows=4, *, flag):\n               ^",
        ),
        (
            {"x": TensorType(dl.bool, (4,))},
            {"flag": 1},
            "k.py:1:12: argument 'x' is a tensor of bool, expected integers, floats or codes: memory holds masks and "
            "indices as int32 or int64\n    def kernel(x, rows=4, *, flag):\n               ^",
        ),
        (
            {"x": ARGS["x"], "flag": ARGS["n"]},
            {"flag": 1},
            "k.py:1:26: 'flag' is an argument and a constexpr, expected one\n"
            "    def kernel(x, rows=4, *, flag):\n                             ^~~~",
        ),
    ],
)
def test_parameters(load, args, constexprs, expected):
    kernel = load("def kernel(x, rows=4, *, flag):\n    pass\n")
    assert str(error_of(kernel, args, constexprs)) == expected


def test_star_parameters(load):
    kernel = load("def kernel(*xs):\n    pass\n")
    assert (
        str(error_of(kernel, {}))
        == "k.py:1:13: kernel takes '*xs', expected named parameters\n    def kernel(*xs):\n                ^~"
    )


def test_source_that_changed(load):
    kernel = load("def kernel(x, n):\n    y = n\n")
    Path("k.py").write_text("def other(x, n):\n    y = n\n")
    assert str(error_of(kernel)) == (
        "the source of 'kernel' in 'k.py' changed since it was imported: start Python anew, or reload the module"
    )


def test_missing_source():
    names = {}
    exec("def kernel(x, n):\n    pass\n", names)
    message = "the source of 'kernel' was not found in '<string>', expected a function in a file"
    assert str(error_of(names["kernel"])) == message


def test_builtins_outside_a_kernel():
    message = (
        "dl.load was called outside a kernel, expected a call in a function with @dither.jit, which a launch compiles"
    )
    with pytest.raises(RuntimeError) as info:
        dl.load(None)
    assert str(info.value) == message
    with pytest.raises(TypeError, match=r"dl\.constexpr annotates parameters"):
        dl.constexpr(3)
    assert dl.cdiv(7, 4) == 2
    with pytest.raises(TypeError, match="cdiv of float and int, expected integers"):
        dl.cdiv(7.0, 4)
