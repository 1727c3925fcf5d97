"""The command line: `python -m dither doctor | compile | build | inspect | profile | cache`.

Exits with 0, with 1 where something is wrong with the machine or the input, and with 2 where the command line is.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..errors import CompileError
from ..version import __version__
from .failure import Failure, UsageError


def parser() -> argparse.ArgumentParser:
    """All commands; each sets `run`, a function of the parsed arguments that gives the exit code."""
    from . import build, cache, compile, doctor, inspect, profile

    top = argparse.ArgumentParser(prog="dither", description="Fused quantize kernels: compile them and look inside.")
    top.add_argument("--version", action="version", version=f"dither {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for module in (doctor, compile, build, inspect, profile, cache):
        module.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; errors are one message on stderr, never a traceback."""
    args = parser().parse_args(arguments)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (Failure, CompileError, ValueError, TypeError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader has gone (`| head`): nothing is left to say, to anyone.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # what a file of the user raises, say
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
