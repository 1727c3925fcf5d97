"""What a program is: the text of a kernel and its arguments; as a Python file that stands alone."""

from __future__ import annotations

import dataclasses
import pprint
import re
from typing import Any

HEADER = "import dataclasses\n\nimport dither\nimport dither.language as dl\n\n"


@dataclasses.dataclass
class Argument:
    """A tensor: `shift` elements past an address that is a multiple of 64, rows `gap` elements apart.

    `fill` names its contents (see `memory`), which `seed` makes; `shapes` is its class of specialization, if not the
    kernel's. With `of` it lies in the memory of another argument, `shift` elements past that one's first.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    fill: str = "normal"
    seed: int = 0
    shift: int = 0
    gap: int = 0
    shapes: str | None = None
    of: str | None = None


@dataclasses.dataclass
class Program:
    """`source` defines `kernel`; `numbers` are its run-time numbers and `constants` its constexprs."""

    source: str
    arguments: list[Argument]
    numbers: dict[str, int | float]
    constants: dict[str, Any]
    grid: tuple[int, int, int]
    num_warps: int | None = None
    shapes: str | None = None
    kernel: str = "k"

    def spec(self) -> dict[str, Any]:
        """All but the source, as plain data."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "source"}
        fields["arguments"] = [
            {f.name: value for f in dataclasses.fields(a) if (value := getattr(a, f.name)) != f.default}
            for a in self.arguments
        ]
        return fields

    def text(self, note: str = "") -> str:
        """A file that `load` reads; `note` is a comment at its head."""
        comment = "".join(f"# {line}\n" for line in note.splitlines())
        spec = pprint.pformat(self.spec(), width=118, sort_dicts=False)
        return f"{comment}{self.source.rstrip()}\n\n\nPROGRAM = {spec}\n"


def from_spec(source: str, spec: dict[str, Any]) -> Program:
    """The inverse of `Program.spec`."""
    return Program(source, **{**spec, "arguments": [Argument(**a) for a in spec["arguments"]]})


def load(text: str) -> Program:
    """The program of a file that `Program.text` wrote."""
    source, _, spec = text.partition("\nPROGRAM = ")
    source = re.sub(r"\A(#.*\n)*", "", source)
    return from_spec(source.rstrip() + "\n", eval(spec, {"inf": float("inf"), "nan": float("nan")}))
