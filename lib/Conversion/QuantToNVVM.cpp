//===- QuantToNVVM.cpp - Word conversions on GPUs -------------------------===//
//
// Conversions become PTX instructions, or what takes fewest instructions where
// a target has none for a format.
//
// One inline-assembly block per word: LLVM has intrinsics for the pairs, but
// assembles a word of eight E2M1 codes from four of them with 14 extra
// instructions. PTX gives the first source of a pair the upper half.
//
// The bits are those of QuantToArith: by the PTX ISA (cvt), .satfinite takes
// values past the range to the largest, NaN to 7F (e4m3, e5m2), to FF (ue8m0,
// which ignores the sign) and to the largest value (e2m1, e2m3, e3m2); bf16x2
// and f16x2 take NaN to 7FFF.
//
//===----------------------------------------------------------------------===//

#include "Elements.h"
#include "InlineAsm.h"
#include "Magnitudes.h"
#include "MixedPrecision.h"
#include "NarrowProducts.h"
#include "RoundedWord.h"
#include "Staircase.h"
#include "Words.h"
#include "dither/Conversion/Passes.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Numerics/Staircase.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace dither::conversion {
#define GEN_PASS_DEF_CONVERTDITHERQUANTTONVVM
#include "dither/Conversion/Passes.h.inc"
} // namespace dither::conversion

using namespace mlir;
using namespace dither;
using dither::conversion::ConstantPool;
using dither::conversion::inlineAsm;
using dither::conversion::WordBuilder;

