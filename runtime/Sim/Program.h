//===- Program.h - A kernel as the simulator runs it ------------*- C++ -*-===//
//
// A PTX instruction becomes one step or a few. Registers live in the frame of a
// warp: each is an array of its 32 lanes, of elements of the register's own
// width, and predicates are a word with a bit for each lane. Constants are such
// arrays too, so an operand is always an offset into the frame.
//
// Free of LLVM: what runs is compiled for more than one level of the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_PROGRAM_H
#define DITHER_RUNTIME_SIM_PROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace dither::runtime::sim {

struct Step;

/// Computes all 32 lanes from the frame, into `destination` (the register, or
/// scratch of which the active lanes are kept). Must not trap on any input.
using LaneFn = void (*)(const char *frame, const Step &step, char *destination);
/// As above, to a bit for each lane.
using MaskFn = uint32_t (*)(const char *frame, const Step &step);

enum class Form : uint8_t {
  Lanes,          ///< laneFn to dst
  Compare,        ///< maskFn, combined with a predicate (CompareInfo in imm)
  Logic,          ///< predicates: dst = truth table imm of (src[0], src[1])
  Carry,          ///< maskFn gives the carries; laneFn to dst
  Load,           ///< memory() in imm
  Store,          ///< memory() in imm
  Atomic,         ///< memory() in imm
  Copy,           ///< memories imm (to), imm + 1 (from); src[0] as flags say
  CopyCommit,     ///< ends a group of copies
  CopyWait,       ///< for all groups of copies but the last imm
  Mbarrier,       ///< MbarrierOp in flags; memory() in imm
  BulkCopy,       ///< memories imm (to), imm + 1 (from), imm + 2 (the mbarrier)
  BulkCommit,     ///< ends a group of bulk copies
  BulkWait,       ///< as CopyWait; with kReadOnly until the sources were read
  Fence,          ///< FenceKind in imm
  Shuffle,        ///< WarpInfo in imm
  Vote,           ///< WarpInfo in imm
  Match,          ///< WarpInfo in imm
  Redux,          ///< WarpInfo in imm
  Activemask,     ///< dst
  Elect,          ///< dst, src[1] is the predicate
  WarpSync,       ///< src[0] is the mask
  Barrier,        ///< BarrierKind in imm, src[0] the id, src[1] the count or 0
  ClusterBarrier, ///< ClusterBarrierKind in imm
  Clock,          ///< imm is the Special
  Isspacep,       ///< imm is the Space
  Branch,         ///< imm is the target
  BranchTable,    ///< imm is an index of branchTables, src[0] the index
  Exit,
  Trap,
  Nop,
};

enum class BarrierKind : uint8_t { Sync, Arrive, RedPopc, RedAnd, RedOr };

enum class ClusterBarrierKind : uint8_t { Arrive, ArriveRelaxed, Wait };

/// What a fence orders: memory, mbarriers that were initialised, or what
/// threads and bulk copies do.
enum class FenceKind : uint8_t { Memory, Mbarriers, Proxy };

/// What is done with the mbarrier at an address. src[0] is a count of arrivals
/// (Init, Arrive, Drop and NoComplete), of bytes (those of Tx), a phase (Wait)
/// or its parity (WaitParity); dst is the state, or the predicate of a wait.
/// Copy..: when the copies have come that the thread has issued (cp.async).
enum class MbarrierOp : uint8_t {
  Init,
  Inval,
  ExpectTx,
  CompleteTx,
  Arrive,
  ArriveExpectTx,
  ArriveNoComplete,
  Drop,
  DropExpectTx,
  DropNoComplete,
  Wait,
  WaitParity,
  CopyArrive,
  CopyArriveNoInc,
};
/// Flag beside an MbarrierOp: neither releases nor acquires.
inline constexpr uint8_t kRelaxed = 0x80;

/// Rounding other than to nearest even, done by the CPU's own modes.
enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

struct Step {
  union {
    LaneFn laneFn = nullptr;
    MaskFn maskFn;
  };
  uint32_t dst = 0;
  uint32_t src[4] = {0, 0, 0, 0};
  /// Offset of the predicate that guards; of all ones where there is none.
  uint32_t guard = 0;
  uint32_t imm = 0;
  /// Where lanes that part here meet again.
  uint32_t reconvergence = 0;
  /// Index of Program::sources.
  uint32_t source = 0;
  Form form = Form::Nop;
  bool guardNegated = false;
  /// Bytes of a lane of dst; 0 for predicates and where there is none.
  uint8_t width = 0;
  Rounding rounding = Rounding::Nearest;
  /// The last step of its PTX instruction, which counters count.
  bool last = true;
  uint8_t flags = 0;
};

/// How a comparison becomes its destinations: with result r and operand c,
/// p = r op c and q = !r op c.
struct CompareInfo {
  enum Op : uint8_t { None, And, Or, Xor };
  Op op = None;
  uint32_t combine = 0; ///< offset of c
  bool combineNegated = false;
  uint32_t other = 0; ///< offset of q, or 0
  bool hasFirst = true;
};

enum class AtomicOp : uint8_t {
  Add,
  Min,
  Max,
  And,
  Or,
  Xor,
  Exch,
  Cas,
  Inc,
  Dec
};

