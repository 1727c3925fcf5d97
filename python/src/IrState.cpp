//===- IrState.cpp - A module, its context, its diagnostics ---------------===//

#include "IrState.h"

#include "dither/Compiler.h"
#include "dither/Support/Spare.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Location.h"

using namespace mlir;

namespace dither::python {

/// What one context is used for at most: attributes and locations of all of it
/// stay, up to a megabyte each.
static constexpr unsigned kMostUses = 32;

static Spare<Context> spare;

Context::Context() : context(MLIRContext::Threading::DISABLED) {
  prepareContext(context);
}

static Context *takeContext() {
  std::unique_ptr<Context> found = spare.take();
  return found ? found.release() : new Context;
}

void IrState::Leave::operator()(Context *context) const {
  std::unique_ptr<Context> done(context);
  if (++done->uses < kMostUses)
    spare.leave(std::move(done));
}

IrState::IrState()
    : lease(takeContext()), context(lease->context),
      module(ModuleOp::create(UnknownLoc::get(&context))) {}

Type parseTypeText(const std::string &text, MLIRContext &context) {
  DiagnosticCapture capture(context);
  if (Type type = mlir::parseType(text, &context))
    return type;
  IRError error = capture.error("no type");
  throw IRError("cannot read the type '" + text + "': " + error.message);
}

Type IrState::parseType(const std::string &text) {
  if (Type known = lease->types.lookup(text))
    return known;
  return lease->types[text] = parseTypeText(text, context);
}

Attribute IrState::parseAttribute(const std::string &text) {
  if (Attribute known = lease->attributes.lookup(text))
    return known;
  DiagnosticCapture capture(context);
  Attribute parsed = mlir::parseAttribute(text, &context);
  if (!parsed) {
    IRError error = capture.error("no attribute");
    throw IRError("cannot read the attribute '" + text + "': " + error.message);
  }
  return lease->attributes[text] = parsed;
}

/// The innermost position of `loc`: where the user wrote the operation.
static FileLineColLoc findPosition(Location loc) {
  if (auto position = dyn_cast<FileLineColLoc>(loc))
    return position;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return findPosition(call.getCallee());
  if (auto name = dyn_cast<NameLoc>(loc))
    return findPosition(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (FileLineColLoc position = findPosition(part))
        return position;
  return {};
}

static void setPosition(IRError &error, Location loc) {
  FileLineColLoc position = findPosition(loc);
  if (!position)
    return;
  error.file = position.getFilename().str();
  error.line = position.getLine();
  error.col = position.getColumn();
  while (auto name = dyn_cast<NameLoc>(loc))
    loc = name.getChildLoc();
  for (auto call = dyn_cast<CallSiteLoc>(loc); call;
       call = dyn_cast<CallSiteLoc>(call.getCaller()))
    if (FileLineColLoc at = findPosition(call.getCaller()))
      error.callers.emplace_back(at.getFilename().str(), at.getLine(),
                                 at.getColumn());
}

DiagnosticCapture::DiagnosticCapture(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
          Remark remark{diagnostic.str(), "", 0, 0};
          if (FileLineColLoc at = findPosition(diagnostic.getLocation())) {
            remark.file = at.getFilename().str();
            remark.line = at.getLine();
            remark.col = at.getColumn();
          }
          reported.push_back(std::move(remark));
        }
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error || failed)
          return success();
        failed = true;
        first.message = diagnostic.str();
        for (Diagnostic &note : diagnostic.getNotes())
          if (std::string text = note.str();
              text.rfind("see current operation", 0) != 0)
            first.message += "\nnote: " + text;
        setPosition(first, diagnostic.getLocation());
        return success();
      }) {}

IRError DiagnosticCapture::error(const std::string &fallback) const {
  return failed ? first : IRError(fallback);
}

} // namespace dither::python
