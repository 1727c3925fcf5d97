"""Kernels and torch's autograd: what a kernel writes is known to have changed, and has no gradient."""

import re

import dither
import dither.language as dl
import pytest
from dither.arrays import describe

torch = pytest.importorskip("torch")

GRADIENT = r"argument 'y' requires a gradient.*torch\.no_grad\(\), or pass y\.detach\(\)"


@pytest.fixture
def copy():
    @dither.jit
    def kernel(x, y):
        r = dl.program_id(0)
        dl.store(y, (r, 0), dl.load(x, (r, 0), (1, 4)))

    return kernel


def launches(copy, way):
    """A call that runs `copy` in this way; known ones have run before."""
    if way == "first":
        return lambda x, y, **options: copy.launch(4, x, y, **options)
    copy[4](torch.ones(4, 4), torch.zeros(4, 4))
    if way == "known":
        return lambda x, y: copy[4](x, y)
    if way == "view":
        return lambda x, y: copy[4](x, dither.view(y, shapes="trailing"))
    prepared = copy.prepare(4, torch.ones(4, 4), torch.zeros(4, 4))
    return prepared if way == "prepared" else lambda x, y: copy.prepare(4, x, y)()


WAYS = ["first", "known", "view", "prepared", "prepared for them"]


@pytest.mark.parametrize("way", WAYS)
def test_versions_of_what_is_written(copy, way):
    launch = launches(copy, way)
    x, y = torch.ones(4, 4), torch.zeros(4, 4)
    before = x._version, y._version
    launch(x, y)
    assert torch.equal(x, y)
    assert (x._version, y._version) == (before[0], before[1] + 1)


def test_versions_of_what_a_gpu_writes(copy):
    x, y = torch.ones(4, 4), torch.zeros(4, 4)
    for _ in range(2):
        before = y._version
        copy.launch(4, x, y, device="sim:sm_90a")
        assert y._version == before + 1 and x._version == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_gradient_of_what_was_overwritten_is_an_error(copy, way):
    launch = launches(copy, way)
    w = torch.ones(4, 4, requires_grad=True)
    act = w * 2
    out = (act * act).sum()
    launch(torch.full((4, 4), 5.0), act.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["leaf", "parameter", "result", "view"])
def test_outputs_that_require_a_gradient(copy, way, kind):
    launch = launches(copy, way)
    leaf = torch.zeros(4, 4, requires_grad=True)
    y = {"leaf": leaf, "parameter": torch.nn.Parameter(torch.zeros(4, 4)), "result": leaf + 0, "view": leaf.view(4, 4)}
    y = y[kind]
    with pytest.raises(ValueError, match=GRADIENT):
        launch(torch.ones(4, 4), y)
    assert not y.any()
    with torch.no_grad():
        launch(torch.ones(4, 4), y)
    assert y.all()
    launch(torch.zeros(4, 4), y.detach())
    assert not y.any()


@pytest.mark.parametrize("way", WAYS)
def test_inputs_that_require_a_gradient(copy, way):
    launch = launches(copy, way)
    x, y = torch.ones(4, 4, requires_grad=True), torch.zeros(4, 4)
    launch(x * 2, y)
    launch(x, y)
    assert torch.equal(x, y) and not y.requires_grad


@pytest.mark.parametrize("way", WAYS)
def test_inference_mode(copy, way):
    launch = launches(copy, way)
    with torch.inference_mode():
        x, y = torch.ones(4, 4), torch.zeros(4, 4)
        launch(x, y)
        assert torch.equal(x, y)
    y = torch.zeros_like(y) if y.is_inference() else y
    launch(x, y)
    assert torch.equal(x, y)


def test_tensor_of_inference_mode_outside_of_it(copy):
    """It has no version. The second launch is in C++, which cannot catch what torch would throw."""
    with torch.inference_mode():
        y = torch.empty(4, 4)
    for value in (1.0, 2.0, 3.0):
        copy[4](torch.full((4, 4), value), y)
        assert (y == value).all()
    assert copy._launcher.hits == 2


def test_the_same_tensor_and_a_part_of_the_graph(copy):
    w = torch.ones(4, 4, requires_grad=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="requires a gradient"):
            copy[4](w, w.detach())
        version = w._version
        copy[4](w.detach(), w.detach())
        assert w._version > version


def test_where_torch_has_other_functions(tmp_path):
    """Without the functions of torch's libraries, its Python methods do the same."""
    import subprocess
    import sys

    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, torch, dither, dither.language as dl\n"
        "class Other(torch.Tensor):\n"
        "    _cdata = 0  # not where the tensor is\n"
        "@dither.jit\n"
        "def copy(x, y):\n"
        "    dl.store(y, (0, 0), dl.load(x, (0, 0), (4, 4)))\n"
        "x, y = torch.ones(4, 4), torch.zeros(4, 4)\n"
        "for _ in range(3):\n"
        "    copy[1](x.as_subclass(Other), y)\n"
        "assert y.all() and y._version == 3 and copy._launcher.hits == 2, (y._version, copy.stats())\n"
        "for bad, out in ((torch._neg_view(x), y), (x, torch.nn.Parameter(y))):\n"
        "    try:\n"
        "        copy[1](bad, out)\n"
        "    except (TypeError, ValueError) as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"resolve_neg.*\n.*'y' requires a gradient", done.stdout), done.stdout


def test_descriptions_of_tensors_are_tensors(copy):
    """What operators launch with may be the description of a tensor: torch is told of every launch, not the first."""
    x, y = torch.ones(4, 4), torch.zeros(4, 4)
    for _ in range(4):
        before = y._version
        copy[4](x, describe(y))
        assert y._version > before
    leaf = torch.zeros(4, 4, requires_grad=True)
    with pytest.raises(ValueError, match="requires a gradient"):
        copy[4](x, describe(leaf))
