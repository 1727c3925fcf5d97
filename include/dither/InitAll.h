//===- InitAll.h - The dialects and passes of dither ------------*- C++ -*-===//
//
// Explicit lists. Never use upstream's registerAllDialects: it brings another
// dialect named `quant`, and tosa, which depends on it.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_INITALL_H
#define DITHER_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace dither {

/// Every dialect that the compiler reads or produces, with the interfaces that
/// its passes need.
void registerAllDialects(mlir::DialectRegistry &registry);

/// dither's passes and pipelines, and the upstream ones they are built from.
void registerAllPasses();

} // namespace dither

#endif // DITHER_INITALL_H
