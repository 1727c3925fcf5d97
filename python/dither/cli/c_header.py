"""The C header of a kernel, or of a program, that was built ahead of time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

_C_TYPES = {"ptr": "void *", "i64": "int64_t ", "i32": "int32_t ", "f32": "float "}
_AS_SLOT = {"ptr": "(int64_t)(intptr_t){}", "i64": "{}", "i32": "{}", "f32": "dither_float_slot({})"}


def render(kernel: dict[str, Any], images: list[dict[str, Any]]) -> str:
    """The text: what the arguments are, and a function that fills the slots and launches."""
    name = kernel["name"]
    guard = f"DITHER_KERNEL_{name}_H"
    lines = [
        f"/* Made by 'dither build': kernel {name} for {', '.join(dict.fromkeys(i['target'] for i in images))}.",
        " *",
    ]
    for argument in kernel["arguments"]:
        what = f" *   {argument['name']}: {argument['type']}"
        if "align" in argument:
            what += f", aligned to {argument['align'] or 'its elements'}"
            if argument["stride_align"]:
                what += f", rows to {argument['stride_align']}"
            what += ", written" if argument["written"] else ""
            what += f" in the order {argument['order']}" if argument["order"] else ""
        lines.append(what)
    lines += [" *", " * Pointers and rows must be aligned as said, in bytes; sizes and strides are in elements. */"]
    parameters = ["dither_kernel *kernel", "int64_t grid_x", "int64_t grid_y", "int64_t grid_z", "void *stream"]
    slots, names = kernel["slots"], _identifiers([slot["name"] for slot in kernel["slots"]])
    parameters += [f"{_C_TYPES[slot['kind']]}{each}" for slot, each in zip(slots, names, strict=True)]
    values = [_AS_SLOT[slot["kind"]].format(each) for slot, each in zip(slots, names, strict=True)]
    body = [
        f"static inline dither_status {name}_launch(",
        "    " + ",\n    ".join(parameters) + ") {",
        f"  const int64_t slots[] = {{\n      {(',' + chr(10) + '      ').join(values) or '0'}}};",
        f"  return dither_kernel_launch(kernel, slots, {len(values)}, grid_x, grid_y, grid_z,",
        "                              stream);",
        "}",
        *_grid(name, images),
    ]
    return _guarded(guard, lines, body)


def render_program(program: dict[str, Any], images: list[dict[str, Any]]) -> str:
    """The text: what the buffers are, their bytes, and a function that runs it on them."""
    name, buffers = program["name"], program["buffers"]
    call = program["call"].replace("*/", "* /").replace("/*", "/ *")
    guard = f"DITHER_PROGRAM_{name}_H"
    lines = [f"/* Made by 'dither build': program {name} of", f" * {call}", " *"]
    for buffer in buffers:
        shape = "x".join(map(str, buffer["shape"])) or "a number"
        written = ", written" if buffer["written"] else ""
        lines.append(f" *   {buffer['name']}: {shape} {buffer['dtype']}, {buffer['bytes']} bytes{written}")
    lines += [" *"]
    for image in images:
        many = "launch" if image["launches"] == 1 else "launches"
        lines.append(f" * {image['target']}: {image['launches']} {many}, {image['workspace']} bytes of workspace")
    lines += [
        " *",
        " * Buffers are dense, row by row; on a GPU they and the workspace begin at multiples of 32 bytes. */",
    ]
    names = _identifiers([buffer["name"] for buffer in buffers])
    macros = _distinct([f"{name}_{buffer['name']}".upper() for buffer in buffers])
    body = [
        *(f"#define {macro}_BYTES {buffer['bytes']}u" for macro, buffer in zip(macros, buffers, strict=True)),
        "",
    ]
    parameters = ["dither_program *program", "void *stream"]
    parameters += [f"{'' if b['written'] else 'const '}void *{each}" for b, each in zip(buffers, names, strict=True)]
    parameters += ["void *workspace", "size_t workspace_bytes"]
    values = [f"(void *){each}" for each in names] or ["NULL"]
    body += [
        f"static inline dither_status {name}_run(",
        "    " + ",\n    ".join(parameters) + ") {",
        f"  void *const buffers[] = {{\n      {(',' + chr(10) + '      ').join(values)}}};",
        f"  return dither_program_run(program, buffers, {len(buffers)}, workspace, workspace_bytes,",
        "                            stream);",
        "}",
    ]
    return _guarded(guard, lines, body)


def _guarded(guard: str, comment: list[str], body: list[str]) -> str:
    """The text of a header that may be included twice."""
    lines = [*comment, f"#ifndef {guard}", f"#define {guard}", "", '#include "dither-c/dither.h"', "", *body, ""]
    return "\n".join([*lines, f"#endif /* {guard} */", ""])


def _grid(name: str, images: list[dict[str, Any]]) -> list[str]:
    """A function that gives the grid for a number of rows, where images say what it is: targets have tiles of their
    own."""
    known = {image["target"].startswith("host"): image for image in images if "grid" in image}
    if not known:
        return []
    lines = [
        "",
        "/* The grid for so many rows of the tensor, on the device that the kernel was loaded for. */",
        f"static inline void {name}_grid(",
        "    const dither_kernel *kernel,",
        "    int64_t rows,",
        "    int64_t grid[3]) {",
        "  const int cpu = dither_kernel_target(kernel)[0] == 'h';",
    ]
    if len(known) == 1:
        lines.append("  (void)cpu;")
    for cpu, image in known.items():
        multiple, step = image["rows"]
        padded = f"(rows + {multiple - 1}) / {multiple} * {multiple}" if multiple > 1 else "rows"
        values = [f"({padded} + {step - 1}) / {step}" if n is None else str(n) for n in image["grid"]]
        indent = "  "
        if len(known) == 2:
            lines.append(f"  if ({'' if cpu else '!'}cpu) {{")
            indent = "    "
        lines += [f"{indent}grid[{place}] = {value};" for place, value in enumerate(values)]
        if len(known) == 2:
            lines.append("  }")
    return [*lines, "}"]


#: Names that an argument may have in Python and not in the function: those of its other parameters, keywords of C and
#: C++, and what headers of C define.
_WORDS = (
    "kernel grid_x grid_y grid_z stream slots program workspace workspace_bytes buffers auto break case char "
    "const continue default do double else enum extern float for goto if inline int long register restrict return "
    "short signed sizeof static struct switch typedef union unsigned void volatile while alignas alignof and "
    "and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield compl concept "
    "const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false friend mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast "
    "requires static_assert static_cast template this thread_local throw true try typeid typename typeof "
    "typeof_unqual using virtual wchar_t xor xor_eq linux unix i386 NULL EOF errno size_t ptrdiff_t int8_t "
    "int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t"
)
_TAKEN = frozenset(_WORDS.split())


def _identifiers(names: list[str]) -> list[str]:
    """Names that C takes for these, each another one."""
    return _distinct([name if name.isidentifier() else f"_{name}" for name in names], _TAKEN)


def _distinct(names: list[str], taken: Collection[str] = ()) -> list[str]:
    """These names in ASCII, with underscores behind those that are taken, or those of an earlier one."""
    used, found = {*taken}, []
    for name in names:
        if not name.isascii():
            name = "".join(letter if letter.isascii() else f"u{ord(letter):x}" for letter in name) + "_"
        while name in used:
            name += "_"
        used.add(name)
        found.append(name)
    return found
