//===- IrBuilder.cpp - Builds operations by name --------------------------===//

#include "IrBuilder.h"

#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Dialect/Quant/PastEdge.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dither::python {

template <typename T> static std::string toText(T printable) {
  std::string text;
  llvm::raw_string_ostream(text) << printable;
  return text;
}

//===----------------------------------------------------------------------===//
// IrValue
//===----------------------------------------------------------------------===//

Value IrValue::get() const {
  if (generation != state->generation)
    throw IRError("value of a module that was compiled since");
  return value;
}

std::string IrValue::type() const { return toText(get().getType()); }

bool IrValue::isShaped() const { return isa<ShapedType>(get().getType()); }

std::vector<int64_t> IrValue::shape() const {
  auto type = dyn_cast<ShapedType>(get().getType());
  if (!type || !type.hasRank())
    throw IRError("value of type " + this->type() + " has no shape");
  std::vector<int64_t> extents;
  for (int64_t extent : type.getShape())
    extents.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
  return extents;
}

std::string IrValue::dtype() const {
  auto type = dyn_cast<ShapedType>(get().getType());
  return toText(type ? type.getElementType() : get().getType());
}

void IrValue::setName(const std::string &name) {
  Value v = get();
  if (name.empty() || isa<NameLoc>(v.getLoc()))
    return;
  // Several results share their operation's location.
  Operation *op = v.getDefiningOp();
  if (op && op->getNumResults() != 1)
    return;
  Location named =
      NameLoc::get(StringAttr::get(v.getContext(), name), v.getLoc());
  if (op)
    op->setLoc(named);
  else
    cast<BlockArgument>(v).setLoc(named);
}

//===----------------------------------------------------------------------===//
// Checked access
//===----------------------------------------------------------------------===//

IrBuilder::IrBuilder(std::shared_ptr<IrState> state)
    : state(std::move(state)), generation(this->state->generation),
      builder(&this->state->context) {}

void IrBuilder::requireCurrent() const {
  if (generation != state->generation)
    throw IRError("builder of a module that was compiled since");
}

Operation *IrBuilder::top(Scope kind, const char *what) {
  requireCurrent();
  if (scopes.empty() || scopes.back().kind != kind)
    throw IRError(std::string("no ") + what + " is open here");
  return scopes.back().op;
}

Location IrBuilder::location(const Positions &positions) {
  Location result = UnknownLoc::get(context());
  bool first = true;
  for (auto it = positions.rbegin(); it != positions.rend(); ++it) {
    Location at = FileLineColLoc::get(
        context(), it->file, std::max(it->line, 0), std::max(it->col, 0));
    result = first ? at : Location(CallSiteLoc::get(at, result));
    first = false;
  }
  return result;
}

Value IrBuilder::use(const IrValue &value, const std::string &what) {
  if (value.owner() != state)
    throw IRError(what + " belongs to another module");
  return value.get();
}

SmallVector<Value> IrBuilder::use(const std::vector<IrValue> &values,
                                  const std::string &what) {
  SmallVector<Value> result;
  for (auto [i, value] : llvm::enumerate(values))
    result.push_back(use(value, what + " " + std::to_string(i)));
  return result;
}

Type IrBuilder::parse(const std::string &type) {
  return state->parseType(type);
}

Attribute IrBuilder::parse(const AttrValue &value, const std::string &name) {
  if (auto *flag = std::get_if<bool>(&value))
    return *flag ? Attribute(builder.getUnitAttr()) : Attribute();
  if (auto *number = std::get_if<int64_t>(&value))
    return builder.getI64IntegerAttr(*number);
  if (auto *number = std::get_if<double>(&value)) {
    APFloat rounded(*number);
    bool losesInfo;
    rounded.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    return FloatAttr::get(builder.getF32Type(), rounded);
  }
  return state->parseAttribute(std::get<std::string>(value));
}

