//===- Parts.cpp - Kernels of two parts -----------------------------------===//
//
// Parts are kernels of their own until both are the code of one lane; then the
// kernel that they are parts of has them in its branch (SplitParts.cpp). What
// the first part hands on is its own flag: an element that the second loads is
// there when it is something else than at the start. So neither waits for what
// others have stored elsewhere, nor drops what its caches hold, as a release
// and an acquire would (docs/measured.md).
//
//===----------------------------------------------------------------------===//

#include "Distribute/Distribute.h"
#include "Emit/Gpu.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dither::transforms {

/// NaN that is stored, as the arithmetic of GPUs has it. Any other stands for
/// an element that is not there yet.
static constexpr uint32_t kNaN = 0x7FFFFFFF;

/// The words of a value of 32-bit elements.
static SmallVector<Value> wordsOf(Emitter &e, Value v) {
  Type i32 = e.b.getI32Type();
  auto vector = dyn_cast<VectorType>(v.getType());
  if (!vector)
    return {v.getType() == i32 ? v : Value(e.make<arith::BitcastOp>(i32, v))};
  SmallVector<Value> words;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    llvm::append_range(
        words, wordsOf(e, e.make<vector::ExtractOp>(v, ArrayRef<int64_t>{i})));
  return words;
}

/// A value of this type that has these words.
static Value ofWords(Emitter &e, Type type, ArrayRef<Value> words) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return type.isInteger(32) ? words.front()
                              : Value(e.make<arith::BitcastOp>(type, words[0]));
  SmallVector<Value> elements;
  for (Value word : words)
    elements.push_back(ofWords(e, vector.getElementType(), word));
  return e.make<vector::FromElementsOp>(vector, elements);
}

static Value wordAt(Emitter &e, Value pointer, int64_t i) {
  if (i == 0)
    return pointer;
  return e.make<LLVM::GEPOp>(pointer.getType(), e.b.getI32Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(i)});
}

static Value isNaN(Emitter &e, Value word) {
  Value f = e.make<arith::BitcastOp>(e.b.getF32Type(), word);
  return e.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, f, f);
}

/// An element is stored whole, and is never what stands for none.
static void storeHandedOn(Emitter &e, LLVM::StoreOp store) {
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPoint(store);
  e.loc = store.getLoc();
  for (auto [i, word] : llvm::enumerate(wordsOf(e, store.getValue()))) {
    Value nan = isNaN(e, word);
    Value stored = e.make<arith::SelectOp>(nan, e.i32(int32_t(kNaN)), word);
    gpu::storeRelaxed(e.b, e.loc, stored, wordAt(e, store.getAddr(), i));
  }
  store.erase();
}

/// Moves what computes `v` before `place`, in the same block.
static LogicalResult hoist(Value v, Operation *place) {
  Operation *def = v.getDefiningOp();
  if (!def || def->getBlock() != place->getBlock() ||
      def->isBeforeInBlock(place))
    return success();
  if (def == place || !isPure(def))
    return def->emitOpError("is between loads of what is handed on from one "
                            "part to another, and places of theirs need it");
  for (Value operand : def->getOperands())
    if (failed(hoist(operand, place)))
      return failure();
  def->moveBefore(place);
  return success();
}

/// The first operation of their block that needs one of `loads`.
static Operation *firstUser(ArrayRef<LLVM::LoadOp> loads) {
  Block *block = LLVM::LoadOp(loads.front())->getBlock();
  Operation *first = block->getTerminator();
  for (LLVM::LoadOp load : loads)
    for (Operation *user : load->getUsers())
      if (Operation *here = block->findAncestorOpInBlock(*user))
        if (here->isBeforeInBlock(first))
          first = here;
  return first;
}

