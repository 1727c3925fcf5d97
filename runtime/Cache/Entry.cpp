#include "dither/Cache/Entry.h"
#include "dither/Support/Bytes.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace dither::cache {

static constexpr StringLiteral magic = StringLiteral::withInnerNUL("dither\0k");
static constexpr uint32_t version = 1;

std::string encodeEntry(const Entry &entry) {
  std::string out = magic.str();
  put<uint32_t>(out, version);
  put<uint64_t>(out, entry.key.encoding().size());
  put<uint64_t>(out, entry.metadata.size());
  put<uint64_t>(out, entry.code.size());
  out += entry.key.encoding();
  out += entry.metadata;
  out += entry.code;
  Digest digest = digestOf(out);
  out.append(digest.begin(), digest.end());
  return out;
}

Expected<Entry> decodeEntry(StringRef bytes) {
  Reader reader(bytes);
  if (reader.bytes(magic.size()) != magic)
    return createStringError("not a compiled kernel");
  if (uint32_t found = reader.number<uint32_t>(); reader.ok && found != version)
    return createStringError("a compiled kernel of version " + Twine(found) +
                             ", expected " + Twine(version));
  uint64_t keySize = reader.number<uint64_t>();
  uint64_t metadataSize = reader.number<uint64_t>();
  uint64_t codeSize = reader.number<uint64_t>();
  StringRef key = reader.bytes(keySize);
  StringRef metadata = reader.bytes(metadataSize);
  StringRef code = reader.bytes(codeSize);
  if (!reader.ok || reader.rest.size() != sizeof(Digest))
    return createStringError("damaged: " + Twine(bytes.size()) +
                             " bytes are not as many as its lengths say");
  Digest digest = digestOf(bytes.drop_back(sizeof(Digest)));
  if (reader.rest != toStringRef(ArrayRef<uint8_t>(digest)))
    return createStringError(
        "damaged: found another checksum than it was written with");
  Expected<Key> decoded = Key::decode(key);
  if (!decoded)
    return createStringError("damaged: " + toString(decoded.takeError()));
  return Entry{std::move(*decoded), metadata.str(), code.str()};
}

} // namespace dither::cache
