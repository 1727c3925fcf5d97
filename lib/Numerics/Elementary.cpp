//===- Elementary.cpp - Functions of numbers, and their length ------------===//

#include "dither/Numerics/Elementary.h"

namespace dither::numerics {

float evaluate(Function function, float x) {
  ScalarSteps s;
  return evaluate(function, s, x);
}

namespace {

/// Counts what becomes an instruction. Constants and changes of type do not.
struct CountingSteps : ScalarSteps {
  int count = 0;

  Value add(Value x, Value) { return ++count, x; }
  Value sub(Value x, Value) { return ++count, x; }
  Value mul(Value x, Value) { return ++count, x; }
  Value fma(Value x, Value, Value) { return ++count, x; }
  Value abs(Value x) { return ++count, x; }
  Value copySign(Value x, Value) { return ++count, x; }
  Value atLeast(Value x, float) { return ++count, x; }
  Value atMost(Value x, float) { return ++count, x; }
  Value reciprocal(Value x) { return count += 3, x; }
  Condition less(Value, float) { return ++count, true; }
  Condition equal(Value, float) { return ++count, true; }
  Condition below(Bits, uint32_t) { return ++count, true; }
  Value select(Condition, Value x, Value) { return ++count, x; }
  Bits addBits(Bits x, Bits) { return ++count, x; }
  Bits subBits(Bits x, Bits) { return ++count, x; }
  Bits andBits(Bits x, uint32_t) { return ++count, x; }
  Bits mulBits(Bits x, Bits) { return ++count, x; }
  Bits mulHigh(Bits x, Bits) { return ++count, x; }
  Bits selectBits(Condition, Bits x, Bits) { return ++count, x; }
  Bits shiftLeft(Bits x, unsigned) { return ++count, x; }
  Bits shiftRightUnsigned(Bits x, unsigned) { return ++count, x; }
  Bits shiftRight(Bits x, unsigned) { return ++count, x; }
  /// Both are code.
  template <class Rare> Pair usually(Condition, Pair, Rare rare) {
    return ++count, rare();
  }
};

} // namespace

int stepsOf(Function function) {
  CountingSteps s;
  evaluate(function, s, 1.0f);
  return s.count;
}

} // namespace dither::numerics
