//===- IrBuilder.h - Builds operations by name ------------------*- C++ -*-===//
//
// A builder that takes operation names, attribute text and numbers, so that a
// new operation needs no code here. Whatever is passed in, it raises IRError
// and never touches a null or foreign object.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PYTHON_IRBUILDER_H
#define DITHER_PYTHON_IRBUILDER_H

#include "IrState.h"

#include "dither/Dialect/Quant/Vanishing.h"
#include "mlir/IR/Builders.h"

#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace dither::python {

/// A value of a module; keeps the module alive.
class IrValue {
public:
  IrValue(std::shared_ptr<IrState> state, mlir::Value value)
      : state(std::move(state)), value(value),
        generation(this->state->generation) {}

  /// Raises where the module has been rewritten since.
  mlir::Value get() const;
  const std::shared_ptr<IrState> &owner() const { return state; }

  std::string type() const;
  /// Extents of a tensor or memref (-1 where dynamic); raises for scalars.
  std::vector<int64_t> shape() const;
  bool isShaped() const;
  /// Text of the element type, or of the type of a scalar.
  std::string dtype() const;
  /// Prints as `%name` from now on, unless it has a name.
  void setName(const std::string &name);

private:
  std::shared_ptr<IrState> state;
  mlir::Value value;
  unsigned generation;
};

/// True is a unit attribute and False none; integers are i64, floats f32; text
/// is parsed as an MLIR attribute.
using AttrValue = std::variant<bool, int64_t, double, std::string>;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

struct Position {
  std::string file;
  int line, col;
};
/// Where an operation comes from, innermost first: then its callers.
using Positions = std::vector<Position>;

struct Argument {
  std::string name, type;
  AttrList attrs;
};

class IrBuilder {
public:
  explicit IrBuilder(std::shared_ptr<IrState> state);

  /// Creates an operation without regions at the insertion point and checks it
  /// with its verifier. Result types that are left out are inferred: quant,
  /// arith and math can, and an error says which operation cannot.
  std::vector<IrValue>
  create(const std::string &name, const std::vector<IrValue> &operands,
         const AttrList &attrs, const Positions &positions,
         const std::optional<std::vector<std::string>> &resultTypes);

  /// arith.constant: `type` is an integer, index or float type, or a static
  /// tensor of one (a splat). Floats round to nearest even.
  IrValue constant(const std::string &type, const AttrValue &value,
                   const Positions &positions);

  /// Opens a func.func without results and returns its arguments.
  std::vector<IrValue> beginFunction(const std::string &name,
                                     const std::vector<Argument> &arguments,
                                     const AttrList &attrs,
                                     const Positions &positions);
  /// Another argument of the open function, after those that it has.
  IrValue addArgument(const Argument &argument);
  void endFunction();

  /// Opens an scf.for over index bounds: (induction variable, carried
  /// values...).
  std::vector<IrValue> beginFor(const IrValue &lower, const IrValue &upper,
                                const IrValue &step,
                                const std::vector<IrValue> &inits,
                                const Positions &positions);
  std::vector<IrValue> endFor(const std::vector<IrValue> &yields);

  /// Opens an scf.if at its then branch; `selectBranch` moves to the end of the
  /// branch (0 then, 1 else), any number of times.
  void beginIf(const IrValue &condition, const Positions &positions);
  void selectBranch(int branch);
  /// Puts what both branches compute in place of the open scf.if, so that their
  /// values can be used after it; false, and nothing changes, where a branch
  /// writes memory or holds another loop or branch.
  bool inlineIf();
  std::vector<IrValue> endIf(const std::vector<IrValue> &thenValues,
                             const std::vector<IrValue> &elseValues);

  /// Whether elements of `value` past the edge of dimension `dim` are zeros or
  /// NaN where those of `zeros`, each with a dimension, are +0.
  bool vanishes(const IrValue &value, unsigned dim,
                const std::vector<std::pair<IrValue, unsigned>> &zeros);
  /// Whether elements of `value` past the edge of dimension `dim` are zeros of
  /// either sign, and none is NaN, where those of `zeros` are +0.
  bool isZeroPast(const IrValue &value, unsigned dim,
                  const std::vector<std::pair<IrValue, unsigned>> &zeros);
  /// quant::countsUp.
  bool countsUp(const IrValue &start, const IrValue &stop, const IrValue &step);

private:
  std::vector<quant::Edge>
  edges(const std::vector<std::pair<IrValue, unsigned>> &zeros);
  enum class Scope { Function, For, If };
  struct OpenScope {
    Scope kind;
    mlir::Operation *op;
  };

  mlir::MLIRContext *context() const { return &state->context; }
  void requireCurrent() const;
  mlir::Operation *top(Scope kind, const char *what);
  mlir::Location location(const Positions &positions);
  mlir::Value use(const IrValue &value, const std::string &what);
  llvm::SmallVector<mlir::Value> use(const std::vector<IrValue> &values,
                                     const std::string &what);
  /// Type, location and attributes of an argument of a function at `loc`.
  std::tuple<mlir::Type, mlir::Location, mlir::DictionaryAttr>
  describe(const Argument &argument, mlir::Location loc);
  mlir::Type parse(const std::string &type);
  mlir::Attribute parse(const AttrValue &value, const std::string &name);
  std::vector<IrValue> wrap(mlir::ValueRange values);

  std::shared_ptr<IrState> state;
  unsigned generation;
  mlir::OpBuilder builder;
  std::vector<OpenScope> scopes;
};

} // namespace dither::python

#endif // DITHER_PYTHON_IRBUILDER_H
