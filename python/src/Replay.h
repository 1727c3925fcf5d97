//===- Replay.h - Calls of operators that are like earlier ones -*- C++ -*-===//
//
// An operator called twice alike launches the same kernels on other memory. The
// second such call is recorded (python/dither/replay.py), and what follows is
// one step in CPython's own API: recognize, allocate, launch, wrap. Whatever
// could make a call differ is in its key, is compared when it is recognized, or
// leads back to Python.
//
// A call that differs from earlier ones in extents alone is recorded for all
// extents of which the same holds that Python asked (python/dither/extents.py).
//
//   ReplayCall.cpp     arguments       -> key and tensors
//   ReplayOutputs.cpp  arrays of torch and NumPy for what is returned
//   ReplayTerms.cpp    extents         -> numbers of a recorded call
//   ReplayPlan.cpp     Python's record -> Recorded, and running it
//   Replay.cpp         the type behind `frameworks.traceable`
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PYTHON_REPLAY_H
#define DITHER_PYTHON_REPLAY_H

#include "Launch.h"

#include "llvm/ADT/SmallString.h"

#include <array>

namespace dither::python::replay {

using namespace launch;

/// Whose arrays a call has.
enum class Library : uint8_t { None, NumPy, Torch };

/// A call taken apart.
struct Call {
  Key key;
  Library library = Library::None;
  int32_t device = onCpu;
  llvm::SmallVector<TensorRef, 6> tensors;
  llvm::SmallVector<Ref, 6> objects;   ///< the same, as they were given
  llvm::SmallVector<Ref, 6> constants; ///< what the key knows by its address
  const ExchangeApi *api = nullptr;    ///< of the tensors
  /// What has numbers besides, in which calls of a family may differ, and
  /// these: a quantized tensor and its shape, or the name of an integer, or of
  /// a list of them, and what it is.
  llvm::SmallVector<Ref, 2> holders;
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>, 2> numbers;
  /// Parts of the key that calls of a family may differ in: from, to.
  llvm::SmallVector<std::pair<uint32_t, uint32_t>, 12> varying;

  /// The key without these.
  llvm::SmallString<512> familyKey() const;
  /// Of each tensor its shape, then of each holder its numbers.
  size_t rows() const { return tensors.size() + holders.size(); }
  llvm::ArrayRef<int64_t> row(size_t i) const {
    if (i >= tensors.size())
      return numbers[i - tensors.size()];
    return {tensors[i].shape, tensors[i].rank};
  }
  /// Whether a row is that of a name.
  bool isNamed(size_t i) const {
    return i >= tensors.size() &&
           PyUnicode_Check(holders[i - tensors.size()].get());
  }
};

/// Reads the arguments of a call: `args` a tuple, `kwargs` a dictionary.
/// `kindOf` is `replay.kind_of`. False, with no error set, where the call is
/// one for Python: an argument of another kind, tensors of several libraries or
/// devices, one that requires a gradient, is empty or not aligned.
bool readCall(PyObject *args, PyObject *kwargs, PyObject *kindOf, Call &call);

/// A number that is a function of extents.
struct Term {
  /// As python/dither/extents.py numbers them.
  enum What : uint8_t {
    Constant,
    Extent, ///< of row `first` of a call, the number `second`
    Add,    ///< and the others: of two terms
    Subtract,
    Multiply,
    Divide,
    Remainder
  } what;
  int64_t first, second;
};

/// Reads a sequence of places of something, each below `end`; false with a
/// Python error.
bool readPlaces(PyObject *sequence, size_t end,
                llvm::SmallVectorImpl<uint32_t> &out);

/// Says so of one; false.
bool outOfRange();

/// A tuple of integers; null with a Python error.
Ref tupleOf(llvm::ArrayRef<int64_t> numbers);

/// What has to hold of two terms.
struct Condition {
  enum { Equal, Other, Less, AtMost } what;
  uint32_t first, second;
};

/// The numbers of a recorded call, which others of it refer to by their places,
/// and which calls it is for.
class Terms {
public:
  using Values = llvm::SmallVector<int64_t, 192>;

  /// From (terms, conditions, rows) of a call; rows are none where the key of a
  /// call has their numbers. False with a Python error.
  bool read(PyObject *description, const Call &call);
  /// The values of a call; false for one that it is not for.
  bool evaluate(const Call &call, Values &values) const;
  size_t size() const { return constants.size(); }
  /// Whether they are for calls whose extents differ.
  bool isOfFamily() const { return !rows.empty(); }

private:
  /// Terms that the numbers of a row of the call are, and the strides of a
  /// tensor.
  struct Row {
    llvm::SmallVector<uint32_t, 4> numbers, strides;
  };

