//===- Words.h - Building blocks of word conversions ------------*- C++ -*-===//
//
// Registers of a distributed value are scalars (GPU) or 16-lane vectors (CPU);
// everything here works on either.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_CONVERSION_WORDS_H
#define DITHER_LIB_CONVERSION_WORDS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace dither::conversion {

/// The constants of a function, each once, at its start.
class ConstantPool {
public:
  explicit ConstantPool(mlir::Region &body) : entry(&body.front()) {}
  mlir::Value get(mlir::Location loc, mlir::TypedAttr attr) {
    mlir::Value &v = values[attr];
    if (!v) {
      auto b = mlir::OpBuilder::atBlockBegin(entry);
      v = mlir::arith::ConstantOp::create(b, loc, attr);
    }
    return v;
  }

private:
  mlir::Block *entry;
  llvm::DenseMap<mlir::Attribute, mlir::Value> values;
};

/// What the target has instructions for.
struct Instructions {
  bool fma = true;
  /// llvm.x86.avx2.*, llvm.x86.avx512.*, and f16 arithmetic of AVX-512.
  bool avx2 = false, avx512 = false, avx512Half = false;
};

class WordBuilder {
public:
  WordBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType words,
              ConstantPool &constants, Instructions has = {})
      : b(b), loc(loc), lanes(words.getRank() == 2 ? words.getDimSize(1) : 0),
        constants(constants), fma(has.fma), avx2(has.avx2 && lanes == 16),
        avx512(has.avx512 && lanes == 16),
        avx512Half(has.avx512Half && lanes == 16) {}

  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }
  mlir::Type reg(mlir::Type elem) const {
    return lanes ? mlir::Type(mlir::VectorType::get({lanes}, elem)) : elem;
  }
  mlir::Type i32Type() const { return reg(b.getI32Type()); }
  mlir::Type f32Type() const { return reg(b.getF32Type()); }

  mlir::Value i32(uint32_t v) {
    return constant(b.getI32IntegerAttr(int32_t(v)), i32Type());
  }
  mlir::Value f32(float v) { return constant(b.getF32FloatAttr(v), f32Type()); }

  mlir::Value asInt(mlir::Value v) {
    return make<mlir::arith::BitcastOp>(i32Type(), v);
  }
  mlir::Value asFloat(mlir::Value v) {
    return make<mlir::arith::BitcastOp>(f32Type(), v);
  }
  mlir::Value andi(mlir::Value v, uint32_t m) {
    return make<mlir::arith::AndIOp>(v, i32(m));
  }
  mlir::Value ori(mlir::Value a, mlir::Value c) {
    return make<mlir::arith::OrIOp>(a, c);
  }
  mlir::Value addi(mlir::Value a, mlir::Value c) {
    return make<mlir::arith::AddIOp>(a, c);
  }
  mlir::Value shl(mlir::Value v, uint32_t k) {
    return k ? make<mlir::arith::ShLIOp>(v, i32(k)) : v;
  }
  mlir::Value shr(mlir::Value v, uint32_t k) {
    return k ? make<mlir::arith::ShRUIOp>(v, i32(k)) : v;
  }
  /// x y + z, where x is a power of two and x y exact: there is one rounding
  /// with and without the instruction.
  mlir::Value mulAdd(mlir::Value x, mlir::Value y, mlir::Value z) {
    if (fma)
      return make<mlir::math::FmaOp>(x, y, z);
    return make<mlir::arith::AddFOp>(make<mlir::arith::MulFOp>(x, y), z);
  }
  mlir::Value cmpi(mlir::arith::CmpIPredicate p, mlir::Value a, uint32_t c) {
    return make<mlir::arith::CmpIOp>(p, a, i32(c));
  }
  mlir::Value cmpf(mlir::arith::CmpFPredicate p, mlir::Value a, mlir::Value c) {
    return make<mlir::arith::CmpFOp>(p, a, c);
  }
  mlir::Value select(mlir::Value c, mlir::Value t, mlir::Value e) {
    return make<mlir::arith::SelectOp>(c, t, e);
  }

  /// A register of words as one of twice as many halves, and back.
  mlir::Value asHalves(mlir::Value v) {
    return make<mlir::vector::BitCastOp>(
        mlir::VectorType::get({2 * lanes}, b.getI16Type()), v);
  }
  mlir::Value asWords(mlir::Value v) {
    return make<mlir::vector::BitCastOp>(i32Type(), v);
  }

  llvm::SmallVector<mlir::Value> registers(mlir::Value v) {
    llvm::SmallVector<mlir::Value> regs;
    int64_t n = mlir::cast<mlir::VectorType>(v.getType()).getDimSize(0);
    for (int64_t i = 0; i < n; ++i)
      regs.push_back(b.createOrFold<mlir::vector::ExtractOp>(
          loc, v, llvm::ArrayRef<int64_t>{i}));
    return regs;
  }
  /// Puts registers in the place of the only result of `op`, which goes.
  void replace(mlir::Operation *op, llvm::ArrayRef<mlir::Value> regs) {
    mlir::Value result = op->getResult(0);
    for (mlir::Operation *user :
         llvm::make_early_inc_range(result.getUsers())) {
      auto extract = mlir::dyn_cast<mlir::vector::ExtractOp>(user);
      if (!extract || extract.hasDynamicPosition() ||
          extract.getStaticPosition().size() != 1)
        continue;
      extract.replaceAllUsesWith(regs[extract.getStaticPosition().front()]);
      extract.erase();
    }
    if (!result.use_empty())
      result.replaceAllUsesWith(
          pack(regs, mlir::cast<mlir::VectorType>(result.getType())));
    llvm::SmallVector<mlir::Value> sources(op->getOperands());
    op->erase();
    // What packed the operands of this operation alone.
    for (mlir::Value source : sources)
      while (source && source.use_empty()) {
        mlir::Operation *def = source.getDefiningOp();
        if (auto insert =
                mlir::dyn_cast_if_present<mlir::vector::InsertOp>(def))
          source = insert.getDest();
        else if (mlir::isa_and_present<mlir::vector::FromElementsOp,
                                       mlir::ub::PoisonOp>(def))
          source = {};
        else
          break;
        def->erase();
      }
  }
  mlir::Value pack(llvm::ArrayRef<mlir::Value> regs, mlir::VectorType type) {
    if (!lanes)
      return make<mlir::vector::FromElementsOp>(type, regs);
    mlir::Value v = make<mlir::ub::PoisonOp>(type);
    for (int64_t i = 0, e = regs.size(); i < e; ++i)
      v = make<mlir::vector::InsertOp>(regs[i], v, llvm::ArrayRef<int64_t>{i});
    return v;
  }

private:
  mlir::Value constant(mlir::TypedAttr attr, mlir::Type type) {
    if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(type))
      attr = mlir::DenseElementsAttr::get(shaped, mlir::Attribute(attr));
    return constants.get(loc, attr);
  }

public:
  mlir::OpBuilder &b;
  mlir::Location loc;
  const int64_t lanes;
  ConstantPool &constants;
  /// Whether registers may use these; AVX-512 with 16 lanes.
  const bool fma, avx2, avx512, avx512Half;
};

} // namespace dither::conversion

#endif // DITHER_LIB_CONVERSION_WORDS_H
