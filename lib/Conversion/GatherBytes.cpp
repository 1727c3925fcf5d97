//===- GatherBytes.cpp - Bytes of several registers together --------------===//
//
// A permutation of bytes of two registers (vpermt2b) is three instructions of
// Intel's CPUs, two of which wait for the one port that permutes; one of a
// single register is one, with and without a mask for what it writes. LLVM
// joins the latter to the former wherever it knows the masks, so it must not.
//
//===----------------------------------------------------------------------===//

#include "GatherBytes.h"
#include "Avx512.h"
#include "InlineAsm.h"

using namespace mlir;

namespace dither::conversion {

namespace {

constexpr int64_t kBytes = 64;

/// A byte of a register.
struct Byte {
  Value of;
  int64_t at = 0;
};

int64_t bytesOf(Type element) {
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() / 8 : 0;
}

/// Whether `v` is a register of whole bytes.
bool isRegister(Value v) {
  auto type = dyn_cast<VectorType>(v.getType());
  if (!type || type.getRank() != 1 || type.isScalable())
    return false;
  return bytesOf(type.getElementType()) * type.getNumElements() == kBytes;
}

/// Where shuffles and other types took a byte from; nothing where it has no
/// value.
Byte originOf(Byte byte) {
  while (Operation *op = byte.of.getDefiningOp()) {
    if (isa<vector::BitCastOp, arith::BitcastOp>(op)) {
      if (!isRegister(op->getOperand(0)))
        return byte;
      byte.of = op->getOperand(0);
      continue;
    }
    auto shuffle = dyn_cast<vector::ShuffleOp>(op);
    if (!shuffle || !isRegister(shuffle.getV1()) ||
        !isRegister(shuffle.getV2()))
      return byte;
    VectorType type = shuffle.getV1VectorType();
    int64_t lanes = type.getNumElements(), each = kBytes / lanes;
    int64_t from = shuffle.getMask()[byte.at / each];
    if (from < 0)
      return {};
    byte = {from < lanes ? shuffle.getV1() : shuffle.getV2(),
            from % lanes * each + byte.at % each};
  }
  return byte;
}

/// Registers whose bytes follow each other, and which bytes of each.
struct Gather {
  SmallVector<Value> registers;
  SmallVector<int8_t> places;
};

/// What `shuffle` collects, if it is bytes of two or four registers.
std::optional<Gather> asGather(vector::ShuffleOp shuffle) {
  SmallVector<Byte> bytes;
  for (int64_t i = 0; i < kBytes; ++i) {
    bytes.push_back(originOf({shuffle.getResult(), i}));
    if (!bytes.back().of || !isRegister(bytes.back().of))
      return std::nullopt;
  }
  int64_t each =
      llvm::find_if(bytes, [&](Byte b) { return b.of != bytes[0].of; }) -
      bytes.begin();
  if (each != kBytes / 2 && each != kBytes / 4)
    return std::nullopt;
  Gather found;
  for (auto [i, byte] : llvm::enumerate(bytes)) {
    if (i % each == 0) {
      if (llvm::is_contained(found.registers, byte.of))
        return std::nullopt;
      found.registers.push_back(byte.of);
    }
    if (int64_t(i) < each)
      found.places.push_back(byte.at);
    if (byte.of != found.registers.back() || byte.at != found.places[i % each])
      return std::nullopt;
  }
  // Words that stay whole move by instructions of their own.
  bool isWhole = true;
  for (auto [i, at] : llvm::enumerate(found.places))
    isWhole &=
        at % 4 == int64_t(i) % 4 && at / 4 == found.places[i / 4 * 4] / 4;
  if (isWhole)
    return std::nullopt;
  return found;
}

/// A constant that LLVM does not know.
Value hidden(OpBuilder &b, Location loc, ConstantPool &constants, int64_t v) {
  Value known = constants.get(loc, b.getI64IntegerAttr(v));
  for (Operation *user : known.getUsers())
    if (isa<LLVM::InlineAsmOp>(user))
      return user->getResult(0);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(known);
  return inlineAsm(b, loc, known.getType(), known, "", "=r,0").getResult(0);
}

Value permuted(OpBuilder &b, Location loc, ConstantPool &constants,
               const Gather &gather) {
  int64_t count = gather.registers.size(), each = kBytes / count;
  auto bytes = VectorType::get({kBytes}, b.getI8Type());
  auto mask = VectorType::get({kBytes}, b.getI1Type());
  SmallVector<int8_t> places;
  for (int64_t i = 0; i < count; ++i)
    llvm::append_range(places, gather.places);
  Value from = constants.get(
      loc, DenseElementsAttr::get(bytes, ArrayRef<int8_t>(places)));
  Value all;
  for (auto [i, source] : llvm::enumerate(gather.registers)) {
    Value words = vector::BitCastOp::create(b, loc, bytes, source);
    Value some = permuteBytes(b, loc, words, from);
    if (!all) {
      all = some;
      continue;
    }
    int64_t here = ((int64_t(1) << each) - 1) << (i * each);
    Value isHere =
        LLVM::BitcastOp::create(b, loc, mask, hidden(b, loc, constants, here));
    all = arith::SelectOp::create(b, loc, isHere, some, all);
  }
  return all;
}

} // namespace

void gatherBytes(Region &body, ConstantPool &constants) {
  SmallVector<vector::ShuffleOp> shuffles;
  body.walk([&](vector::ShuffleOp op) {
    VectorType type = op.getResultVectorType();
    if (isRegister(op.getResult()) && bytesOf(type.getElementType()) <= 2)
      shuffles.push_back(op);
  });
  // Those that others take are of no use once the last ones are replaced.
  for (vector::ShuffleOp op : llvm::reverse(shuffles)) {
    if (op->use_empty()) {
      op->erase();
      continue;
    }
    std::optional<Gather> gather = asGather(op);
    if (!gather)
      continue;
    OpBuilder b(op);
    Value all = permuted(b, op.getLoc(), constants, *gather);
    op.replaceAllUsesWith(b.createOrFold<vector::BitCastOp>(
        op.getLoc(), op.getResultVectorType(), all));
    op->erase();
  }
}

} // namespace dither::conversion
