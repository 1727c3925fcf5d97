"""A kernel's docstring is the IR that it must lower to."""

import inspect
import textwrap

import pytest
from dither.compiler import lower


@pytest.fixture
def body():
    """body(kernel, args, constexprs) -> the operations of its function as text, without the return."""

    def lower_body(kernel, args, constexprs=None):
        text = lower(kernel, args, constexprs or {}, "host").module.text()
        lines = text.splitlines()
        return textwrap.dedent("\n".join(lines[2 : lines.index("    return")]))

    return lower_body


@pytest.fixture
def check(body):
    """check(kernel, args, constexprs): the docstring is the IR."""

    def compare(kernel, args, constexprs=None):
        assert body(kernel, args, constexprs) == inspect.cleandoc(kernel.__doc__)

    return compare
