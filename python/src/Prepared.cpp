//===- Prepared.cpp - The type of Kernel.prepare(...) ---------------------===//

#include "Launch.h"
#include "LaunchNames.h"
#include "LaunchTorch.h"

#include "dither/Runtime/Launch/Overlap.h"

#include "llvm/ADT/bit.h"

#include <structmember.h>

namespace dither::python::launch {

namespace {

/// A launch whose arguments may be exchanged for others of the same data type,
/// device, shape, strides and alignment.
struct State {
  std::shared_ptr<const BoundPlan> plan;
  Frame frame;
  /// Parameters that are run-time arguments, in order, and their names.
  llvm::SmallVector<std::pair<unsigned, Ref>, 8> arguments;
  llvm::SmallVector<int64_t, 128> slots;
  Ref keep; ///< what `frame` borrows
};

struct Prepared {
  PyObject_HEAD vectorcallfunc call;
  State *state;
};

/// What a new pointer must be a multiple of, as the one prepared is.
uint64_t alignment(const TensorRef &tensor) {
  uint64_t element = bitsOf(tensor.type) / 8;
  return tensor.pointer % 32 == 0   ? 32
         : tensor.pointer % 16 == 0 ? 16
         : element                  ? element
                                    : 1;
}

std::string text(const TensorRef &tensor) {
  auto list = [&](const int64_t *numbers) {
    std::string out = "(";
    for (unsigned dim = 0; dim < tensor.rank; ++dim)
      out += (dim ? ", " : "") + std::to_string(numbers[dim]);
    return out + (tensor.rank == 1 ? ",)" : ")");
  };
  constexpr const char *types[] = {
      "float32",     "bfloat16",    "float16",     "float8_e4m3", "float8_e5m2",
      "float6_e2m3", "float6_e3m2", "float4_e2m1", "int8",        "e8m0",
      "int32",       "int64",       "bytes"};
  std::string device = tensor.device == onCpu
                           ? "the cpu"
                           : "cuda:" + std::to_string(tensor.device);
  return std::string(types[unsigned(tensor.type)]) + " of shape " +
         list(tensor.shape) + ", strides " + list(tensor.strides) + " at " +
         "a multiple of " + std::to_string(alignment(tensor)) + " bytes on " +
         device;
}

bool matches(const TensorRef &now, const TensorRef &then) {
  if (now.type != then.type || now.rank != then.rank ||
      now.device != then.device || now.pointer % alignment(then))
    return false;
  for (unsigned dim = 0; dim < now.rank; ++dim)
    if (now.shape[dim] != then.shape[dim] ||
        now.strides[dim] != then.strides[dim])
      return false;
  return true;
}

bool mismatch(const Ref &name, const std::string &found,
              const std::string &expected) {
  PyErr_Format(PyExc_ValueError,
               "argument '%U' is %s, expected what was prepared: %s",
               name.get(), found.c_str(), expected.c_str());
  return false;
}

/// Whether the arguments share memory as those prepared did: tensors that were
/// the same still are, and no other one that is written overlaps; false with a
/// Python error.
bool checkSharing(const State &state, const Value *values) {
  const Frame &frame = state.frame;
  auto name = [&](unsigned parameter) {
    for (auto &[place, name] : state.arguments)
      if (place == parameter)
        return name.get();
    return Py_None;
  };
  for (uint64_t left = frame.repeated; left; left &= left - 1) {
    unsigned one = llvm::countr_zero(left), other = frame.sameAs[one];
    if (isSame(values[one].tensor, values[other].tensor))
      continue;
    PyErr_Format(PyExc_ValueError,
                 "argument '%U' is another tensor than '%U', expected the "
                 "same, as was prepared",
                 name(one), name(other));
    return false;
  }
  auto found = state.plan->findOverlap(values);
  if (!found)
    return true;
  Ref names =
      Ref::steal(PyTuple_Pack(2, name(found->first), name(found->second)));
  if (names)
    Ref::steal(callHelper(Helper::RefuseSharing, names.get()));
  return false;
}

/// Whether the memory prepared for is still there: torch can resize storage
/// that others hold. False with a Python error.
bool checkMemory(const State &state) {
  for (auto &[parameter, name] : state.arguments) {
    PyObject *held = state.frame.torch[parameter];
    uint64_t then = state.frame.values[parameter].tensor.pointer;
    if (!held || Torch::of(held).address(held) == then)
      continue;
    PyErr_Format(PyExc_ValueError,
                 "the memory of argument '%U' was freed or moved after the "
                 "launch was prepared (its storage was resized), expected it "
                 "where it was: prepare the launch again",
                 name.get());
    return false;
  }
  return true;
}

/// Tells torch what is written; false with a Python error.
bool beginWrites(const State &state, llvm::ArrayRef<PyObject *> torch) {
  auto refused = launch::beginWrites(*state.plan, torch);
  if (!refused)
    return true;
  for (auto &[parameter, name] : state.arguments)
    if (parameter == *refused)
      PyErr_Format(PyExc_ValueError,
                   "argument '%U' requires a gradient, which what a kernel "
                   "writes has not: launch under torch.no_grad(), or pass "
                   "%U.detach()",
                   name.get(), name.get());
  return false;
}

/// The values of a launch's own.
struct Given {
  explicit Given(size_t parameters) : values(parameters), torch(parameters) {}

