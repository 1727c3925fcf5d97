//===- WholeTiles.cpp - Launches without a tile past a tensor -------------===//

#include "Tiling/WholeTiles.h"

#include "dither/Dialect/Quant/Offsets.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using dither::runtime::TileBound;

namespace dither::transforms {

/// Slots that an argument takes (docs/architecture.md, 3): a pointer, then each
/// extent and each stride that is known at launch.
static int32_t slotsOf(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return 1;
  auto [strides, offset] = memref.getStridesAndOffset();
  return 1 + memref.getNumDynamicDims() +
         llvm::count(strides, ShapedType::kDynamic);
}

bool isKernelArgument(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// `bound`, of an extent of an argument of the kernel.
static std::optional<TileBound> withExtent(TileBound bound, Extent extent) {
  if (!isKernelArgument(extent.of))
    return std::nullopt;
  auto argument = cast<BlockArgument>(extent.of);
  bound.slot = 0;
  if (extent.dim != Extent::kNumber) {
    auto type = cast<MemRefType>(argument.getType());
    if (!type.isDynamicDim(extent.dim)) {
      bound.slot = -1;
      bound.extent = type.getDimSize(extent.dim);
      return bound;
    }
    bound.slot = 1 + llvm::count(type.getShape().take_front(extent.dim),
                                 ShapedType::kDynamic);
  }
  for (BlockArgument before :
       argument.getOwner()->getArguments().take_front(argument.getArgNumber()))
    bound.slot += slotsOf(before.getType());
  return bound;
}

namespace {
/// At most last + step * program, of programs along `axis`; -1 where there is
/// no such program. Not below 0. Steps and last ones have 31 bits, so that no
/// product with a program's number wraps.
struct Progression {
  int32_t axis = -1;
  int64_t last = 0, step = 0;

  static std::optional<Progression> of(Value index);

private:
  static std::optional<Progression> make(int32_t axis, int64_t last,
                                         int64_t step) {
    if (last < 0 || step < 0 || !llvm::isInt<32>(last) ||
        !llvm::isInt<32>(step))
      return std::nullopt;
    return Progression{axis, last, step};
  }
  static std::optional<Progression> ofLoop(BlockArgument argument);
  static std::optional<Progression> sum(const Progression &a,
                                        const Progression &b) {
    if (a.axis >= 0 && b.axis >= 0 && a.axis != b.axis)
      return std::nullopt;
    return make(std::max(a.axis, b.axis), a.last + b.last, a.step + b.step);
  }
  std::optional<Progression> times(int64_t factor) const {
    return make(axis, last * factor, step * factor);
  }
  std::optional<Progression> over(int64_t divisor) const {
    if (divisor < 1 || step % divisor)
      return std::nullopt;
    return make(axis, llvm::divideCeil(last, divisor), step / divisor);
  }
};
} // namespace

/// The number of an iteration, of a loop whose ends are known.
std::optional<Progression> Progression::ofLoop(BlockArgument argument) {
  scf::ForOp loop = quant::countingLoop(argument);
  if (!loop)
    return std::nullopt;
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                         upper = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  if (!lower || !upper || !step || *lower < 0 || *step < 1 ||
      !llvm::isInt<32>(*upper))
    return std::nullopt;
  int64_t more = std::max<int64_t>(*upper - *lower - 1, 0) / *step;
  return make(-1, *lower + more * *step, 0);
}

std::optional<Progression> Progression::of(Value index) {
  // Numbers of fewer bits may wrap.
  if (!index.getType().isIndex() && !index.getType().isInteger(64))
    return std::nullopt;
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return make(-1, *constant, 0);
  if (auto argument = dyn_cast<BlockArgument>(index))
    return ofLoop(argument);
  Operation *op = index.getDefiningOp();
  if (auto program = dyn_cast<quant::ProgramIdOp>(op))
    return make(int32_t(program.getDim()), 0, 1);
  if (isa<arith::IndexCastOp>(op))
    return of(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::FloorDivSIOp,
           arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return std::nullopt;
  std::optional<Progression> lhs = of(op->getOperand(0)),
                             rhs = of(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return sum(*lhs, *rhs);
  // Factors and divisors are constants.
  std::optional<int64_t> by = getConstantIntValue(op->getOperand(1));
  if (isa<arith::MulIOp>(op) && !by) {
    by = getConstantIntValue(op->getOperand(0));
    lhs = rhs;
  }
  if (!by)
    return std::nullopt;
  return isa<arith::MulIOp>(op) ? lhs->times(*by) : lhs->over(*by);
}

std::optional<int64_t> lastOf(Value index) {
  std::optional<Progression> numbers = Progression::of(index);
  if (!numbers || numbers->axis >= 0)
    return std::nullopt;
  return numbers->last;
}

std::optional<TileBound> boundOf(Value index, Value memref, int64_t dim,
                                 int64_t size) {
  std::optional<Progression> tiles = Progression::of(index);
  TileBound bound;
  if (!tiles || llvm::AddOverflow(tiles->last, size, bound.end))
    return std::nullopt;
  if (tiles->axis >= 0) {
    bound.axis = tiles->axis;
    bound.step = tiles->step;
  }
  return withExtent(bound, {memref, dim});
}

std::optional<TileBound> lengthBound(Value memref, int64_t length) {
  TileBound bound;
  bound.end = length;
  bound.kind = TileBound::Kind::Exact;
  return withExtent(bound, {memref, 0});
}

std::optional<TileBound> multipleBound(Extent extent, int64_t size) {
  TileBound bound;
  bound.end = size;
  bound.kind = TileBound::Kind::Multiple;
  return withExtent(bound, extent);
}

std::optional<TileBound> reachBound(Extent extent, Extent other, int64_t part) {
  std::optional<TileBound> of = withExtent({}, other);
  if (!of || of->slot < 0)
    return std::nullopt;
  TileBound bound;
  bound.kind = TileBound::Kind::Other;
  bound.end = part;
  bound.other = of->slot;
  return withExtent(bound, extent);
}

bool holds(Attribute launch, ArrayRef<TileBound> bounds) {
  auto entries = dyn_cast_if_present<DictionaryAttr>(launch);
  if (!entries)
    return false;
  ArrayRef<int64_t> grid = entries.getAs<DenseI64ArrayAttr>("grid"),
                    slots = entries.getAs<DenseI64ArrayAttr>("slots");
  return llvm::all_of(bounds, [&](const TileBound &bound) {
    return std::max(bound.slot, bound.other) < int64_t(slots.size()) &&
           bound.holds(slots.data(), grid.data());
  });
}

void setWholeTiles(func::FuncOp kernel, ArrayRef<TileBound> bounds,
                   bool required) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> entries;
  for (const TileBound &bound : bounds) {
    NamedAttrList entry;
    auto number = [&](StringRef name, int64_t value) {
      entry.append(name, b.getI64IntegerAttr(value));
    };
    if (bound.axis >= 0)
      number("axis", bound.axis);
    number("end", bound.end);
    if (bound.axis >= 0)
      number("step", bound.step);
    if (bound.kind == TileBound::Kind::Exact)
      entry.append("exact", b.getUnitAttr());
    if (bound.kind == TileBound::Kind::Multiple)
      entry.append("multiple", b.getUnitAttr());
    if (bound.kind == TileBound::Kind::Other)
      number("other", bound.other);
    if (bound.slot >= 0)
      number("slot", bound.slot);
    else
      number("extent", bound.extent);
    entries.push_back(entry.getDictionary(kernel.getContext()));
  }
  kernel->setAttr("quant.whole_if", b.getArrayAttr(entries));
  if (required)
    kernel->setAttr("quant.whole", b.getUnitAttr());
}

} // namespace dither::transforms
