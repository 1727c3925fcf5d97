#include "Targets.h"

#include "Decoder.h"
#include "Engine.h"
#include "FloatEnvironment.h"

#include <cstdio>
#include <cstdlib>

using namespace dither::runtime;
using namespace dither::runtime::sim;

namespace dither::fuzz {

/// Errors say what they found; most name a line.
static void expectText(const std::string &text) {
  if (!text.empty())
    return;
  std::fprintf(stderr, "an error without a text\n");
  std::abort();
}

void parsePtx(const uint8_t *data, size_t size) {
  llvm::Expected<Module> module =
      parseModule(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!module)
    return expectText(llvm::toString(module.takeError()));
  for (unsigned i = 0; i < module->kernels.size(); ++i) {
    Memory memory(/*trackWrites=*/true);
    std::vector<uint64_t> addresses;
    for (const VariableDecl &variable : module->variables) {
      void *pointer = memory.allocate(std::min<uint64_t>(variable.size, 4096));
      addresses.push_back(reinterpret_cast<uintptr_t>(pointer));
    }
    llvm::Expected<Program> program =
        decodeKernel(*module, i, addresses, laneTable());
    if (!program) {
      expectText(llvm::toString(program.takeError()));
      continue;
    }
    if (program->frame.size() > 1 << 20)
      continue; // slow, and nothing else
    SimOptions options;
    options.checkInit = options.checkRaces = options.countMemory = true;
    options.maxSteps = 4096;
    std::vector<char> params(program->paramBytes);
    std::shared_ptr<const MemoryMap> map = memory.map();
    GridRaces gridRaces;
    EndedBlocks ended;
    Launch launch{*program,   options, *map,      params, {2, 1, 1},
                  {48, 1, 1}, 64,      gridRaces, ended};
    FaultSink faults;
    FloatEnvironment environment;
    Engine engine(launch, faults);
    engine.run(0, 2);
    if (faults.stop() != ~uint64_t(0))
      expectText(faults.text());
  }
}

} // namespace dither::fuzz
