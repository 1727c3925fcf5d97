"""Programs in C that launch what was built, compiled and run."""

import shutil
import subprocess
from pathlib import Path

import pytest
from dither import _dither

BUILD = Path(_dither.__file__).parents[2]
LIBRARY = BUILD / "lib" / "libdither_runtime.so"
ROOT = Path(__file__).parents[3]
INCLUDE = ROOT / "include"

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

#: Of any program: its buffers from a file, the rest and the workspace full of ones, a run, and all buffers to a file.
PROGRAM = (
    '#include "dither-c/dither.h"\n'
    + MUST
    + r"""
/* anything DEVICE MANIFEST NAME IN OUT; with a dash for the manifest, NAME is the file of a program. */
int main(int argc, char **argv) {
  static unsigned char bytes[1 << 24];
  void *buffers[32], *workspace = NULL;
  dither_device *device;
  dither_program *program;
  FILE *in = fopen(argv[4], "rb"), *out = fopen(argv[5], "wb");
  size_t count, i, extra;
  if (argc != 6 || !in || !out) return 2;
  must(dither_device_open(argv[1], &device));
  if (strcmp(argv[2], "-")) {
    must(dither_program_load(device, argv[2], argv[3], &program));
  } else {
    FILE *file = fopen(argv[3], "rb");
    if (!file) return 3;
    count = fread(bytes, 1, sizeof bytes, file);
    must(dither_program_decode(device, bytes, count, &program));
    fclose(file);
  }
  count = dither_program_num_buffers(program);
  extra = dither_program_workspace_bytes(program);
  if (count > 32) return 4;
  memset(bytes, 0xff, sizeof bytes);
  if (extra) {
    must(dither_allocate(device, extra, &workspace));
    must(dither_copy_in(device, workspace, bytes, extra));
  }
  for (i = 0; i < count; ++i) {
    size_t size = dither_program_buffer_bytes(program, i);
    memset(bytes, 0xff, size);
    if (fread(bytes, 1, size, in) != size && !feof(in)) return 5;
    must(dither_allocate(device, size, &buffers[i]));
    must(dither_copy_in(device, buffers[i], bytes, size));
  }
  must(dither_program_run(program, buffers, count, workspace, extra, NULL));
  must(dither_synchronize(device, NULL));
  for (i = 0; i < count; ++i) {
    size_t size = dither_program_buffer_bytes(program, i);
    must(dither_copy_out(device, bytes, buffers[i], size));
    if (fwrite(bytes, 1, size, out) != size) return 6;
    must(dither_release(device, buffers[i]));
  }
  must(dither_release(device, workspace));
  fclose(out);
  printf("%s, %d buffers\n", dither_program_target(program), (int)count);
  dither_program_unload(program);
  return 0;
}
"""
)


def compile_c(text, directory, compiler=CC, standard="c99", library=LIBRARY):
    source = directory / ("main.c" if compiler.endswith("cc") else "main.cpp")
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
    command += [str(source), "-o", str(program), str(library), f"-Wl,-rpath,{library.parent}"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return program


def run(program, *arguments):
    # Nothing of Python is in sight of the program.
    env = {"PATH": "/nowhere", "DITHER_NUM_THREADS": "2"}
    return subprocess.run([str(program), *map(str, arguments)], env=env, capture_output=True, text=True, timeout=60)
