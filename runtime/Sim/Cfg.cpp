#include "Decoder.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>

using namespace llvm;

namespace dither::runtime::sim {

namespace {

/// Basic blocks of steps, and a last one that every exit leads to.
struct Cfg {
  std::vector<uint32_t> begin; ///< first step of each block
  std::vector<SmallVector<uint32_t, 2>> successors;
  std::vector<SmallVector<uint32_t, 4>> predecessors;
  uint32_t exit;
};

bool endsBlock(const Step &step) {
  return step.form == Form::Branch || step.form == Form::BranchTable ||
         step.form == Form::Exit || step.form == Form::Trap;
}

Cfg makeCfg(const Program &program) {
  const std::vector<Step> &steps = program.steps;
  std::vector<bool> leads(steps.size(), false);
  leads[0] = true;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (endsBlock(steps[i]) && i + 1 < steps.size())
      leads[i + 1] = true;
    if (steps[i].form == Form::Branch)
      leads[steps[i].imm] = true;
    if (steps[i].form == Form::BranchTable)
      for (uint32_t target : program.branchTables[steps[i].imm])
        leads[target] = true;
  }
  Cfg cfg;
  std::vector<uint32_t> blockOf(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (leads[i])
      cfg.begin.push_back(uint32_t(i));
    blockOf[i] = uint32_t(cfg.begin.size() - 1);
  }
  cfg.exit = uint32_t(cfg.begin.size());
  cfg.successors.resize(cfg.exit + 1);
  cfg.predecessors.resize(cfg.exit + 1);
  bool returns = false;
  SmallVector<uint32_t, 2> abrupt;
  for (uint32_t block = 0; block < cfg.exit; ++block) {
    size_t end = block + 1 < cfg.exit ? cfg.begin[block + 1] : steps.size();
    const Step &last = steps[end - 1];
    auto &to = cfg.successors[block];
    bool guarded = last.guard != kAllOnes;
    if (last.form == Form::Branch)
      to.push_back(blockOf[last.imm]);
    else if (last.form == Form::BranchTable)
      for (uint32_t target : program.branchTables[last.imm])
        to.push_back(blockOf[target]);
    else if (last.form == Form::Exit)
      to.push_back(cfg.exit);
    // A trap ends the launch: those that do not take it meet as if it were not
    // there.
    if (!endsBlock(last) || guarded)
      to.push_back(block + 1);
    llvm::sort(to);
    to.erase(std::unique(to.begin(), to.end()), to.end());
    for (uint32_t next : to)
      cfg.predecessors[next].push_back(block);
    if (last.form == Form::Exit && last.flags != kAbrupt)
      returns = true;
    if (last.form == Form::Exit && last.flags == kAbrupt && !guarded)
      abrupt.push_back(block);
  }
  // Nobody waits for lanes that are gone.
  if (returns)
    for (uint32_t block : abrupt) {
      cfg.successors[block].clear();
      llvm::erase(cfg.predecessors[cfg.exit], block);
    }
  return cfg;
}

constexpr uint32_t kNone = ~0u;

/// Immediate post-dominators (Cooper, Harvey and Kennedy, A Simple, Fast
/// Dominance Algorithm, 2001, on the reversed graph); kNone for blocks from
/// which no exit is reached.
std::vector<uint32_t> postDominators(const Cfg &cfg) {
  uint32_t count = cfg.exit + 1;
  // Post-order of the reversed graph, by an explicit stack.
  std::vector<uint32_t> order, number(count, kNone);
  std::vector<std::pair<uint32_t, size_t>> stack = {{cfg.exit, 0}};
  std::vector<bool> seen(count, false);
  seen[cfg.exit] = true;
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    if (next == cfg.predecessors[block].size()) {
      number[block] = uint32_t(order.size());
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    uint32_t to = cfg.predecessors[block][next++];
    if (!seen[to]) {
      seen[to] = true;
      stack.push_back({to, 0});
    }
  }
  std::vector<uint32_t> dominator(count, kNone);
  dominator[cfg.exit] = cfg.exit;
  auto intersect = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (number[a] < number[b])
        a = dominator[a];
      while (number[b] < number[a])
        b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.size() - 1; i-- > 0;) {
      uint32_t block = order[i], found = kNone;
      for (uint32_t next : cfg.successors[block]) {
        if (dominator[next] == kNone)
          continue;
        found = found == kNone ? next : intersect(next, found);
      }
      if (found != dominator[block]) {
        dominator[block] = found;
        changed = true;
      }
    }
  }
  return dominator;
}

} // namespace

void findReconvergence(Program &program) {
  Cfg cfg = makeCfg(program);
  std::vector<uint32_t> dominators = postDominators(cfg);
  for (uint32_t block = 0; block < cfg.exit; ++block) {
    size_t end =
        block + 1 < cfg.exit ? cfg.begin[block + 1] : program.steps.size();
    Step &last = program.steps[end - 1];
    uint32_t meet = dominators[block];
    last.reconvergence =
        meet == kNone || meet == cfg.exit ? kNone : cfg.begin[meet];
  }
}

} // namespace dither::runtime::sim
