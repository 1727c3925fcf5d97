//===- EarlyTransposes.cpp - Transpose before columns combine -------------===//
//
//   s = block_reduce amax x block [16, 1]
//   transpose(x * block_broadcast(f(s)))
//
// moves elements twice on a GPU: what lanes have of a column to combine it, and
// codes to store them as rows. Of y = transpose(x), blocks run along rows and
// codes are where they are stored, so that elements move once, and as narrow as
// x is:
//
//   s = block_reduce amax y block [1, 16]
//   y * block_broadcast(f(s))
//
// What else needs f(s), such as a store of scales in the order of columns, has
// it transposed back: a number for each block.
//
//===----------------------------------------------------------------------===//

#include "Layouts/EarlyTransposes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dither::transforms {

namespace {

/// Rows of a block, of which a number costs little to transpose.
constexpr int64_t kTallBlock = 16;

RankedTensorType matrix(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getRank() == 2 ? type : RankedTensorType();
}

RankedTensorType turnedType(RankedTensorType type) {
  return RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)},
                               type.getElementType());
}

/// Whether elements of a column meet in `op`.
bool combinesColumns(Operation *op) {
  if (auto blocks = dyn_cast<quant::BlockReduceOp>(op))
    return blocks.getBlock().size() == 2 && blocks.getBlock()[0] > 1 &&
           blocks.getBlock()[1] == 1;
  auto hadamard = dyn_cast<quant::HadamardOp>(op);
  return hadamard && matrix(hadamard) && hadamard.getAxis() == 0;
}

/// What has no elements of a tensor: as cheap in one order as in the other.
bool isSource(Operation *op) {
  return isa<arith::ConstantOp, quant::IotaOp, quant::BroadcastOp>(op);
}

/// Whether the transpose of the result is `op` of transposed operands.
bool turns(Operation *op) {
  if (op->getNumResults() != 1 || !matrix(op->getResult(0)) ||
      op->getNumRegions())
    return false;
  if (isSource(op) || combinesColumns(op) || isa<quant::BlockBroadcastOp>(op))
    return true;
  return op->hasTrait<OpTrait::Elementwise>() && isPure(op);
}

class Turner {
public:
  explicit Turner(Block &block) : block(block) {}

  void run() {
    for (auto blocks : block.getOps<quant::BlockReduceOp>())
      if (combinesColumns(blocks) && blocks.getBlock()[0] >= kTallBlock)
        ofBlocks.insert(matrix(blocks.getResult()).getShape());
    // From the last operation to the first: what only transposes look at.
    SmallVector<quant::TransposeOp> transposes;
    for (Operation &op : llvm::reverse(block)) {
      if (auto transpose = dyn_cast<quant::TransposeOp>(op))
        transposes.push_back(transpose);
      else if (turns(&op) && hasTurnedUsers(&op))
        onlyTurned.insert(&op);
    }
    std::reverse(transposes.begin(), transposes.end());
    auto replace = [&](quant::TransposeOp op) {
      op.getResult().replaceAllUsesWith(transpose(op.getSource()));
      op.erase();
      return true;
    };
    llvm::erase_if(transposes, [&](quant::TransposeOp op) {
      return movesElements(op) && replace(op);
    });
    // Scales follow the elements.
    llvm::erase_if(transposes, [&](quant::TransposeOp op) {
      return isTurned(op.getSource()) && follows(op.getSource()) && replace(op);
    });
    // A lane has whole blocks of what is summed down the columns then, too.
    for (auto sum : llvm::make_early_inc_range(block.getOps<quant::ReduceOp>()))
      if (Value rows = transposed.lookup(sum.getSource()))
        if (sum.getKind() == quant::ReduceKind::sum && sum.getAxis() == 0 &&
            isa<quant::TransposeOp>(rows.getDefiningOp()))
          sumRows(sum, rows);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (onlyTurned.contains(&op))
        turnBack(op.getResult(0));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (onlyTurned.contains(&op) && op.use_empty())
        op.erase();
  }

private:
  /// Whether a transpose follows from a use of `op`.
  bool isForTranspose(Operation *user) {
    return user->getBlock() == &block &&
           (isa<quant::TransposeOp>(user) || onlyTurned.contains(user));
  }
  /// Whether transposes follow from all uses of `op`, or, of a number for each
  /// block, from some.
  bool hasTurnedUsers(Operation *op) {
    auto isFor = [&](Operation *user) { return isForTranspose(user); };
    return ofBlocks.contains(matrix(op->getResult(0)).getShape())
               ? llvm::any_of(op->getUsers(), isFor)
               : llvm::all_of(op->getUsers(), isFor);
  }

