"""python test/fuzz/operators: random calls of operators, on the CPU and on simulated GPUs."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

if not __package__:  # python test/fuzz/operators
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from operators.operators import draw, run

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_100a:ptx91", "sm_120a")


def main() -> int:
    parser = argparse.ArgumentParser(prog="operators", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--count", type=int, default=1 << 30, help="calls at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long")
    parser.add_argument("--target", action="append", choices=TARGETS, help="default all, in turns (repeatable)")
    parser.add_argument("--checks", default="init,races", help="of the simulator")
    parser.add_argument("--show", action="store_true", help="print each call before it runs")
    parser.add_argument("--refused", action="store_true", help="print what all devices refuse")
    args = parser.parse_args()
    os.environ["DITHER_SIM_CHECKS"] = args.checks
    targets = args.target or TARGETS
    end, counts, refused = time.monotonic() + args.seconds, Counter(), Counter()
    for seed in range(args.seed, args.seed + args.count):
        if time.monotonic() > end:
            break
        target = targets[seed % len(targets)]
        case = draw(seed)
        if args.show:
            print(f"seed {seed} {target}: {case.text}", flush=True)
        try:
            what, text = run(case, f"sim:{target}")
        except Exception as error:  # of a kind that no call may raise
            what, text = "wrong", f"{type(error).__name__}: {error}"
        counts[what] += 1
        if args.refused and what == "both":
            refused[text] += 1
        if what == "wrong":
            print(f"seed {seed} {target}: {case.text}\n    {text}", flush=True)
        if what == "refused":
            print(f"seed {seed} {target} alone refuses {case.text}\n    {text}", flush=True)
    for text, times in refused.most_common():
        print(f"{times} refused by both: {text}")
    print(dict(counts), flush=True)
    return counts["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main())