  llvm::SmallVector<Value, 24> values;
  llvm::SmallVector<PyObject *, 24> torch; ///< as in Frame
  llvm::SmallVector<Ref, 2> owners;
};

/// Exchanges one argument; false with a Python error.
bool exchange(const State &state, unsigned index, PyObject *argument,
              Given &given) {
  auto &[parameter, name] = state.arguments[index];
  uint64_t bit = uint64_t(1) << parameter;
  const Value &then = state.frame.values[parameter];
  Value &value = given.values[parameter];
  TensorArgument tensor(value.tensor);
  if (state.frame.scalars & bit) {
    bool real = state.frame.floats & bit;
    PyObject *number = argument;
    if (!PyFloat_CheckExact(argument) && !PyLong_CheckExact(argument))
      number = readTensor(argument, tensor) == Reading::Number
                   ? tensor.number.get()
                   : nullptr;
    if (!number || PyBool_Check(number) || PyFloat_Check(number) != real)
      return mismatch(name, "a " + std::string(Py_TYPE(argument)->tp_name),
                      real ? "a float" : "an int");
    char tag;
    if (readScalar(number, tag, value.scalar))
      return true;
    PyErr_Format(PyExc_ValueError,
                 real ? "argument '%U' is %R, expected a float32, at most "
                        "3.4028235e+38 in magnitude"
                      : "argument '%U' is %R, expected an integer from -2^63 "
                        "to 2^63 - 1",
                 name.get(), argument);
    return false;
  }
  if (readTensor(argument, tensor) != Reading::Tensor)
    return mismatch(name, "a " + std::string(Py_TYPE(argument)->tp_name),
                    text(then.tensor));
  if (!matches(tensor.tensor, then.tensor))
    return mismatch(name, text(tensor.tensor), text(then.tensor));
  if (tensor.tensor.readOnly && (state.plan->written & bit)) {
    PyErr_Format(PyExc_ValueError,
                 "argument '%U' is read-only, expected memory that the kernel "
                 "can write",
                 name.get());
    return false;
  }
  if (tensor.owner)
    given.owners.push_back(std::move(tensor.owner));
  given.torch[parameter] = tensor.torch;
  return true;
}

PyObject *call(PyObject *object, PyObject *const *args, size_t flags,
               PyObject *keywords) {
  const State &state = *reinterpret_cast<Prepared *>(object)->state;
  size_t count = PyVectorcall_NARGS(flags);
  if (keywords && PyTuple_GET_SIZE(keywords)) {
    PyErr_SetString(PyExc_TypeError,
                    "a prepared launch takes no keyword arguments");
    return nullptr;
  }
  if (count && count != state.arguments.size()) {
    PyErr_Format(PyExc_TypeError,
                 "a prepared launch takes no arguments or all %zu that exist "
                 "at run time, found %zu",
                 state.arguments.size(), count);
    return nullptr;
  }
  void *stream;
  if (!findStream(*state.plan, state.frame.stream, state.frame.api, stream))
    return nullptr;
  const runtime::Grid &grid = state.frame.grid;
  if (!grid.x || !grid.y || !grid.z)
    Py_RETURN_NONE;
  if (!count) {
    if (!checkMemory(state) || !beginWrites(state, state.frame.torch) ||
        !run(*state.plan, state.slots, grid, stream))
      return nullptr;
    Py_RETURN_NONE;
  }
  Given given(state.frame.values.size());
  for (size_t i = 0; i < count; ++i)
    if (!exchange(state, i, args[i], given))
      return nullptr;
  if (!checkSharing(state, given.values.data()) ||
      !beginWrites(state, given.torch))
    return nullptr;
  llvm::SmallVector<int64_t, 128> slots(state.slots.size());
  state.plan->fill(given.values.data(), slots.data());
  if (!run(*state.plan, slots, grid, stream))
    return nullptr;
  Py_RETURN_NONE;
}

/// A prepared launch in a module's globals refers to them by its plan. What
/// Python made for this launch alone is left to the destructor.
int traverse(PyObject *object, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(object));
  const State *state = reinterpret_cast<Prepared *>(object)->state;
  Py_VISIT(state->keep.get());
  return state->plan->traverse(visit, arg);
}

/// Nothing is dropped while a launch may use it: the containers that lead here
/// are cleared, and the destructor follows.
int drop(PyObject *) { return 0; }

void destroy(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  delete reinterpret_cast<Prepared *>(object)->state;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                          offsetof(Prepared, call), READONLY, nullptr},
                         {}};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(&destroy)},
    {Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(&drop)},
    {Py_tp_call, reinterpret_cast<void *>(&PyVectorcall_Call)},
    {Py_tp_members, members},
    {0, nullptr}};

PyType_Spec spec = {"dither._dither.Prepared", sizeof(Prepared), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC,
                    slots};
PyTypeObject *preparedType;

} // namespace

PyObject *makePrepared(std::shared_ptr<BoundPlan> plan, Frame frame,
                       const std::vector<Parameter> &parameters,
                       PyObject *arguments) {
  auto *self = PyObject_GC_New(Prepared, preparedType);
  if (!self)
    return nullptr;
  self->call = &call;
  self->state = new State{
      std::move(plan), std::move(frame), {}, {}, Ref::borrow(arguments)};
  State &state = *self->state;
  for (size_t i = 0; i < parameters.size(); ++i)
    if ((state.frame.tensors | state.frame.scalars) >> i & 1)
      state.arguments.emplace_back(i, parameters[i].name);
  state.slots.resize(state.plan->slots.size());
  state.plan->fill(state.frame.values.data(), state.slots.data());
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject *>(self);
}

bool addPrepared(PyObject *module) {
  preparedType = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return preparedType &&
         PyModule_AddObjectRef(module, "Prepared",
                               reinterpret_cast<PyObject *>(preparedType)) == 0;
}

} // namespace dither::python::launch
