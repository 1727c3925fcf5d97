//===- QuantModuleAttrs.cpp - Attributes of modules and functions ---------===//
//
// What passes tell each other of a module, a function and its arguments. There
// are no others: what says something of an operation of the dialect is part of
// that operation. Labels such as AT1 name the constraints of Semantics.md.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::quant {

namespace {

/// An attribute, and what is expected of its value.
struct Known {
  StringRef name;
  bool (*holds)(Attribute);
  StringRef expected;
};

bool isUnit(Attribute attr) { return isa<UnitAttr>(attr); }
bool isText(Attribute attr) { return isa<StringAttr>(attr); }

/// The number that `attr` is, if it is one.
std::optional<int64_t> numberOf(Attribute attr) {
  auto number = dyn_cast_if_present<IntegerAttr>(attr);
  if (!number || !number.getType().isSignlessIntOrIndex())
    return std::nullopt;
  return number.getValue().trySExtValue();
}
bool isCount(Attribute attr) { return numberOf(attr).value_or(-1) >= 0; }
bool isPositive(Attribute attr) { return numberOf(attr).value_or(0) > 0; }
bool isWarps(Attribute attr) {
  int64_t warps = numberOf(attr).value_or(0);
  return warps > 0 && warps <= 32 && llvm::isPowerOf2_64(warps);
}

/// Rows and columns.
bool isShape(Attribute attr) {
  auto shape = dyn_cast<DenseI64ArrayAttr>(attr);
  return shape && shape.size() == 2;
}

bool isConfig(Attribute attr) {
  auto config = dyn_cast<DictionaryAttr>(attr);
  return config && llvm::all_of(config, [](NamedAttribute entry) {
           if (entry.getName() == "num_warps")
             return isWarps(entry.getValue());
           if (entry.getName() == "cluster")
             return llvm::is_contained({1, 2, 4, 8},
                                       numberOf(entry.getValue()).value_or(0));
           if (entry.getName() == "tiles")
             return isPositive(entry.getValue());
           return llvm::is_contained({"fragment", "edge", "tile"},
                                     entry.getName()) &&
                  isShape(entry.getValue());
         });
}

/// A dimension of the grid that nothing is cut along has an empty entry.
bool isGrid(Attribute attr) {
  auto extents = dyn_cast<ArrayAttr>(attr);
  return extents && llvm::all_of(extents, [](Attribute extent) {
           auto entry = dyn_cast<DictionaryAttr>(extent);
           return entry && (entry.empty() || (isCount(entry.get("arg")) &&
                                              isCount(entry.get("dim")) &&
                                              isPositive(entry.get("step"))));
         });
}

bool isParams(Attribute attr) {
  auto params = dyn_cast<ArrayAttr>(attr);
  return params && llvm::all_of(params, [](Attribute param) {
           auto kind = dyn_cast<StringAttr>(param);
           return kind && llvm::is_contained({"ptr", "i64", "i32", "f32"},
                                             kind.getValue());
         });
}

/// The grid, three numbers, and a number for each slot.
bool isLaunch(Attribute attr) {
  auto launch = dyn_cast<DictionaryAttr>(attr);
  if (!launch || launch.size() != 2)
    return false;
  auto grid = launch.getAs<DenseI64ArrayAttr>("grid");
  return grid && grid.size() == 3 && launch.getAs<DenseI64ArrayAttr>("slots");
}

/// A place in a grid or among slots, or none.
bool isPlace(Attribute attr, int64_t count) {
  return !attr || (isCount(attr) && *numberOf(attr) < count);
}

bool isWholeIf(Attribute attr) {
  auto bounds = dyn_cast<ArrayAttr>(attr);
  return bounds && llvm::all_of(bounds, [](Attribute one) {
           auto bound = dyn_cast<DictionaryAttr>(one);
           return bound && isPositive(bound.get("end")) &&
                  isPlace(bound.get("axis"), 3) &&
                  bound.contains("axis") == bound.contains("step") &&
                  (!bound.contains("step") || isPositive(bound.get("step"))) &&
                  isPlace(bound.get("slot"), INT32_MAX) &&
                  isPlace(bound.get("other"), INT32_MAX) &&
                  (bound.contains("slot") || isCount(bound.get("extent")));
         });
}

bool isParts(Attribute attr) {
  auto parts = dyn_cast<ArrayAttr>(attr);
  return parts && llvm::all_of(parts, [](Attribute part) {
           return isa<FlatSymbolRefAttr>(part);
         });
}

/// AT2
const Known kOfModules[] = {
    {"quant.features", isText, "a string"},
    {"quant.target", isText, "a string"},
};

/// AT3 to AT8, AT11 to AT13
const Known kOfFunctions[] = {
    {"quant.cluster", isPositive, "a positive number"},
    {"quant.config", isConfig,
     "fragment, edge and tile, two numbers each, num_warps, 1, 2, 4, 8, 16 or "
     "32, and cluster and tiles, positive numbers"},
    {"quant.grid", isGrid, "an array of arg, dim and step"},
    {"quant.kernel", isUnit, "no value"},
    {"quant.launch", isLaunch, "grid, three numbers, and slots, numbers"},
    {"quant.num_threads", isPositive, "a positive number"},
    {"quant.num_warps", isWarps, "1, 2, 4, 8, 16 or 32"},
    {"quant.params", isParams,
     "an array of \"ptr\", \"i64\", \"i32\" and \"f32\""},
    {"quant.parts", isParts, "an array of names of functions"},
    {"quant.phases", isUnit, "no value"},
    {"quant.shared_bytes", isCount, "a number of bytes"},
    {"quant.whole", isUnit, "no value"},
    {"quant.whole_if", isWholeIf,
     "an array of end, axis and step, and slot or extent"},
};

/// AT3, AT9
const Known kOfArguments[] = {
    {"quant.align", isPositive, "a positive number"},
    {"quant.exchanged", isUnit, "no value"},
    {"quant.handed_on", isUnit, "no value"},
    {"quant.stride_align", isPositive, "a positive number"},
};

/// `attr` is one of `known`, with a value as it says. `what` has it.
LogicalResult check(Operation *op, StringRef what, NamedAttribute attr,
                    ArrayRef<Known> known) {
  const Known *found = llvm::find_if(
      known, [&](const Known &k) { return attr.getName() == k.name; });
  if (found != known.end()) {
    if (found->holds(attr.getValue()))
      return success();
    return op->emitOpError(what)
           << "has " << attr.getName() << " = " << attr.getValue()
           << ", expected " << found->expected;
  }
  auto diagnostic = op->emitOpError(what)
                    << "has attribute " << attr.getName() << ", expected ";
  if (known.empty()) // AT1
    return diagnostic << "none of the dialect";
  diagnostic << "one of ";
  llvm::interleaveComma(known, diagnostic,
                        [&](const Known &k) { diagnostic << k.name; });
  return diagnostic;
}

/// An attribute of something of this type.
LogicalResult checkTensor(Operation *op, const std::string &what, Type type,
                          NamedAttribute attr) {
  if (!isa<ShapedType>(type)) // AT10
    return op->emitOpError(what)
           << "is of type " << type << " and has " << attr.getName()
           << ", expected a memref or a tensor";
  return check(op, what, attr, kOfArguments);
}

} // namespace

LogicalResult QuantDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attr) {
  ArrayRef<Known> known;
  if (isa<ModuleOp>(op))
    known = kOfModules;
  else if (isa<FunctionOpInterface>(op))
    known = kOfFunctions;
  return check(op, "", attr, known);
}

LogicalResult QuantDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attr) {
  Type type = cast<FunctionOpInterface>(op).getArgumentTypes()[index];
  return checkTensor(op, "argument " + std::to_string(index) + " ", type, attr);
}

LogicalResult QuantDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                        unsigned index,
                                                        NamedAttribute attr) {
  Type type = cast<FunctionOpInterface>(op).getResultTypes()[index];
  return checkTensor(op, "result " + std::to_string(index) + " ", type, attr);
}

} // namespace dither::quant
