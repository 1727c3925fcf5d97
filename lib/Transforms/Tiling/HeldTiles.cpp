//===- HeldTiles.cpp - What is held in the place of loads -----------------===//

#include "Tiling/HeldTiles.h"
#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dither::transforms {

/// What is made of `v` element by element, if nothing else is; else null.
static Value onlyUse(Value v) {
  if (v.use_empty() || !llvm::all_equal(v.getUsers()))
    return {};
  Operation *user = *v.getUsers().begin();
  if (!user->hasTrait<OpTrait::Elementwise>() ||
      user->getBlock() != v.getDefiningOp()->getBlock())
    return {};
  auto type = dyn_cast<RankedTensorType>(user->getResult(0).getType());
  return type && type.getShape() ==
                     cast<RankedTensorType>(v.getType()).getShape()
             ? user->getResult(0)
             : Value();
}

static int64_t bitsOf(Value v) {
  return quant::storageBits(getElementTypeOrSelf(v.getType()));
}

/// Whether something may be written between `load` and `tile`, which stands
/// after it: what is held is read where it is made.
static bool mayBeOverwritten(quant::LoadOp load, Operation *tile) {
  return llvm::any_of(
      llvm::make_range(std::next(load->getIterator()), tile->getIterator()),
      [](Operation &op) {
        return op.getNumRegions() ||
               (!isa<quant::LoadOp>(op) && !isMemoryEffectFree(&op));
      });
}

/// Operations of which a tile is made that is worth holding, at most: of more
/// it is not sums of a few tensors.
constexpr size_t kMostMade = 64;

/// Bits of an element of all loads of which `tile` is made, if it is made of
/// these and of constants alone, and of them nothing but it; else 0. Nothing if
/// it is made of more than kMostMade, as is what is made of it then.
static std::optional<int64_t> loadedBits(Value tile) {
  llvm::SetVector<Operation *> cone;
  cone.insert(tile.getDefiningOp());
  int64_t bits = 0;
  for (size_t i = 0; i < cone.size(); ++i) {
    if (cone.size() > kMostMade)
      return std::nullopt;
    Operation *op = cone[i];
    if (auto load = dyn_cast<quant::LoadOp>(op)) {
      if (mayBeOverwritten(load, tile.getDefiningOp()))
        return 0;
      bits += bitsOf(load.getResult());
      continue;
    }
    if (!op->hasTrait<OpTrait::Elementwise>())
      return 0;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def || def->getBlock() != op->getBlock())
        return 0;
      if (!def->hasTrait<OpTrait::ConstantLike>())
        cone.insert(def);
    }
  }
  bool isOnlyThat = llvm::all_of(llvm::drop_begin(cone), [&](Operation *op) {
    return llvm::all_of(op->getUsers(),
                        [&](Operation *user) { return cone.contains(user); });
  });
  return isOnlyThat ? bits : 0;
}

Value heldTileOf(quant::LoadOp load) {
  Value held = load.getResult();
  int64_t saved = 0;
  for (Value v = onlyUse(held); v; v = onlyUse(v)) {
    std::optional<int64_t> loaded = loadedBits(v);
    if (!loaded)
      break;
    int64_t less = *loaded - bitsOf(v);
    if (less >= saved && canBeScratch(v.getType())) {
      held = v;
      saved = less;
    }
  }
  return held;
}

} // namespace dither::transforms
