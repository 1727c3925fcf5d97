#include "dither/Runtime/Program.h"
#include "dither/Support/Bytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace dither::runtime {

static constexpr StringLiteral magic = StringLiteral::withInnerNUL("dither\0p");
static constexpr uint32_t version = 3;

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
    put<uint32_t>(out, image.clusterSize);
    put<uint32_t>(out, image.params.size());
    for (ParamKind kind : image.params)
      put<uint8_t>(out, uint8_t(kind));
  }
  put<uint32_t>(out, buffers.size());
  for (uint64_t bytes : buffers)
    put<uint64_t>(out, bytes);
  put<uint32_t>(out, workspaces);
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
  image.clusterSize = reader.number<uint32_t>();
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

/// Whether every place of step `at` is one that the program has.
static Error checkStep(const Program &program, size_t at) {
  const Program::Step &step = program.steps[at];
  if (step.image >= program.images.size())
    return createStringError("step " + Twine(at) + " is of image " +
                             Twine(step.image) + ", expected one of " +
                             Twine(program.images.size()));
  const KernelImage &image = program.images[step.image];
  if (step.slots.size() != image.params.size())
    return createStringError("step " + Twine(at) + " has " +
                             Twine(step.slots.size()) + " slots, expected " +
                             Twine(image.params.size()) + " for kernel '" +
                             image.name + "'");
  SmallBitVector placed(step.slots.size());
  for (auto [slot, buffer] : step.pointers) {
    if (slot >= step.slots.size())
      return createStringError("step " + Twine(at) + " has a buffer for slot " +
                               Twine(slot) + ", expected one of " +
                               Twine(step.slots.size()));
    if (image.params[slot] != ParamKind::Pointer)
      return createStringError(
          "step " + Twine(at) + " has a buffer for slot " + Twine(slot) +
          ", which is no pointer of kernel '" + image.name + "'");
    if (placed.test(slot))
      return createStringError("step " + Twine(at) +
                               " has two buffers for slot " + Twine(slot));
    placed.set(slot);
    std::string where =
        ("slot " + Twine(slot) + " of step " + Twine(at) + " is ").str();
    if (buffer >= program.buffers.size())
      return createStringError(where + "in buffer " + Twine(buffer) +
                               ", expected one of " +
                               Twine(program.buffers.size()));
    int64_t offset = step.slots[slot];
    if (offset < 0 || uint64_t(offset) > program.buffers[buffer])
      return createStringError(where + Twine(offset) + " bytes into buffer " +
                               Twine(buffer) + ", expected at most " +
                               Twine(program.buffers[buffer]));
  }
  for (auto [slot, kind] : enumerate(image.params))
    if (kind == ParamKind::Pointer && !placed.test(slot) && step.slots[slot])
      return createStringError("slot " + Twine(slot) + " of step " + Twine(at) +
                               " is an address, expected a place in a buffer");
  return Error::success();
}

Error Program::check() const {
  for (const KernelImage &image : images)
    for (auto [place, kind] : enumerate(image.params))
      if (kind > ParamKind::F32)
        return createStringError(
            "parameter " + Twine(place) + " of kernel '" + image.name +
            "' is of kind " + Twine(unsigned(kind)) + ", expected at most 3");
  if (workspaces > std::min<size_t>(buffers.size(), 1))
    return createStringError("found " + Twine(workspaces) +
                             " workspaces among " + Twine(buffers.size()) +
                             " buffers, expected at most one");
  for (size_t at = 0; at < steps.size(); ++at)
    if (Error error = checkStep(*this, at))
      return error;
  return Error::success();
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
  program.workspaces = reader.number<uint32_t>();
  program.steps = takeList<Step>(reader, [&] { return takeStep(reader); });
  if (!reader.ok || !reader.rest.empty())
    return createStringError("the program is damaged: its lengths do not fit "
                             "each other");
  if (Error error = program.check())
    return createStringError("the program is damaged: " +
                             toString(std::move(error)));
  return program;
}

} // namespace dither::runtime
