"""Which pipe of an SM an instruction takes. The CUDA C++ Programming Guide has rates of operations, not of SASS: which
instruction is which operation is read from names, and the pipes of F2FP and of HMNMX2 are assumptions."""

from __future__ import annotations

#: Pipe by instruction of the machine code; others take an issue slot alone.
_SASS = {
    "fma": "FADD FMUL FFMA FHADD FHFMA IMAD",
    "packed": "FADD2 FMUL2 FFMA2",
    "half": "HADD2 HMUL2 HFMA2",
    "alu": "IADD IADD3 IABS LOP LOP3 PLOP3 SHF SHL SHR PRMT ISETP LEA IMNMX VIMNMX VIMNMX3 SEL BFE VIADD VIADDMNMX "
    "FMNMX FMNMX3 FSETP FSEL FSET FCHK HMNMX2 HSETP2 HSET2 F2FP I2FP F2IP SGXT BMSK VABSDIFF MOV P2R R2P",
    "xu": "MUFU F2F F2I I2F FRND FLO POPC BREV",
    "shuffle": "SHFL REDUX CREDUX",
}
_PIPE_OF = {opcode: pipe for pipe, opcodes in _SASS.items() for opcode in opcodes.split()}

#: Pipe by class of instructions of the simulator, where there is PTX alone.
_CLASSES = {
    "integer": "alu",
    "float": "fma",
    "half": "half",
    "convert": "alu",
    "special": "xu",
    "predicate": "alu",
    "warp": "shuffle",
}

#: Instructions of PTX that become no instruction, or operands of others.
NO_CODE = ("move",)


def of_sass(base: str) -> str | None:
    """The pipe of an opcode without its modifiers, such as IMAD; None where none of ours limits it."""
    return _PIPE_OF.get(base)


def of_class(kind: str) -> str | None:
    """The pipe of a class of `dither.profile`."""
    return _CLASSES.get(kind)
