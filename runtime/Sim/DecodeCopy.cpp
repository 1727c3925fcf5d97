//===- DecodeCopy.cpp - Asynchronous copies -------------------------------===//
//
// Copies of 4, 8 or 16 bytes from global to shared memory, and their groups.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

/// cp.async.{ca,cg}.shared{::cta}.global{.L2::cache_hint}{.L2::64B,..}
///   [to], [from], size{, source}{, policy}
bool Decoder::decodeCopy() {
  opClass = OpClass::Memory;
  if (modifiers.empty() || modifiers.front() != "async")
    return fail("is not simulated");
  has("async");
  StringRef first = modifiers.empty() ? "" : modifiers.front();
  if (first == "bulk")
    return decodeBulk();
  if (require(80, 70))
    return true;
  // Arrives when the copies of the thread have come.
  if (takeFirst("mbarrier")) {
    opClass = OpClass::Barrier;
    if (!takeFirst("arrive"))
      return fail("expected .arrive");
    bool counts = has("noinc");
    MemoryInfo at;
    if (mbarrierAddress(at, 0, 1))
      return true;
    emitMbarrier(counts ? MbarrierOp::CopyArriveNoInc : MbarrierOp::CopyArrive,
                 at);
    program.hasEngines = true;
    return false;
  }
  if (first == "commit_group" || first == "wait_group" || first == "wait_all")
    return decodeCopyGroup();
  bool hint = has("L2::cache_hint");
  bool prefetches = has("L2::64B") || has("L2::128B") || has("L2::256B");
  if ((hint || prefetches) && require(80, 74, "a cache modifier"))
    return true;
  bool all = has("ca");
  if (!all && !has("cg"))
    return fail("needs .ca or .cg");
  size_t least = hint ? 4 : 3, found = instruction->operands.size();
  uint64_t size = 0;
  if (copySpaces() || finish(least, least + 1) || readImmediate(2, size))
    return true;
  if (size != 16 && (!all || (size != 4 && size != 8)))
    return fail("copies " + Twine(all ? "4, 8 or " : "") + "16 bytes");
  MemoryInfo to, from;
  to.space = uint8_t(Space::Shared);
  from.space = uint8_t(Space::Global);
  to.size = from.size = uint8_t(size);
  if (decodeAddress(instruction->operands[0], to) ||
      decodeAddress(instruction->operands[1], from))
    return true;
  if (hint && cachePolicy(unsigned(found - 1)))
    return true;
  Step &step = emit(Form::Copy);
  step.src[0] = constant(4, size);
  if (found > least && copySource(3, size, step))
    return true;
  step.imm = uint32_t(program.memories.size());
  program.memories.push_back(to);
  program.memories.push_back(from);
  return false;
}

/// Both are named, that of the destination first; it is that of the block
/// itself.
bool Decoder::copySpaces() {
  auto to = find_if(modifiers, [](StringRef name) {
    return name == "shared" || name == "shared::cta";
  });
  auto from = find(modifiers, "global");
  if (to == modifiers.end() || from == modifiers.end() || from < to)
    return fail("needs .shared or .shared::cta, and .global after it");
  has(*to);
  has("global");
  return false;
}

/// The bytes that are read, or the predicate that says to read none.
bool Decoder::copySource(unsigned index, uint64_t size, Step &step) {
  const Operand &source = instruction->operands[index];
  if (source.kind == Operand::Immediate) {
    if (source.bits > size)
      return fail("reads " + Twine(source.bits) + " bytes for a copy of " +
                  Twine(size));
    return read(source, Type::U32, step.src[0]);
  }
  if (source.kind != Operand::Register)
    return fail("the size of the source is a register or a constant");
  if (kernel.registers[source.index].type != Type::Pred)
    return read(source, Type::U32, step.src[0]);
  bool negated = false;
  if (require(80, 75, "a predicate of the source") ||
      readPredicate(source, step.src[0], negated))
    return true;
  step.flags = uint8_t(kIgnores | (negated ? kNegated : 0));
  return false;
}

/// The cache policy, of no effect.
bool Decoder::cachePolicy(unsigned index) {
  const Operand &policy = instruction->operands[index];
  uint32_t unused;
  if (policy.kind != Operand::Register && policy.kind != Operand::Immediate)
    return fail("the cache policy is a register or a constant");
  return read(policy, Type::U64, unused);
}

/// The groups that a wait leaves; more than 2^32 are all.
bool Decoder::copyGroups(uint32_t &groups) {
  uint64_t value = 0;
  if (readImmediate(0, value))
    return true;
  groups = uint32_t(std::min<uint64_t>(value, ~0u));
  return false;
}

/// cp.async.commit_group, cp.async.wait_group n, and cp.async.wait_all, which
/// is both, with n = 0 (ISA, cp.async.wait_all).
bool Decoder::decodeCopyGroup() {
  opClass = OpClass::Control;
  bool all = has("wait_all"), some = !all && has("wait_group");
  if (!all && !some)
    has("commit_group");
  uint32_t groups = 0;
  if (finish(some ? 1 : 0) || (some && copyGroups(groups)))
    return true;
  if (!some)
    emit(Form::CopyCommit);
  if (all || some)
    emit(Form::CopyWait).imm = groups;
  return false;
}

} // namespace dither::runtime::sim
