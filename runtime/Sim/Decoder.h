//===- Decoder.h - From a parsed kernel to a Program ------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_SIM_DECODER_H
#define DITHER_RUNTIME_SIM_DECODER_H

#include "LaneOps.h"
#include "Mbarrier.h"
#include "Module.h"
#include "Program.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace dither::runtime::sim {

/// Makes the Program of module.kernels[kernel]. `addresses` has the address of
/// each variable of the global and const spaces, by index. Errors name the line
/// and the instruction: one that is not simulated, that the target lacks, or
/// whose operands do not fit.
llvm::Expected<Program> decodeKernel(const Module &module, unsigned kernel,
                                     llvm::ArrayRef<uint64_t> addresses,
                                     const LaneTable &table);

/// One PTX instruction at a time. Members return true where they failed, with
/// the error kept.
class Decoder {
public:
  Decoder(const Module &module, const KernelDecl &kernel, int32_t kernelIndex,
          llvm::ArrayRef<uint64_t> addresses, const LaneTable &table)
      : module(module), kernel(kernel), kernelIndex(kernelIndex),
        addresses(addresses), table(table) {}

  llvm::Expected<Program> run();

private:
  using Handler = bool (Decoder::*)();

  // The frame (DecodeFrame.cpp).
  void layOut();
  bool layOutVariables();
  uint32_t place(unsigned bytes);
  uint32_t constant(unsigned width, uint64_t bits);
  uint32_t special(Special which);
  uint32_t temporary(unsigned width);
  uint32_t temporaryPredicate() { return temporary(0); }

  // Errors and modifiers (Decoder.cpp).
  bool fail(const llvm::Twine &text);
  bool decode(const Instruction &instruction);
  static Handler handlerOf(llvm::StringRef base);
  bool has(llvm::StringRef modifier);
  bool takeFirst(llvm::StringRef modifier);
  bool hasPrefix(llvm::StringRef prefix);
  /// Takes the last modifier, which must be a type.
  bool takeType(Type &type);
  std::optional<Type> takeOptionalType();
  bool finish(size_t operands);
  bool finish(size_t least, size_t most);
  /// Errors unless the target is sm_XY or later and the module's version is at
  /// least that (10 * major + minor).
  bool require(unsigned sm, unsigned version, llvm::StringRef what = "");
  /// Errors unless the target is one of these with the suffix a (or f).
  bool requireSpecific(std::initializer_list<unsigned> targets, bool family,
                       unsigned version);
  void approximate();

  // Operands (DecodeOperands.cpp).
  enum class Fit : uint8_t { Exact, Wider };
  bool checkRegister(const Operand &operand, Type type, Fit fit);
  /// Parts of a register that are checked alone, and all of them in a list.
  uint32_t numParts(uint32_t reg) const;
  void addParts(std::vector<uint32_t> &list, uint32_t reg) const;
  bool read(const Operand &operand, Type type, uint32_t &offset,
            Fit fit = Fit::Exact);
  bool read(unsigned index, Type type, uint32_t &offset, Fit fit = Fit::Exact) {
    return read(instruction->operands[index], type, offset, fit);
  }
  bool immediate(const Operand &operand, Type type, uint64_t &bits);
  /// An operand that must be known at load.
  bool readImmediate(unsigned index, uint64_t &value);
  bool readPredicate(const Operand &operand, uint32_t &offset, bool &negated);
  bool write(const Operand &operand, Type type, uint32_t &offset,
             Fit fit = Fit::Exact);
  bool write(unsigned index, Type type, uint32_t &offset) {
    return write(instruction->operands[index], type, offset);
  }
  unsigned widthOf(const Operand &operand, Type type) const;

  // Steps (DecodeOperands.cpp).
  Step &emit(Form form);
  bool lanes(Op op, Type type, uint32_t dst, llvm::ArrayRef<uint32_t> src,
             uint32_t imm = 0, Type second = Type::None, unsigned width = 0);
  bool compare(Op op, Type type, uint32_t a, uint32_t b, uint32_t dst,
               const CompareInfo &info);
  bool flush(uint32_t &offset, Type type);

  // Arithmetic (DecodeInteger.cpp, DecodeFloat.cpp).
  bool decodeAddSub();
  bool decodeMul();
  bool decodeMad();
  bool decodeMul24();
  bool decodeDiv();
  bool decodeRem();
  bool decodeMinMax();
  bool decodeAbsNeg();
  bool decodeSad();
  bool decodeDp4a();
  bool decodeFma();
  bool decodeCarry(Op op);
  bool decodeIntBinary(Op op, Type type);
  bool decodeFloatArithmetic(Op op, Type type, unsigned sources);
  bool decodeMixedArithmetic(Op op, Type narrow, unsigned sources);
  bool decodeFloatMinMax(bool isMin, Type type);
  bool floatTarget(Op op, Type type);
  bool decodeRoot();
  bool decodeReciprocal();
  bool roundedUnary(Op op, Type type, Rounding rounding, bool approx, bool ftz);
  bool decodeApproximate();
  bool decodeCopysign();
  bool decodeTestp();
  std::optional<Rounding> takeRounding();

  // Bits (DecodeBits.cpp).
  bool decodeLogic();
  bool decodePredicateLogic();
  bool decodeShift();
  bool decodeFunnel();
  bool decodeField();
  bool decodeCount();
  bool decodePrmt();
  bool decodeLop3();
  bool decodeExtend();

