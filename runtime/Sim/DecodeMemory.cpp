#include "Decoder.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace dither::runtime::sim {

/// `.shared` and `.shared::cta`, ..; no space is the generic one.
bool Decoder::takeSpace(Space &space) {
  space = Space::Generic;
  if (has("shared::cluster")) {
    space = Space::Shared;
    inCluster = true;
    return require(90, 78, "'.shared::cluster'");
  }
  if (has("shared::cta")) {
    space = Space::Shared;
    return require(30, 78, "'.shared::cta'");
  }
  if (has("shared"))
    space = Space::Shared;
  else if (has("global"))
    space = Space::Global;
  else if (has("local"))
    space = Space::Local;
  else if (has("const"))
    space = Space::Const;
  else if (has("param") || has("param::entry"))
    space = Space::Param;
  return false;
}

/// Orders, scopes, caches and prefetches: of no effect here, as the simulator
/// runs one access at a time. `hint` says whether a cache policy follows,
/// `isStrong` whether other blocks may access the same bytes.
bool Decoder::takeCacheModifiers(bool &hint, bool *isStrong) {
  auto hasAny = [&](std::initializer_list<StringRef> names) {
    return any_of(
        names, [&](StringRef name) { return is_contained(modifiers, name); });
  };
  if (isStrong)
    *isStrong =
        hasAny({"volatile", "mmio"}) ||
        (hasAny({"relaxed", "acquire", "release"}) && hasAny({"gpu", "sys"}));
  hint = has("L2::cache_hint");
  if (hint && require(80, 74, "'.L2::cache_hint'"))
    return true;
  for (StringRef name :
       {"weak", "volatile", "relaxed",  "acquire", "release", "acq_rel",
        "mmio", "cta",      "cluster",  "gpu",     "sys",     "ca",
        "cg",   "cs",       "lu",       "cv",      "wb",      "wt",
        "nc",   "L2::64B",  "L2::128B", "L2::256B"})
    has(name);
  for (StringRef level : {"L1::", "L2::"})
    if (any_of(modifiers,
               [&](StringRef name) { return name.starts_with(level); })) {
      if (require(70, 74, "eviction priorities"))
        return true;
      hasPrefix(level);
    }
  return false;
}

bool Decoder::decodeAddress(const Operand &operand, MemoryInfo &info) {
  if (operand.kind != Operand::Address)
    return fail("expected an address");
  const Operand &base = operand.elements[0];
  info.offset = operand.offset;
  Space space = Space(info.space);
  switch (base.kind) {
  case Operand::Register: {
    unsigned width = sizeOf(kernel.registers[base.index].type);
    // Addresses of 32 bits are extended with zeros.
    if (width != 8 && width != 4)
      return fail("addresses have 32 or 64 bits");
    info.addressWidth = uint8_t(width);
    return read(base, width == 8 ? Type::B64 : Type::B32, info.address);
  }
  case Operand::Immediate:
    info.address = constant(8, 0);
    return false;
  case Operand::Param:
    if (space != Space::Param)
      return fail("a parameter is in the param space");
    info.address = constant(8, kernel.params[base.index].offset);
    return false;
  case Operand::Variable: {
    uint64_t address = 0;
    Space declared;
    if (variableAddress(base, address, &declared))
      return true;
    if (space != declared)
      return fail("'" + module.variables[base.index].name + "' is in the " +
                  spaceName(declared) + " space");
    info.address = constant(8, address);
    return false;
  }
  default:
    return fail("expected an address");
  }
}

/// The registers that are loaded or stored, with their widths.
bool Decoder::vectorElements(const Operand &operand, MemoryInfo &info,
                             Type type, bool isLoad) {
  bool isVector = operand.kind == Operand::Vector;
  size_t count = isVector ? operand.elements.size() : 1;
  if (count != info.count)
    return fail(Twine(count) + " elements, expected " +
                Twine(unsigned(info.count)));
  for (size_t i = 0; i < count; ++i) {
    const Operand &element = isVector ? operand.elements[i] : operand;
    if (isLoad && element.kind == Operand::Sink) {
      info.registers[i] = ~0u;
      info.widths[i] = uint8_t(sizeOf(type));
      continue;
    }
    if (isLoad ? write(element, type, info.registers[i], Fit::Wider)
               : read(element, type, info.registers[i], Fit::Wider))
      return true;
    info.widths[i] = uint8_t(widthOf(element, type));
    if (!isLoad && element.kind == Operand::Register &&
        info.widths[i] > sizeOf(type))
      narrowStores.push_back({instruction, element.index});
  }
  return false;
}

