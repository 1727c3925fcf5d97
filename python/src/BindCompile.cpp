//===- BindCompile.cpp - Module to Artifact in Python ---------------------===//

#include "Bindings.h"
#include "IrBuilder.h"
#include "Unlocked.h"

#include "dither/Compiler.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Pipelines/Pipelines.h"
#include "dither/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SetVector.h"

#include <pybind11/stl.h>
#include <set>

namespace py = pybind11;
using namespace mlir;

namespace dither::python {
namespace {

/// The target of a name; a ValueError for none.
const target::TargetInfo &targetNamed(const std::string &name) {
  if (const target::TargetInfo *target = target::lookupTarget(name))
    return *target;
  throw py::value_error("unknown target '" + name + "'");
}

using State = std::shared_ptr<IrState>;
using runtime::KernelImage;
using runtime::ParamKind;
using runtime::TileBound;

const std::pair<ParamKind, const char *> kParamNames[] = {
    {ParamKind::Pointer, "ptr"},
    {ParamKind::I64, "i64"},
    {ParamKind::I32, "i32"},
    {ParamKind::F32, "f32"}};

std::vector<std::string> paramNames(const KernelImage &image) {
  std::vector<std::string> names;
  for (ParamKind kind : image.params)
    for (auto [k, name] : kParamNames)
      if (k == kind)
        names.push_back(name);
  return names;
}

constexpr std::pair<TileBound::Kind, const char *> kBoundKinds[] = {
    {TileBound::Kind::Enough, "enough"},
    {TileBound::Kind::Exact, "exact"},
    {TileBound::Kind::Multiple, "multiple"},
    {TileBound::Kind::Other, "other"}};

/// WholeTiles in Python: (required, [(axis, slot, extent, end, step, kind,
/// other), ..]).
using Bound = std::tuple<int32_t, int32_t, int64_t, int64_t, int64_t,
                         std::string, int32_t>;
using Tiles = std::pair<bool, std::vector<Bound>>;

Tiles tilesOf(const KernelImage &image) {
  Tiles tiles;
  tiles.first = image.tiles.required;
  for (const TileBound &bound : image.tiles.bounds)
    for (auto [kind, name] : kBoundKinds)
      if (kind == bound.kind)
        tiles.second.emplace_back(bound.axis, bound.slot, bound.extent,
                                  bound.end, bound.step, name, bound.other);
  return tiles;
}

using Extents = std::array<int64_t, 3>;

bool suits(const KernelImage &image, const std::vector<int64_t> &slots,
           const Extents &grid) {
  if (slots.size() != image.params.size())
    throw py::value_error("found " + std::to_string(slots.size()) +
                          " slots, expected " +
                          std::to_string(image.params.size()));
  return image.tiles.suit(slots.data(), grid.data());
}

KernelImage makeImage(const std::string &name, const std::string &target,
                      const py::bytes &code, uint32_t numThreads,
                      uint32_t sharedBytes,
                      const std::vector<std::string> &params,
                      uint32_t clusterSize, const Tiles &tiles) {
  KernelImage image;
  image.name = name;
  image.target = target;
  image.code = code;
  image.numThreads = numThreads;
  image.sharedBytes = sharedBytes;
  image.clusterSize = clusterSize;
  image.tiles.required = tiles.first;
  auto isSlot = [&](int32_t slot) {
    return slot >= -1 && slot < int64_t(params.size());
  };
  for (const auto &[axis, slot, extent, end, step, name, other] :
       tiles.second) {
    const auto *kind = llvm::find_if(
        kBoundKinds, [&, &name = name](auto k) { return k.second == name; });
    if (axis < -1 || axis > 2 || !isSlot(slot) || !isSlot(other) || step < 1 ||
        end < 1 || kind == std::end(kBoundKinds) ||
        (kind->first == TileBound::Kind::Other) != (other >= 0))
      throw py::value_error("found a bound of tiles that no kernel has");
    image.tiles.bounds.push_back(
        {axis, slot, extent, end, step, kind->first, other});
  }
  for (const std::string &param : params) {
    bool known = false;
    for (auto [kind, text] : kParamNames)
      if (param == text) {
        image.params.push_back(kind);
        known = true;
      }
    if (!known)
      throw py::value_error("found parameter kind '" + param +
                            "', expected ptr, i64, i32 or f32");
  }
  return image;
}

/// The position of the kernel argument that a memref is, or is of.
std::optional<unsigned> positionOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  if (auto arg = dyn_cast<BlockArgument>(memref))
    return arg.getArgNumber();
  return std::nullopt;
}

/// Arguments that the kernel writes to, in order of position.
std::vector<unsigned> writtenArguments(const State &state) {
  std::set<unsigned> written;
  if (state->module)
    state->module->walk([&](MemoryEffectOpInterface op) {
      SmallVector<MemoryEffects::EffectInstance> effects;
      op.getEffects<MemoryEffects::Write>(effects);
      for (const MemoryEffects::EffectInstance &effect : effects)
        if (Value memref = effect.getValue())
          if (std::optional<unsigned> position = positionOf(memref))
            written.insert(*position);
    });
  return {written.begin(), written.end()};
}

/// Arguments that the kernel writes scales to in an order, with its name.
std::vector<std::pair<unsigned, std::string>>
orderedArguments(const State &state) {
  std::set<std::pair<unsigned, std::string>> ordered;
  if (state->module)
    state->module->walk([&](quant::StoreOp store) {
      // What a program slices is checked when it is stored.
      if (store.getScaleLayout() == quant::ScaleLayout::linear ||
          quant::isSliced(store.getMemref()))
        return;
      if (std::optional<unsigned> position = positionOf(store.getMemref()))
        ordered.emplace(
            *position,
            quant::stringifyScaleLayout(store.getScaleLayout()).str());
    });
  return {ordered.begin(), ordered.end()};
}

/// An artifact, and what the passes reported.
using Compiled = std::pair<Artifact, std::vector<DiagnosticCapture::Remark>>;

Compiled
compile(const State &state, const std::string &target, bool keepStages,
        bool verify, const std::string &reproducer,
        const std::string &dumpDirectory, bool remarks, bool lineInfo,
        const std::string &startName, const std::string &text,
        std::optional<std::pair<Extents, std::vector<int64_t>>> launch) {
  if (!state->module)
    throw IRError("module was moved into the compiler");
  std::optional<pipelines::Stage> start = pipelines::parseStage(startName);
  if (!start)
    throw IRError("found stage '" + startName +
                  "', expected quant, tiled, distributed or llvm");
  CompileOptions options;
  options.target = target;
  options.keepStages = keepStages;
  options.verifyEach = verify;
  options.reproducer = reproducer;
  options.dumpDirectory = dumpDirectory;
  options.remarks = remarks;
  options.lineInfo = lineInfo;
  options.launch = std::move(launch);
  state->invalidateHandles();
  std::optional<IRError> failure;
  Compiled compiled;
  {
    Unlocked unlocked;
    DiagnosticCapture capture(state->context);
    if (!text.empty()) {
      ParserConfig config(&state->context, /*verifyAfterParse=*/true);
      state->module = parseSourceString<ModuleOp>(text, config, startName);
      if (!state->module)
        failure = capture.error("cannot read the text of stage " + startName);
    }
    if (state->module) {
      llvm::Expected<Artifact> result =
          pipelines::compileFrom(*state->module, *start, options);
      if (result)
        compiled = {std::move(*result), capture.remarks()};
      else
        failure = capture.error(llvm::toString(result.takeError()));
    }
    // What is left is in the LLVM dialect, and of no use to anyone.
    state->module = nullptr;
  }
  if (failure)
    throw *failure;
  return compiled;
}

} // namespace

