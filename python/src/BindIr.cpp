//===- BindIr.cpp - Module, Builder and Value in Python -------------------===//

#include "Bindings.h"
#include "IrBuilder.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace mlir;

namespace dither::python {
namespace {

using State = std::shared_ptr<IrState>;

ModuleOp moduleOf(const State &state) {
  if (!state->module)
    throw IRError("module was moved into the compiler");
  return *state->module;
}

std::string print(const State &state, bool locations) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  flags.printNameLocAsPrefix();
  if (locations)
    flags.enableDebugInfo().useLocalScope();
  moduleOf(state)->print(os, flags);
  return text;
}

/// What a tile program is made of: contexts know what it becomes, too.
bool isOfPrograms(StringRef dialect) {
  return llvm::is_contained(
      {"builtin", "quant", "func", "arith", "math", "scf", "tensor", "memref"},
      dialect);
}

State parseModule(const std::string &text, const std::string &filename) {
  auto state = std::make_shared<IrState>();
  DiagnosticCapture capture(state->context);
  ParserConfig config(&state->context, /*verifyAfterParse=*/true);
  auto module = parseSourceString<ModuleOp>(text, config, filename);
  if (!module)
    throw capture.error("cannot read the module");
  module->walk([](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (isOfPrograms(dialect))
      return WalkResult::advance();
    op->emitError() << "found an operation of dialect '" << dialect
                    << "', expected those of tile programs";
    return WalkResult::interrupt();
  });
  if (capture.hasError())
    throw capture.error("cannot read the module");
  state->module = std::move(module);
  return state;
}

void verifyModule(const State &state) {
  DiagnosticCapture capture(state->context);
  if (failed(verify(moduleOf(state))))
    throw capture.error("the module is not valid");
}

void setAttribute(const State &state, const std::string &name,
                  const std::string &text) {
  if (name.empty())
    throw IRError("empty attribute name");
  Attribute attr = state->parseAttribute(text);
  moduleOf(state)->setAttr(name, attr);
}

/// Names of the operations of tile programs, with those of their attributes.
py::dict operations(const State &state) {
  py::dict result;
  for (RegisteredOperationName op : state->context.getRegisteredOperations()) {
    if (!isOfPrograms(op.getDialectNamespace()))
      continue;
    py::list attributes;
    for (StringAttr name : op.getAttributeNames())
      attributes.append(name.str());
    result[py::str(op.getStringRef().str())] = attributes;
  }
  return result;
}

py::tuple shapeOf(const IrValue &value) {
  py::list shape;
  for (int64_t extent : value.shape())
    shape.append(extent < 0 ? py::object(py::none())
                            : py::object(py::int_(extent)));
  return py::tuple(shape);
}

//===----------------------------------------------------------------------===//
// From Python
//===----------------------------------------------------------------------===//

AttrValue toAttr(py::handle value, const std::string &name) {
  if (py::isinstance<py::bool_>(value))
    return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow)
      throw IRError("'" + name + "' is " + py::str(value).cast<std::string>() +
                    ", expected a 64-bit integer");
    return int64_t(number);
  }
  if (py::isinstance<py::float_>(value))
    return value.cast<double>();
  if (py::isinstance<py::str>(value))
    return value.cast<std::string>();
  throw IRError("'" + name + "' is " + py::repr(value).cast<std::string>() +
                ", expected attribute text or a number");
}

AttrList toAttrs(const py::object &dict) {
  AttrList attrs;
  if (dict.is_none())
    return attrs;
  for (auto [key, value] : dict.cast<py::dict>()) {
    std::string name = py::str(key);
    if (name.empty())
      throw IRError("empty attribute name");
    if (!value.is_none())
      attrs.emplace_back(name, toAttr(value, name));
  }
  return attrs;
}

using PositionTuple = std::tuple<std::string, int, int>;

/// None, (file, line, col), or a list of those, innermost first.
Positions toPositions(const py::object &loc) {
  Positions positions;
  if (loc.is_none())
    return positions;
  std::vector<PositionTuple> tuples;
  if (py::isinstance<py::tuple>(loc))
    tuples.push_back(loc.cast<PositionTuple>());
  else
    tuples = loc.cast<std::vector<PositionTuple>>();
  for (auto &[file, line, col] : tuples)
    positions.push_back({file, line, col});
  return positions;
}

//===----------------------------------------------------------------------===//
// IRError
//===----------------------------------------------------------------------===//

void bindError(py::module_ &m) {
  static py::gil_safe_call_once_and_store<py::object> storage;
  // Two strings and two numbers, set on every instance by the translator below.
  storage.call_once_and_store_result([] {
    PyObject *made = PyErr_NewExceptionWithDoc(
        "dither._dither.IRError",
        "An error of MLIR: message, file, line, col (from 1; "
        "0 and an empty file where unknown), callers (file, line, col; "
        "innermost first).",
        PyExc_ValueError, nullptr);
    if (!made)
      throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  });
  m.attr("IRError") = storage.get_stored();
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer)
        std::rethrow_exception(pointer);
    } catch (const IRError &error) {
      const py::object &type = storage.get_stored();
      py::object instance = type(error.message);
      instance.attr("message") = error.message;
      instance.attr("file") = error.file;
      instance.attr("line") = error.line;
      instance.attr("col") = error.col;
      instance.attr("callers") = error.callers;
      PyErr_SetObject(type.ptr(), instance.ptr());
    }
  });
}

