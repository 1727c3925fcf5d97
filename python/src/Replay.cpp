//===- Replay.cpp - The type behind frameworks.traceable ------------------===//

#include "Replay.h"
#include "LaunchNames.h"
#include "Unlocked.h"

#include "dither/Runtime/Launch/PlanTable.h"

#include "llvm/ADT/STLExtras.h"

#include <atomic>

namespace dither::python::replay {

namespace {

/// What is known of the calls of one key.
struct Known {
  /// What they do; null where that is not recorded.
  std::shared_ptr<const Recorded> recorded;
  /// Whether a record was asked for, and there is none.
  bool refused = false;
  /// Calls that Python ran before it was.
  unsigned calls = 1;
};

using Places = llvm::SmallVector<std::pair<unsigned, unsigned>, 4>;

/// What is known of calls that differ in extents alone, and other such numbers.
struct Family {
  /// The rows of the last call that was seen.
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>, 6> rows;
  /// Numbers that calls were seen to differ in: rows, and places in them.
  Places varying;
  /// What calls do, each where other things hold of extents.
  llvm::SmallVector<std::shared_ptr<const Recorded>, 4> recorded;
  /// How often none could be recorded, since one was; see `learnFamily`.
  unsigned refused = 0;

  /// Whether a call has as many numbers as those of the family.
  bool has(const Call &call) const {
    if (rows.size() != call.rows())
      return false;
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i].size() != call.row(i).size())
        return false;
    return true;
  }
};

struct Replay {
  PyObject_HEAD PlanTable<Known> *known;
  PlanTable<Family> *families;
  std::atomic<uint64_t> hits, records;
  /// Given (args, kwargs, tensors, holders, numbers, varying), describes what
  /// the call does; None where it is one for Python, False where it is so for
  /// now, True where it is wrong.
  PyObject *record;
  PyObject *kindOf;    ///< replay.kind_of
  PyObject *sketching; ///< a context variable that is true while nothing runs
};

bool isSketching(Replay *self) {
  PyObject *value = nullptr;
  if (PyContextVar_Get(self->sketching, nullptr, &value) < 0)
    PyErr_Clear();
  bool is = value != Py_False;
  Py_XDECREF(value);
  return is;
}

/// Recording takes as long as half a dozen calls in Python, or hundreds that
/// are run as recorded: it goes on where that has paid, and for what has come
/// as often as would have paid for it, in whatever company.
bool isWorthwhile(const Replay *self, unsigned calls) {
  constexpr uint64_t free = 64, hitsForOne = 16;
  constexpr unsigned often = 8;
  return calls >= often ||
         self->records.load() < free + self->hits.load() / hitsForOne;
}

/// What Python says of a call: a record, that there is none, that the call
/// raises an error, or that it is too early to say.
enum class Answer { Error, Recorded, None, Wrong, NotNow };

/// A list of objects; null with a Python error.
Ref listOf(llvm::ArrayRef<Ref> objects) {
  Ref list = Ref::steal(PyList_New(objects.size()));
  for (size_t i = 0; list && i < objects.size(); ++i)
    PyList_SET_ITEM(list.get(), i, Py_NewRef(objects[i].get()));
  return list;
}

/// Has Python describe a call, for any numbers in the `varying` places.
Answer record(Replay *self, const Call &call, PyObject *args, PyObject *kwargs,
              const Places &varying,
              std::shared_ptr<const Recorded> &recorded) {
  Ref tensors = listOf(call.objects), holders = listOf(call.holders);
  Ref places = Ref::steal(PyList_New(varying.size()));
  Ref numbers = Ref::steal(PyList_New(call.numbers.size()));
  if (!tensors || !holders || !places || !numbers)
    return Answer::Error;
  for (size_t i = 0; i < call.numbers.size(); ++i) {
    Ref row = tupleOf(call.numbers[i]);
    if (!row)
      return Answer::Error;
    PyList_SET_ITEM(numbers.get(), i, row.release());
  }
  for (size_t i = 0; i < varying.size(); ++i) {
    PyObject *pair = Py_BuildValue("II", varying[i].first, varying[i].second);
    if (!pair)
      return Answer::Error;
    PyList_SET_ITEM(places.get(), i, pair);
  }
  Ref description = Ref::steal(stopAtExit([&] {
    return PyObject_CallFunctionObjArgs(self->record, args, kwargs,
                                        tensors.get(), holders.get(),
                                        numbers.get(), places.get(), nullptr);
  }));
  if (!description)
    return Answer::Error;
  if (description.get() == Py_False)
    return Answer::NotNow;
  self->records.fetch_add(1);
  if (description.get() == Py_True)
    return Answer::Wrong;
  if (description.get() == Py_None)
    return Answer::None;
  auto made = Recorded::read(description.get(), call);
  if (!made)
    return Answer::Error;
  // Not where another thread has changed the arguments meanwhile.
  if (!made->isOf(call))
    return Answer::NotNow;
  recorded = std::move(made);
  return Answer::Recorded;
}

