//===- DecodeMbarrier.cpp - mbarriers and fences --------------------------===//

#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

/// Takes a modifier that comes before all others that are left.
bool Decoder::takeFirst(StringRef modifier) {
  if (modifiers.empty() || modifiers.front() != modifier)
    return false;
  modifiers.erase(modifiers.begin());
  return true;
}

bool Decoder::decodeMbarrier() {
  opClass = OpClass::Barrier;
  if (require(80, 70))
    return true;
  if (takeFirst("pending_count"))
    return decodePendingCount();
  if (takeFirst("arrive"))
    return decodeArrive(MbarrierOp::Arrive);
  if (takeFirst("arrive_drop"))
    return decodeArrive(MbarrierOp::Drop);
  if (takeFirst("test_wait"))
    return decodeMbarrierWait(/*isTry=*/false);
  if (takeFirst("try_wait"))
    return require(90, 78) || decodeMbarrierWait(/*isTry=*/true);
  MemoryInfo at;
  if (takeFirst("inval")) {
    if (mbarrierAddress(at, 0, 1))
      return true;
    emitMbarrier(MbarrierOp::Inval, at);
    return false;
  }
  bool inits = takeFirst("init"), expects = !inits && takeFirst("expect_tx");
  if (!inits && !expects && !takeFirst("complete_tx"))
    return fail("is not simulated");
  bool relaxed;
  uint32_t count;
  if ((!inits && (require(90, 80) || takeMbarrierOrder("", relaxed))) ||
      mbarrierAddress(at, 0, 2, 2, /*mayBeRemote=*/!inits) ||
      read(1, Type::U32, count))
    return true;
  emitMbarrier(inits     ? MbarrierOp::Init
               : expects ? MbarrierOp::ExpectTx
                         : MbarrierOp::CompleteTx,
               at)
      .src[0] = count;
  return false;
}

/// {.shared, ..}.b64 and the address, an operand of `least` to `most`. That of
/// the generic space may be one of another block, as that of .shared::cluster.
bool Decoder::mbarrierAddress(MemoryInfo &info, unsigned index, size_t least,
                              size_t most, bool mayBeRemote) {
  Space space;
  Type type;
  if (takeType(type) || takeSpace(space))
    return true;
  if (type != Type::B64)
    return fail("needs .b64");
  if (space != Space::Shared && space != Space::Generic)
    return fail("is for the shared space");
  if (inCluster && !mayBeRemote)
    return fail("is for an mbarrier of the block itself");
  if (inCluster && require(90, 80))
    return true;
  info.space = uint8_t(space);
  info.size = 8;
  info.isCluster = inCluster || (space == Space::Generic && mayBeRemote);
  return finish(least, std::max(least, most)) ||
         decodeAddress(instruction->operands[index], info);
}

/// After all operands were read: these may take steps of their own.
Step &Decoder::emitMbarrier(MbarrierOp op, const MemoryInfo &at, bool relaxed) {
  Step &step = emit(Form::Mbarrier);
  step.flags = uint8_t(op) | (relaxed ? kRelaxed : 0);
  step.imm = uint32_t(program.memories.size());
  program.memories.push_back(at);
  return step;
}

/// {.release.cta, ..}: what an arrival gives and a wait takes, or nothing.
bool Decoder::takeMbarrierOrder(StringRef order, bool &relaxed) {
  relaxed = has("relaxed");
  bool ordered = !relaxed && has(order);
  bool cluster = has("cluster"), scoped = cluster || has("cta");
  if (scoped != (relaxed || ordered))
    return fail(scoped ? "a scope needs an order" : "an order needs a scope");
  // Those of bytes alone were .relaxed before there was another order.
  if (relaxed)
    return require(90, order.empty() ? 80 : 86, "'.relaxed'");
  return scoped && require(cluster ? 90 : 80, 80, "a scope");
}

