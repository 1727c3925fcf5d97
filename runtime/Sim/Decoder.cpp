#include "Decoder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace dither::runtime::sim {

Decoder::Handler Decoder::handlerOf(StringRef base) {
  using D = Decoder;
  static const StringMap<Handler> handlers = {
      {"add", &D::decodeAddSub},
      {"sub", &D::decodeAddSub},
      {"addc", &D::decodeAddSub},
      {"subc", &D::decodeAddSub},
      {"mul", &D::decodeMul},
      {"mad", &D::decodeMad},
      {"mul24", &D::decodeMul24},
      {"mad24", &D::decodeMul24},
      {"div", &D::decodeDiv},
      {"rem", &D::decodeRem},
      {"min", &D::decodeMinMax},
      {"max", &D::decodeMinMax},
      {"abs", &D::decodeAbsNeg},
      {"neg", &D::decodeAbsNeg},
      {"sad", &D::decodeSad},
      {"dp4a", &D::decodeDp4a},
      {"fma", &D::decodeFma},
      {"sqrt", &D::decodeRoot},
      {"rcp", &D::decodeReciprocal},
      {"rsqrt", &D::decodeApproximate},
      {"ex2", &D::decodeApproximate},
      {"lg2", &D::decodeApproximate},
      {"sin", &D::decodeApproximate},
      {"cos", &D::decodeApproximate},
      {"tanh", &D::decodeApproximate},
      {"copysign", &D::decodeCopysign},
      {"testp", &D::decodeTestp},
      {"and", &D::decodeLogic},
      {"or", &D::decodeLogic},
      {"xor", &D::decodeLogic},
      {"not", &D::decodeLogic},
      {"cnot", &D::decodeLogic},
      {"shl", &D::decodeShift},
      {"shr", &D::decodeShift},
      {"shf", &D::decodeFunnel},
      {"bfe", &D::decodeField},
      {"bfi", &D::decodeField},
      {"popc", &D::decodeCount},
      {"clz", &D::decodeCount},
      {"brev", &D::decodeCount},
      {"bfind", &D::decodeCount},
      {"fns", &D::decodeField},
      {"prmt", &D::decodePrmt},
      {"lop3", &D::decodeLop3},
      {"szext", &D::decodeExtend},
      {"bmsk", &D::decodeExtend},
      {"mov", &D::decodeMov},
      {"selp", &D::decodeSelp},
      {"slct", &D::decodeSlct},
      {"setp", &D::decodeSetp},
      {"set", &D::decodeSet},
      {"cvta", &D::decodeCvta},
      {"isspacep", &D::decodeIsspacep},
      {"mapa", &D::decodeMapa},
      {"cvt", &D::decodeCvt},
      {"ld", &D::decodeLoad},
      {"ldu", &D::decodeLoad},
      {"st", &D::decodeStore},
      {"ldmatrix", &D::decodeMatrix},
      {"stmatrix", &D::decodeMatrix},
      {"atom", &D::decodeAtomic},
      {"red", &D::decodeAtomic},
      {"cp", &D::decodeCopy},
      {"prefetch", &D::decodePrefetch},
      {"prefetchu", &D::decodePrefetch},
      {"applypriority", &D::decodePrefetch},
      {"bra", &D::decodeBranch},
      {"brx", &D::decodeBranchTable},
      {"ret", &D::decodeExit},
      {"exit", &D::decodeExit},
      {"trap", &D::decodeTrap},
      {"membar", &D::decodeFence},
      {"fence", &D::decodeFence},
      {"nanosleep", &D::decodeNothing},
      {"griddepcontrol", &D::decodeNothing},
      {"pmevent", &D::decodeNothing},
      {"bar", &D::decodeBarrier},
      {"barrier", &D::decodeBarrier},
      {"mbarrier", &D::decodeMbarrier},
      {"shfl", &D::decodeShuffle},
      {"vote", &D::decodeVote},
      {"match", &D::decodeMatch},
      {"redux", &D::decodeRedux},
      {"activemask", &D::decodeActivemask},
      {"elect", &D::decodeElect},
      {"createpolicy", &D::decodeCreatepolicy},
  };
  return handlers.lookup(base);
}

//===----------------------------------------------------------------------===//
// Errors and modifiers
//===----------------------------------------------------------------------===//

bool Decoder::fail(const Twine &text) {
  if (!error)
    error = createStringError("line " + Twine(instruction->line) + ": '" +
                              instruction->opcode + "': " + text);
  return true;
}

bool Decoder::has(StringRef modifier) {
  auto found = find(modifiers, modifier);
  if (found == modifiers.end())
    return false;
  modifiers.erase(found);
  return true;
}

bool Decoder::hasPrefix(StringRef prefix) {
  auto found = find_if(
      modifiers, [&](StringRef name) { return name.starts_with(prefix); });
  if (found == modifiers.end())
    return false;
  modifiers.erase(found);
  return true;
}

std::optional<Type> Decoder::takeOptionalType() {
  if (modifiers.empty())
    return std::nullopt;
  Type type = parseType(modifiers.back());
  if (type == Type::None)
    return std::nullopt;
  modifiers.pop_back();
  return type;
}

bool Decoder::takeType(Type &type) {
  if (std::optional<Type> found = takeOptionalType()) {
    type = *found;
    return false;
  }
  return fail(modifiers.empty() ? Twine("no type")
                                : "'." + modifiers.back() + "' is not a type");
}

