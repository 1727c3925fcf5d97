"""The examples of help(dl): each is run as part of a kernel, on the CPU and a simulated GPU."""

import inspect
import itertools
import textwrap

import dither.language as dl
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_90a"]
TOKENS = np.array([5, 1, 0, 4, 1], np.int32)


def examples_of(name):
    """The indented blocks of a docstring, by the function's name and their number."""
    lines = inspect.getdoc(getattr(dl, name)).split("\n")
    blocks = [list(group) for code, group in itertools.groupby(lines, lambda line: line.startswith("    ")) if code]
    return {f"{name} {n}": textwrap.dedent("\n".join(block)) for n, block in enumerate(blocks, 1)}


EXAMPLES = {}
for function in dl.__all__:
    EXAMPLES |= examples_of(function) if inspect.getdoc(getattr(dl, function)) else {}


def concat(x):
    return np.concatenate([x[:, 64:], x[:, :64]], 1)


def rotate_half(x, size):
    halves = x.reshape(len(x), -1, 2, size // 2)
    return np.stack([-halves[:, :, 1], halves[:, :, 0]], axis=2).reshape(x.shape)


#: For each example: the tensors of the kernel (the first one is the result), its constexprs, what comes before and
#: after the example, and what the result must be.
USES = {
    "cast 1": (
        [(8, 64), (8, 64)],
        {"ROWS": 8, "seed": 7, "r": 0},
        "t = dl.load(b, (0, 0), (8, 64))\ns = dl.block_scale(t, dither.MXFP8_E4M3)",
        "dl.store(a, (0, 0), dl.dequantize(q, s, dither.MXFP8_E4M3))",
        # Small integers are values of the format, which do not move.
        lambda b: b,
    ),
    "concat 1": (
        [(8, 128), (8, 128)],
        {},
        "t = dl.load(b, (0, 0), (8, 128))",
        "dl.store(a, (0, 0), half)",
        lambda b: concat(b),
    ),
    "cycle 1": (
        [(8, 128), (8, 32)],
        {},
        "c = dl.load(b, (0, 0), (8, 32))",
        "dl.store(a, (0, 0), c)",
        lambda b: np.tile(b, 4),
    ),
    "encode_scale 1": (
        [(8, 256), (8, 256)],
        {},
        "t = dl.load(b, (0, 0), (8, 256))",
        "dl.store(a, (0, 0), dl.dequantize(q, s, dither.FP8_1X128_E4M3))",
        # Small integers over a power of two are values of the format, which do not move.
        lambda b: b,
    ),
    "hadamard 1": (
        [(16, 16), (16, 16)],
        {},
        "t = dl.load(b, (0, 0), (16, 16))",
        "dl.store(a, (0, 0), dl.hadamard(r, axis=0))",
        # Transformed twice, what is left are the signs.
        lambda b: np.where([[0xD7E8 >> i & 1] for i in range(16)], -b, b),
    ),
    "load 1": (
        [(8, 128), (2, 9, 3, 128)],
        {"ROWS": 8},
        "x, b, i, h = b, 1, 1, 2",
        "dl.store(a, (0, 0), t)",
        lambda b: b[1, 1:9, 2],
    ),
    "load 2": (
        [(4, 128), (6, 128)],
        {"ROWS": 4, "i": 1},
        "x = b",
        "dl.store(a, (0, 0), t)",
        lambda b: b[TOKENS[1:5]],
    ),
    "print 1": (
        [(8, 64), (8, 64)],
        {},
        "t = dl.load(b, (0, 0), (8, 64))\ns = dl.max(t, axis=1)",
        "dl.store(a, (0, 0), t)",
        lambda b: b,
    ),
    "repeat 1": (
        [(32, 64), (2, 64)],
        {},
        "s = dl.load(b, (0, 0), (2, 64))",
        "dl.store(a, (0, 0), s)",
        lambda b: np.repeat(b, 16, 0),
    ),
    "slice 1": (
        [(4, 128), (6, 128)],
        {"ROWS": 4, "g": 3, "i": 0},
        "x, starts, sizes = b, tokens, tokens",
        "dl.store(a, (0, 0), t)",
        # Four from row 4 on, of which there are two.
        lambda b: np.concatenate([b[4:], np.zeros((2, 128), np.float32)]),
    ),
    "rotate_half 1": (
        [(8, 128), (8, 128), (8, 128)],
        {},
        "t, s = dl.load(b, (0, 0), (8, 128)), dl.load(c, (0, 0), (8, 128))\nc = s",
        "dl.store(a, (0, 0), pairs + heads)",
        lambda b, c: 2 * b * c + (rotate_half(b, 2) + rotate_half(b, 64)) * c,
    ),
    "sum 1": (
        [(1, 64), (100, 64)],
        {"ROWS": 16, "COLS": 64, "c": 0},
        "x = b",
        "dl.store(a, (0, 0), total)",
        lambda b: b.sum(0, keepdims=True),
    ),
    "store 1": (
        [(8, 128), (8, 128)],
        {"ROWS": 8, "i": 0},
        "x = a\nt = dl.load(b, (0, 0), (8, 128)) * 0.0 + 7.0",
        "",
        # Rows that no token names are what they were.
        lambda a: np.where(np.isin(np.arange(8), TOKENS)[:, None], 7, a),
    ),
    "philox 1": (
        [(8, 64)],
        {"ROWS": 8, "n": 64, "seed": 7},
        "row = 0",
        "dl.store(a, (0, 0), (u >= 0.0).to(dl.float32) * (u < 1.0).to(dl.float32))",
        lambda: np.ones((8, 64)),
    ),
}


def test_every_example_is_used():
    assert sorted(USES) == sorted(EXAMPLES)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(USES))
def test_examples(name, device, tmp_path, monkeypatch):
    shapes, constexprs, before, after, want = USES[name]
    parameters = ["a", "b", "c"][: len(shapes)] + [f"{c}: dl.constexpr" for c in constexprs]
    text = EXAMPLES[name]
    if "tokens" in before + text:
        parameters.insert(len(shapes), "tokens")
    lines = [before, *text.split("\n"), after]
    text = "import dither\nimport dither.language as dl\n\n\n@dither.jit\n"
    text += f"def kernel({', '.join(parameters)}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    (tmp_path / f"example_{name[:-2]}_{name[-1]}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = __import__(f"example_{name[:-2]}_{name[-1]}").kernel
    # Numbers whose sums and products are exact.
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    named = {"tokens": TOKENS} if "tokens" in parameters else {}
    first = arrays[0].copy()
    kernel[1](*arrays, **named, **constexprs, device=device)
    given = [first] if name == "store 1" else arrays[1:]
    assert (arrays[0] == want(*given)).all()