/// mbarrier.arrive{_drop}{.expect_tx, .noComplete}{.release.cta, ..}{.shared,
/// ..}.b64 state, [at]{, count}
bool Decoder::decodeArrive(MbarrierOp op) {
  bool drops = op == MbarrierOp::Drop, relaxed = false;
  bool expects = takeFirst("expect_tx");
  bool incomplete = !expects && has("noComplete");
  if (expects && require(90, 80))
    return true;
  if (expects)
    op = drops ? MbarrierOp::DropExpectTx : MbarrierOp::ArriveExpectTx;
  if (incomplete)
    op = drops ? MbarrierOp::DropNoComplete : MbarrierOp::ArriveNoComplete;
  if (incomplete && is_contained(modifiers, "cluster"))
    return fail("'.noComplete' is for threads of the block");
  if (takeMbarrierOrder("release", relaxed))
    return true;
  if (incomplete && relaxed)
    return fail("'.noComplete' is not '.relaxed'");
  ArrayRef<Operand> operands = instruction->operands;
  bool sinks = !operands.empty() && operands[0].kind == Operand::Sink;
  MemoryInfo at;
  // That of another block's has no result; who wants one is told so below.
  if (mbarrierAddress(
          at, 1, expects || incomplete ? 3 : 2, 3,
          /*mayBeRemote=*/!incomplete &&
              (sinks || is_contained(modifiers, "shared::cluster"))))
    return true;
  bool counted = operands.size() == 3;
  if (!expects && counted && operands[2].kind == Operand::Immediate &&
      !operands[2].bits)
    return fail("a count of 0");
  if (inCluster && !sinks)
    return fail("an arrival at another block's has no result, expected '_'");
  if (sinks && require(80, 71, "'_'"))
    return true;
  if (counted && !expects && !incomplete &&
      require(90, 78, "a count without .noComplete"))
    return true;
  uint32_t count = constant(4, 1), state = 0;
  if ((counted && read(2, Type::U32, count)) ||
      (!sinks && write(0, Type::B64, state)))
    return true;
  Step &step = emitMbarrier(op, at, relaxed);
  step.src[0] = count;
  step.dst = state;
  step.width = sinks ? 0 : 8;
  return false;
}

/// mbarrier.{test_wait,try_wait}{.parity}{.acquire.cta, ..}{.shared, ..}.b64
/// done, [at], state or parity{, time}
bool Decoder::decodeMbarrierWait(bool isTry) {
  bool parity = takeFirst("parity"), relaxed = false;
  if (parity && require(80, 71, "'.parity'"))
    return true;
  uint32_t done, phase, time;
  MemoryInfo at;
  if (takeMbarrierOrder("acquire", relaxed) ||
      mbarrierAddress(at, 1, 3, isTry ? 4 : 3))
    return true;
  ArrayRef<Operand> operands = instruction->operands;
  if (parity && operands[2].kind == Operand::Immediate && operands[2].bits > 1)
    return fail("parity " + Twine(operands[2].bits) + ", expected 0 or 1");
  if (operands[0].kind == Operand::Sink)
    return fail("the destination must be a register");
  if (read(2, parity ? Type::U32 : Type::B64, phase) ||
      (operands.size() == 4 && read(3, Type::U32, time)) ||
      write(0, Type::Pred, done))
    return true;
  Step &step = emitMbarrier(parity ? MbarrierOp::WaitParity : MbarrierOp::Wait,
                            at, relaxed);
  step.src[0] = phase;
  step.dst = done;
  return false;
}

/// mbarrier.pending_count.b64 count, state
bool Decoder::decodePendingCount() {
  Type type;
  uint32_t count, state, low = temporary(4);
  if (takeType(type))
    return true;
  if (type != Type::B64)
    return fail("needs .b64");
  return finish(2) || read(1, type, state) || write(0, Type::U32, count) ||
         lanes(Op::Convert, Type::U32, low, {state}, 0, Type::U64) ||
         lanes(Op::And, Type::B32, count, {low, constant(4, kMostArrivals)});
}

/// Those of memory, those between what threads and what bulk copies do
/// (fence.proxy.async), and those of mbarriers that were initialised.
bool Decoder::decodeFence() {
  opClass = OpClass::Control;
  FenceKind kind = FenceKind::Memory;
  if (base == "fence" && takeFirst("mbarrier_init")) {
    kind = FenceKind::Mbarriers;
    if (!has("release") || !has("cluster"))
      return fail("needs .release.cluster");
  } else if (base == "fence" && takeFirst("proxy")) {
    StringRef proxy = modifiers.empty() ? "" : modifiers.front();
    if (proxy.empty())
      return fail("needs a kind of proxy");
    if (proxy.split("::").first != "async")
      return decodeNothing();
    kind = FenceKind::Proxy;
    if (takeFirst("async")) {
      has("global") || has("shared::cta") || has("shared::cluster");
    } else if (takeFirst("async::generic")) {
      // Of one direction and of a part of memory.
      bool acquires = has("acquire") && has("sync_restrict::shared::cluster");
      bool releases =
          !acquires && has("release") && has("sync_restrict::shared::cta");
      if (require(90, 86))
        return true;
      if ((!acquires && !releases) || !has("cluster"))
        return fail("needs .acquire or .release, what that is for, and "
                    ".cluster");
    }
  } else {
    modifiers.clear();
  }
  if (kind != FenceKind::Memory && require(90, 80))
    return true;
  if (finish(0))
    return true;
  emit(Form::Fence).imm = uint32_t(kind);
  return false;
}

} // namespace dither::runtime::sim
