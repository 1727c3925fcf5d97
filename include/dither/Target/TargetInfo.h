//===- TargetInfo.h - What each target can do -------------------*- C++ -*-===//
//
// One table of facts. Nothing else in the compiler compares architecture
// numbers: what an instruction needs is a field here.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_TARGET_TARGETINFO_H
#define DITHER_TARGET_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace dither::target {

/// Bytes of static shared memory that a block may have, on every GPU.
inline constexpr unsigned kGpuSharedBytes = 48 * 1024;

struct TargetInfo {
  /// "sm_90a"; "sm_100a:ptx91" for drivers of CUDA 13.1 and later;
  /// "host:avx512fp16", "host:avx512vbmi", "host:avx512", "host:avx2" and
  /// "host:base" (any) of x86-64; "host:neon" of aarch64.
  llvm::StringRef name;
  bool isGpu = false;

  //===--- for LLVM -------------------------------------------------------===//
  /// What a CPU's code is for, "x86_64-unknown-linux-gnu"; empty for GPUs.
  llvm::StringRef llvmTriple;
  /// Processor: "sm_90a" or "x86-64-v4".
  llvm::StringRef llvmChip;
  /// Subtarget features: the PTX version, or extensions of the instruction set.
  llvm::StringRef llvmFeatures;
  /// The PTX version of the text, times ten, where LLVM knows no feature for it
  /// and its own text is of that version too; 0 elsewhere.
  unsigned ptxVersion = 0;

  //===--- instructions ---------------------------------------------------===//
  /// {add, sub, fma}.rn.f32.{bf16, f16}: halves of registers as they are
  bool mixedPrecision = false;
  /// cvt.rn.satfinite.e2m1x2.f32
  bool cvtFP4x2 = false;
  /// cvt.rn.satfinite.{e2m3x2, e3m2x2}.f32
  bool cvtFP6x2 = false;
  /// cvt.rn.satfinite.{e4m3x2,e5m2x2}.f32
  bool cvtFP8x2 = false;
  /// cvt.rn.satfinite of all five formats from .bf16x2
  bool cvtFromBF16x2 = false;
  /// cvt.rp.satfinite.ue8m0x2.f32
  bool cvtUE8M0x2 = false;
  /// cvt.rn.{bf16x2,f16x2}.f32
  bool cvtBF16x2 = false;
  /// max.xorsign.abs.{bf16x2,f16x2}
  bool maxXorsign = false;
  /// {add,sub,mul,fma}.rn.f32x2 as one instruction; sm_120a takes it apart.
  bool f32x2 = false;
  /// Fused multiply-add in hardware. For a target without, LLVM would call a
  /// library, which compiled kernels never do: dither-emulate-instructions.
  bool fma = false;
  /// One that rounds toward zero.
  bool fmaTowardZero = false;
  /// Conversions between f16 and f32 in hardware; as for `fma`.
  bool cvtF16 = false;
  /// floor, ceil, trunc and roundeven in hardware; as for `fma`.
  bool roundToInteger = false;
  /// llvm.maxnum and llvm.minnum make NaN of a signaling one, which other
  /// targets ignore as they do others.
  bool signalingMaxnum = false;
  /// llvm.x86.avx2.* on registers of 256 bits.
  bool avx2Intrinsics = false;
  /// llvm.x86.avx512.* on registers of 512 bits.
  bool avx512Intrinsics = false;
  /// Permutations of the bytes of two of these, AVX512-VBMI.
  bool bytePermutations = false;
  /// Arithmetic on f16 in these, AVX512-FP16.
  bool avx512Half = false;
  /// Stores of whole vector registers past the caches (CPU).
  bool streamingStores = false;

  //===--- sizes ----------------------------------------------------------===//
  /// Bytes of the widest memory access of one lane (GPU) or of one vector
  /// register (CPU).
  unsigned maxVectorBytes = 16;
  /// Memory that is fast beside the arithmetic, HBM: what waits for it is worth
  /// more than what is computed again, or kept elsewhere.
  bool fastMemory = false;
  /// Bytes of shared memory that a launch may give a block, on every device
  /// that runs code for the target (CUDA programming guide, compute
  /// capabilities); 0 on a CPU.
  unsigned sharedBytes = 0;
  /// Blocks that a cluster may have on every device that runs code for the
  /// target; 1 where there are no clusters.
  unsigned clusterBlocks = 1;
  /// Threads that a block may have; 1 on a CPU.
  unsigned maxThreads = 1;
  /// 32-bit registers of a thread (GPU), vector registers (CPU).
  unsigned maxRegsPerThread = 0;
  /// PTX instructions for compute capability 10.0: 100; 0 on a CPU.
  unsigned smVersion = 0;
};

/// The target called `name`, or null. "host" gives hostTarget().
const TargetInfo *lookupTarget(llvm::StringRef name);

/// Every name that lookupTarget knows, "host" first.
llvm::ArrayRef<llvm::StringRef> targetNames();

/// The entry for the CPU of this machine, found at the first call.
const TargetInfo &hostTarget();

/// The entry for a module with `quant.target = target` and `quant.features =
/// features` (empty for none), or null: ("host", "avx2") is "host:avx2".
const TargetInfo *lookupTarget(llvm::StringRef target,
                               llvm::StringRef features);

/// True if code for `target` can run on the CPU of this machine; always false
/// for GPUs.
bool runsOnHost(const TargetInfo &target);

} // namespace dither::target

#endif // DITHER_TARGET_TARGETINFO_H
