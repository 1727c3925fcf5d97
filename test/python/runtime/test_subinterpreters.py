"""In a subinterpreter dither is not there: importing it says so and does not hang."""

import importlib.util
import subprocess
import sys

import pytest

SCRIPT = """
import sys
{before}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create()
text = '''
import sys
sys.path[:0] = {path!r}
try:
    import dither._dither
except ImportError as error:
    print("ImportError:", error, flush=True)
'''
getattr(interpreters, "run_string")(one, text)
interpreters.destroy(one)
{after}
"""
USE = "import dither, numpy; print(dither.quantize(numpy.ones((2, 32), numpy.float32), 'mxfp8_e4m3').data.shape)"
NAMES = ("_interpreters", "_xxsubinterpreters")


@pytest.mark.skipif(not any(map(importlib.util.find_spec, NAMES)), reason="this Python has no subinterpreters")
@pytest.mark.parametrize(("before", "after"), [("", ""), (USE, ""), ("", USE)])
def test_importing_in_a_subinterpreter_is_an_error(before, after):
    script = SCRIPT.format(before=before, after=after, path=sys.path)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said = "dither was imported in a subinterpreter, expected the main interpreter: use threads or processes"
    if sys.version_info >= (3, 13):  # which asks the module first, in the main interpreter
        said = "module dither._dither does not support loading in subinterpreters"
    said = f"ImportError: {said}"
    shape = "(2, 32)"
    assert done.stdout.splitlines() == [*([shape] if before else []), said, *([shape] if after else [])]
