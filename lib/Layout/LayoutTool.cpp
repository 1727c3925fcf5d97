//===- LayoutTool.cpp - The dither-layout command -------------------------===//
#include "dither/Layout/LayoutTool.h"

#include "dither/Layout/Print.h"
#include "dither/Layout/Reduction.h"
#include "dither/Layout/ScaleFactorLayout.h"
#include "dither/Layout/SharedSwizzle.h"

namespace dither::layout {

static const char *const usage =
    R"(usage: dither-layout [--hardware] [--tensor] LAYOUT
           properties of a layout and its tables (both by default)
       dither-layout --conflicts [--bytes N] [--vec N] REGISTERS MEMORY
           bank conflicts of accessing a memory layout from registers
       dither-layout --swizzle [--bytes N] [--max-bytes N] SOURCE DESTINATION
           a conflict-free memory layout for a conversion
       dither-layout --reduce AXIS,EXTENT LAYOUT
           steps and result of reducing groups of EXTENT elements

A layout is written (sizes) reg=[(..),..] lane=[..] warp=[..] rep (..), memory
has offset=[..]; scale128x4 names the order of scale factors. --bytes: bytes per
element (4); --vec: elements per access (1); --max-bytes: widest access (16).
)";

namespace {
/// The command line, taken apart.
struct Options {
  bool help = false, hardware = false, tensor = false;
  bool conflicts = false, swizzle = false, reduce = false;
  unsigned bytes = 4, vec = 1, maxBytes = 16, axis = 0, extent = 0;
  std::vector<std::string> layouts;
};
} // namespace

static bool parseNumber(const std::string &text, unsigned &value) {
  if (text.empty() || text.size() > 6)
    return false;
  unsigned number = 0;
  for (char c : text) {
    if (c < '0' || c > '9')
      return false;
    number = number * 10 + unsigned(c - '0');
  }
  value = number;
  return true;
}

static Result<Options> parseOptions(const std::vector<std::string> &args) {
  Options o;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string &arg = args[i];
    std::string value = i + 1 < args.size() ? args[i + 1] : "";
    if (arg == "--help" || arg == "-h") {
      o.help = true;
    } else if (arg == "--hardware") {
      o.hardware = true;
    } else if (arg == "--tensor") {
      o.tensor = true;
    } else if (arg == "--conflicts") {
      o.conflicts = true;
    } else if (arg == "--swizzle") {
      o.swizzle = true;
    } else if (arg == "--bytes" || arg == "--vec" || arg == "--max-bytes") {
      unsigned &target = arg == "--bytes" ? o.bytes
                         : arg == "--vec" ? o.vec
                                          : o.maxBytes;
      if (!parseNumber(value, target))
        return Error{arg + " expects a number, found '" + value + "'"};
      ++i;
    } else if (arg == "--reduce") {
      size_t comma = value.find(',');
      o.reduce = true;
      if (comma == std::string::npos ||
          !parseNumber(value.substr(0, comma), o.axis) ||
          !parseNumber(value.substr(comma + 1), o.extent))
        return Error{"--reduce expects AXIS,EXTENT, found '" + value + "'"};
      ++i;
    } else if (arg.compare(0, 2, "--") == 0) {
      return Error{"unknown option '" + arg + "'"};
    } else {
      o.layouts.push_back(arg);
    }
  }
  if (o.conflicts + o.swizzle + o.reduce + (o.hardware || o.tensor) > 1)
    return Error{
        "--conflicts, --swizzle, --reduce and the tables exclude each other"};
  size_t expected = o.conflicts || o.swizzle ? 2 : 1;
  if (!o.help && o.layouts.size() != expected)
    return Error{"found " + std::to_string(o.layouts.size()) +
                 " layouts, expected " + std::to_string(expected)};
  return o;
}

static Result<RepeatedLayout> parseLayout(const std::string &text) {
  if (text == "scale128x4")
    return RepeatedLayout(scaleFactor128x4());
  return RepeatedLayout::parse(text);
}