  /// Gives other users of `v` the transpose of what is computed in its place,
  /// if anything is.
  void turnBack(Value v) {
    Value known = isTurned(v) ? transposed.lookup(v) : Value();
    auto isOther = [&](OpOperand &use) {
      return !isForTranspose(use.getOwner());
    };
    if (!known || llvm::none_of(v.getUses(), isOther))
      return;
    OpBuilder b(v.getContext());
    b.setInsertionPointAfterValue(known);
    Value back = quant::TransposeOp::create(b, v.getLoc(), v.getType(), known);
    v.replaceUsesWithIf(back, isOther);
  }

  void sumRows(quant::ReduceOp sum, Value rows) {
    OpBuilder b(sum);
    auto type = turnedType(sum.getType());
    Value sums = quant::ReduceOp::create(b, sum.getLoc(), type, sum.getKind(),
                                         rows, 1, sum.getCountAttr());
    Value turned =
        quant::TransposeOp::create(b, sum.getLoc(), sum.getType(), sums);
    sum.getResult().replaceAllUsesWith(turned);
    sum.erase();
  }

  /// Whether `v` is computed from elements of columns that met, for transposes
  /// alone.
  bool isTurned(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op || !onlyTurned.contains(op))
      return false;
    if (auto known = turned.find(op); known != turned.end())
      return known->second;
    bool is = combinesColumns(op) ||
              llvm::any_of(op->getOperands(),
                           [&](Value operand) { return isTurned(operand); });
    return turned[op] = is;
  }
  /// Whether `v` follows from constants and coordinates.
  bool isMade(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op || !matrix(v))
      return false;
    if (auto known = made.find(op); known != made.end())
      return known->second;
    bool is =
        isSource(op) ||
        (turns(op) && op->getNumOperands() &&
         llvm::all_of(op->getOperands(), [&](Value v) { return isMade(v); }));
    return made[op] = is;
  }

  /// Whether what `op` transposes is as large as the tile that it follows from.
  bool movesElements(quant::TransposeOp op) {
    auto type = matrix(op.getSource());
    if (!type || type.getDimSize(0) == 1 || type.getDimSize(1) == 1 ||
        !isTurned(op.getSource()))
      return false;
    SetVector<Value> below;
    below.insert(op.getSource());
    for (size_t i = 0; i < below.size(); ++i) {
      Operation *def = below[i].getDefiningOp();
      for (Value operand : def->getOperands()) {
        if (isTurned(operand))
          below.insert(operand);
        else if (combinesColumns(def) &&
                 matrix(operand).getShape() == type.getShape())
          return true;
      }
    }
    return false;
  }

  /// Whether all tiles that `v` follows from are transposed as it is.
  bool follows(Value v) {
    if (transposed.contains(v))
      return true;
    if (!isTurned(v))
      return isMade(v) || !matrix(v);
    return llvm::all_of(v.getDefiningOp()->getOperands(),
                        [&](Value operand) { return follows(operand); });
  }

  Value transpose(Value v) {
    if (!matrix(v))
      return v;
    if (Value known = transposed.lookup(v))
      return known;
    OpBuilder b(v.getContext());
    b.setInsertionPointAfterValue(v);
    if (!isTurned(v) && !isMade(v))
      return transposed[v] = quant::TransposeOp::create(
                 b, v.getLoc(), turnedType(matrix(v)), v);
    Operation *op = v.getDefiningOp();
    IRMapping map;
    for (Value operand : op->getOperands())
      map.map(operand, transpose(operand));
    b.setInsertionPointAfter(op);
    Operation *clone = b.clone(*op, map);
    clone->getResult(0).setType(turnedType(matrix(v)));
    if (auto constant = dyn_cast<arith::ConstantOp>(clone))
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                                .reshape(cast<ShapedType>(constant.getType())));
    if (auto iota = dyn_cast<quant::IotaOp>(clone))
      iota.setDim(1 - iota.getDim());
    if (auto hadamard = dyn_cast<quant::HadamardOp>(clone))
      hadamard.setAxis(1 - hadamard.getAxis());
    auto flip = [](auto blocks) {
      ArrayRef<int64_t> block = blocks.getBlock();
      blocks.setBlock({block[1], block[0]});
    };
    if (auto blocks = dyn_cast<quant::BlockReduceOp>(clone))
      flip(blocks);
    if (auto blocks = dyn_cast<quant::BlockBroadcastOp>(clone))
      flip(blocks);
    return transposed[v] = clone->getResult(0);
  }

  Block &block;
  /// Shapes of what has a number for each tall block of columns.
  DenseSet<ArrayRef<int64_t>> ofBlocks;
  DenseSet<Operation *> onlyTurned;
  DenseMap<Operation *, bool> turned, made;
  DenseMap<Value, Value> transposed;
};

} // namespace

void transposeEarly(func::FuncOp kernel) {
  kernel.walk([](Block *block) { Turner(*block).run(); });
}

} // namespace dither::transforms