std::vector<IrValue> IrBuilder::wrap(ValueRange values) {
  std::vector<IrValue> result;
  for (Value value : values)
    result.emplace_back(state, value);
  return result;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
/// The properties of an operation before it exists, with ODS's defaults.
class Properties {
public:
  explicit Properties(RegisteredOperationName info)
      : info(info), size(info.getOpPropertyByteSize()),
        storage(std::make_unique<char[]>(size + 1)) {
    if (!size)
      return;
    info.initOpProperties(get(), OpaqueProperties(nullptr));
    info.populateDefaultProperties(get());
  }
  ~Properties() {
    if (size)
      info.destroyOpProperties(get());
  }
  Properties(const Properties &) = delete;
  Properties &operator=(const Properties &) = delete;

  OpaqueProperties get() const {
    return OpaqueProperties(size ? storage.get() : nullptr);
  }
  /// False with a diagnostic where an attribute is of the wrong kind.
  bool set(const OperationState &state, DictionaryAttr attrs) {
    auto emit = [&] { return emitError(state.location); };
    return !size || succeeded(info.setOpPropertiesFromAttribute(
                        state.name, get(), attrs, emit));
  }

private:
  RegisteredOperationName info;
  size_t size;
  std::unique_ptr<char[]> storage;
};
} // namespace

/// Result types from operands and attributes alone: the operation does not
/// exist yet, and no verifier has seen them. So this asks only operations whose
/// inference holds for any: ours (InferenceTest.cpp), and those of arith and
/// math, which give the type of an operand or a boolean like it. That of memref
/// and tensor casts operands unchecked.
static void inferResultTypes(OperationState &op, RegisteredOperationName info,
                             DictionaryAttr attrs, OpaqueProperties properties,
                             DiagnosticCapture &capture) {
  std::string name = info.getStringRef().str();
  auto *interface = info.getInterface<InferTypeOpInterface>();
  StringRef dialect = info.getDialectNamespace();
  if (!interface || !llvm::is_contained({"quant", "arith", "math"}, dialect))
    throw IRError("'" + name +
                  "' infers no result types, expected result_types");
  if (succeeded(interface->inferReturnTypes(op.getContext(), op.location,
                                            op.operands, attrs, properties,
                                            op.regions, op.types)))
    return;
  std::string found;
  llvm::raw_string_ostream os(found);
  llvm::interleaveComma(ValueRange(op.operands).getTypes(), os);
  throw capture.error("cannot infer the result types of '" + name +
                      "' from operands (" + found + ")");
}

std::vector<IrValue>
IrBuilder::create(const std::string &name, const std::vector<IrValue> &operands,
                  const AttrList &attrs, const Positions &positions,
                  const std::optional<std::vector<std::string>> &resultTypes) {
  requireCurrent();
  if (scopes.empty())
    throw IRError("no function is open here");
  OperationState op(location(positions), name);
  std::optional<RegisteredOperationName> info = op.name.getRegisteredInfo();
  if (!info)
    throw IRError("unknown operation '" + name + "'");
  if (info->hasTrait<OpTrait::IsTerminator>() ||
      !(info->hasTrait<OpTrait::ZeroRegions>()))
    throw IRError("'" + name +
                  "' has regions or ends a block: it is not created by name");
  StringRef dialect = info->getDialectNamespace();
  if (!llvm::is_contained({"quant", "arith", "math", "memref", "tensor"},
                          dialect))
    throw IRError("'" + name + "' is of dialect " + dialect.str() +
                  ", expected quant, arith, math, memref or tensor");

  op.addOperands(use(operands, "operand"));
  for (const auto &[key, value] : attrs)
    if (Attribute attr = parse(value, key))
      op.addAttribute(key, attr);
  // Upstream's verifier casts the type of the values unchecked.
  if (name == "arith.select" && op.operands.size() == 3 &&
      isa<ShapedType>(op.operands[0].getType()) &&
      !isa<ShapedType>(op.operands[1].getType()))
    throw IRError(
        "condition of 'arith.select' is shaped and its values are not");

  DiagnosticCapture capture(state->context);
  // An operation that is made with an attribute of the wrong kind loses it
  // silently.
  DictionaryAttr dictionary = op.attributes.getDictionary(context());
  Properties properties(*info);
  if (!properties.set(op, dictionary))
    throw capture.error("'" + name + "' has wrong attributes");
  if (resultTypes) {
    for (const std::string &type : *resultTypes)
      op.types.push_back(parse(type));
  } else if (!info->hasTrait<OpTrait::ZeroResults>()) {
    inferResultTypes(op, *info, dictionary, properties.get(), capture);
  }
  Operation *created = builder.create(op);
  if (failed(created->getName().verifyInvariants(created)) ||
      capture.hasError()) {
    created->erase();
    throw capture.error("'" + name + "' is not valid here");
  }
  return wrap(created->getResults());
}