namespace {

/// Codes that targets convert two at a time.
struct CodePair {
  const numerics::ElementFormat *format;
  StringRef name;
  bool target::TargetInfo::*has;
};
constexpr CodePair kCodePairs[] = {
    {&numerics::kE2M1, "e2m1x2", &target::TargetInfo::cvtFP4x2},
    {&numerics::kE2M3, "e2m3x2", &target::TargetInfo::cvtFP6x2},
    {&numerics::kE3M2, "e3m2x2", &target::TargetInfo::cvtFP6x2},
    {&numerics::kE4M3, "e4m3x2", &target::TargetInfo::cvtFP8x2},
    {&numerics::kE5M2, "e5m2x2", &target::TargetInfo::cvtFP8x2},
};

/// The name of two codes of `elem` in PTX; empty if `target` cannot convert
/// them.
StringRef codePair(const target::TargetInfo &target, Type elem) {
  const numerics::ElementFormat *format = quant::codeFormat(elem);
  for (const CodePair &pair : kCodePairs)
    if (pair.format == format && target.*pair.has)
      return pair.name;
  return "";
}

/// The conversion of two f32 to two codes, and the bits of the two.
struct PairCvt {
  std::string instruction;
  int64_t pairBits = 0;
  /// The same of a word of two bf16; empty if there is none.
  std::string ofWord = "";
};

PairCvt pairConversion(const target::TargetInfo &target,
                       quant::EncodeWordsOp op) {
  Type elem = op.getElem();
  if (StringRef pair = codePair(target, elem); !pair.empty()) {
    std::string cvt = ("cvt.rn.satfinite." + pair).str();
    return {cvt + ".f32", 2 * int64_t(quant::storageBits(elem)),
            target.cvtFromBF16x2 ? cvt + ".bf16x2" : ""};
  }
  // The floor mode sends infinity to FF, the instruction to FE.
  if (isa<Float8E8M0FNUType>(elem) && target.cvtUE8M0x2 &&
      op.getMode() != quant::E8M0Mode::floor)
    return {"cvt.rp.satfinite.ue8m0x2.f32", 16};
  if (elem.isBF16() && target.cvtBF16x2)
    return {"cvt.rn.bf16x2.f32", 32};
  if (elem.isF16() && target.cvtBF16x2)
    return {"cvt.rn.f16x2.f32", 32};
  return {};
}

/// The words of two bf16 that `x` was decoded from, in pairs; none if one of it
/// was not.
SmallVector<Value> wordsOf(WordBuilder &w, ArrayRef<Value> x) {
  SmallVector<std::pair<Value, int64_t>> places;
  if (x.size() % 2)
    return {};
  for (size_t i = 0; i < x.size(); i += 2) {
    auto [decode, at] = conversion::wordOf(x[i], x[i + 1]);
    if (!decode || decode.getSource().getType().getRank() != 1)
      return {};
    places.push_back({decode.getSource(), at});
  }
  SmallVector<Value> words;
  for (auto [source, at] : places)
    words.push_back(vector::ExtractOp::create(w.b, w.loc, source, at));
  return words;
}

/// The word of the codes of `x`, one to 32 / bits of them.
Value encodeWord(WordBuilder &w, const PairCvt &cvt, ArrayRef<Value> x) {
  SmallVector<Value> in;
  if (!cvt.ofWord.empty())
    in = wordsOf(w, x);
  bool ofWords = !in.empty();
  if (!ofWords) {
    in.assign(x.begin(), x.end());
    if (in.size() % 2) // zero has code 0 in every format
      in.push_back(w.f32(0.0f));
  }
  // Operands of a conversion, the upper half first.
  int64_t operands = ofWords ? 1 : 2;
  int64_t pairs = in.size() / operands, perWord = 32 / cvt.pairBits;
  std::string constraints = "=r", text;
  for (size_t i = 0; i < in.size(); ++i)
    constraints += ofWords ? ",r" : ",f";
  llvm::raw_string_ostream os(text);
  auto convert = [&](const Twine &result, int64_t pair) {
    os << (ofWords ? cvt.ofWord : cvt.instruction) << " " << result;
    for (int64_t i = operands; i > 0; --i)
      os << ", $" << operands * pair + i;
    os << ";";
  };
  if (perWord == 1) {
    convert("$0", 0);
    return inlineAsm(w.b, w.loc, w.b.getI32Type(), in, text, constraints)
        .getResult(0);
  }
  os << "{ .reg .b" << cvt.pairBits << " p<" << perWord << ">; ";
  for (int64_t p = 0; p < pairs; ++p) {
    convert("p" + Twine(p), p);
    os << " ";
  }
  if (pairs == 1 && cvt.pairBits == 16) {
    // Zeros above it come with the conversion, not so those of cvt.u32.u16.
    os << "mov.b16 p1, 0; mov.b32 $0, {p0, p1}; }";
    return inlineAsm(w.b, w.loc, w.b.getI32Type(), in, text, constraints)
        .getResult(0);
  }
  // Nothing makes an 8-bit zero: missing pairs repeat the last one and are
  // masked off.
  os << "mov.b32 $0, {";
  for (int64_t p = 0; p < perWord; ++p)
    os << (p ? ", p" : "p") << std::min(p, pairs - 1);
  os << "}; }";
  Value word = inlineAsm(w.b, w.loc, w.b.getI32Type(), in, text, constraints)
                   .getResult(0);
  int64_t bits = pairs * cvt.pairBits;
  return bits < 32 ? w.andi(word, (1u << bits) - 1) : word;
}

/// The values of the first `count` codes of a word, through pairs of f16, which
/// hold them exactly. `pairBits` is the size of two codes.
void decodePairs(WordBuilder &w, Value word, int64_t count, StringRef suffix,
                 int64_t pairBits, SmallVectorImpl<Value> &regs) {
  OpBuilder &b = w.b;
  int64_t pairs = (count + 1) / 2, perWord = 32 / pairBits;
  std::string constraints, text;
  llvm::raw_string_ostream os(text);
  os << "{ .reg .b" << pairBits << " p<" << perWord << ">; mov.b32 {";
  for (int64_t p = 0; p < perWord; ++p)
    os << (p ? ", p" : "p") << p;
  os << "}, $" << pairs << "; ";
  for (int64_t p = 0; p < pairs; ++p) {
    os << "cvt.rn.f16x2." << suffix << " $" << p << ", p" << p << "; ";
    constraints += "=r,";
  }
  os << "}";
  constraints += "r";
  Type i32 = b.getI32Type();
  Type result = pairs == 1 ? i32
                           : LLVM::LLVMStructType::getLiteral(
                                 b.getContext(), SmallVector<Type>(pairs, i32));
  Value out = inlineAsm(b, w.loc, result, word, text, constraints).getResult(0);
  for (int64_t i = 0; i < count; ++i) {
    Value pair = out;
    if (pairs > 1)
      pair =
          LLVM::ExtractValueOp::create(b, w.loc, out, ArrayRef<int64_t>{i / 2});
    Value half =
        w.make<arith::TruncIOp>(b.getI16Type(), w.shr(pair, i % 2 ? 16 : 0));
    regs.push_back(w.make<arith::ExtFOp>(
        b.getF32Type(), w.make<arith::BitcastOp>(b.getF16Type(), half)));
  }
}

/// Whether the codes of a word are those of numbers without a sign, so that
/// none is NaN.
bool isOfMagnitudes(Value word) {
  auto encode = conversion::elementOf<quant::EncodeWordsOp>(word).first;
  if (!encode || encode.getMode() == quant::E8M0Mode::floor)
    return false;
  SmallVector<Value> values = conversion::elementsOf(encode.getSource());
  return !values.empty() && llvm::all_of(values, conversion::isMagnitude);
}

struct QuantToNVVM
    : public dither::conversion::impl::ConvertDitherQuantToNVVMBase<
          QuantToNVVM> {
  /// The target's instruction, or what takes fewest where it has none.
  void convertEncode(quant::EncodeWordsOp op, const target::TargetInfo &target,
                     ConstantPool &pool) {
    PairCvt cvt = pairConversion(target, op);
    const numerics::ElementFormat *format = quant::codeFormat(op.getElem());
    bool computed = format && format->hasSign && !format->twosComplement;
    auto type = cast<VectorType>(op.getResult().getType());
    if ((!cvt.pairBits && !computed) || type.getRank() != 1)
      return;
    OpBuilder b(op);
    WordBuilder w(b, op.getLoc(), type, pool);
    SmallVector<Value> x = w.registers(op.getSource()), words;
    for (size_t i = 0; i < x.size(); i += op.getGroup()) {
      ArrayRef<Value> part = ArrayRef<Value>(x).slice(i, op.getGroup());
      words.push_back(cvt.pairBits ? encodeWord(w, cvt, part)
                      : numerics::isStaircase(*format)
                          ? conversion::encodeStaircase(w, part, *format)
                          : conversion::encodeRoundedWord(w, part, *format));
    }
    w.replace(op, words);
  }

  void convertDecode(quant::DecodeWordsOp op, const target::TargetInfo &target,
                     ConstantPool &pool) {
    auto type = cast<VectorType>(op.getResult().getType());
    StringRef suffix = codePair(target, op.getElem());
    if (suffix.empty() || type.getRank() != 1)
      return;
    OpBuilder b(op);
    WordBuilder w(b, op.getLoc(), cast<VectorType>(op.getSource().getType()),
                  pool);
    SmallVector<Value> regs;
    for (Value word : w.registers(op.getSource()))
      decodePairs(w, word, op.getGroup(), suffix,
                  2 * quant::storageBits(op.getElem()), regs);
    w.replace(op, regs);
  }

  /// 2^(127 - e) of exponents that are no NaN, in two instructions: 254 gives
  /// the subnormal 2^-127.
  void convertInverse(quant::E8M0InverseWordsOp op, ConstantPool &pool) {
    auto type = cast<VectorType>(op.getSource().getType());
    if (type.getRank() != 1)
      return;
    OpBuilder b(op);
    WordBuilder w(b, op.getLoc(), type, pool);
    SmallVector<Value> words = conversion::elementsOf(op.getSource()), regs;
    if (words.empty())
      words = w.registers(op.getSource());
    if (!llvm::all_of(words, isOfMagnitudes))
      return;
    for (Value word : words)
      for (int64_t i = 0; i < int64_t(op.getGroup()); ++i) {
        // The word of one code has nothing above it.
        Value code = w.shr(word, 8 * i);
        if (i < 3 && op.getGroup() > 1)
          code = w.andi(code, 0xFF);
        Value power = w.make<arith::SubIOp>(w.i32(0x7F000000), w.shl(code, 23));
        regs.push_back(
            w.asFloat(w.make<arith::MaxSIOp>(power, w.i32(0x00400000))));
      }
    w.replace(op, regs);
  }

  void runOnOperation() override {
    const target::TargetInfo *target = target::moduleTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (!target->isGpu)
      return;
    getOperation()->walk([&](FunctionOpInterface function) {
      conversion::ConstantNaNs nans(function);
      if (!function.isExternal())
        convertIn(function.getFunctionBody(), *target);
    });
  }

  void convertIn(Region &body, const target::TargetInfo &target) {
    ConstantPool pool(body);
    SmallVector<quant::EncodeWordsOp> encodes;
    SmallVector<quant::DecodeWordsOp> decodes;
    SmallVector<quant::E8M0InverseWordsOp> inverses;
    body.walk([&](quant::EncodeWordsOp op) { encodes.push_back(op); });
    // Multiply-adds take halves of words as they are; codes of whole words
    // spare them.
    if (target.cvtFromBF16x2 || !target.mixedPrecision)
      conversion::narrowProducts(encodes, /*widens=*/!target.cvtFromBF16x2);
    if (target.mixedPrecision)
      conversion::mixPrecision(body);
    body.walk([&](quant::E8M0InverseWordsOp op) { inverses.push_back(op); });
    body.walk([&](quant::DecodeWordsOp op) { decodes.push_back(op); });
    // While it is still there to see what the exponents are of.
    for (quant::E8M0InverseWordsOp op : inverses)
      convertInverse(op, pool);
    for (quant::EncodeWordsOp op : encodes)
      convertEncode(op, target, pool);
    for (quant::DecodeWordsOp op : decodes)
      convertDecode(op, target, pool);
  }
};

} // namespace
