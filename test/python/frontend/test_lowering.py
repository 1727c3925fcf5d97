"""The entry of the compiler: attributes of the module, positions, captured values."""

import dataclasses
import math

import dither
import dither.language as dl
import pytest
from dither import CompileError, ScalarType, TensorType, _dither
from dither.compiler import captures_of, lower
from dither.options import CodeOptions

X = TensorType(dl.bfloat16, (None, 64), align=16, stride_align=128)
ROWS = 4
UNUSED = 5


class Options:
    SCALE = 2.0


def helper(t, factor=3):
    return t * factor * Options.SCALE


def kernel(x, n, fmt: dl.constexpr = dither.NVFP4):
    t = dl.load(x, (n, 0), (ROWS, 64))
    dl.store(x, (n, 0), helper(t).to(dl.bfloat16))


def empty(x):
    """Nothing."""


def make(offset, function):
    def inner(x):
        function(dl.load(x, (offset, 0), (1, 64)))

    return inner


def test_function_and_module_attributes():
    text = lower(kernel, {"x": X, "n": ScalarType(dl.int32)}, {}, "sm_90a", CodeOptions(num_warps=4)).module.text()
    assert text.splitlines()[:2] == [
        'module attributes {quant.target = "sm_90a"} {',
        "  func.func @kernel(%x: memref<?x64xbf16, strided<[?, 1]>> {quant.align = 16 : i64, quant.stride_align = "
        "128 : i64}, %n: i32) attributes {quant.kernel, quant.num_warps = 4 : i64} {",
    ]


@pytest.mark.parametrize(
    ("target", "attributes"),
    [
        ("host", 'quant.target = "host"'),
        ("host:avx512", 'quant.features = "avx512", quant.target = "host"'),
    ],
)
def test_host_targets(target, attributes):
    module = lower(empty, {"x": X}, {}, target).module
    assert str(module).splitlines()[0] == f"module attributes {{{attributes}}} {{"
    assert "num_warps" not in str(module)


def test_text_is_a_module():
    module = lower(kernel, {"x": X, "n": ScalarType(dl.int32)}, {}, "host").module
    again = _dither.Module.parse(str(module))
    again.verify()
    # Names of values are lost; the operations are the same.
    assert [line.count("arith.") for line in str(again).splitlines()] == [
        line.count("arith.") for line in str(module).splitlines()
    ]


def test_positions():
    text = lower(kernel, {"x": X, "n": ScalarType(dl.int32)}, {}, "host").module.text(locations=True)
    first = kernel.__code__.co_firstlineno
    inner = helper.__code__.co_firstlineno + 1
    assert f'test_lowering.py":{first + 1}:9' in text  # dl.load
    # An operation of a helper knows the call.
    call = [line for line in text.splitlines() if "callsite" in line]
    assert any(f'test_lowering.py":{inner}:12 at ' in line and f'":{first + 2}:25' in line for line in call)


def test_kernel_objects():
    class Kernel:
        fn = staticmethod(empty)

    assert str(lower(Kernel(), {"x": X}, {}, "host").module) == str(lower(empty, {"x": X}, {}, "host").module)
    with pytest.raises(CompileError, match="found 3, expected a function"):
        lower(3, {}, {}, "host")


def test_lowering_twice_gives_the_same_text():
    args = {"x": X, "n": ScalarType(dl.int64)}
    assert str(lower(kernel, args, {}, "host").module) == str(lower(kernel, args, {}, "host").module)


def test_captures():
    captures = captures_of(kernel)
    here = __name__
    assert captures.values == (
        (f"{here}.kernel", "ROWS", 4),
        (f"{here}.kernel", "fmt=", dither.NVFP4),
        (f"{here}.helper", "Options.SCALE", 2.0),
        (f"{here}.helper", "factor=", 3),
    )
    assert [source.name for source in captures.sources] == ["kernel", "helper"]


def test_fingerprint_follows_values_and_sources(monkeypatch):
    before = captures_of(kernel).text
    assert captures_of(kernel).text == before
    monkeypatch.setattr(Options, "SCALE", 4.0)
    scaled = captures_of(kernel).text
    assert scaled != before
    monkeypatch.setitem(globals(), "ROWS", 4.0)
    assert captures_of(kernel).text not in (before, scaled)
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "UNUSED", 6)
    assert captures_of(kernel).text == before
    monkeypatch.setitem(globals(), "helper", empty)
    assert captures_of(kernel).text != before


def test_closures_are_captured():
    one, two = make(1, helper), make(2, helper)
    assert captures_of(one).text != captures_of(two).text
    assert captures_of(one).text == captures_of(make(1, helper)).text
    assert captures_of(one).text != captures_of(make(1, empty)).text
    # Two helpers of one name are two.
    both = [make(0, make(offset, helper)) for offset in (1, 2)]
    assert captures_of(both[0]).text != captures_of(both[1]).text
    assert [value for _, name, value in captures_of(both[1]).values if name == "offset"] == [0, 2]
    lowered = [str(lower(function, {"x": X}, {}, "host").module) for function in (one, two)]
    assert lowered[0] != lowered[1]


@pytest.mark.parametrize("function", [dl.tanh, math.sqrt, dl.float32])
def test_aliases_are_captured(monkeypatch, function):
    one = make(1, dl.exp)
    other = make(1, function)
    assert captures_of(one).text != captures_of(other).text


def test_plain_values_only():
    @dataclasses.dataclass
    class Mutable:
        rows: int = 4

    kernel = make(Mutable(), helper)
    with pytest.raises(CompileError, match=r"'offset' is a .*Mutable from outside the kernel"):
        lower(kernel, {"x": X}, {}, "host")
