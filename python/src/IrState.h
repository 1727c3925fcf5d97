//===- IrState.h - A module, its context, its diagnostics -------*- C++ -*-===//
//
// What the bindings share: the state behind a Python Module, and the errors
// that MLIR reports while one is built or compiled.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PYTHON_IRSTATE_H
#define DITHER_PYTHON_IRSTATE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace dither::python {

/// Becomes the Python exception `_dither.IRError(message, file, line, col)`.
/// `line` and `col` count from 1; 0 and an empty `file` mean unknown.
struct IRError : std::exception {
  explicit IRError(std::string message, std::string file = "", int line = 0,
                   int col = 0)
      : message(std::move(message)), file(std::move(file)), line(line),
        col(col) {}
  const char *what() const noexcept override { return message.c_str(); }

  std::string message, file;
  int line, col;
  /// The calls that led there (positions of CallSiteLocs), innermost first.
  std::vector<std::tuple<std::string, int, int>> callers;
};

/// A context without threads, prepared for the compiler. Making one takes as
/// long as a tenth of a small kernel's compilation, so that the next module
/// has it again, a few times: a context keeps all that it has ever known.
struct Context {
  Context();

  mlir::MLIRContext context;
  unsigned uses = 0;
  /// Text that was parsed before: a kernel has few types, and many values.
  llvm::StringMap<mlir::Type> types;
  llvm::StringMap<mlir::Attribute> attributes;
};

/// One module in a context that nobody else uses meanwhile. The thread that
/// lowers a kernel has it to itself (`Lowered` of compiled.py).
struct IrState {
  IrState();

  /// Whoever rewrites the module (the compiler does) calls this first, and
  /// Values and Builders of before raise instead of touching freed IR.
  void invalidateHandles() { ++generation; }

  /// A type or an attribute as text has it. Raises IRError.
  mlir::Type parseType(const std::string &text);
  mlir::Attribute parseAttribute(const std::string &text);

private:
  struct Leave {
    void operator()(Context *context) const;
  };
  // First: the module goes before it is left to others.
  std::unique_ptr<Context, Leave> lease;

public:
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  unsigned generation = 0;
};

/// Collects the errors of a context while it lives, instead of printing them.
class DiagnosticCapture {
public:
  explicit DiagnosticCapture(mlir::MLIRContext &context);

  bool hasError() const { return failed; }
  struct Remark {
    std::string message, file;
    int line, col;
  };
  /// What passes reported about their choices, in order.
  const std::vector<Remark> &remarks() const { return reported; }
  /// The first error with its notes; `fallback` where MLIR gave no message.
  IRError error(const std::string &fallback) const;

private:
  IRError first{""};
  bool failed = false;
  std::vector<Remark> reported;
  mlir::ScopedDiagnosticHandler handler;
};

/// Parses a type; raises IRError.
mlir::Type parseTypeText(const std::string &text, mlir::MLIRContext &context);

} // namespace dither::python

#endif // DITHER_PYTHON_IRSTATE_H
