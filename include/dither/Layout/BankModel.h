//===- BankModel.h - Shared memory wavefronts -------------------*- C++ -*-===//
//
// Shared memory has 32 banks of 4-byte words; a wavefront serves one word of
// every bank to any number of lanes. A warp's access of up to 4 bytes per lane
// is one group of 32 lanes, of 8 bytes two groups of 16, of 16 bytes four
// groups of 8. A group needs as many wavefronts as the bank with the most
// distinct words (CUDA C++ Programming Guide, "Shared Memory"; wider accesses
// by half and quarter warps).
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_BANKMODEL_H
#define DITHER_LAYOUT_BANKMODEL_H

#include <cstdint>
#include <vector>

namespace dither::layout {

/// Lanes served together when each accesses `accessBytes` (1, 2, 4, 8 or 16).
unsigned lanesPerGroup(unsigned accessBytes);

/// Wavefronts of one warp-wide access of accessBytes bytes for each lane, by
/// algebra: lane i accesses the byte address XOR of laneBases[b] over the bits
/// b of i (and of any constant). The bases are byte addresses that leave the
/// low log2(accessBytes) bits alone.
unsigned linearWavefronts(const std::vector<uint64_t> &laneBases,
                          unsigned accessBytes);

/// What linearWavefronts returns without any conflict: the number of groups.
unsigned idealWavefronts(unsigned laneBits, unsigned accessBytes);

} // namespace dither::layout

#endif // DITHER_LAYOUT_BANKMODEL_H
