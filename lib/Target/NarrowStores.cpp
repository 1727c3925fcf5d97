#include "NarrowStores.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace dither::target {

namespace {

/// The registers that a store of NVPTX writes to memory: its first operands,
/// before how and where.
unsigned storedRegisters(const MachineInstr &store) {
  unsigned count = 0;
  while (count < store.getNumOperands() && store.getOperand(count).isReg())
    ++count;
  return count;
}

class NarrowStores : public MachineFunctionPass {
public:
  static char ID;
  NarrowStores() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "narrow stores"; }

  bool runOnMachineFunction(MachineFunction &f) override {
    const TargetSubtargetInfo &target = f.getSubtarget();
    const TargetRegisterInfo &registers = *target.getRegisterInfo();
    MachineRegisterInfo &info = f.getRegInfo();
    bool changed = false;
    for (MachineBasicBlock &block : f)
      for (MachineInstr &mi : block) {
        unsigned count = storedRegisters(mi);
        if (!mi.mayStore() || mi.mayLoad() || !mi.hasOneMemOperand() || !count)
          continue;
        LocationSize bytes = (*mi.memoperands_begin())->getSize();
        if (!bytes.hasValue())
          continue;
        uint64_t bits = 8 * bytes.getValue().getFixedValue() / count;
        for (MachineOperand &stored : llvm::make_range(
                 mi.operands_begin(), mi.operands_begin() + count)) {
          if (!stored.getReg().isVirtual())
            continue;
          const TargetRegisterClass *of = info.getRegClass(stored.getReg());
          if (registers.getRegSizeInBits(*of) <= bits)
            continue;
          Register bitsOf = info.createVirtualRegister(of);
          target.getInstrInfo()->copyPhysReg(block, mi.getIterator(),
                                             mi.getDebugLoc(), bitsOf,
                                             stored.getReg(), false);
          stored.setReg(bitsOf);
          changed = true;
        }
      }
    return changed;
  }
};

char NarrowStores::ID = 0;

} // namespace

FunctionPass *createNarrowStoresPass() { return new NarrowStores(); }

} // namespace dither::target
