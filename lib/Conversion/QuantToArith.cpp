//===- QuantToArith.cpp - Word conversions in integer and f32 arithmetic --===//
//
// The encoders round with one fused multiply-add: adding p * 2^(23 - m) to |x|,
// p the power of two at or below it, leaves exactly m mantissa bits and rounds
// to nearest even; a small constant in the factor makes the exponent bias of
// the narrow format come out in the low bits. Verified for every f32 by the
// Numerics tests.
//
//===----------------------------------------------------------------------===//

#include "Avx512.h"
#include "GatherBytes.h"
#include "Magnitudes.h"
#include "ScaleEncode.h"
#include "SignificandTables.h"
#include "Words.h"
#include "dither/Conversion/Passes.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/Bits.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <cmath>

namespace dither::conversion {
#define GEN_PASS_DEF_CONVERTDITHERQUANTTOARITH
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;
using namespace dither;
using dither::conversion::ConstantPool;
using dither::conversion::WordBuilder;
using numerics::bitsOf;
using numerics::ElementFormat;

namespace {

/// Code of one register of f32 in the low bits of an i32 register, zeros above
/// it, for a two's complement: 3 * 2^22 units more, the last bits of the
/// mantissa are the integer. A NaN is the largest value.
Value encodeInteger(WordBuilder &w, Value x, const ElementFormat &f) {
  auto clamp = [&](arith::CmpFPredicate within, float limit) {
    Value bound = w.asFloat(w.i32(bitsOf(limit)));
    x = w.select(w.cmpf(within, x, bound), x, bound);
  };
  clamp(arith::CmpFPredicate::OLT, f.max);
  clamp(arith::CmpFPredicate::OGT, -f.max);
  Value sum = w.make<arith::AddFOp>(x, w.f32(0x1.8p23f * f.minPositive()));
  return w.andi(w.asInt(sum), (1u << f.bits) - 1);
}

/// Code of one register of f32 in the low bits of an i32 register. A NaN loses
/// its sign.
Value encodeRounded(WordBuilder &w, Value x, const ElementFormat &f) {
  numerics::FusedRounding r = fusedRounding(f);
  uint32_t most = bitsOf(f.max);
  // Where there is no NaN it is the largest value: min(NaN, max) is max for the
  // comparison below, with the sign of the constant, which is the code the
  // contract asks for.
  if (!f.hasNaN) {
    Value limit = w.asFloat(w.i32(most));
    x = w.select(w.cmpf(arith::CmpFPredicate::OLT, x, limit), x, limit);
  }
  Value bits = w.asInt(x);
  Value mag = w.andi(bits, 0x7FFFFFFF);
  mag = w.make<arith::MinUIOp>(mag, w.i32(most));
  Value power = w.andi(w.make<arith::MaxUIOp>(mag, w.i32(bitsOf(f.minNormal))),
                       0x7F800000);
  Value sum =
      w.asInt(w.mulAdd(w.asFloat(power), w.f32(r.factor), w.asFloat(mag)));
  Value code = w.andi(w.addi(w.shr(sum, r.shift), sum), f.signBit() - 1);
  Value sign = w.andi(w.shr(bits, 32 - f.bits), f.signBit());
  code = w.ori(code, sign);
  if (!f.hasNaN)
    return code;
  Value nan = w.cmpf(arith::CmpFPredicate::UNO, x, x);
  return w.select(nan, w.i32(f.nanCode), code);
}

/// Shared exponents; `floor` takes the exponent field, otherwise rounds up
/// (numerics: NaN FF, Inf FE, at most 2^-127 00).
Value encodeE8M0(WordBuilder &w, Value x, bool floor) {
  bool magnitude = !w.lanes && conversion::isMagnitude(x);
  Value bits = w.asInt(x);
  if (!magnitude)
    bits = w.andi(bits, 0x7FFFFFFF);
  if (floor)
    return w.shr(bits, 23);
  Value tiny = w.cmpi(arith::CmpIPredicate::ule, bits, 0x00400000);
  Value finite = w.make<arith::MinUIOp>(bits, w.i32(0x7F000000));
  Value up = w.shr(w.addi(finite, w.i32(0x7FFFFF)), 23);
  up = w.select(tiny, w.i32(0), up);
  if (magnitude)
    return up;
  Value nan = w.cmpi(arith::CmpIPredicate::ugt, bits, 0x7F800000);
  return w.select(nan, w.i32(0xFF), up);
}

/// Round to nearest even by the integer carry; NaN becomes 7FFF.
Value encodeBF16(WordBuilder &w, Value x) {
  Value bits = w.asInt(x);
  Value odd = w.andi(w.shr(bits, 16), 1);
  Value up = w.shr(w.addi(w.addi(bits, w.i32(0x7FFF)), odd), 16);
  Value nan = w.cmpf(arith::CmpFPredicate::UNO, x, x);
  return w.select(nan, w.i32(0x7FFF), up);
}

/// A word of two: the codes of `even` in its low half, those of `odd` above
/// them. Vectors round both at once: up where the bits that go, with the last
/// one set where the code is odd, are above the middle.
Value encodeBF16Pair(WordBuilder &w, Value even, Value odd) {
  even = conversion::replaceNaN(w, even, 0x7FFF0000);
  odd = conversion::replaceNaN(w, odd, 0x7FFF0000);
  Value code = conversion::merge(w, 0xFFFF0000, odd, w.shr(even, 16));
  Value rest = conversion::merge(w, 0x0000FFFF, even, w.shl(odd, 16));
  rest = conversion::orMasked(w, rest, code, 0x00010001);
  Value up = w.make<arith::CmpIOp>(arith::CmpIPredicate::ugt, w.asHalves(rest),
                                   w.asHalves(w.i32(0x80008000)));
  return w.asWords(conversion::increment(w, w.asHalves(code), up));
}

Value encodeF16(WordBuilder &w, Value x) {
  Type half = w.reg(w.b.getF16Type()), word = w.reg(w.b.getI16Type());
  Value narrow = w.make<arith::TruncFOp>(half, x);
  Value code = w.make<arith::ExtUIOp>(w.i32Type(),
                                      w.make<arith::BitcastOp>(word, narrow));
  Value nan = w.cmpf(arith::CmpFPredicate::UNO, x, x);
  return w.select(nan, w.i32(0x7FFF), code);
}

Value encode(WordBuilder &w, Value x, Type elem, bool floor) {
  if (const ElementFormat *format = quant::codeFormat(elem))
    return format->twosComplement ? encodeInteger(w, x, *format)
                                  : encodeRounded(w, x, *format);
  if (isa<Float8E8M0FNUType>(elem))
    return encodeE8M0(w, x, floor);
  if (elem.isBF16())
    return encodeBF16(w, x);
  if (elem.isF16())
    return encodeF16(w, x);
  return {};
}

//===----------------------------------------------------------------------===//
// Decoding. `word` holds the code at bit `at`, other codes around it.
//===----------------------------------------------------------------------===//

Value fieldOf(WordBuilder &w, Value word, int64_t at, int64_t bits) {
  Value code = w.shr(word, at);
  return at + bits < 32 ? w.andi(code, (1u << bits) - 1) : code;
}

/// The value of a code of a two's complement. With the sign bit inverted a code
/// is its value plus 2^(bits - 1), which are the last bits of a number of 2^23
/// units.
Value decodeInteger(WordBuilder &w, Value code, const ElementFormat &f) {
  float unit = f.minPositive();
  Value biased = w.make<arith::XOrIOp>(code, w.i32(f.signBit()));
  Value sum = w.asFloat(w.ori(biased, w.i32(bitsOf(0x1p23f * unit))));
  return w.make<arith::SubFOp>(sum,
                               w.f32((0x1p23f + float(f.signBit())) * unit));
}

/// The value of a code of a format with one code for NaN, but for its sign, or
/// none. Normal codes only need their exponent rebased; subnormal ones come out
/// as 1.m instead of 0.m, which twice the value minus the smallest normal
/// corrects exactly.
Value decodeSmall(WordBuilder &w, Value code, const ElementFormat &f) {
  unsigned m = f.mantissaBits;
  Value mag = w.andi(code, f.signBit() - 1);
  uint32_t base = uint32_t(127 - f.bias) << 23;
  Value normal = w.asFloat(w.addi(w.shl(mag, 23 - m), w.i32(base)));
  Value small = w.make<arith::SubFOp>(w.make<arith::AddFOp>(normal, normal),
                                      w.f32(f.minNormal));
  Value isSmall = w.cmpi(arith::CmpIPredicate::ult, mag, 1u << m);
  Value value = w.select(isSmall, small, normal);
  if (f.hasNaN) {
    Value nan = w.cmpi(arith::CmpIPredicate::eq, mag, f.nanCode);
    value = w.select(nan, w.asFloat(w.i32(0x7FC00000)), value);
  }
  Value sign = w.shl(w.andi(code, f.signBit()), 32 - f.bits);
  return w.asFloat(w.ori(w.asInt(value), sign));
}

/// GPU: the same of the code at bit `at` of a word. With the exponent and the
/// mantissa of a code in their places an f32 is the value but for the bias, of
/// subnormal ones, too, which GPUs multiply as fast as others.
Value decodeByProduct(WordBuilder &w, Value word, int64_t at,
                      const ElementFormat &f) {
  auto moved = [&](int64_t from, int64_t to) {
    return to < from ? w.shr(word, from - to) : w.shl(word, to - from);
  };
  int64_t unit = 23 - int64_t(f.mantissaBits);
  Value mag = w.andi(moved(at, unit), (f.signBit() - 1) << unit);
  Value sign = w.andi(moved(at + f.bits - 1, 31), 0x80000000);
  Value value = w.make<arith::MulFOp>(w.asFloat(w.ori(mag, sign)),
                                      w.f32(std::ldexp(1.0f, 127 - f.bias)));
  if (!f.hasNaN)
    return value;
  Value nan = w.cmpi(arith::CmpIPredicate::eq, mag, f.nanCode << unit);
  return w.select(nan, w.asFloat(w.ori(w.i32(0x7FC00000), sign)), value);
}

Value decode(WordBuilder &w, Value word, int64_t at, Type elem) {
  int64_t bits = quant::storageBits(elem);
  const ElementFormat *format = quant::codeFormat(elem);
  if (format && !format->twosComplement && !isa<Float8E5M2Type>(elem) &&
      !w.lanes)
    return decodeByProduct(w, word, at, *format);
  if (elem.isBF16())
    return w.asFloat(at ? w.andi(word, 0xFFFF0000) : w.shl(word, 16));
  Value code = fieldOf(w, word, at, bits);
  if (elem.isF16() || isa<Float8E5M2Type>(elem)) {
    // E5M2 is the upper byte of binary16.
    if (bits == 8)
      code = w.shl(code, 8);
    Value narrow = w.make<arith::TruncIOp>(w.reg(w.b.getI16Type()), code);
    return w.make<arith::ExtFOp>(
        w.f32Type(), w.make<arith::BitcastOp>(w.reg(w.b.getF16Type()), narrow));
  }
  if (format)
    return format->twosComplement ? decodeInteger(w, code, *format)
                                  : decodeSmall(w, code, *format);
  if (isa<Float8E8M0FNUType>(elem)) {
    Value v = w.shl(code, 23);
    v = w.select(w.cmpi(arith::CmpIPredicate::eq, code, 0), w.i32(0x00400000),
                 v);
    v = w.select(w.cmpi(arith::CmpIPredicate::eq, code, 0xFF),
                 w.i32(0x7FFFFFFF), v);
    return w.asFloat(v);
  }
  return {};
}

/// 2^(127 - e); e = 254 gives the subnormal 2^-127, e = 255 NaN.
Value inverse(WordBuilder &w, Value word, int64_t at) {
  Value code = fieldOf(w, word, at, 8);
  Value v = w.shl(w.make<arith::SubIOp>(w.i32(254), code), 23);
  if (!w.lanes) { // of 255 there is a sign bit, and no less than 2^-127
    v = w.make<arith::MaxUIOp>(v, w.i32(0x00400000));
    Value nan = w.cmpi(arith::CmpIPredicate::eq, code, 0xFF);
    return w.asFloat(w.select(nan, w.i32(0x7FFFFFFF), v));
  }
  v = w.select(w.cmpi(arith::CmpIPredicate::eq, code, 254), w.i32(0x00400000),
               v);
  v = w.select(w.cmpi(arith::CmpIPredicate::eq, code, 255), w.i32(0x7FFFFFFF),
               v);
  return w.asFloat(v);
}

struct QuantToArith
    : public dither::conversion::impl::ConvertDitherQuantToArithBase<
          QuantToArith> {
  LogicalResult expandEncode(quant::EncodeWordsOp op, ConstantPool &pool) {
    OpBuilder b(op);
    auto type = cast<VectorType>(op.getResult().getType());
    WordBuilder w(b, op.getLoc(), type, pool, has);
    int64_t group = op.getGroup();
    int64_t bits = quant::storageBits(op.getElem());
    bool floor = op.getMode() == quant::E8M0Mode::floor;
    SmallVector<Value> words, values = w.registers(op->getOperand(0));
    if (op.getElem().isBF16() && group == 2 && w.lanes) {
      for (size_t i = 0; i < values.size(); i += 2)
        words.push_back(encodeBF16Pair(w, values[i], values[i + 1]));
      w.replace(op, words);
      return success();
    }
    for (auto [i, x] : llvm::enumerate(values)) {
      Value code = encode(w, x, op.getElem(), floor);
      if (!code)
        return op.emitOpError("has no expansion for ") << op.getElem();
      int64_t at = i % group * bits;
      if (!at)
        words.push_back(code);
      else
        words.back() = w.ori(words.back(), w.shl(code, at));
    }
    w.replace(op, words);
    return success();
  }

  void expandProduct(quant::ScaleEncodeWordsOp op, ConstantPool &pool) {
    OpBuilder b(op);
    VectorType type = op.getFactor().getType();
    WordBuilder w(b, op.getLoc(), type, pool, has);
    w.replace(op, conversion::expandScaleEncode(w, op));
  }

  LogicalResult expandDecode(Operation *op, Type elem, int64_t group,
                             ConstantPool &pool) {
    OpBuilder b(op);
    auto in = cast<VectorType>(op->getOperand(0).getType());
    WordBuilder w(b, op->getLoc(), in, pool);
    int64_t bits = elem ? quant::storageBits(elem) : 8;
    SmallVector<Value> regs;
    for (Value word : w.registers(op->getOperand(0)))
      for (int64_t i = 0; i < group; ++i) {
        Value v =
            elem ? decode(w, word, i * bits, elem) : inverse(w, word, i * bits);
        if (!v)
          return op->emitOpError("has no expansion for ") << elem;
        regs.push_back(v);
      }
    w.replace(op, regs);
    return success();
  }

  void runOnOperation() override {
    Operation *module = getOperation();
    if (!isa<ModuleOp>(module))
      module = module->getParentOfType<ModuleOp>();
    if (module && module->hasAttr("quant.target")) {
      const target::TargetInfo *target = target::moduleTarget(module);
      if (!target)
        return signalPassFailure();
      has.fma = target->fma;
    }
    WalkResult done =
        getOperation()->walk([&](FunctionOpInterface function) -> WalkResult {
          const target::TargetInfo *said = target::saidTarget(function);
          has.avx2 = said && said->avx2Intrinsics;
          has.avx512 = said && said->avx512Intrinsics;
          has.avx512Half = said && said->avx512Half;
          permutes = said && said->bytePermutations;
          if (!function.isExternal() &&
              failed(expandIn(function.getFunctionBody())))
            return WalkResult::interrupt();
          return WalkResult::skip();
        });
    if (done.wasInterrupted())
      signalPassFailure();
  }

  LogicalResult expandIn(Region &body) {
    ConstantPool pool(body);
    if (permutes)
      conversion::tabulateProducts(body, pool);
    SmallVector<Operation *> ops;
    SmallVector<quant::ScaleEncodeWordsOp> products;
    body.walk([&](Operation *op) {
      if (auto product = dyn_cast<quant::ScaleEncodeWordsOp>(op))
        products.push_back(product);
      else if (isa<quant::EncodeWordsOp, quant::DecodeWordsOp,
                   quant::E8M0InverseWordsOp>(op))
        ops.push_back(op);
    });
    // The first look at what the others expand: words that factors are decoded
    // from.
    for (quant::ScaleEncodeWordsOp op : products)
      expandProduct(op, pool);
    for (Operation *op : ops) {
      LogicalResult done = success();
      if (auto e = dyn_cast<quant::EncodeWordsOp>(op))
        done = expandEncode(e, pool);
      else if (auto d = dyn_cast<quant::DecodeWordsOp>(op))
        done = expandDecode(op, d.getElem(), d.getGroup(), pool);
      else
        done = expandDecode(
            op, Type(), cast<quant::E8M0InverseWordsOp>(op).getGroup(), pool);
      if (failed(done))
        return failure();
    }
    if (permutes)
      conversion::gatherBytes(body, pool);
    return success();
  }

  /// A multiply-add where no target is named, AVX-512 where it is.
  conversion::Instructions has;
  /// Whether there are permutations of bytes.
  bool permutes = false;
};

} // namespace
