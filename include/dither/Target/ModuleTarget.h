//===- ModuleTarget.h - The target of a module ------------------*- C++ -*-===//

#ifndef DITHER_TARGET_MODULETARGET_H
#define DITHER_TARGET_MODULETARGET_H

#include "dither/Target/TargetInfo.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace dither::target {

/// What the attributes `quant.target` (default "host") and `quant.features` of
/// `module` name; null, with an error at the module, if nothing.
inline const TargetInfo *moduleTarget(mlir::Operation *module) {
  auto text = [&](llvm::StringRef name) {
    auto attr = module->getAttrOfType<mlir::StringAttr>(name);
    return attr ? attr.getValue() : llvm::StringRef();
  };
  llvm::StringRef name = text("quant.target"),
                  features = text("quant.features");
  if (name.empty())
    name = "host";
  const TargetInfo *target = lookupTarget(name, features);
  if (!target) {
    auto diag = module->emitError("found target \"") << name << "\"";
    if (!features.empty())
      diag << " with features \"" << features << "\"";
    diag << ", expected one of ";
    llvm::interleaveComma(targetNames(), diag);
  }
  return target;
}

} // namespace dither::target

#endif // DITHER_TARGET_MODULETARGET_H
