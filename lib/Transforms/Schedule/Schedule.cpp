//===- Schedule.cpp - The loops of a program as data ----------------------===//

#include "Schedule/Schedule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace dither::transforms {

static Node node(Node::Kind kind) {
  Node n;
  n.kind = kind;
  return n;
}

/// What a phase finds is for the phases after it, and not for loops around it.
static bool asksIn(const Node &n) {
  return n.kind == Node::Ask || (n.kind == Node::Loop && n.asks);
}

Node Node::loop(Axis axis, Bound from, Bound to, int64_t step,
                std::vector<Node> body) {
  Node n = node(Loop);
  n.axis = axis;
  n.from = from;
  n.to = to;
  n.step = step;
  n.asks = llvm::any_of(body, asksIn);
  n.body = std::move(body);
  return n;
}

Node Node::phase(unsigned index, std::vector<Node> body) {
  Node n = node(Phase);
  n.index = index;
  n.body = std::move(body);
  return n;
}

Node Node::band(int64_t rows) {
  Node n = node(Band);
  n.step = rows;
  return n;
}

Node Node::stretch() { return node(Stretch); }

Node Node::measure(int64_t step) {
  Node n = node(Measure);
  n.step = step;
  return n;
}

Node Node::whole(Value tile) {
  Node n = node(Whole);
  n.tile = tile;
  return n;
}

Node Node::take(const Sink &sink) {
  Node n = node(Take);
  n.tile = sink.tile;
  n.sink = sink.op;
  return n;
}

Node Node::keep(unsigned index, Value tile) {
  Node n = node(Keep);
  n.index = index;
  n.tile = tile;
  return n;
}

Node Node::piece(unsigned index, Value tile) {
  Node n = node(Piece);
  n.index = index;
  n.tile = tile;
  return n;
}

Node Node::clear(unsigned index) {
  Node n = node(Clear);
  n.index = index;
  return n;
}

Node Node::collect(unsigned index, Value tile) {
  Node n = node(Collect);
  n.index = index;
  n.tile = tile;
  return n;
}

Node Node::ask() { return node(Ask); }

Node &&Node::alone(bool isInside) && {
  barrier = true;
  inside = isInside;
  return std::move(*this);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static StringRef name(Axis axis) {
  return axis == Axis::Rows ? "rows" : "cols";
}

static void print(raw_ostream &os, Bound bound) {
  switch (bound.kind) {
  case Bound::Constant:
    os << bound.value;
    break;
  case Bound::Stored:
    os << "stored";
    break;
  case Bound::Band:
    os << "band";
    break;
  case Bound::Inside:
    os << "inside";
    break;
  case Bound::Redo:
    os << "redo";
    break;
  case Bound::Width:
    os << "width";
    break;
  }
}

/// What computes a tile, and its type.
static void print(raw_ostream &os, Value tile) {
  if (Operation *def = tile.getDefiningOp())
    os << def->getName() << ' ';
  os << tile.getType();
}

static void print(raw_ostream &os, const std::vector<Node> &body,
                  unsigned indent) {
  for (const Node &n : body) {
    os.indent(indent);
    switch (n.kind) {
    case Node::Loop:
      os << "for " << name(n.axis) << ' ';
      print(os, n.from);
      os << " to ";
      print(os, n.to);
      os << " by " << n.step << (n.inside ? " inside" : "")
         << (n.asks ? " asks" : "");
      break;
    case Node::Phase:
      os << "phase " << n.index;
      break;
    case Node::Band:
      os << "band of " << n.step;
      break;
    case Node::Stretch:
      os << "stretch";
      break;
    case Node::Measure:
      os << "measure cols by " << n.step;
      break;
    case Node::Whole:
      os << "whole ";
      print(os, n.tile);
      break;
    case Node::Take:
      os << n.sink->getName() << " of ";
      print(os, n.tile);
      break;
    case Node::Keep:
      os << "keep " << n.index << ": ";
      print(os, n.tile);
      break;
    case Node::Piece:
      os << "piece " << n.index << " of ";
      print(os, n.tile);
      break;
    case Node::Clear:
      os << "clear total " << n.index;
      break;
    case Node::Collect:
      os << "collect total " << n.index << ": ";
      print(os, n.tile);
      break;
    case Node::Ask:
      os << "ask";
      break;
    }
    os << '\n';
    print(os, n.body, indent + 2);
  }
}

void print(raw_ostream &os, const Schedule &schedule) {
  for (const Nest &nest : schedule.nests) {
    os << "nest" << (nest.squares ? " of squares" : "") << '\n';
    print(os, nest.body, 2);
  }
}

} // namespace dither::transforms
