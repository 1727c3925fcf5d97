//===- ModuleTarget.h - The target of a module ------------------*- C++ -*-===//

#ifndef DITHER_TARGET_MODULETARGET_H
#define DITHER_TARGET_MODULETARGET_H

#include "dither/Target/TargetInfo.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"

namespace dither::target {

/// The attributes that name the target of a module.
struct TargetAttrs {
  /// `quant.target`, "host" where there is none.
  llvm::StringRef name = "host";
  /// `quant.features`; empty where there are none.
  llvm::StringRef features;

  /// Those of the module that `op` is, or is in; the defaults outside of one.
  explicit TargetAttrs(mlir::Operation *op) {
    while (op && !mlir::isa<mlir::ModuleOp>(op))
      op = op->getParentOp();
    auto text = [&](llvm::StringRef attr) {
      auto value =
          op ? op->getAttrOfType<mlir::StringAttr>(attr) : mlir::StringAttr();
      return value ? value.getValue() : llvm::StringRef();
    };
    if (llvm::StringRef said = text("quant.target"); !said.empty())
      name = said;
    features = text("quant.features");
  }
};

/// What the target of the module of `op` can do; null, with an error at `op`,
/// if its attributes name none.
inline const TargetInfo *moduleTarget(mlir::Operation *op) {
  TargetAttrs attrs(op);
  const TargetInfo *target = lookupTarget(attrs.name, attrs.features);
  if (!target) {
    auto diag = op->emitError("found target \"") << attrs.name << "\"";
    if (!attrs.features.empty())
      diag << " with features \"" << attrs.features << "\"";
    diag << ", expected one of ";
    llvm::interleaveComma(targetNames(), diag);
  }
  return target;
}

/// Whether the module of `op` is for a CPU, as it is where it names no target.
inline bool isForCpu(mlir::Operation *op) {
  const TargetInfo *target = lookupTarget(TargetAttrs(op).name);
  return target && !target->isGpu;
}

/// What the module of `op` says that its target can do. Null where it names
/// none, or "host" without features, which is another CPU on each machine:
/// choices that are the same on every machine ask this.
inline const TargetInfo *saidTarget(mlir::Operation *op) {
  TargetAttrs attrs(op);
  const TargetInfo *target = lookupTarget(attrs.name, attrs.features);
  bool said = target && (target->isGpu || !attrs.features.empty());
  return said ? target : nullptr;
}

} // namespace dither::target

#endif // DITHER_TARGET_MODULETARGET_H
