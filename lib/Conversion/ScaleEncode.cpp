//===- ScaleEncode.cpp - Encoding of finite products ----------------------===//
//
// The rounding of QuantToArith on magnitudes, without what only infinities and
// NaN need; signs come from the source. In f32 the sum p * (2^(23-m) + c) + t
// has the rounded mantissa in its low half and the exponent in its high half:
// one multiply-add of the halves puts the code where it is wanted, with other
// bits around it, and signs and codes are merged bit by bit. With AVX-512 t and
// the sum keep their sign, which is above all that a code is made of.
//
//===----------------------------------------------------------------------===//

#include "ScaleEncode.h"
#include "Avx512.h"
#include "HalfEncode.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Numerics/Bits.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using dither::numerics::bitsOf;
using dither::numerics::ElementFormat;

namespace dither::conversion {

namespace {

class Expansion {
public:
  Expansion(WordBuilder &w, const ElementFormat &f, bool bounded)
      : w(w), f(f), rounding(fusedRounding(f)), bounded(bounded) {}

  /// The fused sum of x * factor, where x is the bits of f32: that of the
  /// magnitude, and a sign above it or none.
  Value sum(Value x, Value factor) {
    if (!w.avx512)
      x = w.andi(x, 0x7FFFFFFF);
    Value t = w.make<arith::MulFOp>(w.asFloat(x), factor);
    if (!bounded)
      t = smallerMagnitude(w, t, w.asFloat(w.i32(bitsOf(f.max))));
    Value p = largerMagnitude(w, t, w.asFloat(w.i32(bitsOf(f.minNormal))));
    p = w.andi(w.asInt(p), w.avx512 ? 0xFF800000 : 0x7F800000);
    return w.asInt(w.mulAdd(w.asFloat(p), w.f32(rounding.factor), t));
  }

  /// The code of a sum, a zero for its sign, at bits [at, at + f.bits), among
  /// others; 8 <= at < 16.
  Value codeAt(Value sum, uint32_t at) {
    // sum >> shift is the exponent and the leading mantissa bit.
    if (!w.avx2 && !w.avx512)
      return w.shl(w.addi(w.shr(sum, rounding.shift), sum), at);
    uint32_t low = 1u << at, high = 1u << (at + 16 - rounding.shift);
    return multiplyAddHalves(w, sum, high << 16 | low);
  }

  /// Byte `low` of each word, and byte `high` (4: none) above it.
  Value bytes(Value word, int64_t low, int64_t high) {
    if (!w.lanes) {
      Value v = w.andi(w.shr(word, 8 * low), 0xFF);
      return high == 4 ? v
                       : w.ori(v, w.andi(w.shr(word, 8 * high - 8), 0xFF00));
    }
    SmallVector<int64_t> from;
    int64_t zero = 4 * w.lanes;
    for (int64_t i = 0; i < w.lanes; ++i)
      llvm::append_range(
          from, std::initializer_list<int64_t>{
                    4 * i + low, high == 4 ? zero : 4 * i + high, zero, zero});
    return w.asWords(picked(word, w.i32(0), from));
  }

  /// The codes in bytes of words, each with the top bit of that byte of
  /// `signs`, and nothing above a code. `bytes` has the lowest bit of each.
  Value withSigns(Value codes, Value signs, uint32_t bytes) {
    uint32_t sign = f.signBit() * bytes;
    if (f.bits < 8)
      signs = w.shr(signs, 8 - f.bits);
    Value word = merge(w, sign, signs, codes);
    return f.bits < 8 ? w.andi(word, sign | (sign - bytes)) : word;
  }

  /// Codes of registers that follow each other, in the bytes of one register in
  /// order; two to a byte where they have 4 bits.
  Value inOrder(ValueRange source, ValueRange factors) {
    SmallVector<Value> parts;
    for (size_t i = 0; i < source.size(); i += 4) {
      SmallVector<Value> codes, values;
      for (size_t j = i; j < i + 4; ++j) {
        Value x = w.asInt(source[j]);
        codes.push_back(codeAt(sum(x, factors[j]), 8));
        values.push_back(x);
      }
      Value word = gather(codes, 1), signs = gather(values, 3);
      parts.push_back(withSigns(word, signs, 0x01010101));
    }
    if (f.bits > 4)
      return parts.front();
    // Two codes to the low byte of each half.
    for (Value &part : parts)
      part = neighbours(part);
    return narrowed(parts[0], parts[1]);
  }

private:
  /// Bytes of two registers, each by its place in both.
  Value picked(Value a, Value b, ArrayRef<int64_t> places) {
    auto type = VectorType::get({4 * w.lanes}, w.b.getI8Type());
    Value low = w.make<vector::BitCastOp>(type, a),
          high = w.make<vector::BitCastOp>(type, b);
    return w.make<vector::ShuffleOp>(low, high, places);
  }