void bindCompile(py::module_ &m) {
  py::class_<KernelImage>(m, "KernelImage",
                          "Code for a device and how to call it.")
      .def(py::init(&makeImage), py::arg("name"), py::arg("target"),
           py::arg("code"), py::arg("num_threads"), py::arg("shared_bytes"),
           py::arg("params"), py::arg("cluster_size") = 1,
           py::arg("tiles") = Tiles())
      .def_readonly("name", &KernelImage::name)
      .def_readonly("target", &KernelImage::target)
      .def_property_readonly(
          "code", [](const KernelImage &i) { return py::bytes(i.code); })
      .def_readonly("num_threads", &KernelImage::numThreads)
      .def_readonly("shared_bytes", &KernelImage::sharedBytes)
      .def_readonly("cluster_size", &KernelImage::clusterSize,
                    "blocks of a program of the grid")
      .def_property_readonly("params", &paramNames)
      .def_property_readonly(
          "tiles", &tilesOf,
          "whether the code is for launches with all tiles inside alone, and "
          "(axis, slot, extent, end, step, exact) of what keeps them inside")
      .def("suits", &suits, py::arg("slots"), py::arg("grid"),
           "Whether there is no better code for such a launch.");

  py::class_<Artifact>(m, "Artifact", "What a compilation gives.")
      .def_readonly("kernels", &Artifact::kernels)
      .def_readonly("stages", &Artifact::stages,
                    "(name, text) of each stage, in order")
      .def_readonly("timings", &Artifact::timings,
                    "(name, milliseconds) of each step, in order");

  m.def(
      "compile", &compile, py::arg("module"), py::arg("target"),
      py::arg("keep_stages") = false, py::arg("verify") = false,
      py::arg("reproducer") = "", py::arg("dump_directory") = "",
      py::arg("remarks") = false, py::arg("line_info") = false,
      py::arg("start") = "quant", py::arg("text") = "",
      py::arg("launch") = py::none(),
      "Compiles a module, which is used up, or the text of the stage `start` "
      "in its place: (artifact, remarks). `launch`, a grid and slots, is what "
      "the code is for, or None for any. Raises IRError at the position of "
      "the failure.");
  py::class_<DiagnosticCapture::Remark>(m, "Remark",
                                        "What a pass chose, and where.")
      .def_readonly("message", &DiagnosticCapture::Remark::message)
      .def_readonly("file", &DiagnosticCapture::Remark::file)
      .def_readonly("line", &DiagnosticCapture::Remark::line)
      .def_readonly("col", &DiagnosticCapture::Remark::col);
  m.def("written_arguments", &writtenArguments, py::arg("module"),
        "Positions of the kernel arguments that are stored to.");
  m.def("ordered_arguments", &orderedArguments, py::arg("module"),
        "Positions of those that are stored to in an order of scales, with its "
        "name.");
  m.def(
      "target_names",
      [] {
        std::vector<std::string> names;
        for (llvm::StringRef name : target::targetNames())
          names.push_back(name.str());
        return names;
      },
      "Every target that can be compiled for.");
  m.def(
      "is_gpu", [](const std::string &name) { return targetNamed(name).isGpu; },
      py::arg("target"), "Whether a target is a GPU; raises for none.");
  m.def(
      "shared_bytes",
      [](const std::string &name) { return targetNamed(name).sharedBytes; },
      py::arg("target"),
      "Bytes of shared memory that a thread block of a target may have, 0 on "
      "a CPU; raises for none.");
  m.def(
      "fast_memory",
      [](const std::string &name) { return targetNamed(name).fastMemory; },
      py::arg("target"),
      "Whether a target's memory is fast beside its arithmetic; raises for "
      "none.");
  m.def(
      "language_name",
      [](const std::string &type) {
        mlir::MLIRContext context;
        return quant::languageName(parseTypeText(type, context)).str();
      },
      py::arg("type"),
      "What the compiler's messages call elements of a type; empty for types "
      "without a format.");
  m.def(
      "host_target", [] { return target::hostTarget().name.str(); },
      "The best target of this machine's CPU.");
}

} // namespace dither::python
