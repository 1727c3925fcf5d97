"""Programs in C that launch what was built, compiled and run."""

import shutil
import subprocess
from pathlib import Path

import pytest
from dither import _dither

BUILD = Path(_dither.__file__).parents[2]
LIBRARY = BUILD / "lib" / "libdither_runtime.so"
INCLUDE = Path(__file__).parents[3] / "include"

CC = shutil.which("cc") or shutil.which("gcc")
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")

#: What programs begin with, after the header of what was built: a status that is no success is said, and ends them.
MUST = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(dither_status status) {
  if (status == DITHER_SUCCESS) return;
  printf("error %d: %s\n", (int)status, dither_error_message());
  exit(1);
}
"""


def compile_c(text, directory, compiler=CC, standard="c99"):
    source = directory / ("main.c" if compiler == CC else "main.cpp")
    source.write_text(text)
    program = directory / "main"
    command = [
        compiler,
        f"-std={standard}",
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        f"-I{INCLUDE}",
        f"-I{directory}",
    ]
    command += [str(source), "-o", str(program), str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return program


def run(program, *arguments):
    # Nothing of Python is in sight of the program.
    env = {"PATH": "/nowhere", "DITHER_NUM_THREADS": "2"}
    return subprocess.run([str(program), *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60)
