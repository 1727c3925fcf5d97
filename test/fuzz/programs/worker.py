"""A process that runs programs: JSON lines in, JSON lines out. It may die; the driver starts another one."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from . import execute, reference
from .generate import generate
from .program import Program, from_spec


def program_of(job: dict[str, Any]) -> Program:
    """By seed, or as it was given."""
    if "spec" in job:
        return from_spec(job["source"], job["spec"])
    return generate(job["seed"])


def main() -> None:
    """Reads jobs from stdin until it ends. What kernels and libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")

    for line in sys.stdin:
        job = json.loads(line)
        say(begin="generate")
        try:
            program = program_of(job)
            start = time.process_time()
            expected = execute.expect(program)
            if job.get("ordered") and execute.has_order(program, expected):
                raise reference.Undefined("programs that depend on their order")
            say(outcome="reference", kind="ok", detail="", seconds=time.process_time() - start)
        # Python divides its own numbers: such a kernel does not compile.
        except (reference.Undefined, ZeroDivisionError) as error:
            say(outcome="reference", kind="undefined", detail=str(error), seconds=0)
            say(done=True)
            continue
        except Exception as error:
            say(outcome="reference", kind="invalid", detail=f"{type(error).__name__}: {error}", seconds=0)
            say(done=True)
            continue
        for target in job["targets"]:
            say(begin=target)
            result = execute.run(program, target, expected)
            say(outcome=target, kind=result.kind, detail=result.detail, seconds=result.seconds)
        execute.forget()
        say(done=True)


if __name__ == "__main__":
    main()