/// Element kinds of atomics: what their arithmetic depends on.
enum class AtomicType : uint8_t {
  B32,
  B64,
  U32,
  U64,
  S32,
  S64,
  F32,
  F64,
  F16,
  BF16,
  F16x2,
  BF16x2,
  B16
};

struct MemoryInfo {
  uint8_t space = 0;     ///< Space
  uint8_t size = 0;      ///< bytes of an element
  uint8_t count = 1;     ///< elements of the vector
  bool isSigned = false; ///< loads narrower than the register extend
  /// ldmatrix, stmatrix: `count` matrices, whose rows the addresses are of.
  bool isMatrix = false, isTransposed = false;
  bool isCluster = false; ///< `.shared::cluster`: of any block of the cluster
  /// A load or store that other blocks may meet (ISA, strong operations of
  /// scope gpu or sys).
  bool isStrong = false;
  uint32_t address = 0; ///< offset of the 64- or 32-bit addresses
  uint8_t addressWidth = 8;
  int64_t offset = 0; ///< added to the addresses
  /// Registers of the elements, ~0u for none (loads to `_`), and their widths.
  uint32_t registers[8] = {};
  uint8_t widths[8] = {};
  // Atomics: registers[0] is the result (~0u for red).
  AtomicOp op = AtomicOp::Add;
  AtomicType type = AtomicType::B32;
  uint32_t operands[2] = {0, 0};
};

struct WarpInfo {
  /// shfl: Up, Down, Bfly, Idx. vote: All, Any, Uni, Ballot. match: Any, All.
  /// redux: Add, Min, Max, And, Or, Xor.
  enum Mode : uint8_t {
    Up,
    Down,
    Bfly,
    Idx,
    All,
    Any,
    Uni,
    Ballot,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor
  };
  Mode mode = Up;
  bool isSigned = false, isFloat = false, abs = false, nan = false;
  bool negated = false;     ///< vote: of the source
  uint32_t mask = 0;        ///< offset of the member mask
  uint32_t predicate = ~0u; ///< offset of the second destination
};

/// What kind of work a PTX instruction is, for counters.
enum class OpClass : uint8_t {
  Integer,
  Float,
  Half,
  Convert,
  Special, ///< approximate functions
  Move,    ///< mov, selp, prmt, shuffles of bits
  Predicate,
  Memory,
  Atomic,
  WarpLevel,
  Control,
  Barrier,
};
inline constexpr unsigned kNumOpClasses = unsigned(OpClass::Barrier) + 1;

struct Source {
  uint32_t line = 0;
  std::string text; ///< opcode with its modifiers
  OpClass kind = OpClass::Integer;
  std::string file; ///< of `.loc`; empty where there is none
  uint32_t fileLine = 0;
};

/// Flag of an Exit that is no return: those who do not take it meet as if it
/// were not there.
inline constexpr uint8_t kAbrupt = 1;

/// Flags of a Copy: src[0] is the bytes that are read or, with kIgnores, a
/// predicate (with kNegated its opposite) that says to read none.
inline constexpr uint8_t kIgnores = 1, kNegated = 2;

/// Flags of a BulkCopy: src[0] is the bytes; src[1] with kMulticast the blocks
/// of the cluster; kGroup for one that has no mbarrier and is of a group.
inline constexpr uint8_t kMulticast = 1, kGroup = 2;
/// Flag of a BulkWait.
inline constexpr uint8_t kReadOnly = 1;

/// Parts of 16 bits that a register has at most.
inline constexpr uint32_t kParts = 4;

/// What a step reads and writes, for the check that it was written: parts of
/// registers, kParts times an index of Program::registerNames plus the part.
struct Uses {
  std::vector<uint32_t> reads, writes;
  /// (to, from): parts that are packed or unpacked, or computed by halves; one
  /// that follows from several has as many rows. What was not
  /// written may be, as long as nobody reads it: compilers pack a register with
  /// nothing where half of a pair is of no use.
  std::vector<std::pair<uint32_t, uint32_t>> copies;
  int32_t guard = -1; ///< a register
};

struct SpecialSlot {
  uint8_t special;
  uint32_t offset;
};

struct Program {
  std::string name;
  std::vector<Step> steps; ///< an Exit last
  std::vector<Source> sources;
  std::vector<CompareInfo> compares;
  std::vector<MemoryInfo> memories;
  std::vector<WarpInfo> warps;
  std::vector<std::vector<uint32_t>> branchTables;
  std::vector<Uses> uses;
  std::vector<std::string> registerNames;
  /// What a frame holds before the first instruction (constants); its size is
  /// that of a frame, a multiple of 64.
  std::vector<char> frame;
  std::vector<SpecialSlot> specials;
  struct ParamSlot {
    uint32_t offset, size;
  };
  std::vector<ParamSlot> params;
  uint32_t paramBytes = 0;
  uint32_t sharedBytes = 0;  ///< static; dynamic memory begins here
  uint32_t dynamicAlign = 0; ///< of dynamic shared memory, 0 for none
  uint32_t localBytes = 0;
  uint32_t reqntid[3] = {0, 0, 0};
  uint32_t maxntid = 0;
  uint32_t cluster[3] = {1, 1, 1}; ///< blocks of a cluster
  /// Something is done by no thread (Races.h).
  bool hasEngines = false;
  /// Lines whose result is only within an error bound of the hardware's.
  std::vector<std::string> approximations;
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_PROGRAM_H
