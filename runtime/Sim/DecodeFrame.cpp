#include "Decoder.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

uint32_t Decoder::place(unsigned bytes) {
  uint32_t offset = uint32_t(alignTo(frameSize, bytes > 4 ? 64 : 4));
  frameSize = offset + bytes;
  if (program.frame.size() < frameSize)
    program.frame.resize(alignTo(frameSize, 64));
  return offset;
}

/// A constant in every lane; of width 0, a predicate.
uint32_t Decoder::constant(unsigned width, uint64_t bits) {
  if (width == 0)
    return bits ? kAllOnes : kZeroMask;
  if (width < 8)
    bits &= (uint64_t(1) << (8 * width)) - 1;
  auto [found, isNew] = constants.try_emplace({width, bits}, 0);
  if (!isNew)
    return found->second;
  uint32_t offset = place(32 * width);
  found->second = offset;
  for (unsigned lane = 0; lane < 32; ++lane)
    std::memcpy(&program.frame[offset + lane * width], &bits, width);
  return offset;
}

uint32_t Decoder::special(Special which) {
  auto [found, isNew] = specials.try_emplace(unsigned(which), 0);
  if (isNew) {
    found->second = place(32 * sizeOf(which));
    program.specials.push_back({uint8_t(which), found->second});
  }
  return found->second;
}

/// A register of its own for the steps of one instruction; of width 0, a
/// predicate.
uint32_t Decoder::temporary(unsigned width) {
  unsigned &used = usedTemporaries[width];
  if (used == temporaries[width].size())
    temporaries[width].push_back(place(width ? 32 * width : 4));
  return temporaries[width][used++];
}

void Decoder::layOut() {
  place(64);
  uint32_t ones = ~0u;
  std::memcpy(&program.frame[kAllOnes], &ones, sizeof ones);
  frameSize = 8;
  carryFlag = place(4);
  // Predicates first: they are small.
  registerOffsets.assign(kernel.registers.size(), 0);
  for (auto [i, reg] : enumerate(kernel.registers)) {
    program.registerNames.push_back(reg.text());
    if (reg.type == Type::Pred)
      registerOffsets[i] = place(4);
  }
  for (auto [i, reg] : enumerate(kernel.registers))
    if (reg.type != Type::Pred)
      registerOffsets[i] = place(32 * sizeOf(reg.type));
}

/// Shared and local variables get their offsets, those of the module first;
/// dynamic shared memory comes last.
bool Decoder::layOutVariables() {
  variableOffsets.assign(module.variables.size(), 0);
  uint64_t shared = 0, local = 0;
  for (auto [i, variable] : enumerate(module.variables)) {
    if (variable.kernel != -1 && variable.kernel != kernelIndex)
      continue;
    uint64_t *end = variable.space == Space::Shared  ? &shared
                    : variable.space == Space::Local ? &local
                                                     : nullptr;
    if (!end || variable.dynamic)
      continue;
    variableOffsets[i] = alignTo(*end, variable.align);
    *end = variableOffsets[i] + variable.size;
  }
  for (auto [i, variable] : enumerate(module.variables))
    if (variable.dynamic)
      program.dynamicAlign = std::max(program.dynamicAlign, variable.align);
  if (program.dynamicAlign)
    shared = alignTo(shared, program.dynamicAlign);
  for (auto [i, variable] : enumerate(module.variables))
    if (variable.dynamic)
      variableOffsets[i] = shared;
  // 227 KiB is the most that a block of any target has.
  if (shared > 232448 || local > 524288) {
    error = createStringError(
        "kernel '" + kernel.name + "' has " + Twine(shared) +
        " bytes of shared and " + Twine(local) +
        " bytes of local memory: at most 232448 and 524288 are simulated");
    return true;
  }
  program.sharedBytes = uint32_t(shared);
  program.localBytes = uint32_t(local);
  return false;
}

/// The address of a variable in its own space.
bool Decoder::variableAddress(const Operand &operand, uint64_t &address,
                              Space *space) {
  const VariableDecl &variable = module.variables[operand.index];
  bool inMemory =
      variable.space == Space::Global || variable.space == Space::Const;
  address =
      (inMemory ? addresses[operand.index] : variableOffsets[operand.index]) +
      uint64_t(operand.offset);
  if (space)
    *space = variable.space;
  return false;
}

} // namespace dither::runtime::sim
