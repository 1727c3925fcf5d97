//===- Launch.h - From a Python call to a launch ---------------*- C++ -*-===//
//
// The steady state of `kernel[grid](...)`, in CPython's own API: no Python
// object is made on the way. What is not steady (an argument that kernels do
// not take, a class of arguments that is new, a mistake) goes to Python, which
// launches itself, raises, and says how to launch the like of it: see Kernel in
// python/dither/jit.py.
//
//   LaunchTensor.cpp   an argument      -> TensorRef
//   LaunchTorch.cpp    what torch knows of a tensor
//   LaunchFrame.cpp    a call           -> values and key
//   LaunchGuard.cpp    captured values  -> whether they are what they were
//   LaunchPlan.cpp     Python's plan    -> BoundPlan, and running it
//   Launcher.cpp       the type behind `Kernel.launch`
//   Prepared.cpp       the type of `Kernel.prepare(...)`
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PYTHON_LAUNCH_H
#define DITHER_PYTHON_LAUNCH_H

#include <Python.h>

#include "dither/Runtime/Launch/Key.h"
#include "dither/Runtime/Launch/Plan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dither::python::launch {

using namespace runtime::launch;

/// A strong reference.
class Ref {
public:
  Ref() = default;
  static Ref steal(PyObject *object) { return Ref(object); }
  static Ref borrow(PyObject *object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(Ref &&other) noexcept : object(other.release()) {}
  Ref(const Ref &other) : object(other.object) { Py_XINCREF(object); }
  Ref &operator=(Ref other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  ~Ref() { Py_XDECREF(object); }
  PyObject *get() const { return object; }
  PyObject *release() { return std::exchange(object, nullptr); }
  explicit operator bool() const { return object; }

private:
  explicit Ref(PyObject *object) : object(object) {}
  PyObject *object = nullptr;
};

/// The items of a sequence as they were at one time: of a list, which other
/// threads may change meanwhile, a copy.
class Items {
public:
  /// False with a Python error.
  bool read(PyObject *sequence) {
    tuple = Ref::steal(PySequence_Tuple(sequence));
    return bool(tuple);
  }
  size_t size() const { return size_t(PyTuple_GET_SIZE(tuple.get())); }
  /// Borrowed.
  PyObject *operator[](size_t i) const {
    return PyTuple_GET_ITEM(tuple.get(), Py_ssize_t(i));
  }

private:
  Ref tuple;
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The functions of a framework that DLPack's exchange API gives.
struct ExchangeApi;

/// The current stream of a GPU, of the framework behind `api`. False with a
/// Python error.
bool currentStream(const ExchangeApi *api, int32_t ordinal, void *&stream);

/// What an argument turned out to be.
enum class Reading { Tensor, Number, Constant, Unsupported };

/// A tensor and what keeps it alive, or a number.
struct TensorArgument {
  /// What is read goes to `tensor`, which has its initial values: no copies,
  /// for which compilers take slow instructions where they have 64 bytes or
  /// more.
  explicit TensorArgument(TensorRef &tensor) : tensor(tensor) {}

  TensorRef &tensor;
  /// The class that a view asks for; else what the kernel or the launch does.
  Shapes shapes = Shapes::Trailing;
  /// Of the framework that the tensor is of, or null.
  const ExchangeApi *api = nullptr;
  /// Where it is null and the tensor is on a GPU: the type of the object that
  /// owns the memory, which the current stream depends on.
  const PyTypeObject *origin = nullptr;
  /// The tensor of torch that the memory is of, or null. The argument or
  /// `owner` keeps it.
  PyObject *torch = nullptr;
  /// What the framework calls the data type, of which Byte and others stand for
  /// several: the address of NumPy's, the fields of DLPack's.
  uint64_t storage = 0;
  /// Set where reading made an object that owns the memory, or found one that
  /// the argument may be given another for.
  Ref owner;
  /// Of a number: Python's own int, float or bool.
  Ref number;
};

/// Reads an argument that is no int or float of Python's own; `out.shapes` is
/// set beforehand to what holds where the argument does not say. Unsupported is
/// for Python to look at, with no error set.
Reading readTensor(PyObject *object, TensorArgument &out);

/// The number of Python's own that a constexpr stands for; nothing where it is
/// none. False, with no error set, where Python has to look.
bool readConstant(PyObject *object, Ref &number);

/// "trailing", "static" or "dynamic"; false for other objects.
bool parseShapes(PyObject *object, Shapes &out);

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// A kernel's parameter: its interned name, its default or null, whether it is
/// a constexpr by its annotation.
struct Parameter {
  Ref name;
  Ref byDefault;
  bool isConstexpr = false;
  Shapes shapes = Shapes::Trailing;
};

/// The slot of a number that is a run-time argument, an int or a float of
/// Python's own; `tag` tells the two apart. False where it does not fit.
bool readScalar(PyObject *number, char &tag, int64_t &slot);
constexpr char floatTag = 'F', integerTag = 'L';

/// A call taken apart; by parameter.
struct Frame {
  explicit Frame(size_t parameters)
      : values(parameters), arguments(parameters), torch(parameters),
        sameAs(parameters) {}

  llvm::SmallVector<Value, 24> values;
  llvm::SmallVector<PyObject *, 24> arguments; ///< borrowed
  llvm::SmallVector<PyObject *, 24> torch;     ///< as in TensorArgument
  uint64_t tensors = 0;                        ///< parameters that are tensors
  /// Those that are the same tensor as an earlier one, and which it is.
  uint64_t repeated = 0;
  llvm::SmallVector<uint8_t, 24> sameAs;
  uint64_t scalars = 0; ///< those that are numbers
  uint64_t floats = 0;  ///< of these, floats
  Key key;
  runtime::Grid grid;
  PyObject *stream = nullptr; ///< borrowed; null for the current one
  /// Of the first tensor on a GPU that has one.
  const ExchangeApi *api = nullptr;
  llvm::SmallVector<Ref, 2> owners;
};

/// Fills `frame` from `kernel.launch(grid, ...)`. False where Python has to
/// look, with no error set.
bool readCall(const std::vector<Parameter> &parameters, uint64_t version,
              PyObject *const *args, Py_ssize_t count, PyObject *keywords,
              Frame &frame);

//===----------------------------------------------------------------------===//
// What a kernel captures
//===----------------------------------------------------------------------===//

/// A place outside the kernel that its code depends on, and the object it held.
struct Guard {
  enum Kind { Item, Cell, Code, Defaults, KeywordDefaults, Attribute } kind;
  Ref container, name, value;
  /// Of a function, the field that holds the object; else null.
  PyObject *const *field = nullptr;

  bool holds() const {
    // Other threads may exchange what is there: only addresses are compared.
    return field ? __atomic_load_n(field, __ATOMIC_RELAXED) == value.get()
                 : find();
  }

  /// Of the garbage collector.
  int traverse(visitproc visit, void *arg) const;

private:
  /// As `holds`, of what is no field.
  bool find() const;
};

/// Whether Python counts the changes of a dictionary in a place to be read: it
/// has a GIL then.
#define DITHER_COUNTED_DICTIONARIES (PY_VERSION_HEX < 0x030C0000)

/// The guards of what one piece of code depends on. Most are names of modules,
/// whose dictionaries hardly ever change: where Python counts the changes of a
/// dictionary, its names are looked up only after one.
class Guards {
public:
  /// Reads Python's list of (kind, container, name, value); false with a Python
  /// error.
  bool read(PyObject *list);

  /// Whether all hold. Attributes may be computed: Python code runs.
  bool hold() const;

  bool empty() const { return items.empty() && others.empty(); }

  /// Of the garbage collector.
  int traverse(visitproc visit, void *arg) const;

private:
#if DITHER_COUNTED_DICTIONARIES
  /// Names of one dictionary, the next so many of `items`.
  struct Dictionary {
    PyObject *dict;
    size_t count;
    /// The number of its last change, when its names were looked up and held.
    mutable uint64_t version;
  };

  std::vector<Dictionary> dictionaries;
#endif
  std::vector<Guard> items;
  /// What is no name of a dictionary.
  std::vector<Guard> others;
};

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// A plan with the objects that it lives from.
struct BoundPlan : Plan {
  /// The version of the captured values that it was made for.
  uint64_t version = 0;
  /// The loaded kernel, and constexprs that are known by their address.
  Ref owner;
  /// Called with nothing for the current stream, where no argument has an
  /// exchange API; or None.
  Ref streamSource;
  /// What the code depends on of the constexprs that are known by address.
  Guards guards;

  /// Of the garbage collector.
  int traverse(visitproc visit, void *arg) const;
};

/// A plan of Python's description (`Kernel._plan`); null with a Python error.
std::shared_ptr<BoundPlan> readPlan(PyObject *description);

/// The stream of a launch: what was asked for, else the current one of the
/// tensors' framework. False with a Python error.
bool findStream(const BoundPlan &plan, PyObject *asked, const ExchangeApi *api,
                void *&stream);

/// Tells torch of each tensor, by parameter, that the plan is about to write;
/// the first parameter whose tensor requires a gradient, while such are
/// recorded.
std::optional<unsigned> beginWrites(const BoundPlan &plan,
                                    llvm::ArrayRef<PyObject *> torch);

/// Launches a kernel, without the GIL where that may take its time; false with
/// a Python error.
bool start(runtime::Kernel &kernel, llvm::ArrayRef<int64_t> slots,
           const runtime::Grid &grid, void *stream);

/// Runs a plan; false with a Python error.
bool run(const BoundPlan &plan, llvm::ArrayRef<int64_t> slots,
         const runtime::Grid &grid, void *stream);

/// The grid of one to three numbers of 0 or more; false where Python has to
/// look.
bool readGrid(PyObject *object, runtime::Grid &grid);

/// A prepared launch of what `frame` holds; null with a Python error.
PyObject *makePrepared(std::shared_ptr<BoundPlan> plan, Frame frame,
                       const std::vector<Parameter> &parameters,
                       PyObject *arguments);

/// Of a `Launcher`: counts a launch that needed no Python.
void countHit(PyObject *launcher);
/// How often it forgot its plans.
uint64_t timesCleared(PyObject *launcher);
/// Whether an object is one.
bool isLauncher(PyObject *object);

/// Adds the types to the module; false with a Python error.
bool addLauncher(PyObject *module);
bool addPrepared(PyObject *module);

} // namespace dither::python::launch

#endif // DITHER_PYTHON_LAUNCH_H
