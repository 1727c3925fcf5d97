//===- ReplayTerms.cpp - Numbers of a recorded call -----------------------===//

#include "Replay.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace dither::python::replay {

bool outOfRange() {
  PyErr_SetString(PyExc_ValueError, "place of a recorded call is out of range");
  return false;
}

bool readPlaces(PyObject *sequence, size_t end,
                llvm::SmallVectorImpl<uint32_t> &out) {
  Items places;
  if (!places.read(sequence))
    return false;
  for (size_t i = 0; i < places.size(); ++i) {
    unsigned long place = PyLong_AsUnsignedLong(places[i]);
    if (PyErr_Occurred())
      return false;
    if (place >= end)
      return outOfRange();
    out.push_back(place);
  }
  return true;
}

Ref tupleOf(llvm::ArrayRef<int64_t> numbers) {
  Ref tuple = Ref::steal(PyTuple_New(numbers.size()));
  for (size_t i = 0; tuple && i < numbers.size(); ++i) {
    PyObject *number = PyLong_FromLongLong(numbers[i]);
    if (!number)
      return {};
    PyTuple_SET_ITEM(tuple.get(), i, number);
  }
  return tuple;
}

bool Terms::read(PyObject *description, const Call &call) {
  PyObject *known, *asked, *given;
  Items terms, questions, rowsOf;
  if (!PyArg_ParseTuple(description, "OOO", &known, &asked, &given) ||
      !terms.read(known) || !questions.read(asked) || !rowsOf.read(given))
    return false;
  for (size_t i = 0; i < terms.size(); ++i) {
    int what;
    long long first, second;
    if (!PyArg_ParseTuple(terms[i], "iLL", &what, &first, &second))
      return false;
    bool isConstant = what == Term::Constant, isExtent = what == Term::Extent;
    auto isBelow = [](long long place, size_t end) {
      return place >= 0 && size_t(place) < end;
    };
    if (what < Term::Constant || what > Term::Remainder ||
        (!isConstant && !isBelow(first, isExtent ? call.rows() : i)) ||
        (!isConstant &&
         !isBelow(second, isExtent ? call.row(first).size() : i)))
      return outOfRange();
    constants.push_back(isConstant ? first : 0);
    if (!isConstant)
      computed.push_back(
          {uint32_t(i), {static_cast<Term::What>(what), first, second}});
  }
  for (size_t i = 0; i < questions.size(); ++i) {
    int what;
    unsigned first, second;
    if (!PyArg_ParseTuple(questions[i], "iII", &what, &first, &second))
      return false;
    if (what < Condition::Equal || what > Condition::AtMost ||
        first >= size() || second >= size())
      return outOfRange();
    conditions.push_back(
        {static_cast<decltype(Condition::what)>(what), first, second});
  }
  for (size_t i = 0; i < rowsOf.size(); ++i) {
    PyObject *numbers, *strides;
    Row &row = rows.emplace_back();
    if (!PyArg_ParseTuple(rowsOf[i], "OO", &numbers, &strides) ||
        !readPlaces(numbers, size(), row.numbers) ||
        !readPlaces(strides, size(), row.strides))
      return false;
    size_t rank = i < call.tensors.size() ? row.numbers.size() : 0;
    if (row.strides.size() != rank)
      return outOfRange();
  }
  return rows.empty() || rows.size() == call.rows() ? true : outOfRange();
}

/// The value of a term of two others; false where there is none.
static bool compute(Term::What what, int64_t a, int64_t b, int64_t &value) {
  switch (what) {
  case Term::Add:
    return !llvm::AddOverflow(a, b, value);
  case Term::Subtract:
    return !llvm::SubOverflow(a, b, value);
  case Term::Multiply:
    return !llvm::MulOverflow(a, b, value);
  case Term::Divide:
  case Term::Remainder:
    // As Python's: towards minus infinity.
    if (b == 0 || (b == -1 && what == Term::Divide && a == INT64_MIN))
      return false;
    value = what == Term::Divide ? llvm::divideFloorSigned(a, b)
                                 : a - b * llvm::divideFloorSigned(a, b);
    return true;
  case Term::Constant:
  case Term::Extent:
    break;
  }
  return false;
}

bool Terms::evaluate(const Call &call, Values &values) const {
  if (!rows.empty() && rows.size() != call.rows())
    return false;
  for (size_t i = 0; i < rows.size(); ++i)
    if (call.row(i).size() != rows[i].numbers.size())
      return false;
  values = constants;
  for (const auto &[place, term] : computed)
    if (term.what == Term::Extent)
      values[place] = call.row(term.first)[term.second];
    else if (!compute(term.what, values[term.first], values[term.second],
                      values[place]))
      return false;
  auto are = [&](llvm::ArrayRef<uint32_t> places, const int64_t *numbers) {
    return llvm::all_of_zip(
        places, llvm::ArrayRef(numbers, places.size()),
        [&](uint32_t place, int64_t n) { return values[place] == n; });
  };
  for (size_t i = 0; i < rows.size(); ++i)
    if (!are(rows[i].numbers, call.row(i).data()) ||
        (i < call.tensors.size() &&
         !are(rows[i].strides, call.tensors[i].strides)))
      return false;
  for (const Condition &condition : conditions) {
    int64_t a = values[condition.first], b = values[condition.second];
    bool holds = condition.what == Condition::Equal   ? a == b
                 : condition.what == Condition::Other ? a != b
                 : condition.what == Condition::Less  ? a < b
                                                      : a <= b;
    if (!holds)
      return false;
  }
  return true;
}

} // namespace dither::python::replay
