"""Machine code as cuobjdump and nvdisasm print it, and how often each instruction runs."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..data_classes import dataclass

_LINE = re.compile(r'//## File "\.nv_debug_ptx_txt", line (\d+)')
_LABEL = re.compile(r"^\s*(\.L\w+|\$__[\w$]+):")
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
#: Instructions after which a basic block ends.
_ENDS = ("BRA", "JMP", "EXIT", "RET", "BRX", "CALL", "BSYNC")
#: Instructions of which each is one of the PTX.
_SINGLE = ("LDG", "LDGSTS", "STG", "LDS", "STS", "SHFL", "BAR", "ATOMG", "RED")


@dataclass(frozen=True)
class Instruction:
    """One line of the disassembly.

    Attributes:
        line: of the PTX that it comes from; 0 where the listing does not say.
        helper: whether it belongs to a function that ptxas adds, such as the slow path of a division.
    """

    address: int
    predicate: str
    opcode: str
    operands: str
    line: int = 0
    helper: bool = False

    @property
    def base(self) -> str:
        return self.opcode.split(".")[0]

    @property
    def target(self) -> int | None:
        """The address that a branch names. A call to a place in the kernel is one, as ptxas leaves loops for sm_80."""
        addresses = re.findall(r"0x([0-9a-f]+)", self.operands) if self.base in ("BRA", "JMP", "CALL") else []
        return int(addresses[-1], 16) if addresses else None

    @property
    def conditional(self) -> bool:
        """Whether execution may go on with the next instruction after a branch or an exit."""
        uniform = re.match(r"!?UP\d", self.operands) and not self.operands.startswith("UPT")
        return bool(self.predicate) or bool(uniform) or ".DIV" in self.opcode

    @property
    def width(self) -> int:
        """Bits of a memory access a thread; 0 for other instructions."""
        if self.base not in ("LDG", "LDGSTS", "STG", "LDS", "STS", "LDL", "STL", "LD", "ST"):
            return 0
        for part in self.opcode.split(".")[1:]:
            if re.fullmatch(r"[US]?(8|16|64|128|256)", part):
                return int(part.lstrip("US"))
        return 32


def parse(text: str) -> list[Instruction]:
    """Instructions of the one kernel that cuobjdump or nvdisasm printed; branches to labels name addresses."""
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []
    line, helper = 0, False
    for row in text.splitlines():
        if match := _LINE.search(row):
            line = int(match[1])
        elif match := _LABEL.match(row):
            waiting.append(match[1])
            helper |= match[1].startswith("$__")
        elif match := _INSTRUCTION.search(row):
            address = int(match[1], 16)
            labels |= dict.fromkeys(waiting, address)
            waiting.clear()
            found.append(Instruction(address, match[2] or "", match[3], match[4].strip(), line, helper))
    return [
        dataclasses.replace(i, operands=re.sub(r"`\((\.L\w+)\)", lambda m: hex(labels.get(m[1], 0)), i.operands))
        for i in found
    ]


def blocks(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """Basic blocks in order of address."""
    leaders = {i.target for i in code if i.target is not None}
    result: list[list[Instruction]] = [[]]
    for instruction in code:
        if instruction.address in leaders and result[-1]:
            result.append([])
        result[-1].append(instruction)
        if instruction.base in _ENDS:
            result.append([])
    return [block for block in result if block]


def executed(code: Sequence[Instruction], times: Mapping[int, float]) -> Iterator[tuple[Instruction, float]]:
    """Instructions that run, and how often for each warp, in order of address.

    `times` says how often a warp runs each line of the PTX. A basic block runs as often as the median of what its
    instructions say: single ones may have been moved there from other blocks. Of a loop that ptxas unrolled blocks have
    several copies of a line: the one with most runs as often as they fit into the line's times, the next has the rest.
    Blocks with as few copies as any share the times where they have an opcode of the line in common: they are copies of
    each other, as of a loop whose iterations have branches. Those with other opcodes are parts of one path, on which
    the line has become several instructions. Slow paths that ptxas adds for operands that are subnormal, with the
    blocks around their calls, do not run.
    """
    parts = list(_taken(code))
    said: list[dict[int, float]] = [{} for _ in parts]
    opcodes = [_opcodes(block) for block in parts]
    copies: dict[int, list[tuple[int, int]]] = {}  # of each line: how many, in which block
    for at, of_block in enumerate(opcodes):
        for line, of_line in of_block.items():
            copies.setdefault(line, []).append((_copies(of_line), at))
    for line, places in copies.items():
        left = times.get(line, 0.0)
        fewest = min(places)[0]
        equals = Counter(frozenset(opcodes[at][line]) for number, at in places if number == fewest)
        for number, at in sorted(places, key=lambda place: (-place[0], place[1])):
            if number > fewest:
                said[at][line] = left // number
                left -= said[at][line] * number
            else:
                own = opcodes[at][line].keys()
                said[at][line] = left / number / sum(n for one, n in equals.items() if not own.isdisjoint(one))
    for block, lines in zip(parts, said, strict=True):
        often = statistics.median(lines[i.line] for i in block)
        if often > 0:
            yield from ((i, often) for i in block)


def _taken(code: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Basic blocks without padding, functions that ptxas adds, and the blocks around their calls."""
    end = len(code)
    while end and code[end - 1].base in ("NOP", "BRA"):  # padding
        end -= 1
    targets = {i.target for i in code}
    called = False
    for block in blocks([i for i in code[:end] if not i.helper]):
        returned, called = called, block[-1].base == "CALL" and block[-1].target is None
        if not called and not (returned and block[0].address not in targets):
            yield block


def _opcodes(block: Sequence[Instruction]) -> dict[int, Counter[str]]:
    """Opcodes of each line in a basic block, and how often they are there."""
    found: dict[int, Counter[str]] = {}
    for i in block:
        found.setdefault(i.line, Counter())[i.base if i.base in _SINGLE else i.opcode] += 1
    return found


def _copies(opcodes: Mapping[str, int]) -> int:
    """How many copies of a line there are in a basic block. An instruction of memory, a shuffle or a barrier is one of
    the PTX; of others a line may become several, of which the rarest opcode counts."""
    return next((n for opcode, n in opcodes.items() if opcode in _SINGLE), min(opcodes.values()))
