#include "Decoder.h"

using namespace llvm;

namespace dither::runtime::sim {

/// Targets are PTX instructions until all steps are known (Decoder::run).
bool Decoder::decodeBranch() {
  opClass = OpClass::Control;
  has("uni");
  if (finish(1))
    return true;
  const Operand &target = instruction->operands[0];
  if (target.kind != Operand::Label)
    return fail("expected a label");
  emit(Form::Branch).imm = target.index;
  return false;
}

bool Decoder::decodeBranchTable() {
  opClass = OpClass::Control;
  uint32_t index;
  has("uni");
  if (!has("idx"))
    return fail("expected .idx");
  if (finish(2) || read(0, Type::U32, index))
    return true;
  const Operand &targets = instruction->operands[1];
  if (targets.kind != Operand::BranchTargets)
    return fail("expected a list of branch targets");
  Step &step = emit(Form::BranchTable);
  step.src[0] = index;
  step.imm = uint32_t(program.branchTables.size());
  program.branchTables.push_back(kernel.branchTargets[targets.index]);
  return false;
}

bool Decoder::decodeExit() {
  opClass = OpClass::Control;
  has("uni");
  if (finish(0))
    return true;
  emit(Form::Exit).flags = base == "exit" ? kAbrupt : 0;
  return false;
}

bool Decoder::decodeTrap() {
  opClass = OpClass::Control;
  if (finish(0))
    return true;
  emit(Form::Trap);
  return false;
}

/// Fences and hints: the simulator runs one access at a time.
bool Decoder::decodeNothing() {
  opClass = OpClass::Control;
  modifiers.clear();
  if (finish(0, 2))
    return true;
  emit(Form::Nop);
  return false;
}

/// barrier.cluster.arrive{.release,.relaxed}{.aligned} and
/// barrier.cluster.wait{.acquire}{.aligned}
bool Decoder::decodeClusterBarrier() {
  if (require(90, 78))
    return true;
  has("aligned");
  ClusterBarrierKind kind = ClusterBarrierKind::Wait;
  if (has("arrive")) {
    kind = has("relaxed") ? ClusterBarrierKind::ArriveRelaxed
                          : ClusterBarrierKind::Arrive;
    if (kind == ClusterBarrierKind::Arrive)
      has("release");
  } else if (has("wait")) {
    has("acquire");
  } else {
    return fail("expected .arrive or .wait");
  }
  if (finish(0))
    return true;
  emit(Form::ClusterBarrier).imm = uint32_t(kind);
  return false;
}

/// bar{.cta}.{sync,arrive,red}, barrier{.cta}.{..}{.aligned}, bar.warp.sync
bool Decoder::decodeBarrier() {
  opClass = OpClass::Barrier;
  if (base == "bar" && has("warp")) {
    uint32_t mask;
    if (!has("sync"))
      return fail("expected .sync");
    if (finish(1) || read(0, Type::B32, mask))
      return true;
    emit(Form::WarpSync).src[0] = mask;
    return false;
  }
  if (base == "barrier" && has("cluster"))
    return decodeClusterBarrier();
  if (has("cta") && require(30, 78, "'.cta'"))
    return true;
  has("aligned");
  BarrierKind kind = BarrierKind::Sync;
  Type type = Type::None;
  if (has("arrive")) {
    kind = BarrierKind::Arrive;
  } else if (has("red")) {
    if (takeType(type))
      return true;
    kind = has("popc")  ? BarrierKind::RedPopc
           : has("and") ? BarrierKind::RedAnd
           : has("or")  ? BarrierKind::RedOr
                        : BarrierKind::Sync;
    bool counts = kind == BarrierKind::RedPopc;
    if (kind == BarrierKind::Sync || type != (counts ? Type::U32 : Type::Pred))
      return fail("expected .popc.u32, .and.pred or .or.pred");
  } else if (!has("sync")) {
    return fail("expected .sync, .arrive or .red");
  }
  bool reduces = type != Type::None;
  size_t total = instruction->operands.size();
  size_t first = reduces ? 1 : 0, last = reduces ? total - 1 : total;
  if (finish(reduces ? 3 : 1, reduces ? 4 : 2))
    return true;
  if (kind == BarrierKind::Arrive && total != 2)
    return fail("needs a number of threads");
  uint32_t id, threads = 0, dst = 0, predicate = 0;
  bool negated = false;
  bool counted = last - first == 2;
  if (read(unsigned(first), Type::U32, id) ||
      (counted && read(unsigned(first + 1), Type::U32, threads)) ||
      (reduces &&
       (readPredicate(instruction->operands[last], predicate, negated) ||
        write(0, type, dst))))
    return true;
  Step &step = emit(Form::Barrier);
  step.imm = uint32_t(kind);
  step.dst = dst;
  step.width = uint8_t(sizeOf(type));
  step.src[0] = id;
  step.src[1] = threads;
  step.src[2] = predicate;
  step.flags = uint8_t(counted) | uint8_t(negated) << 1;
  return false;
}

} // namespace dither::runtime::sim
