"""The examples of help(dl): each is run as part of a kernel, on the CPU and a simulated GPU."""

import inspect
import re
import textwrap

import dither.language as dl
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_90a"]


def example_of(name):
    """The last indented lines of a docstring, if any."""
    lines = inspect.getdoc(getattr(dl, name)).split("\n")
    indented = [line for line in lines if line.startswith("    ")]
    return textwrap.dedent("\n".join(indented))


EXAMPLES = sorted(name for name in dl.__all__ if inspect.getdoc(getattr(dl, name)) and example_of(name))


def concat(x):
    return np.concatenate([x[:, 64:], x[:, :64]], 1)


#: For each example: the tensors of the kernel (the first one is the result), its constexprs, what comes before and
#: after the example, and what the result must be.
USES = {
    "concat": (
        [(8, 128), (8, 128)],
        {},
        "t = dl.load(b, (0, 0), (8, 128))",
        "dl.store(a, (0, 0), half)",
        lambda b: concat(b),
    ),
    "hadamard": (
        [(16, 16), (16, 16)],
        {},
        "t = dl.load(b, (0, 0), (16, 16))",
        "dl.store(a, (0, 0), dl.hadamard(r, axis=0))",
        # Transformed twice, what is left are the signs.
        lambda b: np.where([[0xD7E8 >> i & 1] for i in range(16)], -b, b),
    ),
    "load": (
        [(8, 128), (2, 9, 3, 128)],
        {"ROWS": 8},
        "b, i, h, x = 1, 1, 2, b",
        "dl.store(a, (0, 0), t)",
        lambda b: b[1, 1:9, 2],
    ),
    "philox": (
        [(8, 64)],
        {"ROWS": 8, "n": 64, "seed": 7},
        "row = 0",
        "dl.store(a, (0, 0), (u >= 0.0).to(dl.float32) * (u < 1.0).to(dl.float32))",
        lambda: np.ones((8, 64)),
    ),
}


def test_every_example_is_used():
    assert sorted(USES) == EXAMPLES


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, device, tmp_path, monkeypatch):
    shapes, constexprs, before, after, want = USES[name]
    parameters = ["a", "b", "c"][: len(shapes)] + [f"{c}: dl.constexpr" for c in constexprs]
    lines = [before, *example_of(name).split("\n"), after]
    text = "import dither\nimport dither.language as dl\n\n\n@dither.jit\n"
    text += f"def kernel({', '.join(parameters)}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    (tmp_path / f"example_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = __import__(f"example_{name}").kernel
    # Numbers whose sums and products are exact.
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    kernel[1](*arrays, **constexprs, device=device)
    assert (arrays[0] == want(*arrays[1:])).all()


def test_examples_are_found():
    assert re.search(r"dl\.concat", example_of("concat"))