  Values constants; ///< by place; 0 where a term is none
  std::vector<std::pair<uint32_t, Term>> computed; ///< the others, with places
  std::vector<Condition> conditions;
  std::vector<Row> rows;
};

/// An array that a call returns.
struct Output {
  /// Called with a shape, makes one where it is not made here.
  Ref make;
  llvm::SmallVector<uint32_t, 4> shape; ///< places of terms
  /// Of torch: as its C interface has them.
  int32_t dtype = -1, deviceType = 0, deviceIndex = 0;
  /// Of NumPy: its data type, or null, and its bytes.
  Ref descriptor;
  size_t bytes = 0;

  /// From (make, shape, example or None, data type of NumPy or None, bytes of
  /// an element), with so many terms; false with a Python error.
  bool read(PyObject *description, size_t terms);
  /// A new one, uninitialised, and its address; null with a Python error.
  PyObject *allocate(llvm::ArrayRef<int64_t> values, uint64_t &address) const;
};

/// Whether torch has nothing more to do with a call on plain tensors than to
/// run it: no modes, no transformations, no tangents.
bool isTorchPlain();

/// The functions of NumPy that its API capsule has; false with a Python error.
bool useNumpy(PyObject *capsule);

/// What calls of one key do, or those of a family of which the same holds.
class Recorded {
public:
  /// Of Python's description; null with a Python error.
  static std::shared_ptr<Recorded> read(PyObject *description,
                                        const Call &call);

  /// Whether it is what a call does.
  bool isOf(const Call &call) const;

  /// Whether what the code depends on is what it was.
  bool holds() const;
  /// The numbers of a call; false where the call is not one of these.
  bool evaluate(const Call &call, Terms::Values &values) const;
  /// Whether a call of these numbers may be run so: numbers on the host are
  /// what they may be; what it writes can be written, and has no byte in common
  /// with anything else.
  bool accepts(const Call &call) const;
  /// Runs it. What the call returns, or null with a Python error.
  PyObject *run(const Call &call, llvm::ArrayRef<int64_t> values) const;

  /// Of the garbage collector.
  int traverse(visitproc visit, void *arg) const;

private:
  struct Step {
    runtime::Kernel *kernel;
    std::array<uint32_t, 3> grid;          ///< places of terms
    llvm::SmallVector<uint32_t, 16> slots; ///< likewise
    /// Slots that are offsets into a buffer: an input, an output after these,
    /// or the workspace at the end.
    llvm::SmallVector<std::pair<uint32_t, uint32_t>, 8> pointers;
    PyObject *launcher; ///< of `keep`
    uint64_t cleared;   ///< its `timesCleared`

    runtime::Grid gridOf(llvm::ArrayRef<int64_t> values) const {
      return {values[grid[0]], values[grid[1]], values[grid[2]]};
    }
  };

  /// What is returned, or a part of it.
  struct Node {
    enum Kind { Input, Output, Constant, Tuple, List, Object, Number } kind;
    unsigned index = 0; ///< of an input, an output or a term
    Ref value;          ///< a constant, or the type of what has parts
    std::vector<Ref> names;
    std::vector<Node> parts;

    bool read(PyObject *description, size_t inputs, size_t outputs,
              size_t terms);
    PyObject *make(const Call &call, llvm::ArrayRef<Ref> outputs,
                   llvm::ArrayRef<int64_t> values) const;
    int traverse(visitproc visit, void *arg) const;
  };

  bool readStep(PyObject *description, size_t buffers);
  /// Whether what would be launched for these values is what code is for.
  bool isFor(llvm::ArrayRef<int64_t> values) const;

  size_t inputs = 0;
  Terms terms;
  std::vector<Step> steps;
  std::vector<Output> outputs;
  uint32_t workspace = 0; ///< a term
  /// Called with a size, makes a workspace that is no host memory; or null.
  Ref makeWorkspace;
  llvm::SmallVector<uint32_t, 4> updated; ///< inputs that are written
  /// Inputs of one float32 on the host, and the least bits that each may have:
  /// all have to be finite and not negative.
  llvm::SmallVector<std::pair<unsigned, uint32_t>, 2> checks;
  Guards guards;
  Node result;
  /// Kernels, launchers, and what the key knows by address.
  Ref keep;
};

} // namespace dither::python::replay

namespace dither::python::launch {
/// Adds the type to the module; false with a Python error.
bool addReplay(PyObject *module);
} // namespace dither::python::launch

#endif // DITHER_PYTHON_REPLAY_H