  /// Byte `at` of the words of four registers, one register after the other.
  /// Each half of the result comes from two of them: as a whole register that
  /// is the same permutation twice.
  Value gather(ArrayRef<Value> registers, int64_t at) {
    SmallVector<int64_t> pick, halves;
    for (int64_t i = 0; i < 4 * w.lanes; ++i) {
      pick.push_back(i % (2 * w.lanes) * 4 + at);
      halves.push_back(i < 2 * w.lanes ? i : 4 * w.lanes + i);
    }
    Value low = picked(registers[0], registers[1], pick),
          high = picked(registers[2], registers[3], pick);
    return w.asWords(w.make<vector::ShuffleOp>(low, high, halves));
  }

  /// In each half: its low byte, and the other one 4 bits above.
  Value neighbours(Value bytes) {
    if (w.avx512)
      return multiplyAddBytes(w, bytes, 0x10011001);
    return w.ori(bytes, w.andi(w.shr(bytes, 4), 0x00F000F0));
  }

  /// The low bytes of all halves of two registers.
  Value narrowed(Value a, Value b) {
    SmallVector<int64_t> even;
    for (int64_t i = 0; i < 4 * w.lanes; ++i)
      even.push_back(2 * i);
    return w.asWords(picked(a, b, even));
  }

  WordBuilder &w;
  const ElementFormat &f;
  numerics::FusedRounding rounding;
  bool bounded;
};

} // namespace

SmallVector<Value> expandScaleEncode(WordBuilder &w,
                                     quant::ScaleEncodeWordsOp op) {
  const ElementFormat &f = *quant::codeFormat(op.getElem());
  Expansion e(w, f, op.getBounded());
  SmallVector<Value> source = w.registers(op.getSource()),
                     factors = w.registers(op.getFactor()), words;
  if (op.getInOrder()) {
    size_t group = 32 / quant::storageBits(op.getElem());
    for (size_t i = 0; i < factors.size(); i += group)
      words.push_back(e.inOrder(ValueRange(source).slice(i, group),
                                ValueRange(factors).slice(i, group)));
    return words;
  }
  bool narrow = f.bits == 4;
  bool halves = op.getPowers() && w.avx512Half && hasHalfRounding(f) &&
                source.size() < factors.size();
  for (size_t i = 0; i < factors.size(); i += 2) {
    if (halves) {
      Value word = encodeHalves(w, f, source[i / 2], op.getFactor(), i);
      words.push_back(e.bytes(word, narrow ? 1 : 0, narrow ? 4 : 2));
      continue;
    }
    // Values, and words with the signs in bit 31 (odd) and 15 (even).
    Value x[2], signs;
    if (source.size() == factors.size()) {
      x[0] = w.asInt(source[i]);
      x[1] = w.asInt(source[i + 1]);
      signs = merge(w, 0x80000000, x[1], w.shr(x[0], 16));
    } else {
      signs = source[i / 2];
      x[0] = w.shl(signs, 16);
      x[1] = w.andi(signs, 0xFFFF0000);
    }
    // Codes of 4 bits meet in byte 1; longer ones, a byte each, in bytes 1 and
    // 3.
    Value even = e.codeAt(e.sum(x[0], factors[i]), 8);
    Value odd = e.codeAt(e.sum(x[1], factors[i + 1]), narrow ? 12 : 8);
    Value word;
    if (narrow) {
      word = merge(w, 0x0700, even, odd);
      word = merge(w, 0x0800, w.shr(signs, 4), word);
      word = merge(w, 0x8000, w.shr(signs, 16), word);
      word = e.bytes(word, 1, 4);
    } else {
      word = merge(w, 0x0000FFFF, even, w.shl(odd, 16));
      word = e.bytes(e.withSigns(word, signs, 0x01000100), 1, 3);
    }
    words.push_back(word);
  }
  return words;
}

} // namespace dither::conversion
