"""Tests that are programs of their own, several at once."""

import os
import subprocess
import sys


def check(commands, names, **environment):
    """Runs Python with these arguments, all at once and with the paths of this process: each ends well, and says of
    each name that it is ok, in this order."""
    running = [
        subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=300)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for process, output in zip(running, outputs, strict=True):
        assert process.returncode == 0, output
        assert [line for line in output.splitlines() if line.endswith(" ok")] == [f"{name} ok" for name in names]
