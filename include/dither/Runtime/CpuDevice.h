//===- CpuDevice.h - Runs object files on this machine ---------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CPUDEVICE_H
#define DITHER_RUNTIME_CPUDEVICE_H

#include "dither/Runtime/Device.h"

namespace dither::runtime {

/// The widest vector instructions that code for the host may use. Levels of
/// x86-64 are as in its psABI, so that they say the same to every compiler:
/// avx512 is x86-64-v4 (F, BW, CD, DQ, VL), avx2 is x86-64-v3 (AVX2, FMA, F16C,
/// BMI, ..). avx512vbmi adds VBMI, VBMI2 and GFNI, which Ice Lake, Zen 4 and
/// all after them have, avx512fp16 arithmetic on f16 as well, as Sapphire
/// Rapids has. Each runs the code of those before it. Neon is aarch64, alone.
enum class HostLevel : uint8_t {
  Base,
  Avx2,
  Avx512,
  Avx512Vbmi,
  Avx512Fp16,
  Neon
};

/// What every CPU of the architecture that this was compiled for has.
#if defined(__aarch64__)
inline constexpr HostLevel kLeastLevel = HostLevel::Neon;
#else
inline constexpr HostLevel kLeastLevel = HostLevel::Base;
#endif

/// What this machine has, whatever DITHER_HOST_FEATURES says.
HostLevel detectHostLevel();

/// "host:base", "host:avx2", "host:avx512", "host:avx512vbmi",
/// "host:avx512fp16", "host:neon".
llvm::StringRef hostTarget(HostLevel level);

/// A device that runs code of `level` and below. Its kernels:
///   - are linked by JITLink, each in a JITDylib of its own that goes with the
///     Kernel; nothing of this process is visible to them;
///   - run on the launching thread where that is quicker than waking others,
///     else on numThreads() threads, in ranges of program ids;
///   - take the ABI of docs/architecture.md, 3.
/// Loading, launching and forking are safe from any thread.
std::unique_ptr<Device> makeCpuDevice(HostLevel level);

/// As above, of the level that DITHER_HOST_FEATURES says. Errors: a malformed
/// variable; a level that this machine lacks.
llvm::Expected<std::unique_ptr<Device>> makeCpuDevice();

} // namespace dither::runtime

#endif // DITHER_RUNTIME_CPUDEVICE_H
