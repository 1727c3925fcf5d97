"""Code is compiled from the text that Python made the function of, whatever the file holds by then."""

import importlib
import linecache
import sys

import numpy as np
import pytest
from dither import CompileError
from dither.compiler import read_source
from dither.compiler.source import SourceFile
from loaded import load

KERNEL = """import dither, dither.language as dl
@dither.jit
def kernel(x, y):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * {})
"""
X = np.arange(8, dtype=np.float32)


def factor_of(kernel):
    y = np.zeros_like(X)
    kernel[1](X, y)
    np.testing.assert_array_equal(y, X * y[1])
    return float(y[1])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """module(text): writes m.py and imports it; a second time reloads it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield lambda text: _import(tmp_path / "source_of_kernels.py", text)
    sys.modules.pop("source_of_kernels", None)


def _import(path, text):
    path.write_text(text)
    importlib.invalidate_caches()
    known = sys.modules.get(path.stem)
    return importlib.reload(known) if known else importlib.import_module(path.stem)


def test_a_kernel_edited_before_its_first_launch_is_the_imported_one(module):
    kernel = module(KERNEL.format(2.0)).kernel
    with open(kernel.fn.__code__.co_filename, "w") as file:
        file.write(KERNEL.format(3.0))
    assert factor_of(kernel) == 2


@pytest.mark.parametrize("edited", ["2", "True", "-2.0", "2.0 + 0.5", "'2.0'"])
def test_a_helper_edited_before_its_first_use_is_an_error(tmp_path, edited):
    helpers = load(tmp_path / "helpers.py", "def scale(t):\n    return t * 2.0\n")
    (tmp_path / "helpers.py").write_text(f"def scale(t):\n    return t * {edited}\n")
    with pytest.raises(CompileError, match=r"the source of 'scale' in '.*helpers.py' changed since it was imported"):
        read_source(helpers.scale)


def test_a_helper_beside_a_kernel_is_the_imported_one(tmp_path):
    text = "def scale(t):\n    return t * 2.0\n" + KERNEL.format("1.0").replace("dl.load", "scale(dl.load") + ")"
    text = text.replace(" * 1.0)\n)", ") * 1.0)\n")
    module = load(tmp_path / "both.py", text)
    (tmp_path / "both.py").write_text(text.replace("2.0", "3.0"))
    assert factor_of(module.kernel) == 2


def test_edits_around_a_function_do_not_matter(tmp_path):
    text = "def scale(t):\n    return t * 2.0\n"
    helpers = load(tmp_path / "helpers.py", text)
    (tmp_path / "helpers.py").write_text(text.replace("* 2", " *  2") + "    # a comment\n\nMORE = 1\n")
    assert read_source(helpers.scale).name == "scale"


def test_reloading_takes_the_new_text(module):
    before = module(KERNEL.format(2.0)).kernel
    after = module(KERNEL.format(30.0)).kernel
    assert (factor_of(after), factor_of(before)) == (30, 2)


def test_definitions_of_one_name_in_branches(tmp_path):
    text = "if {}:\n    def scale(t):\n        return t * 2.0\nelse:\n    def scale(t):\n        return t * 3.0\n"
    for name, condition, line in (("yes", True, 2), ("no", False, 5)):
        assert read_source(load(tmp_path / f"{name}.py", text.format(condition)).scale).node.lineno == line


def test_future_imports_and_classes_around(tmp_path):
    text = (
        "from __future__ import annotations\nimport math\nclass C:\n    def _f(self, x: int = 1):\n        return {}\n"
    )
    helpers = load(tmp_path / "helpers.py", text.format("math.floor(self.__x) + x"))
    assert read_source(helpers.C._f).node.lineno == 4


def test_a_function_is_parsed_alone_whatever_imports_are_in_blocks(tmp_path, monkeypatch):
    text = (
        "try:\n    import math\n    from operator import (\n        add,\n    )\nexcept ImportError:\n    pass\n"
        "def other():\n    import struct as scale\n    return scale\n"
        "def scale(t):\n    return math.floor(add(t, other().x))\n"
    )
    helpers = load(tmp_path / "helpers.py", text)
    monkeypatch.setattr(SourceFile, "_find_in_file", None)
    assert read_source(helpers.scale).node.lineno == 11


def test_text_without_a_file():
    name = "<cell 1>"
    text = KERNEL.format(4.0)
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    names = {}
    exec(compile(text, name, "exec"), names)
    del linecache.cache[name]  # as a notebook does that runs for long
    assert factor_of(names["kernel"]) == 4


def test_equal_functions_of_two_files_are_two(tmp_path):
    text = "import dither, dither.language as dl\n@dither.jit\ndef kernel(x, y):\n    dl.store(y, (0,), dl.nope(x))\n"
    for name in ("one", "two"):
        kernel = load(tmp_path / f"{name}.py", text).kernel
        with pytest.raises(CompileError) as info:
            kernel[1](X, X)
        assert str(info.value).startswith(str(tmp_path / f"{name}.py"))
