//===- BindCache.cpp - Compiled kernels on disk in Python -----------------===//

#include "Bindings.h"
#include "Unlocked.h"

#include "dither/Cache/BuildId.h"
#include "dither/Cache/Bundle.h"
#include "dither/Cache/DiskCache.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace dither::python {
namespace {

using namespace cache;

/// Fields as Python gives and takes them: names and bytes.
using Pairs = std::vector<std::pair<std::string, py::bytes>>;

void check(llvm::Error error) {
  if (error)
    throw std::runtime_error(llvm::toString(std::move(error)));
}
template <typename T> T check(llvm::Expected<T> value) {
  if (!value)
    check(value.takeError());
  return std::move(*value);
}

Key makeKey(const Pairs &pairs) {
  std::vector<Field> fields;
  for (const auto &[name, value] : pairs)
    fields.push_back({name, value});
  llvm::Expected<Key> key = Key::make(fields);
  if (!key)
    throw py::value_error(llvm::toString(key.takeError()));
  return std::move(*key);
}

Entry makeEntry(const Pairs &fields, const py::bytes &metadata,
                const py::bytes &code) {
  return {makeKey(fields), metadata, code};
}

/// Runs without the GIL: files may be slow, and locks are waited for.
template <typename F> auto unlocked(F function) {
  Unlocked unlocked;
  return function();
}

} // namespace

void bindCache(py::module_ &m) {
  py::class_<Entry>(m, "CacheEntry", "Code with its key.")
      .def(py::init(&makeEntry), py::arg("fields"), py::arg("metadata"),
           py::arg("code"))
      .def_property_readonly("key", [](const Entry &e) { return e.key.hex(); })
      .def_property_readonly(
          "fields",
          [](const Entry &e) {
            Pairs pairs;
            for (const Field &field : e.key.fields())
              pairs.emplace_back(field.name, py::bytes(field.value));
            return pairs;
          },
          "(name, bytes) of each input, in the order of the table")
      .def_property_readonly(
          "metadata", [](const Entry &e) { return py::bytes(e.metadata); })
      .def_property_readonly("code",
                             [](const Entry &e) { return py::bytes(e.code); });

  py::class_<KeyLock>(m, "CacheLock", "The right to make the code of a key.")
      .def_property_readonly("held", &KeyLock::held)
      .def("release", [](KeyLock &lock) { lock = KeyLock(); });

  py::class_<DiskCache>(m, "DiskCache", "See include/dither/Cache/DiskCache.h.")
      .def(py::init<std::string, uint64_t>(), py::arg("directory"),
           py::arg("size_limit"))
      .def(
          "load",
          [](DiskCache &cache, const Pairs &fields) {
            Key key = makeKey(fields);
            return unlocked([&] { return cache.load(key); });
          },
          py::arg("fields"))
      .def(
          "store",
          [](DiskCache &cache, const Entry &entry) {
            check(unlocked([&] { return cache.store(entry); }));
          },
          py::arg("entry"), "Raises RuntimeError where it cannot be written.")
      .def(
          "lock",
          [](DiskCache &cache, const Pairs &fields, double seconds) {
            Key key = makeKey(fields);
            std::chrono::milliseconds timeout(int64_t(seconds * 1e3));
            return unlocked([&] { return cache.lock(key, timeout); });
          },
          py::arg("fields"), py::arg("seconds"))
      .def(
          "files",
          [](const DiskCache &cache) {
            std::vector<std::tuple<std::string, uint64_t, int64_t>> rows;
            for (const StoredFile &file : cache.files())
              rows.emplace_back(file.path, file.bytes, file.usedNs);
            return rows;
          },
          "(path, bytes, nanoseconds of last use) of each, last used first")
      .def(
          "prune",
          [](DiskCache &cache, uint64_t limit) {
            Pruned pruned = unlocked([&] { return cache.prune(limit); });
            return py::make_tuple(pruned.entries, pruned.bytes,
                                  pruned.temporary);
          },
          py::arg("limit"), "(entries removed, their bytes, temporary files)");

  py::class_<Bundle>(m, "CacheBundle", "See include/dither/Cache/Bundle.h.")
      .def(py::init([](const std::string &path) {
             return check(unlocked([&] { return Bundle::open(path); }));
           }),
           py::arg("path"), "Raises RuntimeError.")
      .def_property_readonly(
          "about", [](const Bundle &b) { return py::bytes(b.about().str()); })
      .def("__len__", &Bundle::size)
      .def("__getitem__",
           [](const Bundle &bundle, size_t position) {
             if (position >= bundle.size())
               throw py::index_error();
             return check(unlocked([&] { return bundle.entry(position); }));
           })
      .def(
          "load",
          [](const Bundle &bundle, const Pairs &fields) {
            Key key = makeKey(fields);
            return check(unlocked([&] { return bundle.load(key); }));
          },
          py::arg("fields"));

  m.def(
      "write_bundle",
      [](const std::string &path, const py::bytes &about,
         const std::vector<Entry> &entries) {
        std::string text = about;
        check(unlocked([&] { return writeBundle(path, text, entries); }));
      },
      py::arg("path"), py::arg("about"), py::arg("entries"));
  m.def(
      "read_entry",
      [](const std::string &path, bool isRun) {
        return check(readEntry(path, isRun));
      },
      py::arg("path"), py::arg("is_run"), "Raises RuntimeError.");
  m.def(
      "cache_key", [](const Pairs &fields) { return makeKey(fields).hex(); },
      py::arg("fields"),
      "The name of an entry. Raises ValueError where a field is missing or not "
      "in the table.");
  m.def(
      "cache_fields",
      [] {
        std::vector<std::pair<std::string, std::string>> rows;
        for (const FieldRow &row : keyTable())
          rows.emplace_back(row.name.str(), row.help.str());
        return rows;
      },
      "(name, meaning) of each field of a key");
  m.def("binary_id", &binaryId, "Identifies this module by its content.");
}

} // namespace dither::python
