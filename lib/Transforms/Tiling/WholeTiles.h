//===- WholeTiles.h - Launches without a tile past a tensor ----*- C++ -*-===//
//
// Where programs alone number the tiles of a kernel, whether all of them are
// inside of their tensors is known of a launch: each dimension of the grid has
// no more programs than the tensor has tiles. A kernel says so
// (`quant.whole_if`), for those that launch it, and is told of the launch that
// it is compiled for (`quant.launch`).
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_TRANSFORMS_TILING_WHOLETILES_H
#define DITHER_TRANSFORMS_TILING_WHOLETILES_H

#include "dither/Runtime/KernelImage.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace dither::transforms {

/// The largest number that `index` may be, which is not below 0, where loops
/// alone tell; nothing for others.
std::optional<int64_t> lastOf(mlir::Value index);

/// What keeps the `size` elements from `index` on, of dimension `dim` of
/// `memref`, inside in every program; nothing where it is no tensor of the
/// kernel's own, or is indexed in another way.
std::optional<runtime::TileBound> boundOf(mlir::Value index, mlir::Value memref,
                                          int64_t dim, int64_t size);
/// Whether `v` is an argument of a kernel.
bool isKernelArgument(mlir::Value v);

/// The extent of dimension `dim` of a tensor; or the number `of`, an argument
/// of 64 bits, which stands for one (`dim` is kNumber).
struct Extent {
  static constexpr int64_t kNumber = -1;
  mlir::Value of;
  int64_t dim;

  bool operator==(const Extent &other) const {
    return of == other.of && dim == other.dim;
  }
};
/// What makes an extent a multiple of `size`, and no less than a part of
/// another one, which is not static. As above nothing for what is no tensor of
/// the kernel's own.
std::optional<runtime::TileBound> multipleBound(Extent extent, int64_t size);
std::optional<runtime::TileBound> reachBound(Extent extent, Extent other,
                                             int64_t part);
/// What makes a vector of the kernel's, with a length at run time, one of
/// `length`.
std::optional<runtime::TileBound> lengthBound(mlir::Value memref,
                                              int64_t length);

/// Whether a launch, `quant.launch` of a kernel or null, keeps all of `bounds`.
bool holds(mlir::Attribute launch, llvm::ArrayRef<runtime::TileBound> bounds);

/// Says what all tiles are inside by, and whether the code takes it for
/// granted.
void setWholeTiles(mlir::func::FuncOp kernel,
                   llvm::ArrayRef<runtime::TileBound> bounds, bool required);

} // namespace dither::transforms

#endif // DITHER_TRANSFORMS_TILING_WHOLETILES_H