/// The PTX ISA has a store write the low bits of a wider register. But of one
/// that has a single definition, by an instruction whose result is a number,
/// ptxas 12.9 and 13.0 store that number converted to an integer.
bool Decoder::checkNarrowStores() {
  for (auto [store, reg] : narrowStores) {
    const Definitions &all = definitions[reg];
    if (all.count != 1 ||
        !is_contained({Type::F16, Type::BF16, Type::F32, Type::F64}, all.type))
      continue;
    instruction = store;
    return fail("stores a part of " + kernel.registers[reg].text() +
                ", which " + all.opcode +
                " makes: ptxas converts it, expected a move first");
  }
  return false;
}

static uint8_t takeVector(ArrayRef<StringRef> modifiers) {
  for (auto [name, count] :
       {std::pair<StringRef, uint8_t>{"v2", 2}, {"v4", 4}, {"v8", 8}})
    if (is_contained(modifiers, name))
      return count;
  return 1;
}

bool Decoder::decodeLoad() { return decodeAccess(/*isLoad=*/true); }
bool Decoder::decodeStore() { return decodeAccess(/*isLoad=*/false); }

bool Decoder::decodeAccess(bool isLoad) {
  StringRef verb = isLoad ? "load" : "store";
  MemoryInfo info;
  Type type;
  Space space;
  bool hint = false;
  opClass = OpClass::Memory;
  if (takeType(type) || takeSpace(space) ||
      takeCacheModifiers(hint, &info.isStrong))
    return true;
  info.space = uint8_t(space);
  info.isCluster = inCluster;
  info.count = takeVector(modifiers);
  hasPrefix("v");
  if (!sizeOf(type) || sizeOf(type) > 8 || (isFloat(type) && sizeOf(type) < 4))
    return fail("does not " + verb + " ." + typeName(type));
  if (!isLoad && (space == Space::Const || space == Space::Param))
    return fail("the " + spaceName(space) + " space is read only");
  info.size = uint8_t(sizeOf(type));
  info.isSigned = isLoad && isSigned(type);
  if (info.size * info.count > 16) {
    if (info.size * info.count > 32 || info.size < 4)
      return fail("is too wide");
    if (require(100, 88, "a " + verb.str() + " of 32 bytes"))
      return true;
    if (space != Space::Global && space != Space::Generic)
      return fail("a " + verb + " of 32 bytes is " + (isLoad ? "from" : "to") +
                  " the global space");
  }
  ArrayRef<Operand> operands = instruction->operands;
  if (finish(hint ? 3 : 2) || decodeAddress(operands[isLoad ? 1 : 0], info) ||
      vectorElements(operands[isLoad ? 0 : 1], info, type, isLoad))
    return true;
  Step &step = emit(isLoad ? Form::Load : Form::Store);
  step.imm = uint32_t(program.memories.size());
  program.memories.push_back(info);
  return false;
}

/// ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}{.shared}.b16 {d}, [a], and
/// stmatrix likewise: matrices of 8 x 8.
bool Decoder::decodeMatrix() {
  bool isLoad = base == "ldmatrix";
  MemoryInfo info;
  Type type;
  Space space;
  opClass = OpClass::Memory;
  if (isLoad ? require(75, 65) : require(90, 78))
    return true;
  if (takeType(type) || takeSpace(space))
    return true;
  if (!has("sync") || !has("aligned"))
    return fail("needs .sync.aligned");
  if (!has("m8n8") || type != Type::B16)
    return fail("is simulated for .m8n8 and .b16 alone");
  if (space != Space::Shared || inCluster)
    return fail("is simulated for the shared space alone");
  info.space = uint8_t(space);
  info.isCluster = inCluster;
  info.isMatrix = true;
  info.isTransposed = has("trans");
  info.count = 0;
  for (auto [name, count] :
       {std::pair<StringRef, uint8_t>{"x1", 1}, {"x2", 2}, {"x4", 4}})
    if (has(name))
      info.count = count;
  if (!info.count)
    return fail("needs .x1, .x2 or .x4");
  info.size = 4;
  ArrayRef<Operand> operands = instruction->operands;
  if (finish(2) || decodeAddress(operands[isLoad ? 1 : 0], info) ||
      vectorElements(operands[isLoad ? 0 : 1], info, Type::B32, isLoad))
    return true;
  for (unsigned i = 0; i < info.count; ++i)
    if (info.widths[i] != 4)
      return fail("has registers of 32 bits");
  Step &step = emit(isLoad ? Form::Load : Form::Store);
  step.imm = uint32_t(program.memories.size());
  program.memories.push_back(info);
  return false;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static std::optional<AtomicType> atomicType(Type type) {
  switch (type) {
  case Type::B16:
    return AtomicType::B16;
  case Type::B32:
    return AtomicType::B32;
  case Type::B64:
    return AtomicType::B64;
  case Type::U32:
    return AtomicType::U32;
  case Type::U64:
    return AtomicType::U64;
  case Type::S32:
    return AtomicType::S32;
  case Type::S64:
    return AtomicType::S64;
  case Type::F32:
    return AtomicType::F32;
  case Type::F64:
    return AtomicType::F64;
  case Type::F16:
    return AtomicType::F16;
  case Type::BF16:
    return AtomicType::BF16;
  case Type::F16x2:
    return AtomicType::F16x2;
  case Type::BF16x2:
    return AtomicType::BF16x2;
  default:
    return std::nullopt;
  }
}

/// Which operations there are for which types (ISA, atom).
static bool fits(AtomicOp op, Type type) {
  bool isBits = classOf(type) == TypeClass::Bits;
  bool isInt = isInteger(type) && !isBits;
  switch (op) {
  case AtomicOp::And:
  case AtomicOp::Or:
  case AtomicOp::Xor:
  case AtomicOp::Exch:
    return type == Type::B32 || type == Type::B64;
  case AtomicOp::Cas:
    return isBits && sizeOf(type) >= 2;
  case AtomicOp::Inc:
  case AtomicOp::Dec:
    return type == Type::U32;
  case AtomicOp::Add:
    return (isInt && type != Type::S64) || isFloat(type);
  case AtomicOp::Min:
  case AtomicOp::Max:
    return isInt;
  }
  return false;
}

/// atom d, [a], b{, c}; red [a], b
bool Decoder::decodeAtomic() {
  MemoryInfo info;
  Type type;
  Space space;
  bool hint = false, isRed = base == "red";
  opClass = OpClass::Atomic;
  if (takeType(type) || takeSpace(space) || takeCacheModifiers(hint))
    return true;
  info.space = uint8_t(space);
  info.isCluster = inCluster;
  std::optional<AtomicOp> op;
  for (auto [name, value] :
       {std::pair<StringRef, AtomicOp>{"add", AtomicOp::Add},
        {"min", AtomicOp::Min},
        {"max", AtomicOp::Max},
        {"and", AtomicOp::And},
        {"or", AtomicOp::Or},
        {"xor", AtomicOp::Xor},
        {"exch", AtomicOp::Exch},
        {"cas", AtomicOp::Cas},
        {"inc", AtomicOp::Inc},
        {"dec", AtomicOp::Dec}})
    if (has(name))
      op = value;
  std::optional<AtomicType> kind = atomicType(type);
  if (!op || !kind || !fits(*op, type) ||
      (isRed && (*op == AtomicOp::Exch || *op == AtomicOp::Cas)))
    return fail("is not simulated for ." + typeName(type));
  bool half = isFloat(type) && type != Type::F32 && type != Type::F64;
  if (half && !has("noftz"))
    return fail("needs .noftz");
  if ((type == Type::BF16 || type == Type::BF16x2) && require(90, 78))
    return true;
  if (space != Space::Generic && space != Space::Global &&
      space != Space::Shared)
    return fail("is for the global and the shared space");
  info.op = *op;
  info.type = *kind;
  info.size = uint8_t(sizeOf(type));
  unsigned first = isRed ? 0 : 1;
  unsigned sources = *op == AtomicOp::Cas ? 2 : 1;
  if (finish(first + 1 + sources + (hint ? 1 : 0)) ||
      decodeAddress(instruction->operands[first], info))
    return true;
  for (unsigned i = 0; i < sources; ++i)
    if (read(first + 1 + i, type, info.operands[i]))
      return true;
  info.registers[0] = ~0u;
  if (!isRed && instruction->operands[0].kind != Operand::Sink &&
      write(0, type, info.registers[0]))
    return true;
  info.widths[0] = info.size;
  Step &step = emit(Form::Atomic);
  step.imm = uint32_t(program.memories.size());
  program.memories.push_back(info);
  return false;
}

/// Prefetches have no effect here, and may be of any address.
bool Decoder::decodePrefetch() {
  opClass = OpClass::Memory;
  Space space;
  if (takeSpace(space))
    return true;
  hasPrefix("L1");
  hasPrefix("L2");
  has("tensormap");
  if (finish(1, 2))
    return true;
  emit(Form::Nop);
  return false;
}

} // namespace dither::runtime::sim