IrValue IrBuilder::constant(const std::string &type, const AttrValue &value,
                            const Positions &positions) {
  requireCurrent();
  if (scopes.empty())
    throw IRError("no function is open here");
  Type whole = parse(type);
  auto tensor = dyn_cast<RankedTensorType>(whole);
  if (tensor && !tensor.hasStaticShape())
    throw IRError("constant of type " + type + ", expected a static shape");
  Type elem = tensor ? tensor.getElementType() : whole;

  TypedAttr attr;
  if (auto real = dyn_cast<FloatType>(elem)) {
    double number = 0;
    if (auto *d = std::get_if<double>(&value))
      number = *d;
    else if (auto *i = std::get_if<int64_t>(&value))
      number = double(*i);
    else
      throw IRError("constant of type " + type + ", expected a number");
    APFloat rounded(number);
    bool losesInfo;
    rounded.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    attr = FloatAttr::get(real, rounded);
  } else if (elem.isIndex() || elem.isSignlessInteger()) {
    int64_t number = 0;
    unsigned width = elem.isIndex() ? 64 : elem.getIntOrFloatBitWidth();
    if (auto *i = std::get_if<int64_t>(&value))
      number = *i;
    else if (auto *b = std::get_if<bool>(&value))
      number = *b ? (width == 1 ? -1 : 1) : 0;
    else
      throw IRError("constant of type " + type + ", expected an integer");
    if (width > 64 || !llvm::isIntN(width, number))
      throw IRError("constant " + std::to_string(number) + " does not fit " +
                    toText(elem));
    attr = IntegerAttr::get(elem, APInt(width, number, /*isSigned=*/true));
  } else {
    throw IRError("constant of type " + type + ", expected integers or floats");
  }
  if (tensor)
    attr = DenseElementsAttr::get(tensor, Attribute(attr));
  return {state, arith::ConstantOp::create(builder, location(positions), attr)};
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::tuple<Type, Location, DictionaryAttr>
IrBuilder::describe(const Argument &argument, Location loc) {
  Type type = parse(argument.type);
  if (!isa<MemRefType, IndexType, IntegerType, FloatType>(type))
    throw IRError("argument '" + argument.name + "' has type " + argument.type +
                  ", expected a memref or a scalar");
  NamedAttrList list;
  for (const auto &[key, value] : argument.attrs)
    if (Attribute attr = parse(value, key))
      list.set(key, attr);
  return {type, NameLoc::get(builder.getStringAttr(argument.name), loc),
          list.getDictionary(context())};
}

std::vector<IrValue>
IrBuilder::beginFunction(const std::string &name,
                         const std::vector<Argument> &arguments,
                         const AttrList &attrs, const Positions &positions) {
  requireCurrent();
  if (!scopes.empty())
    throw IRError("a function is open already");
  if (name.empty() || state->module->lookupSymbol(name))
    throw IRError("function '" + name +
                  "' exists already, expected another name");
  Location loc = location(positions);
  SmallVector<Type> types;
  SmallVector<Location> locs;
  SmallVector<DictionaryAttr> dictionaries;
  for (const Argument &argument : arguments) {
    auto [type, argumentLoc, dictionary] = describe(argument, loc);
    types.push_back(type);
    locs.push_back(argumentLoc);
    dictionaries.push_back(dictionary);
  }
  NamedAttrList list;
  for (const auto &[key, value] : attrs)
    if (Attribute attr = parse(value, key))
      list.set(key, attr);

  builder.setInsertionPointToEnd(state->module->getBody());
  auto function = func::FuncOp::create(builder, loc, name,
                                       builder.getFunctionType(types, {}));
  for (NamedAttribute attr : list)
    function->setDiscardableAttr(attr.getName(), attr.getValue());
  function.setAllArgAttrs(dictionaries);
  Block *body = builder.createBlock(&function.getBody(), {}, types, locs);
  scopes.push_back({Scope::Function, function});
  return wrap(body->getArguments());
}

IrValue IrBuilder::addArgument(const Argument &argument) {
  requireCurrent();
  if (scopes.empty())
    throw IRError("no function is open");
  auto function = cast<func::FuncOp>(scopes.front().op);
  auto [type, loc, attrs] = describe(argument, function.getLoc());
  unsigned place = function.getNumArguments();
  if (failed(function.insertArgument(place, type, attrs, loc)))
    throw IRError("argument '" + argument.name + "' cannot be added");
  return IrValue(state, function.getArgument(place));
}

void IrBuilder::endFunction() {
  Operation *function = top(Scope::Function, "function");
  func::ReturnOp::create(builder, function->getLoc());
  scopes.pop_back();
  builder.clearInsertionPoint();
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

std::vector<IrValue> IrBuilder::beginFor(const IrValue &lower,
                                         const IrValue &upper,
                                         const IrValue &step,
                                         const std::vector<IrValue> &inits,
                                         const Positions &positions) {
  requireCurrent();
  if (scopes.empty())
    throw IRError("no function is open here");
  SmallVector<Value> bounds = use({lower, upper, step}, "bound");
  for (Value bound : bounds)
    if (!bound.getType().isIndex())
      throw IRError("loop bound of type " + toText(bound.getType()) +
                    ", expected index");
  auto loop =
      scf::ForOp::create(builder, location(positions), bounds[0], bounds[1],
                         bounds[2], use(inits, "initial value"));
  Block *body = loop.getBody();
  // The builder ends the body of a loop that carries nothing; we end all of
  // them.
  if (!body->empty())
    body->back().erase();
  builder.setInsertionPointToEnd(body);
  scopes.push_back({Scope::For, loop});
  return wrap(body->getArguments());
}

/// Raises unless `values` have the types of `expected`.
static void requireTypes(ValueRange values, TypeRange expected,
                         const char *what) {
  if (values.size() != expected.size())
    throw IRError("found " + std::to_string(values.size()) + " " + what +
                  ", expected " + std::to_string(expected.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].getType() != expected[i])
      throw IRError(std::string(what) + ": number " + std::to_string(i) +
                    " has type " + toText(values[i].getType()) + ", expected " +
                    toText(expected[i]));
}

std::vector<IrValue> IrBuilder::endFor(const std::vector<IrValue> &yields) {
  Operation *loop = top(Scope::For, "loop");
  SmallVector<Value> values = use(yields, "yielded value");
  requireTypes(values, loop->getResultTypes(), "carried values");
  scf::YieldOp::create(builder, loop->getLoc(), values);
  scopes.pop_back();
  builder.setInsertionPointAfter(loop);
  return wrap(loop->getResults());
}

void IrBuilder::beginIf(const IrValue &condition, const Positions &positions) {
  requireCurrent();
  if (scopes.empty())
    throw IRError("no function is open here");
  Value flag = use(condition, "condition");
  if (!flag.getType().isSignlessInteger(1))
    throw IRError("condition of type " + toText(flag.getType()) +
                  ", expected i1");
  OperationState branch(location(positions), scf::IfOp::getOperationName());
  branch.addOperands(flag);
  for (int i = 0; i < 2; ++i)
    branch.addRegion()->emplaceBlock();
  Operation *op = builder.create(branch);
  scopes.push_back({Scope::If, op});
  selectBranch(0);
}

void IrBuilder::selectBranch(int branch) {
  Operation *op = top(Scope::If, "branch");
  if (branch != 0 && branch != 1)
    throw IRError("branch " + std::to_string(branch) + ", expected 0 or 1");
  builder.setInsertionPointToEnd(&op->getRegion(branch).front());
}

/// Whether a block writes nothing. What the tile language computes is defined
/// for all operands, so such a block may as well run where it is not needed.
static bool hasNoEffect(Block &block) {
  return llvm::all_of(block, [](Operation &op) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    return op.getNumRegions() == 0 && effects &&
           (effects.hasNoEffect() ||
            effects.onlyHasEffect<MemoryEffects::Read>());
  });
}

std::vector<quant::Edge>
IrBuilder::edges(const std::vector<std::pair<IrValue, unsigned>> &zeros) {
  std::vector<quant::Edge> result;
  for (const auto &[zero, along] : zeros)
    result.emplace_back(use(zero, "zeros"), along);
  return result;
}

bool IrBuilder::vanishes(
    const IrValue &value, unsigned dim,
    const std::vector<std::pair<IrValue, unsigned>> &zeros) {
  return quant::vanishes({use(value, "value"), dim}, edges(zeros));
}

bool IrBuilder::isZeroPast(
    const IrValue &value, unsigned dim,
    const std::vector<std::pair<IrValue, unsigned>> &zeros) {
  std::optional<llvm::APFloat> number =
      quant::floatPast({use(value, "value"), dim}, edges(zeros));
  return number && number->isZero();
}

bool IrBuilder::countsUp(const IrValue &start, const IrValue &stop,
                         const IrValue &step) {
  return quant::countsUp(use(start, "start"), use(stop, "stop"),
                         use(step, "step"));
}

bool IrBuilder::inlineIf() {
  Operation *op = top(Scope::If, "branch");
  for (Region &region : op->getRegions())
    if (!hasNoEffect(region.front()))
      return false;
  for (Region &region : op->getRegions())
    op->getBlock()->getOperations().splice(op->getIterator(),
                                           region.front().getOperations());
  scopes.pop_back();
  builder.setInsertionPointAfter(op);
  op->erase();
  return true;
}

std::vector<IrValue> IrBuilder::endIf(const std::vector<IrValue> &thenValues,
                                      const std::vector<IrValue> &elseValues) {
  Operation *op = top(Scope::If, "branch");
  SmallVector<Value> values[2] = {use(thenValues, "value of then"),
                                  use(elseValues, "value of else")};
  requireTypes(values[1], TypeRange(ValueRange(values[0])), "values of else");
  for (int i = 0; i < 2; ++i) {
    builder.setInsertionPointToEnd(&op->getRegion(i).front());
    scf::YieldOp::create(builder, op->getLoc(), values[i]);
  }
  scopes.pop_back();
  // The types of the results are known only now: the bodies move to a new op.
  builder.setInsertionPointAfter(op);
  OperationState merged(op->getLoc(), op->getName());
  merged.addOperands(op->getOperands());
  merged.addTypes(TypeRange(ValueRange(values[0])));
  bool hasElse =
      !values[0].empty() || !llvm::hasSingleElement(op->getRegion(1).front());
  for (int i = 0; i < 2; ++i) {
    Region *region = merged.addRegion();
    if (i == 0 || hasElse)
      region->takeBody(op->getRegion(i));
  }
  Operation *created = builder.create(merged);
  op->erase();
  builder.setInsertionPointAfter(created);
  return wrap(created->getResults());
}

} // namespace dither::python
