//===- ParseLog.cpp - Reads the resources that ptxas prints ---------------===//
//
//   ptxas info    : Compiling entry function 'f' for 'sm_90a'
//   ptxas info    : Function properties for f
//       16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem
//
// Amounts that are 0 are left out of the last line. A device function has
// properties too; its spills are part of no kernel's line and are not counted.
//
//===----------------------------------------------------------------------===//

#include "dither/Runtime/Ptxas.h"

#include "llvm/ADT/SmallVector.h"

using namespace llvm;

namespace dither::runtime {

/// The number before `what` in a list such as "8 bytes smem, used 1 barriers".
static uint32_t amount(StringRef list, StringRef what) {
  SmallVector<StringRef> parts;
  list.split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    part.consume_front_insensitive("used ");
    uint32_t number = 0;
    if (!part.consumeInteger(10, number) && part.trim() == what)
      return number;
  }
  return 0;
}

/// The text between `before` and `after` in `line`, or "".
static StringRef between(StringRef line, StringRef before, StringRef after) {
  size_t begin = line.find(before);
  if (begin == StringRef::npos)
    return "";
  line = line.drop_front(begin + before.size());
  return line.take_front(line.find(after));
}

Expected<std::vector<KernelResources>> parsePtxasLog(StringRef log) {
  std::vector<KernelResources> kernels;
  bool complete = true; // whether the last kernel's registers were seen
  StringRef properties; // whose properties the next line gives
  while (!log.empty()) {
    auto [line, rest] = log.split('\n');
    log = rest;
    StringRef entry = between(line, "Compiling entry function '", "'");
    if (!entry.empty()) {
      if (!complete)
        break;
      kernels.emplace_back();
      kernels.back().kernel = entry.str();
      complete = false;
      continue;
    }
    if (StringRef name = between(line, "Function properties for ", "\n");
        !name.empty()) {
      properties = name.trim();
      continue;
    }
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    if (properties == kernel.kernel && line.contains("bytes stack frame")) {
      kernel.stackBytes = amount(line, "bytes stack frame");
      kernel.spillStoreBytes = amount(line, "bytes spill stores");
      kernel.spillLoadBytes = amount(line, "bytes spill loads");
      properties = "";
    }
    StringRef used = between(line, ": Used ", "\n");
    if (!used.empty() && used.contains(" registers")) {
      kernel.registers = amount(used, "registers");
      kernel.barriers = amount(used, "barriers");
      kernel.sharedBytes = amount(used, "bytes smem");
      complete = kernel.registers > 0;
    }
  }
  if (!complete)
    return createStringError("ptxas printed no registers for kernel '" +
                             kernels.back().kernel + "'");
  return kernels;
}

} // namespace dither::runtime
