//===- WholeTiles.cpp - Launches without a tile past a tensor -------------===//

#include "Tiling/WholeTiles.h"

#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// `bound`, with the extent of dimension `dim` of an argument of the kernel.
static std::optional<TileBound> withExtent(TileBound bound, Value memref,
                                           int64_t dim) {
  auto argument = dyn_cast<BlockArgument>(memref);
  if (!argument || !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  auto type = cast<MemRefType>(argument.getType());
  if (!type.isDynamicDim(dim)) {
    bound.extent = type.getDimSize(dim);
    return bound;
  }
  bound.slot =
      1 + llvm::count(type.getShape().take_front(dim), ShapedType::kDynamic);
  for (BlockArgument before :
       argument.getOwner()->getArguments().take_front(argument.getArgNumber()))
    bound.slot += slotsOf(before.getType());
  return bound;
}

namespace {
/// first + step * program, of programs along `axis`; -1 where all have `first`.
struct Progression {
  int32_t axis = -1;
  int64_t first = 0, step = 0;

  static std::optional<Progression> of(Value index);

private:
  static std::optional<Progression> sum(const Progression &a,
                                        const Progression &b) {
    if (a.axis >= 0 && b.axis >= 0 && a.axis != b.axis)
      return std::nullopt;
    Progression sum;
    sum.axis = std::max(a.axis, b.axis);
    if (llvm::AddOverflow(a.first, b.first, sum.first) ||
        llvm::AddOverflow(a.step, b.step, sum.step))
      return std::nullopt;
    return sum;
  }
  std::optional<Progression> times(int64_t factor) const {
    Progression product{axis};
    if (factor < 1 || llvm::MulOverflow(first, factor, product.first) ||
        llvm::MulOverflow(step, factor, product.step))
      return std::nullopt;
    return product;
  }
  /// Where nothing is rounded.
  std::optional<Progression> over(int64_t divisor) const {
    if (divisor < 1 || first % divisor || step % divisor)
      return std::nullopt;
    return Progression{axis, first / divisor, step / divisor};
  }
};
} // namespace

std::optional<Progression> Progression::of(Value index) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant < 0 ? std::nullopt
                         : std::optional(Progression{-1, *constant});
  Operation *op = index.getDefiningOp();
  if (auto program = dyn_cast_if_present<quant::ProgramIdOp>(op))
    return Progression{int32_t(program.getDim()), 0, 1};
  if (isa_and_present<arith::IndexCastOp>(op))
    return of(op->getOperand(0));
  if (!isa_and_present<arith::AddIOp, arith::MulIOp, arith::DivUIOp,
                       arith::FloorDivSIOp, arith::CeilDivSIOp,
                       arith::CeilDivUIOp>(op))
    return std::nullopt;
  std::optional<Progression> lhs = of(op->getOperand(0)),
                             rhs = of(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return sum(*lhs, *rhs);
  if (isa<arith::MulIOp>(op) && lhs->axis < 0)
    std::swap(lhs, rhs);
  if (rhs->axis >= 0)
    return std::nullopt;
  return isa<arith::MulIOp>(op) ? lhs->times(rhs->first)
                                : lhs->over(rhs->first);
}

std::optional<TileBound> boundOf(Value index, Value memref, int64_t dim,
                                 int64_t size) {
  std::optional<Progression> tiles = Progression::of(index);
  TileBound bound;
  if (!tiles || llvm::AddOverflow(tiles->first, size, bound.end))
    return std::nullopt;
  if (tiles->axis >= 0) {
    bound.axis = tiles->axis;
    bound.step = tiles->step;
  }
  return withExtent(bound, memref, dim);
}

std::optional<TileBound> lengthBound(Value memref, int64_t length) {
  TileBound bound;
  bound.end = length;
  bound.exact = true;
  return withExtent(bound, memref, 0);
}

bool holds(Attribute launch, ArrayRef<TileBound> bounds) {
  auto entries = dyn_cast_if_present<DictionaryAttr>(launch);
  if (!entries)
    return false;
  ArrayRef<int64_t> grid = entries.getAs<DenseI64ArrayAttr>("grid"),
                    slots = entries.getAs<DenseI64ArrayAttr>("slots");
  return llvm::all_of(bounds, [&](const TileBound &bound) {
    return bound.slot < int64_t(slots.size()) &&
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
    if (bound.exact)
      entry.append("exact", b.getUnitAttr());
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