/// Loads of one block, which wait together, and as late as they can: all are on
/// their way at once, and what is loaded elsewhere is before them.
static LogicalResult loadHandedOn(Emitter &e,
                                  MutableArrayRef<LLVM::LoadOp> loads) {
  Operation *place = firstUser(loads);
  for (LLVM::LoadOp load : loads)
    if (failed(hoist(load.getAddr(), place)))
      return failure();
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPoint(place);
  e.loc = loads.front().getLoc();
  SmallVector<Value> pointers;
  SmallVector<size_t> counts;
  for (LLVM::LoadOp load : loads) {
    auto vector = dyn_cast<VectorType>(load.getType());
    counts.push_back(vector ? vector.getNumElements() : 1);
    for (size_t i = 0; i < counts.back(); ++i)
      pointers.push_back(wordAt(e, load.getAddr(), i));
  }
  Value stored = e.i32(int32_t(kNaN));
  SmallVector<Type> types(pointers.size(), e.b.getI32Type());
  auto loop = e.make<scf::WhileOp>(types, ValueRange{});
  {
    OpBuilder::InsertionGuard inner(e.b);
    e.b.createBlock(&loop.getBefore());
    SmallVector<Value> found;
    for (Value pointer : pointers)
      found.push_back(gpu::loadRelaxed(e.b, e.loc, pointer));
    Value waits;
    for (Value word : found) {
      Value nan = isNaN(e, word),
            other =
                e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, word, stored);
      Value isNothing = e.make<arith::AndIOp>(nan, other);
      waits = waits ? Value(e.make<arith::OrIOp>(waits, isNothing)) : isNothing;
    }
    e.make<scf::ConditionOp>(waits, found);
    e.b.createBlock(&loop.getAfter(), {}, types,
                    SmallVector<Location>(types.size(), e.loc));
    e.make<scf::YieldOp>();
  }
  ValueRange words = loop.getResults();
  SmallVector<Value> values;
  for (auto &&[load, count] : llvm::zip(loads, counts)) {
    values.push_back(
        ofWords(e, load.getType(), llvm::to_vector(words.take_front(count))));
    words = words.drop_front(count);
  }
  for (auto &&[load, value] : llvm::zip(loads, values)) {
    load.replaceAllUsesWith(value);
    load.erase();
  }
  return success();
}

/// What accesses memory through `pointer`, or something that is next to it.
static void accessesThrough(Value pointer,
                            SmallVectorImpl<Operation *> &found) {
  for (Operation *user : pointer.getUsers()) {
    if (isa<LLVM::GEPOp, arith::SelectOp>(user))
      accessesThrough(user->getResult(0), found);
    else
      found.push_back(user);
  }
}

LogicalResult Distributor::handOn(func::FuncOp part) {
  SmallVector<Operation *> accesses;
  for (BlockArgument arg : source.getArguments())
    if (source.getArgAttr(arg.getArgNumber(), "quant.handed_on")) {
      Value pointer = memrefs.find(arg)->second.ptr;
      accessesThrough(
          part.getArgument(cast<BlockArgument>(pointer).getArgNumber()),
          accesses);
    }
  llvm::MapVector<Block *, SmallVector<LLVM::LoadOp>> loads;
  for (Operation *op : accesses) {
    if (auto store = dyn_cast<LLVM::StoreOp>(op))
      storeHandedOn(e, store);
    else if (auto load = dyn_cast<LLVM::LoadOp>(op))
      loads[load->getBlock()].push_back(load);
    else
      return op->emitOpError("is of what is handed on from one part to "
                             "another, expected loads and stores");
  }
  for (auto &[block, all] : loads) {
    llvm::sort(all, [](LLVM::LoadOp a, LLVM::LoadOp b) {
      return a->isBeforeInBlock(b);
    });
    if (failed(loadHandedOn(e, all)))
      return failure();
  }
  return success();
}

/// The code of a part, of the same parameters as the kernel.
static Emitted emitPart(Distributor &d, func::CallOp call) {
  auto part = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!part || !part->hasAttr("quant.num_threads"))
    return call.emitOpError("is of no part of the kernel");
  if (failed(d.takePart(part)))
    return failure();
  IRMapping map;
  map.map(part.getArguments(), d.e.entry->getArguments());
  for (Operation &op : part.getBody().front().without_terminator()) {
    auto shared = dyn_cast<LLVM::AddressOfOp>(op);
    if (shared && shared.getGlobalName() == sharedNameOf(part.getName()))
      map.map(shared.getResult(), d.e.sharedBase);
    else
      d.b.clone(op, map);
  }
  return success();
}

LogicalResult Distributor::takePart(func::FuncOp part) {
  auto number = [&](StringRef name) {
    auto attr = part->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  if (number("quant.cluster"))
    return part.emitOpError("has clusters, expected programs of one block");
  int64_t threads = number("quant.num_threads");
  if (partThreads && partThreads != threads)
    return part.emitOpError("has ")
           << threads << " threads, expected " << partThreads
           << " as the other part has: choose num_warps";
  partThreads = threads;
  e.sharedBytes =
      std::max<int64_t>(e.sharedBytes, number("quant.shared_bytes"));
  return handOn(part);
}

void addPartOps(OpTable &table) { table.add(emitPart); }

} // namespace dither::transforms
