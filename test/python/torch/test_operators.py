"""dither's operators as torch.library knows them: opcheck for each, by a table of calls."""

import dither
import pytest

torch = pytest.importorskip("torch")
import dither.torch  # noqa: E402
from dither.torch import operators  # noqa: E402
from dither.torch.calls import _parameters  # noqa: E402
from dither.torch.spelling import read, spell  # noqa: E402
from torch_calls import CALLS, x  # noqa: E402


def spelled(name):
    args, kwargs = CALLS[name]
    return spell(name, args, kwargs, _parameters(getattr(dither.ops, name)))


def test_the_table_has_every_operator():
    # update_scale writes all that it takes, and is of `in_place` (test_compile.py).
    assert set(operators.names()) - {"update_scale"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name):
    call = spelled(name)
    found = torch.library.opcheck(operators.overload(name), (call.tensors, call.numbers, call.text))
    assert set(found.values()) == {"SUCCESS"} and len(found) == 4


def test_opcheck_of_what_needs_a_gradient_writes_and_is_fused():
    leaf = x.clone().requires_grad_()
    torch.library.opcheck(torch.ops.dither.gelu.default, ([leaf], [], "'gelu'(T0)"))
    call = spell("gelu", (x,), {"out": torch.empty_like(x)}, ("x",), ("out",))
    assert call.text == "'gelu'(T0, out=W0)"
    torch.library.opcheck(torch.ops.dither.in_place.of0, (call.tensors, call.written, call.numbers, call.text))
    recorded = torch.zeros(1)
    call = spell(
        "quantize", (x, "fp8_tensor_e4m3"), {"encode_scale": 2.0, "record_amax": recorded}, ("x",), ("record_amax",)
    )
    torch.library.opcheck(torch.ops.dither.in_place.of2, (call.tensors, call.written, call.numbers, call.text))

    @dither.fuse
    def tripled(x):
        return x * 3.0

    torch.library.opcheck(torch.ops.dither.fused.default, ([x], [], f"{tripled.graph_name!r}(T0, format='nvfp4')"))


@pytest.mark.parametrize("name", ["quantize", "dequantize", "grouped_dequantize", "rms_norm", "add_dropout"])
def test_calls_are_read_as_they_were_spelled(name):
    call = spelled(name)
    found, arguments = read(call.text)
    args, kwargs = arguments(call.tensors, call.numbers, call.written)
    assert found == name
    again = spell(name, args, kwargs, _parameters(getattr(dither.ops, name)))
    assert again.text == call.text and all(a is b for a, b in zip(again.tensors, call.tensors, strict=True))


@pytest.mark.parametrize(
    "text", ["__import__('os').getcwd()", "'quantize'(T0.data)", "'quantize'(open('x'))", "1 +", "f(1)"]
)
def test_text_of_graphs_means_nothing_else(text):
    with pytest.raises(ValueError, match="call of a graph"):
        read(text)


def test_calls_that_graphs_cannot_have():
    with pytest.raises(
        TypeError, match=r"argument 'layout' is a object, which graphs of torch cannot have, expected a t"
    ):
        dither.torch.call(dither.quantize.__wrapped__, x, "nvfp4", layout=object())
    with pytest.raises(ValueError, match="found a call of operator 'nothing', expected one that is defined"):
        torch.ops.dither.fused([x], [], "'nothing'(T0)")
