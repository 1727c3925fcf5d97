"""python test/fuzz/calls: random sequences of calls. Each batch of seeds has a process of its own, which may die."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

if not __package__:  # python test/fuzz/calls
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from calls.calls import Call, draw, run

BATCH = 25


def child(jobs: list[list[Call]], limit: float) -> tuple[int, str]:
    """Runs sequences in a process: how many were right, and what happened to the next one (empty: nothing)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DITHER_")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    text = json.dumps([[(c.what, c.numbers) for c in calls] for calls in jobs])
    command = [sys.executable, "-c", "import sys; from calls.__main__ import serve; serve()"]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=limit)
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode()
        return output.count("ok\n"), f"did not end within {limit:.0f} s"
    right = done.stdout.count("ok\n")
    wrong = [line for line in done.stdout.splitlines() if line != "ok"]
    if wrong:
        return right, wrong[0]
    if done.returncode:
        return right, f"exit status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return right, ""


def serve() -> None:
    """The child."""
    for calls in json.load(sys.stdin):
        wrong = run([Call(what, tuple(numbers)) for what, numbers in calls])
        print(wrong.replace("\n", " | ") or "ok", flush=True)
        if wrong:
            return


def reduce(calls: list[Call], limit: float) -> list[Call]:
    """Leaves out calls for as long as something still goes wrong."""
    size = len(calls) // 2
    while size:
        start = 0
        while start < len(calls):
            shorter = calls[:start] + calls[start + size :]
            if child([shorter], limit)[1]:
                calls = shorter
            else:
                start += size
        size //= 2
    return calls


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="calls", description=(__doc__ or "").split(":")[1])
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--count", type=int, default=1, help="sequences (default 1)")
    parser.add_argument("--seconds", type=float, help="begin no batch after so many seconds; goes before --count")
    parser.add_argument("--reduce", action="store_true", help="leave out calls that a finding does not need")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a batch hangs (default 300)")
    args = parser.parse_args()
    start, seed, findings = time.monotonic(), args.seed, 0
    while time.monotonic() - start < args.seconds if args.seconds else seed < args.seed + args.count:
        batch = BATCH if args.seconds else min(BATCH, args.seed + args.count - seed)
        right, wrong = child([draw(s) for s in range(seed, seed + batch)], args.limit)
        seed += right
        if wrong:
            print(f"FINDING seed {seed}: {wrong}", flush=True)
            for call in reduce(draw(seed), args.limit) if args.reduce else []:
                print(f"  {call}", flush=True)
            findings += 1
            seed += 1
    print(f"{seed - args.seed} sequences in {time.monotonic() - start:.0f} s, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
