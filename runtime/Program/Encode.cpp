#include "dither/Runtime/Program.h"
#include "dither/Support/Bytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace dither::runtime {

static constexpr StringLiteral magic = StringLiteral::withInnerNUL("dither\0p");
static constexpr uint32_t version = 1;

using Digest = std::array<uint8_t, 32>;

static Digest digestOf(StringRef bytes) {
  return SHA256::hash(arrayRefFromStringRef(bytes));
}

static void putText(std::string &out, StringRef text) {
  put<uint64_t>(out, text.size());
  out += text;
}

std::string Program::encode() const {
  std::string out = magic.str();
  put<uint32_t>(out, version);
  put<uint32_t>(out, images.size());
  for (const KernelImage &image : images) {
    putText(out, image.name);
    putText(out, image.target);
    putText(out, image.code);
    put<uint32_t>(out, image.numThreads);
    put<uint32_t>(out, image.sharedBytes);
    put<uint32_t>(out, image.params.size());
    for (ParamKind kind : image.params)
      put<uint8_t>(out, uint8_t(kind));
  }
  put<uint32_t>(out, buffers.size());
  for (uint64_t bytes : buffers)
    put<uint64_t>(out, bytes);
  put<uint32_t>(out, steps.size());
  for (const Step &step : steps) {
    put<uint32_t>(out, step.image);
    for (int64_t extent : {step.grid.x, step.grid.y, step.grid.z})
      put<int64_t>(out, extent);
    put<uint32_t>(out, step.slots.size());
    for (int64_t slot : step.slots)
      put<int64_t>(out, slot);
    put<uint32_t>(out, step.pointers.size());
    for (Pointer pointer : step.pointers) {
      put<uint32_t>(out, pointer.slot);
      put<uint32_t>(out, pointer.buffer);
    }
  }
  Digest digest = digestOf(out);
  out.append(digest.begin(), digest.end());
  return out;
}

/// A list of as many entries as it says; `entry` reads one. Where the bytes end
/// before the list does, it ends with them.
template <typename T, typename F>
static std::vector<T> takeList(Reader &reader, F entry) {
  std::vector<T> list;
  for (uint32_t left = reader.number<uint32_t>(); left && reader.ok; --left)
    list.push_back(entry());
  return list;
}

static std::string takeText(Reader &reader) {
  return reader.bytes(reader.number<uint64_t>()).str();
}

static KernelImage takeImage(Reader &reader) {
  KernelImage image;
  image.name = takeText(reader);
  image.target = takeText(reader);
  image.code = takeText(reader);
  image.numThreads = reader.number<uint32_t>();
  image.sharedBytes = reader.number<uint32_t>();
  image.params = takeList<ParamKind>(
      reader, [&] { return ParamKind(reader.number<uint8_t>()); });
  return image;
}

static Program::Step takeStep(Reader &reader) {
  Program::Step step;
  step.image = reader.number<uint32_t>();
  step.grid.x = reader.number<int64_t>();
  step.grid.y = reader.number<int64_t>();
  step.grid.z = reader.number<int64_t>();
  step.slots =
      takeList<int64_t>(reader, [&] { return reader.number<int64_t>(); });
  step.pointers = takeList<Program::Pointer>(reader, [&] {
    uint32_t slot = reader.number<uint32_t>();
    return Program::Pointer{slot, reader.number<uint32_t>()};
  });
  return step;
}

/// Whether every place of a step is one that the program has.
static bool isWithin(const Program::Step &step, const Program &program) {
  if (step.image >= program.images.size())
    return false;
  const KernelImage &image = program.images[step.image];
  if (step.slots.size() != image.params.size())
    return false;
  for (Program::Pointer pointer : step.pointers)
    if (pointer.slot >= step.slots.size() ||
        pointer.buffer >= program.buffers.size() ||
        image.params[pointer.slot] != ParamKind::Pointer ||
        uint64_t(step.slots[pointer.slot]) > program.buffers[pointer.buffer])
      return false;
  return true;
}

Expected<Program> Program::decode(StringRef bytes) {
  Reader reader(bytes);
  if (reader.bytes(magic.size()) != magic)
    return createStringError("found no program");
  if (uint32_t found = reader.number<uint32_t>(); reader.ok && found != version)
    return createStringError("found a program of version " + Twine(found) +
                             ", expected " + Twine(version));
  if (reader.rest.size() < sizeof(Digest))
    return createStringError("the program is damaged: it is cut off");
  Digest digest = digestOf(bytes.drop_back(sizeof(Digest)));
  if (bytes.take_back(sizeof(Digest)) != toStringRef(ArrayRef<uint8_t>(digest)))
    return createStringError("the program is damaged: found another checksum "
                             "than it was written with");
  reader.rest = reader.rest.drop_back(sizeof(Digest));
  Program program;
  program.images =
      takeList<KernelImage>(reader, [&] { return takeImage(reader); });
  program.buffers =
      takeList<uint64_t>(reader, [&] { return reader.number<uint64_t>(); });
  program.steps = takeList<Step>(reader, [&] { return takeStep(reader); });
  bool within = llvm::all_of(
      program.steps, [&](const Step &step) { return isWithin(step, program); });
  if (!reader.ok || !reader.rest.empty() || !within)
    return createStringError("the program is damaged: its lengths and places "
                             "do not fit each other");
  return program;
}

} // namespace dither::runtime
