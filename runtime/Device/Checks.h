//===- Checks.h - What every device checks before a launch -----*- C++ -*-===//

#ifndef DITHER_RUNTIME_DEVICE_CHECKS_H
#define DITHER_RUNTIME_DEVICE_CHECKS_H

#include "dither/Runtime/Device.h"

namespace dither::runtime {

/// Errors: not one slot for each parameter; a negative grid, or more programs
/// than an int64_t counts; a tile outside of its tensor, where the code is made
/// for none.
llvm::Error checkLaunch(llvm::StringRef kernel, size_t numParams,
                        const WholeTiles &tiles, llvm::ArrayRef<int64_t> slots,
                        const Grid &grid);

/// "4x1x1".
std::string gridText(const Grid &grid);

/// The blocks of a launch whose programs are `clusterSize` blocks each, which
/// are neighbours along x.
Grid blocksOf(const Grid &programs, uint32_t clusterSize);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_DEVICE_CHECKS_H