static std::string accessText(const char *name, const SharedAccess &access,
                              unsigned bytes, int64_t warps) {
  return std::string(name) + ": " + std::to_string(access.accesses.size()) +
         " accesses of " + std::to_string(access.vecElems) + " x " +
         std::to_string(bytes) + " bytes, " +
         std::to_string(access.wavefronts) + " wavefronts each (" +
         std::to_string(access.ideal) + " without conflicts), " +
         std::to_string(int64_t(access.accesses.size()) * warps *
                        access.conflicts()) +
         " conflicts in all\n";
}

static std::string stepText(const ReducePlan &plan, const ReduceStep &step) {
  switch (step.kind) {
  case ReduceStep::Repeats:
    return "repeats";
  case ReduceStep::Reg:
    return "reg bit " + std::to_string(step.bit);
  case ReduceStep::Lane:
    return "lane bit " + std::to_string(step.bit) +
           (step.exchange < 0
                ? ""
                : " exchanging reg bit " + std::to_string(step.exchange));
  case ReduceStep::Warps:
    break;
  }
  std::string text = "warp bits";
  for (int64_t bit : plan.warpBits)
    text += " " + std::to_string(bit);
  return text;
}

/// The steps of a sum over groups of elements, with the registers that are left
/// after each, and the layout of what results.
static std::optional<Error> reduce(const RepeatedLayout &layout, unsigned axis,
                                   int64_t extent, std::string &out) {
  if (axis >= layout.rank())
    return Error{"reduction along axis " + std::to_string(axis) +
                 " of a layout of rank " + std::to_string(layout.rank())};
  for (InDim dim : layout.base().inDims())
    if (dim != InDim::Reg && dim != InDim::Lane && dim != InDim::Warp)
      return Error{"reduction over input dimension " + toString(dim) +
                   ", expected reg, lane or warp"};
  bool whole = extent == layout.shape()[axis];
  Result<ReducePlan> plan = planReduce(TileLayout(layout), axis, extent, whole,
                                       /*ordered=*/true, Exchange::Shuffle);
  if (!plan)
    return plan.error();
  int64_t registers = layout.numRegs();
  for (const ReduceStep &step : plan->steps) {
    if (step.kind == ReduceStep::Repeats)
      registers /= layout.repeats()[axis];
    if (step.kind == ReduceStep::Reg || step.exchange >= 0)
      registers /= 2;
    out += stepText(*plan, step) + " -> " + std::to_string(registers) +
           " registers\n";
  }
  out += plan->result.repeated().toString() + "\n";
  return std::nullopt;
}

static std::optional<Error> run(const Options &o, std::string &out) {
  std::vector<RepeatedLayout> layouts;
  for (const std::string &text : o.layouts) {
    Result<RepeatedLayout> layout = parseLayout(text);
    if (!layout)
      return layout.error();
    layouts.push_back(std::move(*layout));
  }
  if (o.conflicts) {
    Result<SharedAccess> access =
        describeAccess(layouts[0], layouts[1], o.bytes, o.vec);
    if (!access)
      return access.error();
    out += accessText("access", *access, o.bytes, layouts[0].numWarps());
    return std::nullopt;
  }
  if (o.swizzle) {
    Result<SharedSwizzle> s =
        chooseSwizzle(layouts[0], layouts[1], o.bytes, o.maxBytes);
    if (!s)
      return s.error();
    out += s->shared.toString() + "\n";
    out += accessText("store", s->store, o.bytes, layouts[0].numWarps());
    out += accessText("load", s->load, o.bytes, layouts[1].numWarps());
    return std::nullopt;
  }
  if (o.reduce) {
    return reduce(layouts[0], o.axis, o.extent, out);
  }
  bool both = !o.hardware && !o.tensor;
  out += layouts[0].toString() + "\n" + describe(layouts[0]);
  if (both || o.hardware)
    out += "\n" + hardwareView(layouts[0]);
  if (both || o.tensor)
    out += "\n" + tensorView(layouts[0]);
  return std::nullopt;
}

int runLayoutTool(const std::vector<std::string> &args, std::string &out,
                  std::string &err) {
  Result<Options> options = parseOptions(args);
  if (!options) {
    err += "dither-layout: " + options.message() + "\n" + usage;
    return 2;
  }
  if (options->help) {
    out += usage;
    return 0;
  }
  if (std::optional<Error> error = run(*options, out)) {
    err += "dither-layout: " + error->message + "\n";
    return 1;
  }
  return 0;
}

} // namespace dither::layout