/// Notes a call that nothing is recorded of, which was `seen` before or not;
/// the second one alike is recorded, or a later one. False with a Python error.
bool learn(Replay *self, const Call &call, PyObject *args, PyObject *kwargs,
           const Known *seen) {
  auto known = std::make_shared<Known>();
  if (seen && !isWorthwhile(self, seen->calls + 1)) {
    known->calls = seen->calls + 1;
  } else if (seen) {
    switch (record(self, call, args, kwargs, {}, known->recorded)) {
    case Answer::Error:
      return false;
    case Answer::NotNow:
      return true;
    case Answer::None:
    case Answer::Wrong:
      known->refused = true;
      break;
    case Answer::Recorded:
      break;
    }
  }
  self->known->insert(call.key.bytes(), std::move(known));
  return true;
}

/// As `learn`, of a call that no record of its family, `seen` before or not, is
/// for: one that differs from those seen in extents alone is recorded for all
/// such extents. Whether it was.
Answer learnFamily(Replay *self, const Call &call, llvm::StringRef key,
                   PyObject *args, PyObject *kwargs, const Family *seen) {
  // What needs the numbers does so each time; what was wrong may be right.
  constexpr unsigned mostRefused = 16, byNone = 8, byWrong = 1;
  constexpr size_t mostRecorded = 16;
  auto family =
      seen ? std::make_shared<Family>(*seen) : std::make_shared<Family>();
  family->rows.clear();
  for (unsigned i = 0; i < call.rows(); ++i) {
    auto &row = family->rows.emplace_back(call.row(i));
    // Of a list of numbers some are equal by chance.
    bool together = seen && call.isNamed(i) && row != seen->rows[i];
    for (unsigned at = 0; seen && at < row.size(); ++at)
      if ((together || row[at] != seen->rows[i][at]) &&
          !llvm::is_contained(family->varying, std::pair(i, at)))
        family->varying.push_back({i, at});
  }
  Answer answer = Answer::NotNow;
  if (!family->varying.empty() && family->refused < mostRefused &&
      isWorthwhile(self, 0)) {
    std::shared_ptr<const Recorded> recorded;
    answer = record(self, call, args, kwargs, family->varying, recorded);
    if (answer == Answer::Error)
      return answer;
    family->refused += answer == Answer::None    ? byNone
                       : answer == Answer::Wrong ? byWrong
                                                 : 0;
    if (recorded) {
      family->refused = 0;
      if (family->recorded.size() >= mostRecorded)
        family->recorded.pop_back();
      family->recorded.insert(family->recorded.begin(), std::move(recorded));
    }
  }
  self->families->insert(key, std::move(family));
  return answer;
}

/// Runs a call as it was recorded; NotImplemented where it may not be.
PyObject *runRecorded(Replay *self, const Recorded &recorded, const Call &call,
                      llvm::ArrayRef<int64_t> values) {
  if (!recorded.accepts(call))
    Py_RETURN_NOTIMPLEMENTED;
  self->hits.fetch_add(1, std::memory_order_relaxed);
  return recorded.run(call, values);
}