bool Decoder::finish(size_t operands) { return finish(operands, operands); }

bool Decoder::finish(size_t least, size_t most) {
  if (!modifiers.empty())
    return fail("modifier '." + modifiers.front() + "' is not simulated");
  size_t found = instruction->operands.size();
  if (found >= least && found <= most)
    return false;
  return fail(Twine(found) + " operands, expected " + Twine(least) +
              (least == most ? Twine() : " to " + Twine(most)));
}

bool Decoder::require(unsigned sm, unsigned version, StringRef what) {
  std::string subject = what.empty() ? "" : what.str() + " ";
  if (module.sm < sm)
    return fail(subject + "needs sm_" + Twine(sm) + ", the target is sm_" +
                Twine(module.sm));
  if (module.version < version)
    return fail(subject + "needs PTX " + Twine(version / 10) + "." +
                Twine(version % 10) + ", the version is " +
                Twine(module.version / 10) + "." + Twine(module.version % 10));
  return false;
}

bool Decoder::requireSpecific(std::initializer_list<unsigned> targets,
                              bool family, unsigned version) {
  bool suffix = module.suffix == 'a' || (family && module.suffix == 'f');
  if (!suffix || !is_contained(targets, module.sm)) {
    std::string expected;
    for (unsigned target : targets)
      expected += (expected.empty() ? "sm_" : ", sm_") + utostr(target) + "a";
    return fail("needs one of " + expected + ", the target is sm_" +
                Twine(module.sm) +
                (module.suffix ? Twine(module.suffix) : Twine()));
  }
  return require(module.sm, version);
}

/// Remembers that this instruction's result need not be the hardware's.
void Decoder::approximate() {
  opClass = OpClass::Special;
  program.approximations.push_back("line " + utostr(instruction->line) + ": " +
                                   instruction->opcode.str());
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool Decoder::decode(const Instruction &given) {
  instruction = &given;
  auto [name, rest] = given.opcode.split('.');
  base = name;
  modifiers.clear();
  rest.split(modifiers, '.', -1, /*KeepEmpty=*/false);
  opClass = OpClass::Integer;
  inCluster = false;
  sourceIndex = uint32_t(program.sources.size());
  std::fill(std::begin(usedTemporaries), std::end(usedTemporaries), 0);
  size_t first = program.steps.size();
  firstStep.push_back(uint32_t(first));

  Handler handler = handlerOf(base);
  if (!handler)
    return fail("is not simulated");
  if ((this->*handler)())
    return true;

  // Each of the steps reads the guard.
  if (given.guard >= 0 && program.steps.size() - first > 1 &&
      is_contained(uses.writes, kParts * uint32_t(given.guard)))
    return fail("writing the guard is not simulated");
  auto file = module.files.find(given.file);
  program.sources.push_back(
      {given.line, given.opcode.str(), opClass,
       file == module.files.end() ? "" : file->second.str(), given.sourceLine});
  if (given.guard >= 0)
    uses.guard = given.guard;
  for (size_t i = first; i < program.steps.size(); ++i) {
    Step &step = program.steps[i];
    step.source = sourceIndex;
    step.last = i + 1 == program.steps.size();
    if (given.guard >= 0) {
      step.guard = registerOffsets[given.guard];
      step.guardNegated = given.guardNegated;
    }
    // All that the instruction reads is read by its first step.
    program.uses.push_back(i == first ? std::move(uses) : Uses());
  }
  uses = Uses();
  return false;
}

Expected<Program> Decoder::run() {
  program.name = kernel.name.str();
  layOut();
  if (layOutVariables())
    return std::move(error);
  for (const ParamDecl &param : kernel.params)
    program.params.push_back({param.offset, param.size});
  program.paramBytes = kernel.paramBytes;
  std::copy(kernel.reqntid, kernel.reqntid + 3, program.reqntid);
  program.maxntid = kernel.maxntid;
  std::copy(kernel.cluster, kernel.cluster + 3, program.cluster);

  for (const Instruction &given : kernel.instructions)
    if (decode(given))
      return std::move(error);
  if (checkNarrowStores())
    return std::move(error);
  // Running off the end returns.
  firstStep.push_back(uint32_t(program.steps.size()));
  Step end;
  end.form = Form::Exit;
  end.source = uint32_t(program.sources.size());
  end.guard = kAllOnes;
  unsigned line = kernel.instructions.empty() ? kernel.line
                                              : kernel.instructions.back().line;
  program.sources.push_back({line, "ret", OpClass::Control, "", 0});
  program.steps.push_back(end);
  program.uses.emplace_back();

  for (Step &step : program.steps)
    if (step.form == Form::Branch)
      step.imm = firstStep[step.imm];
  for (auto &entries : program.branchTables)
    for (uint32_t &entry : entries)
      entry = firstStep[entry];
  findReconvergence(program);
  program.frame.resize((frameSize + 63) / 64 * 64);
  return std::move(program);
}

Expected<Program> decodeKernel(const Module &module, unsigned kernel,
                               ArrayRef<uint64_t> addresses,
                               const LaneTable &table) {
  return Decoder(module, module.kernels[kernel], int32_t(kernel), addresses,
                 table)
      .run();
}

} // namespace dither::runtime::sim
