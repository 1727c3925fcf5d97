//===- DecodeMbarrier.cpp - mbarriers and fences --------------------------===//

#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

/// Which form an instruction has, by the first of its modifiers.
bool Decoder::decodeMbarrier() {
  opClass = OpClass::Barrier;
  if (require(80, 70))
    return true;
  if (has("pending_count"))
    return decodePendingCount();
  if (has("init")) {
    if (finishMbarrier(MbarrierOp::Init, 2))
      return true;
    return read(1, Type::U32, program.steps.back().src[0]);
  }
  if (has("inval"))
    return finishMbarrier(MbarrierOp::Inval, 1);
  if (has("arrive"))
    return decodeArrive(MbarrierOp::Arrive);
  if (has("arrive_drop"))
    return decodeArrive(MbarrierOp::Drop);
  if (has("test_wait"))
    return decodeMbarrierWait(/*isTry=*/false);
  if (has("try_wait"))
    return require(90, 78) || decodeMbarrierWait(/*isTry=*/true);
  bool expects = has("expect_tx");
  if (!expects && !has("complete_tx"))
    return fail("is not simulated");
  bool relaxed;
  if (require(90, 80) || takeMbarrierOrder("", relaxed) ||
      finishMbarrier(expects ? MbarrierOp::ExpectTx : MbarrierOp::CompleteTx, 2,
                     2, /*mayBeRemote=*/true))
    return true;
  return read(1, Type::U32, program.steps.back().src[0]);
}

/// {.shared, ..}.b64 and the address, which is the first operand but of those
/// that have a result.
bool Decoder::finishMbarrier(MbarrierOp op, size_t least, size_t most,
                             bool mayBeRemote) {
  MemoryInfo info;
  Space space;
  Type type;
  if (takeType(type) || takeSpace(space))
    return true;
  if (type != Type::B64)
    return fail("needs .b64");
  if (space != Space::Shared && space != Space::Generic)
    return fail("is for the shared space");
  if (inCluster && (!mayBeRemote || require(90, 80)))
    return mayBeRemote || fail("is for an mbarrier of the block itself");
  bool hasResult = op >= MbarrierOp::Arrive && op <= MbarrierOp::WaitParity;
  info.space = uint8_t(space);
  info.size = 8;
  info.isCluster = inCluster;
  if (finish(least, std::max(least, most)) ||
      decodeAddress(instruction->operands[hasResult ? 1 : 0], info))
    return true;
  Step &step = emit(Form::Mbarrier);
  step.flags = uint8_t(op);
  step.imm = uint32_t(program.memories.size());
  program.memories.push_back(info);
  return false;
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
  bool expects = has("expect_tx"), incomplete = !expects && has("noComplete");
  if (expects && require(90, 80))
    return true;
  if (expects)
    op = drops ? MbarrierOp::DropExpectTx : MbarrierOp::ArriveExpectTx;
  if (incomplete)
    op = drops ? MbarrierOp::DropNoComplete : MbarrierOp::ArriveNoComplete;
  if (takeMbarrierOrder("release", relaxed))
    return true;
  bool counted = expects || incomplete;
  if (incomplete && relaxed)
    return fail("'.noComplete' is not '.relaxed'");
  if (finishMbarrier(op, counted ? 3 : 2, 3, /*mayBeRemote=*/!incomplete))
    return true;
  size_t step = program.steps.size() - 1;
  const Operand &result = instruction->operands[0];
  bool sinks = result.kind == Operand::Sink;
  if (!expects && instruction->operands.size() == 3 &&
      instruction->operands[2].kind == Operand::Immediate &&
      !instruction->operands[2].bits)
    return fail("a count of 0");
  if (inCluster && !sinks)
    return fail("an arrival at another block's has no result, expected '_'");
  if (sinks && require(80, 71, "'_'"))
    return true;
  bool plainCount = !counted && instruction->operands.size() == 3;
  if (plainCount && require(90, 78, "a count without .noComplete"))
    return true;
  if (plainCount)
    counted = true;
  uint32_t count = constant(4, 1), state = 0;
  if ((counted && read(2, Type::U32, count)) ||
      (!sinks && write(0, Type::B64, state)))
    return true;
  program.steps[step].src[0] = count;
  program.steps[step].dst = state;
  program.steps[step].width = sinks ? 0 : 8;
  program.steps[step].flags |= relaxed ? kRelaxed : 0;
  return false;
}

/// mbarrier.{test_wait,try_wait}{.parity}{.acquire.cta, ..}{.shared, ..}.b64
/// done, [at], state or parity{, time}
bool Decoder::decodeMbarrierWait(bool isTry) {
  bool parity = has("parity"), relaxed = false;
  if (parity && require(80, 71, "'.parity'"))
    return true;
  uint32_t done, phase, time;
  if (takeMbarrierOrder("acquire", relaxed) ||
      finishMbarrier(parity ? MbarrierOp::WaitParity : MbarrierOp::Wait, 3,
                     isTry ? 4 : 3))
    return true;
  size_t step = program.steps.size() - 1;
  const Operand &last = instruction->operands[2];
  if (parity && last.kind == Operand::Immediate && last.bits > 1)
    return fail("parity " + Twine(last.bits) + ", expected 0 or 1");
  if (read(2, parity ? Type::U32 : Type::B64, phase) ||
      (instruction->operands.size() == 4 && read(3, Type::U32, time)) ||
      write(0, Type::Pred, done))
    return true;
  program.steps[step].src[0] = phase;
  program.steps[step].dst = done;
  program.steps[step].flags |= relaxed ? kRelaxed : 0;
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

/// Fences order nothing here, as the simulator runs one access at a time, but
/// that between the proxies of threads and of bulk copies is missed.
bool Decoder::decodeFence() {
  opClass = OpClass::Control;
  bool isProxy = modifiers.size() >= 2 && modifiers[0] == "proxy" &&
                 modifiers[1].split("::").first == "async";
  bool isInit = !modifiers.empty() && modifiers[0] == "mbarrier_init";
  if (modifiers.size() == 1 && modifiers[0] == "proxy")
    return fail("needs a kind of proxy");
  if (!isProxy && !isInit)
    return decodeNothing();
  if (require(90, 80))
    return true;
  if (isInit) {
    has("mbarrier_init");
    if (!has("release") || !has("cluster"))
      return fail("needs .release.cluster");
  } else if (modifiers[1] == "async") {
    has("proxy");
    has("async");
    has("global") || has("shared::cta") || has("shared::cluster");
  } else {
    // Of one direction and of a part of memory.
    has("proxy");
    has("async::generic");
    bool acquires = has("acquire") && has("sync_restrict::shared::cluster");
    bool releases =
        !acquires && has("release") && has("sync_restrict::shared::cta");
    if (require(90, 86))
      return true;
    if ((!acquires && !releases) || !has("cluster"))
      return fail("needs .acquire or .release, what that is for, and "
                  ".cluster");
  }
  if (finish(0))
    return true;
  emit(Form::ProxyFence).flags = isInit;
  return false;
}

} // namespace dither::runtime::sim