void bindBuilder(py::module_ &m) {
  using Builder = IrBuilder;
  py::class_<Builder>(
      m, "Builder",
      "Builds operations by name; see docs/architecture.md, section 5.")
      .def(py::init<State>(), py::arg("module"))
      .def(
          "create",
          [](Builder &b, const std::string &name,
             const std::vector<IrValue> &operands, const py::object &attrs,
             const py::object &loc,
             const std::optional<std::vector<std::string>> &types) {
            return b.create(name, operands, toAttrs(attrs), toPositions(loc),
                            types);
          },
          py::arg("name"), py::arg("operands") = std::vector<IrValue>(),
          py::arg("attrs") = py::none(), py::arg("loc") = py::none(),
          py::arg("result_types") = py::none())
      .def(
          "constant",
          [](Builder &b, const std::string &type, const py::object &value,
             const py::object &loc) {
            return b.constant(type, toAttr(value, "constant"),
                              toPositions(loc));
          },
          py::arg("type"), py::arg("value"), py::arg("loc") = py::none())
      .def(
          "begin_function",
          [](Builder &b, const std::string &name,
             const std::vector<std::tuple<std::string, std::string, py::object>>
                 &args,
             const py::object &attrs, const py::object &loc) {
            std::vector<Argument> arguments;
            for (const auto &[argument, type, dict] : args)
              arguments.push_back({argument, type, toAttrs(dict)});
            return b.beginFunction(name, arguments, toAttrs(attrs),
                                   toPositions(loc));
          },
          py::arg("name"), py::arg("arguments"), py::arg("attrs") = py::none(),
          py::arg("loc") = py::none(),
          "arguments: (name, type, attributes or None) each")
      .def(
          "add_argument",
          [](Builder &b, const std::string &name, const std::string &type,
             const py::object &attrs) {
            return b.addArgument({name, type, toAttrs(attrs)});
          },
          py::arg("name"), py::arg("type"), py::arg("attrs") = py::none())
      .def("end_function", &Builder::endFunction)
      .def(
          "begin_for",
          [](Builder &b, const IrValue &lower, const IrValue &upper,
             const IrValue &step, const std::vector<IrValue> &inits,
             const py::object &loc) {
            return b.beginFor(lower, upper, step, inits, toPositions(loc));
          },
          py::arg("lower"), py::arg("upper"), py::arg("step"), py::arg("inits"),
          py::arg("loc") = py::none())
      .def("end_for", &Builder::endFor, py::arg("yields"))
      .def(
          "begin_if",
          [](Builder &b, const IrValue &condition, const py::object &loc) {
            b.beginIf(condition, toPositions(loc));
          },
          py::arg("condition"), py::arg("loc") = py::none())
      .def("select_branch", &Builder::selectBranch, py::arg("branch"))
      .def("inline_if", &Builder::inlineIf)
      .def("vanishes", &Builder::vanishes, py::arg("value"), py::arg("dim"),
           py::arg("zeros"))
      .def("is_zero_past", &Builder::isZeroPast, py::arg("value"),
           py::arg("dim"), py::arg("zeros"))
      .def("counts_up", &Builder::countsUp, py::arg("start"), py::arg("stop"),
           py::arg("step"))
      .def("end_if", &Builder::endIf, py::arg("then_values"),
           py::arg("else_values"));
}

} // namespace

void bindIr(py::module_ &m) {
  bindError(m);
  py::class_<IrState, State>(m, "Module",
                             "A module of tile programs in its own context.")
      .def(py::init([] { return std::make_shared<IrState>(); }))
      .def_static("parse", &parseModule, py::arg("text"),
                  py::arg("filename") = "<string>")
      .def("text", &print, py::arg("locations") = false)
      .def("verify", &verifyModule)
      .def("set_attribute", &setAttribute, py::arg("name"), py::arg("text"))
      .def("operations", &operations)
      .def("__str__", [](const State &state) { return print(state, false); });
  py::class_<IrValue>(m, "Value")
      .def_property_readonly("type", &IrValue::type)
      .def_property_readonly("is_shaped", &IrValue::isShaped)
      .def_property_readonly("shape", &shapeOf)
      .def_property_readonly("rank",
                             [](const IrValue &v) { return v.shape().size(); })
      .def_property_readonly("dtype", &IrValue::dtype)
      .def("set_name", &IrValue::setName, py::arg("name"))
      .def("__repr__",
           [](const IrValue &v) { return "<Value " + v.type() + ">"; });
  bindBuilder(m);
}

} // namespace dither::python
