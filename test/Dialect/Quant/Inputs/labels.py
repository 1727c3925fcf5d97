"""Compares the constraints that Semantics.md states with the cases of invalid.mlir and the verifiers' comments.

usage: labels.py SEMANTICS INVALID SOURCE...
"""

import pathlib
import re
import sys

LABEL = r"[A-Z]{2}[0-9]+"


def expand(text: str) -> set[str]:
    """Labels in a comment; `ME1 to ME3` stands for three."""
    found = set(re.findall(rf"\b({LABEL})\b", text))
    for first, last in re.findall(rf"\b({LABEL}) to ({LABEL})\b", text):
        if first[:2] == last[:2]:
            found |= {f"{first[:2]}{n}" for n in range(int(first[2:]), int(last[2:]) + 1)}
    return found


def main() -> int:
    semantics, invalid, *sources = (pathlib.Path(arg).read_text() for arg in sys.argv[1:])
    problems = []

    stated = re.findall(rf"^\* `({LABEL})`: ", semantics, re.MULTILINE)
    problems += [f"{label} is stated twice" for label in sorted({x for x in stated if stated.count(x) > 1})]

    tested = set()
    line = 1
    for case in invalid.split("// -----\n"):
        label = re.search(rf"^// ({LABEL}): ", case, re.MULTILINE)
        if not label:
            problems.append(f"invalid.mlir:{line}: case has no label")
        elif "expected-error" not in case:
            problems.append(f"invalid.mlir:{line}: case expects no error")
        else:
            tested.add(label.group(1))
        line += case.count("\n") + 1
    problems += [f"{label} is stated, but no case of invalid.mlir tests it" for label in sorted(set(stated) - tested)]
    problems += [f"{label} is tested, but Semantics.md does not state it" for label in sorted(tested - set(stated))]

    prefixes = {label[:2] for label in stated}
    for path, source in zip(sys.argv[3:], sources, strict=True):
        comments = " ".join(re.findall(r"//(.*)", source))
        named = {label for label in expand(comments) if label[:2] in prefixes}
        unknown = sorted(named - set(stated))
        problems += [f"{path} names {label}, which Semantics.md does not state" for label in unknown]

    print("\n".join(problems) or f"{len(stated)} constraints, each with a test")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
