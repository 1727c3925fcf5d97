"""The C header of a kernel, or of a program, that was built ahead of time."""

from __future__ import annotations

from typing import Any

_C_TYPES = {"ptr": "void *", "i64": "int64_t ", "i32": "int32_t ", "f32": "float "}
_AS_SLOT = {"ptr": "(int64_t)(intptr_t){}", "i64": "{}", "i32": "{}", "f32": "dither_float_slot({})"}


def render(kernel: dict[str, Any], images: list[dict[str, Any]]) -> str:
    """The text: what the arguments are, and a function that fills the slots and launches."""
    name = kernel["name"]
    guard = f"DITHER_KERNEL_{name.upper()}_H"
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
    parameters += [f"{_C_TYPES[slot['kind']]}{_identifier(slot['name'])}" for slot in kernel["slots"]]
    values = [_AS_SLOT[slot["kind"]].format(_identifier(slot["name"])) for slot in kernel["slots"]]
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
    call = program["call"].replace("*/", "* /")
    guard = f"DITHER_PROGRAM_{name.upper()}_H"
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
    body = [
        *(f"#define {name.upper()}_{buffer['name'].upper()}_BYTES {buffer['bytes']}u" for buffer in buffers),
        "",
    ]
    parameters = ["dither_program *program", "void *stream"]
    parameters += [f"{'' if b['written'] else 'const '}void *{_identifier(b['name'])}" for b in buffers]
    parameters += ["void *workspace", "size_t workspace_bytes"]
    values = [f"(void *){_identifier(buffer['name'])}" for buffer in buffers] or ["NULL"]
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


#: Names that an argument may have in Python and not in the function.
_TAKEN = {"kernel", "grid_x", "grid_y", "grid_z", "stream", "slots"}
_TAKEN |= {"program", "workspace", "workspace_bytes", "buffers"}
_C_AND_CPP = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool class "
    "delete new operator private protected public template this throw typename using virtual namespace"
)
_KEYWORDS = frozenset(_C_AND_CPP.split())


def _identifier(name: str) -> str:
    return f"{name}_" if name in _TAKEN or name in _KEYWORDS or not name.isascii() else name