/// find(args, kwargs): what the call returns, run as an earlier one like it;
/// NotImplemented where it is one for Python.
PyObject *find(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  auto *self = reinterpret_cast<Replay *>(object);
  if (count != 2 || !PyTuple_CheckExact(args[0]) ||
      !PyDict_CheckExact(args[1]) || !self->record) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple and a dictionary");
    return nullptr;
  }
  Call call;
  Terms::Values values;
  if (!readCall(args[0], args[1], self->kindOf, call) || isSketching(self))
    Py_RETURN_NOTIMPLEMENTED;
  std::shared_ptr<const Known> known = self->known->find(call.key.bytes());
  if (known && known->refused)
    Py_RETURN_NOTIMPLEMENTED;
  if (known && known->recorded) {
    if (!known->recorded->holds()) {
      // Seen, and recorded anew by the next one.
      self->known->insert(call.key.bytes(), std::make_shared<Known>());
      Py_RETURN_NOTIMPLEMENTED;
    }
    return known->recorded->evaluate(call, values)
               ? runRecorded(self, *known->recorded, call, values)
               : Py_NewRef(Py_NotImplemented);
  }
  llvm::SmallString<512> key = call.familyKey();
  std::shared_ptr<const Family> family = self->families->find(key);
  if (family && !family->has(call))
    family = nullptr;
  for (size_t i = 0; family && i < family->recorded.size(); ++i) {
    const Recorded &recorded = *family->recorded[i];
    if (!recorded.evaluate(call, values))
      continue;
    if (recorded.holds())
      return runRecorded(self, recorded, call, values);
    auto without = std::make_shared<Family>(*family);
    without->recorded.erase(without->recorded.begin() + i);
    self->families->insert(key, std::move(without));
    Py_RETURN_NOTIMPLEMENTED;
  }
  Answer answer = learnFamily(self, call, key, args[0], args[1], family.get());
  if (answer == Answer::Error ||
      (answer != Answer::Recorded &&
       !learn(self, call, args[0], args[1], known.get())))
    return nullptr;
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject *clear(PyObject *object, PyObject *) {
  auto *self = reinterpret_cast<Replay *>(object);
  self->known->clear();
  self->families->clear();
  Py_RETURN_NONE;
}

PyObject *hits(PyObject *object, void *) {
  return PyLong_FromUnsignedLongLong(
      reinterpret_cast<Replay *>(object)->hits.load());
}

PyObject *records(PyObject *object, void *) {
  return PyLong_FromUnsignedLongLong(
      reinterpret_cast<Replay *>(object)->records.load());
}

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *record, *kindOf, *sketching, *numpy;
  if (!importNames() ||
      !PyArg_ParseTuple(args, "OOOO", &record, &kindOf, &sketching, &numpy) ||
      (numpy != Py_None && !useNumpy(numpy)))
    return nullptr;
  auto *self = reinterpret_cast<Replay *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->known = new PlanTable<Known>;
  self->families = new PlanTable<Family>;
  new (&self->hits) std::atomic<uint64_t>(0);
  new (&self->records) std::atomic<uint64_t>(0);
  self->record = Py_NewRef(record);
  self->kindOf = Py_NewRef(kindOf);
  self->sketching = Py_NewRef(sketching);
  return reinterpret_cast<PyObject *>(self);
}

/// An operator of a user's has this, whose guards have the globals that it is
/// in.
int traverse(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Replay *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->record);
  Py_VISIT(self->kindOf);
  Py_VISIT(self->sketching);
  int result = 0;
  auto visitRecord = [&](const std::shared_ptr<const Recorded> &recorded) {
    if (!result && recorded)
      result = recorded->traverse(visit, arg);
  };
  self->known->forEach(
      [&](const Known &known) { visitRecord(known.recorded); });
  self->families->forEach([&](const Family &family) {
    llvm::for_each(family.recorded, visitRecord);
  });
  return result;
}

int drop(PyObject *object) {
  auto *self = reinterpret_cast<Replay *>(object);
  Py_CLEAR(self->record);
  self->known->clear();
  self->families->clear();
  return 0;
}

void destroy(PyObject *object) {
  auto *self = reinterpret_cast<Replay *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  drop(object);
  Py_CLEAR(self->kindOf);
  Py_CLEAR(self->sketching);
  delete self->known;
  delete self->families;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"find", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&find)),
     METH_FASTCALL,
     "find(args, kwargs): the result of a call like an earlier one, or "
     "NotImplemented."},
    {"clear", &clear, METH_NOARGS, "Forgets every call."},
    {}};

PyGetSetDef properties[] = {
    {"hits", &hits, nullptr, "calls that needed no Python", nullptr},
    {"records", &records, nullptr, "calls that Python described", nullptr},
    {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(&make)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(&destroy)},
                       {Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void *>(&drop)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"dither._dither.Replay", sizeof(Replay), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

} // namespace

} // namespace dither::python::replay

namespace dither::python::launch {

bool addReplay(PyObject *module) {
  Ref type = Ref::steal(PyType_FromSpec(&replay::spec));
  return type && PyModule_AddObjectRef(module, "Replay", type.get()) == 0;
}

} // namespace dither::python::launch
