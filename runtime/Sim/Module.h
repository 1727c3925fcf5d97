//===- Module.h - PTX as it was parsed --------------------------*- C++ -*-===//
//
// Names are resolved, opcodes are still text. Everything refers to the text of
// the module, which the Module keeps.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_MODULE_H
#define DITHER_RUNTIME_SIM_MODULE_H

#include "Types.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dither::runtime::sim {

/// Special registers (ISA, 10) that the simulator has.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Laneid,
  Warpid,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  Clock,
  ClockHi,
  Clock64,
  Globaltimer,
  GlobaltimerLo,
  GlobaltimerHi,
  DynamicSmemSize,
  TotalSmemSize,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
};
inline constexpr unsigned kNumSpecials = unsigned(Special::ClusterNctarank) + 1;

/// 4 or 8 bytes.
unsigned sizeOf(Special special);

inline constexpr uint64_t kMostClusterBlocks = 8;

struct Operand {
  enum Kind : uint8_t {
    None,
    Register,  ///< index of Kernel::registers
    Immediate, ///< two's complement in bits
    Float32,   ///< encoding in bits
    Float64,   ///< encoding in bits
    SpecialRegister,
    Variable,      ///< index of Module::variables, its address plus offset
    Param,         ///< index of Kernel::params
    Label,         ///< index of an instruction
    BranchTargets, ///< index of Kernel::branchTargets
    Address,       ///< elements[0] is the base (Immediate 0 where there is
                   ///< none), plus offset
    Vector,        ///< {elements}
    Pair,          ///< elements[0] | elements[1]
    Sink           ///< _
  };
  Kind kind = None;
  bool negated = false; ///< !%p
  uint32_t index = 0;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Operand> elements;
};

struct Instruction {
  unsigned line = 0;
  int32_t guard = -1; ///< register of @%p, or -1
  bool guardNegated = false;
  /// Where a `.loc` says that it comes from: index of Module::files, line.
  uint32_t file = 0, sourceLine = 0;
  llvm::StringRef opcode; ///< with all modifiers
  std::vector<Operand> operands;
};

struct RegisterDecl {
  llvm::StringRef name; ///< of families, the prefix
  uint32_t number = 0;  ///< of families, the suffix
  bool family = false;
  Type type = Type::None;

  std::string text() const {
    return name.str() + (family ? std::to_string(number) : "");
  }
};

/// A variable of the global, const, shared or local space.
struct VariableDecl {
  llvm::StringRef name;
  Space space = Space::Global;
  uint32_t align = 1;
  /// Bytes; 0 for the dynamic shared memory of a launch (`.extern .shared`).
  uint64_t size = 0;
  bool dynamic = false;
  unsigned line = 0;
  /// Index of the kernel that declares it; -1 at module level.
  int32_t kernel = -1;
  /// Empty: zeros.
  std::vector<uint8_t> initializer;
  /// 8-byte addresses of variables, to be added in.
  struct Relocation {
    uint64_t offset;
    uint32_t variable;
    int64_t addend;
  };
  std::vector<Relocation> relocations;
};

struct ParamDecl {
  llvm::StringRef name;
  Type type = Type::None; ///< of the elements
  uint32_t align = 1, size = 0, offset = 0;
  bool isArray = false;
};

struct KernelDecl {
  llvm::StringRef name;
  unsigned line = 0;
  std::vector<ParamDecl> params;
  uint32_t paramBytes = 0;
  std::vector<RegisterDecl> registers;
  std::vector<Instruction> instructions;
  std::vector<std::vector<uint32_t>> branchTargets;
  uint32_t reqntid[3] = {0, 0, 0}; ///< zeros where not given
  uint32_t maxntid = 0;
  uint32_t cluster[3] = {1, 1, 1}; ///< blocks of a cluster
};

struct Module {
  std::unique_ptr<std::string> text;
  unsigned version = 0; ///< 10 * major + minor
  /// Of .target: sm_90a is 90 and 'a'; no suffix is 0.
  unsigned sm = 0;
  char suffix = 0;
  std::vector<VariableDecl> variables;
  std::vector<KernelDecl> kernels;
  /// `.file`: paths by index.
  std::map<uint32_t, llvm::StringRef> files;
};

/// Parses a PTX module. Errors: `line 12: ...`, for syntax, unknown names,
/// names declared twice, and what the simulator leaves out (functions, textures
/// and other opaque types).
llvm::Expected<Module> parseModule(llvm::StringRef text);

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_MODULE_H
