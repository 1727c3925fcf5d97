//===- DecodeBulk.cpp - Copies of many bytes by one thread ----------------===//
//
// Those of plain bytes. Tensors, reductions and masks of bytes are not
// simulated.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

bool Decoder::decodeBulk() {
  if (modifiers.size() > 1 && modifiers[1] == "tensor")
    return fail("is not simulated");
  if (require(90, 80))
    return true;
  has("bulk");
  StringRef first = modifiers.empty() ? "" : modifiers.front();
  if (first == "commit_group" || first == "wait_group")
    return decodeBulkGroup();
  return first == "prefetch" ? decodeBulkPrefetch() : decodeBulkCopy();
}

/// cp.async.bulk.commit_group, cp.async.bulk.wait_group{.read} n
bool Decoder::decodeBulkGroup() {
  opClass = OpClass::Control;
  uint32_t groups = 0;
  if (has("commit_group")) {
    if (finish(0))
      return true;
    emit(Form::BulkCommit);
    return false;
  }
  has("wait_group");
  bool reads = has("read");
  if (finish(1) || copyGroups(groups))
    return true;
  Step &step = emit(Form::BulkWait);
  step.imm = groups;
  step.flags = reads ? kReadOnly : 0;
  return false;
}

/// A multiple of 16.
bool Decoder::bulkSize(unsigned index, uint32_t &offset) {
  const Operand &size = instruction->operands[index];
  if (size.kind == Operand::Immediate &&
      (size.bits % kBulkChunk || size.bits > kMostBulkBytes))
    return fail("copies " + Twine(int64_t(size.bits)) +
                " bytes, expected a multiple of 16 up to " +
                Twine(kMostBulkBytes));
  return read(index, Type::U32, offset);
}

/// cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [from], size{, policy}
bool Decoder::decodeBulkPrefetch() {
  opClass = OpClass::Memory;
  has("prefetch");
  if (!has("L2") || !has("global"))
    return fail("needs .L2.global");
  bool hint = has("L2::cache_hint");
  MemoryInfo from;
  from.space = uint8_t(Space::Global);
  uint32_t size;
  if (finish(hint ? 3 : 2) || decodeAddress(instruction->operands[0], from) ||
      bulkSize(1, size) || (hint && cachePolicy(2)))
    return true;
  emit(Form::Nop);
  return false;
}

/// cp.async.bulk
///   .shared::{cluster,cta}.global.mbarrier::complete_tx::bytes
///     {.multicast::cluster}{.L2::cache_hint}
///       [to], [from], size, [mbarrier]{, blocks}{, policy}
///   .shared::cluster.shared::cta.mbarrier::complete_tx::bytes
///       [to], [from], size, [mbarrier]
///   .global.shared::cta.bulk_group{.L2::cache_hint}
///       [to], [from], size{, policy}
bool Decoder::decodeBulkCopy() {
  opClass = OpClass::Memory;
  // Where the bytes go to and come from, in this order.
  SmallVector<StringRef, 2> spaces;
  for (StringRef name : modifiers)
    if (name == "global" || name == "shared::cta" || name == "shared::cluster")
      spaces.push_back(name);
  if (spaces.size() != 2)
    return fail("needs two of .global, .shared::cta and .shared::cluster");
  bool toGlobal = spaces[0] == "global", fromGlobal = spaces[1] == "global";
  bool toCta = spaces[0] == "shared::cta";
  if (toGlobal == fromGlobal ? toCta || spaces[1] != "shared::cta"
                             : toGlobal && spaces[1] != "shared::cta")
    return fail("does not copy from ." + spaces[1] + " to ." + spaces[0]);
  if (toCta && require(90, 86, "'.shared::cta'"))
    return true;
  has(spaces[0]);
  has(spaces[1]);
  if (toGlobal ? !has("bulk_group") : !has("mbarrier::complete_tx::bytes"))
    return fail(toGlobal ? "needs .bulk_group"
                         : "needs .mbarrier::complete_tx::bytes");
  bool multicast = fromGlobal && !toCta && has("multicast::cluster");
  bool hint = (toGlobal || fromGlobal) && has("L2::cache_hint");

  MemoryInfo to, from, mbarrier;
  to.space = uint8_t(toGlobal ? Space::Global : Space::Shared);
  from.space = uint8_t(fromGlobal ? Space::Global : Space::Shared);
  mbarrier.space = uint8_t(Space::Shared);
  to.isCluster = mbarrier.isCluster = spaces[0] == "shared::cluster";
  unsigned policy = (toGlobal ? 3 : 4) + multicast;
  uint32_t size, blocks = 0;
  ArrayRef<Operand> operands = instruction->operands;
  if (finish(policy + hint) || decodeAddress(operands[0], to) ||
      decodeAddress(operands[1], from) || bulkSize(2, size) ||
      (!toGlobal && decodeAddress(operands[3], mbarrier)) ||
      (multicast && read(4, Type::B16, blocks)) ||
      (hint && cachePolicy(policy)))
    return true;
  program.hasEngines = true;
  Step &step = emit(Form::BulkCopy);
  step.src[0] = size;
  step.src[1] = blocks;
  step.flags = uint8_t(multicast ? kMulticast : 0) | (toGlobal ? kGroup : 0);
  step.imm = uint32_t(program.memories.size());
  program.memories.insert(program.memories.end(), {to, from, mbarrier});
  return false;
}

} // namespace dither::runtime::sim
