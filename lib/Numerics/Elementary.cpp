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

  Value counted(Value x, int n = 1) { return count += n, x; }
  Value add(Value x, Value) { return counted(x); }
  Value sub(Value x, Value) { return counted(x); }
  Value mul(Value x, Value) { return counted(x); }
  Value fma(Value x, Value, Value) { return counted(x); }
  Value abs(Value x) { return counted(x); }
  Value copySign(Value x, Value) { return counted(x); }
  Value atLeast(Value x, float) { return counted(x); }
  Value atMost(Value x, float) { return counted(x); }
  Value reciprocal(Value x) { return counted(x, 3); }
  Condition less(Value, float) { return counted(0) == 0; }
  Condition equal(Value, float) { return counted(0) == 0; }
  Condition below(Bits, uint32_t) { return counted(0) == 0; }
  Value select(Condition, Value x, Value) { return counted(x); }
  Bits addBits(Bits x, Bits) { return ++count, x; }
  Bits subBits(Bits x, Bits) { return ++count, x; }
  Bits andBits(Bits x, uint32_t) { return ++count, x; }
  Bits shiftLeft(Bits x, unsigned) { return ++count, x; }
  Bits shiftRight(Bits x, unsigned) { return ++count, x; }
};

} // namespace

int stepsOf(Function function) {
  CountingSteps s;
  evaluate(function, s, 1.0f);
  return s.count;
}

} // namespace dither::numerics
