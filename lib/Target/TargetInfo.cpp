//===- TargetInfo.cpp - The table of targets ------------------------------===//
//
// GPU: the PTX ISA's "Target ISA Notes" of cvt and ld, the CUDA programming
// guide's table of compute capabilities, and the PTX version from which LLVM 22
// selects the instructions of that chip.
//
//===----------------------------------------------------------------------===//

#include "dither/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/TargetParser/Host.h"

#include <array>

using namespace llvm;

namespace dither::target {

namespace {

constexpr unsigned kGpuThreads = 1024;
constexpr unsigned kGpuRegs = 255;

constexpr TargetInfo gpu(StringLiteral name, unsigned sm, StringLiteral ptx) {
  TargetInfo t;
  t.name = name;
  t.isGpu = true;
  t.llvmChip = name;
  t.llvmFeatures = ptx;
  t.smVersion = sm;
  t.fma = t.fmaTowardZero = t.cvtF16 = t.roundToInteger = t.cvtBF16x2 = true;
  t.maxXorsign = sm >= 86;
  t.mixedPrecision = sm >= 100;
  t.fastMemory = sm == 80 || sm == 90 || sm / 10 == 10;
  // 8.0 has 163 KiB, but its code runs on 8.6 as well.
  t.sharedBytes = (sm == 90 || sm / 10 == 10 ? 227 : 99) * 1024;
  t.clusterBlocks = sm >= 90 ? 8 : 1;
  t.maxThreads = kGpuThreads;
  t.maxRegsPerThread = kGpuRegs;
  return t;
}

constexpr TargetInfo ada(StringLiteral name, unsigned sm, StringLiteral ptx) {
  TargetInfo t = gpu(name, sm, ptx);
  t.cvtFP8x2 = true;
  return t;
}

/// The conversions to 4 and 6 bits and to shared exponents need the "a" in the
/// name.
constexpr TargetInfo blackwell(StringLiteral name, unsigned sm) {
  TargetInfo t = ada(name, sm, "+ptx88");
  t.cvtFP4x2 = t.cvtFP6x2 = t.cvtUE8M0x2 = true;
  t.maxVectorBytes = 32;
  return t;
}

constexpr TargetInfo datacenter(TargetInfo t) {
  t.f32x2 = true;
  return t;
}

/// With what PTX 9.1 has for all of `blackwell`; LLVM 22 knows PTX 9.0.
constexpr TargetInfo ptx91(StringLiteral name, TargetInfo t) {
  t.name = name;
  t.llvmFeatures = "+ptx90";
  t.ptxVersion = 91;
  t.cvtFromBF16x2 = true;
  return t;
}

constexpr StringLiteral kX86 = "x86_64-unknown-linux-gnu";
constexpr StringLiteral kAArch64 = "aarch64-unknown-linux-gnu";

/// `complete`: with multiply-adds, f16 and roundings to integers.
constexpr TargetInfo cpu(StringLiteral name, StringLiteral triple,
                         StringLiteral chip, unsigned vectorBytes,
                         unsigned registers, bool complete) {
  TargetInfo t;
  t.name = name;
  t.llvmTriple = triple;
  t.llvmChip = chip;
  t.maxVectorBytes = vectorBytes;
  t.maxRegsPerThread = registers;
  t.fma = t.cvtF16 = t.roundToInteger = complete;
  return t;
}

/// x86 with AVX2, FMA and F16C at least.
constexpr TargetInfo avx(StringLiteral name, StringLiteral chip,
                         unsigned vectorBytes, unsigned registers) {
  TargetInfo t = cpu(name, kX86, chip, vectorBytes, registers, true);
  t.streamingStores = true;
  t.avx2Intrinsics = vectorBytes == 32;
  t.avx512Intrinsics = t.fmaTowardZero = vectorBytes == 64;
  return t;
}

/// AVX-512 with VBMI, VBMI2 and GFNI, which `features` names with what else
/// there is.
constexpr TargetInfo vbmi(StringLiteral name, StringLiteral features) {
  TargetInfo t = avx(name, "x86-64-v4", 64, 32);
  t.llvmFeatures = features;
  t.bytePermutations = true;
  return t;
}

constexpr TargetInfo half(TargetInfo t) {
  t.avx512Half = true;
  return t;
}

/// ARMv8.0, whose conversions between f16 and f32 are all of f16 that code has.
constexpr TargetInfo neon(StringLiteral name) {
  TargetInfo t = cpu(name, kAArch64, "generic", 16, 32, true);
  t.signalingMaxnum = true;
  return t;
}

constexpr TargetInfo kTargets[] = {
    // SSE2 alone has neither fma nor f16, nor roundings to integers.
    cpu("host:base", kX86, "x86-64", 16, 16, false),
    avx("host:avx2", "x86-64-v3", 32, 16),
    avx("host:avx512", "x86-64-v4", 64, 32),
    vbmi("host:avx512vbmi", "+avx512vbmi,+avx512vbmi2,+gfni"),
    half(vbmi("host:avx512fp16", "+avx512vbmi,+avx512vbmi2,+gfni,+avx512fp16")),
    neon("host:neon"),
    gpu("sm_80", 80, "+ptx78"),
    gpu("sm_86", 86, "+ptx78"),
    ada("sm_89", 89, "+ptx84"),
    ada("sm_90a", 90, "+ptx84"),
    datacenter(blackwell("sm_100a", 100)),
    datacenter(blackwell("sm_103a", 103)),
    blackwell("sm_120a", 120),
    blackwell("sm_121a", 121),
    ptx91("sm_100a:ptx91", datacenter(blackwell("sm_100a", 100))),
    ptx91("sm_103a:ptx91", datacenter(blackwell("sm_103a", 103))),
    ptx91("sm_120a:ptx91", blackwell("sm_120a", 120)),
    ptx91("sm_121a:ptx91", blackwell("sm_121a", 121)),
};
constexpr size_t kNumTargets = std::size(kTargets);

const TargetInfo *find(StringRef name) {
  const TargetInfo *t = llvm::find_if(
      kTargets, [&](const TargetInfo &t) { return t.name == name; });
  return t == std::end(kTargets) ? nullptr : t;
}

/// What x86-64-v3 and v4 ask for beyond x86-64-v2.
constexpr StringLiteral kAvx2[] = {"avx2", "fma",   "f16c", "bmi",
                                   "bmi2", "lzcnt", "movbe"};
constexpr StringLiteral kAvx512[] = {"avx512f", "avx512bw", "avx512cd",
                                     "avx512dq", "avx512vl"};
/// Of what Ice Lake and Zen 4 have beyond x86-64-v4.
constexpr StringLiteral kVbmi[] = {"avx512vbmi", "avx512vbmi2", "gfni"};
/// What Sapphire Rapids has beyond that.
constexpr StringLiteral kFp16 = "avx512fp16";

const TargetInfo &detect() {
#if defined(__x86_64__)
  StringMap<bool> features = sys::getHostCPUFeatures();
  auto has = [&](StringRef name) { return features.lookup(name); };
  if (!all_of(kAvx2, has))
    return *find("host:base");
  if (!all_of(kAvx512, has))
    return *find("host:avx2");
  if (!all_of(kVbmi, has))
    return *find("host:avx512");
  return *find(has(kFp16) ? "host:avx512fp16" : "host:avx512vbmi");
#elif defined(__aarch64__)
  return *find("host:neon");
#else
#error "dither has no code for this machine, expected x86-64 or aarch64"
#endif
}

} // namespace

const TargetInfo &hostTarget() {
  static const TargetInfo &host = detect();
  return host;
}

const TargetInfo *lookupTarget(StringRef name) {
  return name == "host" ? &hostTarget() : find(name);
}

const TargetInfo *lookupTarget(StringRef target, StringRef features) {
  if (features.empty())
    return lookupTarget(target);
  return find((Twine(target) + ":" + features).str());
}

ArrayRef<StringRef> targetNames() {
  static const auto names = [] {
    std::array<StringRef, 1 + kNumTargets> names = {"host"};
    for (size_t i = 0; i < kNumTargets; ++i)
      names[1 + i] = kTargets[i].name;
    return names;
  }();
  return names;
}

bool runsOnHost(const TargetInfo &target) {
  // The table has the CPUs of an architecture in ascending order, each a
  // superset of those before.
  const TargetInfo &host = hostTarget();
  return target.llvmTriple == host.llvmTriple && &target <= &host;
}

} // namespace dither::target
