#include "dither/Cache/Bundle.h"
#include "Files.h"
#include "dither/Support/Bytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace dither::cache {

static constexpr StringLiteral magic = StringLiteral::withInnerNUL("dither\0b");
static constexpr uint32_t version = 1;
static constexpr size_t rowBytes = sizeof(Digest) + 2 * sizeof(uint64_t);
/// Magic, version, number of entries, length of the text.
static constexpr size_t headerBytes = 8 + 4 + 4 + 8;

Error writeBundle(StringRef path, StringRef about, ArrayRef<Entry> entries) {
  std::map<Digest, std::string> encoded;
  for (const Entry &entry : entries)
    encoded.try_emplace(entry.key.digest(), encodeEntry(entry));
  std::string out = magic.str();
  put<uint32_t>(out, version);
  put<uint32_t>(out, encoded.size());
  put<uint64_t>(out, about.size());
  out += about;
  uint64_t offset = out.size() + encoded.size() * rowBytes + sizeof(Digest);
  for (const auto &[digest, bytes] : encoded) {
    out.append(digest.begin(), digest.end());
    put<uint64_t>(out, offset);
    put<uint64_t>(out, bytes.size());
    offset += bytes.size();
  }
  Digest digest = digestOf(out);
  out.append(digest.begin(), digest.end());
  for (const auto &[unused, bytes] : encoded)
    out += bytes;
  StringRef parent = sys::path::parent_path(path);
  return writeAtomically(parent.empty() ? "." : parent,
                         sys::path::filename(path), out, Survives::Machine);
}

/// Bytes of a file; fewer where it ends before.
static Expected<std::string> readRange(int file, uint64_t offset,
                                       uint64_t count) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    ssize_t got =
        ::pread(file, &bytes[have], count - have, off_t(offset + have));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError("cannot read");
    if (got == 0)
      break;
    have += got;
  }
  bytes.resize(have);
  return bytes;
}

Expected<std::unique_ptr<Bundle>> Bundle::open(StringRef path) {
  auto fail = [&](const Twine &what) {
    return createStringError("bundle " + path + ": " + what);
  };
  Expected<Descriptor> opened = openToRead(path, Trust::Named);
  if (!opened)
    return createStringError("bundle: " + toString(opened.takeError()));
  std::unique_ptr<Bundle> bundle(new Bundle);
  bundle->name = path.str();
  bundle->file = opened->release();
  struct stat status;
  if (::fstat(bundle->file, &status) != 0)
    return fail(toString(systemError("cannot read")));
  uint64_t size = status.st_size;

  Expected<std::string> head = readRange(bundle->file, 0, headerBytes);
  if (!head)
    return fail(toString(head.takeError()));
  Reader header(*head);
  if (header.bytes(magic.size()) != magic)
    return fail("not a bundle of kernels");
  if (auto found = header.number<uint32_t>(); header.ok && found != version)
    return fail("found version " + Twine(found) + ", expected " +
                Twine(version));
  uint64_t count = header.number<uint32_t>();
  uint64_t textBytes = header.number<uint64_t>();
  if (!header.ok || textBytes > size ||
      headerBytes + textBytes + count * rowBytes + sizeof(Digest) > size)
    return fail("damaged: " + Twine(size) +
                " bytes are not as many as its lengths say");

  uint64_t indexed = headerBytes + textBytes + count * rowBytes;
  auto all = readRange(bundle->file, 0, indexed + sizeof(Digest));
  if (!all)
    return fail(toString(all.takeError()));
  if (all->size() != indexed + sizeof(Digest))
    return fail("damaged: it is cut off");
  StringRef bytes = *all;
  Digest digest = digestOf(bytes.take_front(indexed));
  if (bytes.drop_front(indexed) != toStringRef(ArrayRef<uint8_t>(digest)))
    return fail("damaged: found another checksum than it was written with");
  Reader reader(bytes.drop_front(headerBytes));
  bundle->text = reader.bytes(textBytes).str();
  for (uint64_t i = 0; i < count; ++i) {
    Row row;
    copy(arrayRefFromStringRef(reader.bytes(sizeof(Digest))),
         row.digest.begin());
    row.offset = reader.number<uint64_t>();
    row.bytes = reader.number<uint64_t>();
    bool ordered = i == 0 || bundle->index.back().digest < row.digest;
    if (!ordered || row.offset > size || row.bytes > size - row.offset)
      return fail("damaged: entry " + Twine(i) + " is not within the file");
    bundle->index.push_back(row);
  }
  return bundle;
}

Bundle::~Bundle() {
  if (file >= 0)
    ::close(file);
}

Expected<Entry> Bundle::entry(size_t position) const {
  const Row &row = index[position];
  auto fail = [&](Error error) {
    return createStringError("bundle " + name + ": kernel " +
                             toHex(row.digest).substr(0, 12) + ": " +
                             toString(std::move(error)));
  };
  Expected<std::string> bytes = readRange(file, row.offset, row.bytes);
  if (!bytes)
    return fail(bytes.takeError());
  Expected<Entry> entry = decodeEntry(*bytes);
  if (!entry)
    return fail(entry.takeError());
  if (entry->key.digest() != row.digest)
    return fail(createStringError("damaged: it is under another's key"));
  return entry;
}

Expected<std::optional<Entry>> Bundle::load(const Key &key) const {
  auto found = lower_bound(
      index, key.digest(),
      [](const Row &row, const Digest &digest) { return row.digest < digest; });
  if (found == index.end() || found->digest != key.digest())
    return std::nullopt;
  Expected<Entry> loaded = entry(found - index.begin());
  if (!loaded)
    return loaded.takeError();
  return std::optional<Entry>(std::move(*loaded));
}

} // namespace dither::cache
