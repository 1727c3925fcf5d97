//===- Replay.h - Calls of operators that are like earlier ones -*- C++ -*-===//
//
// An operator called twice alike launches the same kernels on other memory. The
// second such call is recorded (python/dither/replay.py), and what follows is
// one step in CPython's own API: recognize, allocate, launch, wrap. Whatever
// could make a call differ is in its key, is compared when it is recognized, or
// leads back to Python.
//
//   ReplayCall.cpp     arguments       -> key and tensors
//   ReplayOutputs.cpp  arrays of torch and NumPy for what is returned
//   ReplayPlan.cpp     Python's record -> Recorded, and running it
//   Replay.cpp         the type behind `frameworks.traceable`
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PYTHON_REPLAY_H
#define DITHER_PYTHON_REPLAY_H

#include "Launch.h"

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
};

/// Reads the arguments of a call: `args` a tuple, `kwargs` a dictionary.
/// `kindOf` is `replay.kind_of`. False, with no error set, where the call is
/// one for Python: an argument of another kind, tensors of several libraries or
/// devices, one that requires a gradient, is empty or not aligned.
bool readCall(PyObject *args, PyObject *kwargs, PyObject *kindOf, Call &call);

/// An array that a call returns.
struct Output {
  /// Called with nothing, makes one where it is not made here.
  Ref make;
  llvm::SmallVector<int64_t, 4> shape, strides;
  /// Of torch: as its C interface has them.
  int32_t dtype = -1, deviceType = 0, deviceIndex = 0;
  /// Of NumPy: its data type, or null, and bytes.
  Ref descriptor;
  size_t bytes = 0;

  /// From (make, shape, example or None, data type of NumPy or None, bytes);
  /// false with a Python error.
  bool read(PyObject *description);
  /// A new one, uninitialised, and its address; null with a Python error.
  PyObject *allocate(uint64_t &address) const;
};

/// Whether torch has nothing more to do with a call on plain tensors than to
/// run it: no modes, no transformations, no tangents.
bool isTorchPlain();

/// The functions of NumPy that its API capsule has; false with a Python error.
bool useNumpy(PyObject *capsule);

/// What a call of one key does.
class Recorded {
public:
  /// Of Python's description; null with a Python error.
  static std::shared_ptr<Recorded> read(PyObject *description,
                                        const Call &call);

  /// Whether what the code depends on is what it was.
  bool holds() const;
  /// Whether a call may be run so: numbers on the host are what they may be;
  /// what it writes can be written, and has no byte in common with anything
  /// else.
  bool accepts(const Call &call) const;
  /// Runs it. What the call returns, or null with a Python error.
  PyObject *run(const Call &call) const;

  /// Of the garbage collector.
  int traverse(visitproc visit, void *arg) const;

private:
  struct Step {
    runtime::Kernel *kernel;
    runtime::Grid grid;
    llvm::SmallVector<int64_t, 16> slots;
    /// Slots that are offsets into a buffer: an input, an output after these,
    /// or the workspace at the end.
    llvm::SmallVector<std::pair<uint32_t, uint32_t>, 8> pointers;
    PyObject *launcher; ///< of `keep`
    uint64_t cleared;   ///< its `timesCleared`
  };

  /// What is returned, or a part of it.
  struct Node {
    enum Kind { Input, Output, Constant, Tuple, List, Object } kind;
    unsigned index = 0;
    Ref value; ///< a constant, or the type of what has parts
    std::vector<Ref> names;
    std::vector<Node> parts;

    bool read(PyObject *description, size_t inputs, size_t outputs);
    PyObject *make(const Call &call, llvm::ArrayRef<Ref> outputs) const;
    int traverse(visitproc visit, void *arg) const;
  };

  bool readStep(PyObject *description, size_t buffers);

  size_t inputs = 0;
  std::vector<Step> steps;
  std::vector<Output> outputs;
  size_t workspace = 0;
  /// Makes a workspace that is no host memory; or null.
  Ref makeWorkspace;
  llvm::SmallVector<unsigned, 4> updated; ///< inputs that are written
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