  // Moves and comparisons (DecodeMove.cpp).
  bool decodeMov();
  bool decodePack();
  bool decodeUnpack();
  void useByParts(unsigned sources);
  bool copyParts(const Operand &to, size_t i, const Operand &from, size_t j,
                 Type part);
  bool decodeSelp();
  bool decodeSlct();
  bool decodeSetp();
  bool decodeSet();
  bool takeComparison(Type type, Op &op);
  CompareInfo::Op takeBoolean();
  bool decodeCvta();
  bool decodeIsspacep();
  bool decodeMapa();
  bool variableAddress(const Operand &operand, uint64_t &address,
                       Space *space = nullptr);

  // Conversions (DecodeConvert.cpp).
  bool decodeCvt();
  bool convertTarget(Type to, Type from);
  bool convertModifiers(Type to, Type from);
  bool convertIntegers(Type to, Type from, bool saturate);
  bool convertToFloat(Type to, Type from);
  bool convertToInteger(Type to, Type from);
  bool convertFloats(Type to, Type from);
  bool convertPacked(Type to, Type from);
  bool convertUnpacked(Type to, Type from);
  bool convertStochastic(Type to);
  bool convertPack();

  // Memory (DecodeMemory.cpp).
  bool decodeLoad();
  bool decodeStore();
  bool decodeAccess(bool isLoad);
  bool decodeMatrix();
  bool decodeAtomic();
  bool decodePrefetch();
  bool takeSpace(Space &space);
  bool takeCacheModifiers(bool &hint, bool *isStrong = nullptr);
  bool decodeAddress(const Operand &operand, MemoryInfo &info);
  bool vectorElements(const Operand &operand, MemoryInfo &info, Type type,
                      bool isLoad);
  bool checkNarrowStores();

  // Asynchronous copies (DecodeCopy.cpp).
  bool decodeCopy();
  bool decodeCopyGroup();
  bool copySpaces();
  bool copySource(unsigned index, uint64_t size, Step &step);
  bool copyGroups(uint32_t &groups);
  bool cachePolicy(unsigned index);

  // Bulk copies (DecodeBulk.cpp).
  bool decodeBulk();
  bool decodeBulkGroup();
  bool decodeBulkCopy();
  bool decodeBulkPrefetch();
  bool bulkSize(unsigned index, uint32_t &offset);

  // mbarriers (DecodeMbarrier.cpp).
  bool decodeMbarrier();
  bool mbarrierAddress(MemoryInfo &info, unsigned index, size_t least,
                       size_t most = 0, bool mayBeRemote = false);
  Step &emitMbarrier(MbarrierOp op, const MemoryInfo &at, bool relaxed = false);
  bool takeMbarrierOrder(llvm::StringRef order, bool &relaxed);
  bool decodeArrive(MbarrierOp op);
  bool decodeMbarrierWait(bool isTry);
  bool decodePendingCount();
  bool decodeFence();

  // Warps, barriers, control (DecodeControl.cpp, DecodeWarp.cpp).
  bool decodeBranch();
  bool decodeBranchTable();
  bool decodeExit();
  bool decodeTrap();
  bool decodeNothing();
  bool decodeBarrier();
  bool decodeClusterBarrier();
  bool decodeShuffle();
  bool decodeVote();
  bool decodeMatch();
  bool decodeRedux();
  bool decodeActivemask();
  bool decodeElect();
  bool decodeCreatepolicy();

  const Module &module;
  const KernelDecl &kernel;
  int32_t kernelIndex;
  llvm::ArrayRef<uint64_t> addresses;
  const LaneTable &table;
  Program program;
  llvm::Error error = llvm::Error::success();

  // The frame.
  uint32_t frameSize = 0;
  llvm::DenseMap<std::pair<unsigned, uint64_t>, uint32_t> constants;
  llvm::SmallVector<uint32_t, 8> temporaries[9];
  unsigned usedTemporaries[9] = {};
  std::vector<uint32_t> registerOffsets;
  llvm::DenseMap<unsigned, uint32_t> specials;
  /// Offsets in the shared or local space, by variable.
  std::vector<uint64_t> variableOffsets;
  uint32_t carryFlag = 0;
  /// By register, how many instructions write it, and as what the last does.
  struct Definitions {
    unsigned count = 0;
    Type type = Type::None;
    llvm::StringRef opcode;
  };
  llvm::DenseMap<uint32_t, Definitions> definitions;
  /// Stores of a part of a register.
  std::vector<std::pair<const Instruction *, uint32_t>> narrowStores;

  // The instruction at hand.
  const Instruction *instruction = nullptr;
  llvm::StringRef base;
  llvm::SmallVector<llvm::StringRef, 8> modifiers;
  uint32_t sourceIndex = 0;
  /// `.shared::cluster`
  bool inCluster = false;
  OpClass opClass = OpClass::Integer;
  Uses uses;
  /// First step of each PTX instruction.
  std::vector<uint32_t> firstStep;
};

/// Offsets that every frame has.
inline constexpr uint32_t kAllOnes = 0, kZeroMask = 4;

/// Sets the reconvergence point of each branch: the first step of its block's
/// immediate post-dominator (Cfg.cpp).
void findReconvergence(Program &program);

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_DECODER_H
