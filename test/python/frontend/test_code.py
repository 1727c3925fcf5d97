"""What code says without its text, beside what a syntax tree says."""

import ast
import types
from pathlib import Path

import dither
import numpy as np
import pytest
from dither.compiler.code import code_facts, same_code
from loaded import load

OPS = Path(dither.__file__).parent / "ops"
X = np.arange(8, dtype=np.float32)


def functions(text):
    """(definition, code) of the functions of a text, by their first lines."""
    tree, pending = ast.parse(text), [compile(text, "t.py", "exec", dont_inherit=True)]
    nodes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            nodes[min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.name] = node
    for code in pending:
        pending += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        if (code.co_firstlineno, code.co_name) in nodes:
            yield nodes[code.co_firstlineno, code.co_name], code


def code_of(text):
    return next(code for _, code in functions(text))


def names_of(node, code):
    """Chains and attributes as a tree has them."""
    chains, attributes, local = set(), set(), {*code.co_varnames, *code.co_cellvars}

    def visit(node):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return visit(node.value)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            attributes.add(node.target.attr)
        names, base = [], node
        while isinstance(base, ast.Attribute):
            names.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name) and base.id not in local:
            chains.add((base.id, *reversed(names)))
            return
        attributes.update(names)
        for child in ast.iter_child_nodes(base):
            visit(child)

    for statement in node.body:
        visit(statement)
    return chains, attributes


def test_names_of_the_functions_of_the_library():
    """Tile functions and whatever else stands there, but for what kernels refuse."""
    refused = ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.AnnAssign
    count = 0
    for path in sorted(OPS.glob("*.py")):
        for node, code in functions(path.read_text()):
            inner = [each for each in ast.walk(node) if each is not node]
            if any(isinstance(each, (*refused, ast.Assert, ast.Import, ast.ImportFrom)) for each in inner):
                continue
            facts = code_facts(code)
            assert (set(facts.chains), set(facts.attributes)) == names_of(node, code), (path.name, node.name)
            count += 1
    assert count > 400


def test_attributes_of_what_two_ways_lead_to():
    text = """
def f(c, r):
    x = (a if c else b).x
    y = (p or q).y + (u and v or w).z.zz
    for i in r.s:
        k.l.m
    return (aa if c else (bb if y else cc.dd)).ee, m.n.o(c).attr
"""
    facts = code_facts(code_of(text))
    alone = [(name,) for name in ("a", "aa", "b", "bb", "p", "q", "u", "v", "w")]
    assert set(facts.chains) == {*alone, ("cc", "dd"), ("k", "l", "m"), ("m", "n", "o")}
    assert facts.attributes == ("attr", "ee", "s", "x", "y", "z", "zz")


def test_names_past_the_first_256():
    text = "def f(c):\n" + "".join(f"    a{i}.b{i}\n" for i in range(400)) + "    return (p if c else q).last\n"
    facts = code_facts(code_of(text))
    assert set(facts.chains) == {(f"a{i}", f"b{i}") for i in range(400)} | {("p",), ("q",)}
    assert facts.attributes == ("last",)


def test_variables_of_a_function_around():
    text = "def g(config, n):\n    def f(t):\n        return t.x * config.ROWS * n\n    return f\n"
    inner = list(functions(text))[-1][1]
    facts = code_facts(inner)
    assert facts.chains == (("config", "ROWS"), ("n",)) and facts.attributes == ("x",)


BODIES = (
    *("1", "True", "1.0", "-0.0", "0.0", "'1'", "(1, 2)", "(1, 2.0)", "x in {1, 2, 3}", "x in {1, 2, 4}", "1e999 * 0"),
    *("x + y", "y + x", "x - y", "x.a", "x.b", "a.x", "x[1:2]", "f(x, y=1)", "f(x, z=1)", "lambda: 1", "lambda: 2"),
)


def test_digests_tell_functions_apart():
    codes = [code_of(f"def f(x, y):\n    return {body}\n") for body in BODIES]
    codes += [code_of(f"def f({names}):\n    return 1\n") for names in ("x", "x, z", "x, *y", "x, /, y", "*, x, y")]
    assert len({code_facts(code).digest for code in codes}) == len(codes)
    assert not any(same_code(a, b) for i, a in enumerate(codes) for b in codes[:i])


def test_digests_do_not_depend_on_where_code_stands():
    a = code_of("def f(x):\n    return x * 2  # doubled\n")
    b = code_of("\n\nif 1:\n  def f(x):\n\n        return (x *\n 2)\n")
    assert code_facts(a).digest == code_facts(b).digest and same_code(a, b)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DITHER_CACHE_DIR", str(tmp_path / "cache"))


KERNEL = """import dither, dither.language as dl
def scale(t):
    return t * 2.0 if __debug__ else t
@dither.jit
def kernel(x, y):
    dl.store(y, (0,), scale(dl.load(x, (0,), (8,))))
"""


def test_code_on_disk_needs_no_text(tmp_path, cache):
    y = np.zeros_like(X)
    load(tmp_path / "one.py", KERNEL).kernel[1](X, y)
    np.testing.assert_array_equal(y, X * 2)
    module = load(tmp_path / "two.py", KERNEL)
    (tmp_path / "two.py").write_text("no Python (")
    module.kernel[1](X, y)
    assert module.kernel.stats().disk_hits == 1


def test_constexpr_parameters_of_functions_are_in_the_key(tmp_path, cache):
    """What a function says of its parameters is in no code, and decides what is refused."""
    text = KERNEL.replace("scale(t)", "scale(t, n{})").replace("(8,))))", "(8,)), {}))")
    y = np.zeros_like(X)
    load(tmp_path / "one.py", text.format("", "dl.load_scalar(x, (0,))")).kernel[1](X, y)
    with pytest.raises(dither.CompileError, match="expected a constexpr"):
        load(tmp_path / "two.py", text.format(": dl.constexpr", "dl.load_scalar(x, (0,))")).kernel[1](X, y)
