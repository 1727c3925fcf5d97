//===- DimClasses.cpp - Which dimensions of tile values go together -------===//

#include "Analysis/DimClasses.h"
#include "dither/Dialect/Quant/QuantOps.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

namespace {
using Node = std::pair<Value, unsigned>;
/// coordinate(node) = coordinate(the other end) * num / den.
struct Edge {
  Node to;
  int64_t num, den;
};
struct Fraction {
  int64_t num = 1, den = 1;
  Fraction times(int64_t n, int64_t d) const {
    int64_t a = num * n, b = den * d, g = std::gcd(a, b);
    return {a / g, b / g};
  }
  bool operator!=(const Fraction &o) const {
    return num != o.num || den != o.den;
  }
};
} // namespace

/// Whether each part of `v` is made where it is used, out of nothing: uses of a
/// constant or an iota need not agree on what is a row.
static bool isRebuilt(Value v) {
  Operation *def = v.getDefiningOp();
  return def && def->getNumOperands() == 0 && isPure(def);
}

DimClasses::DimClasses(ArrayRef<Value> roots) {
  DenseMap<Node, SmallVector<Edge>> edges;
  DenseMap<Node, int64_t> granules;
  for (Value root : roots)
    if (isa<RankedTensorType>(root.getType()))
      cone.insert(root);
  for (size_t i = 0; i < cone.size(); ++i) {
    auto result = dyn_cast<OpResult>(cone[i]);
    if (!result)
      continue;
    Operation *op = result.getOwner();
    std::optional<SmallVector<quant::DimRelation>> relations =
        quant::getDimRelations(op, result.getResultNumber());
    if (!relations)
      continue;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        cone.insert(operand);
    for (const quant::DimRelation &r : *relations) {
      if (r.granule > 1)
        granules[{result, r.resultDim}] = r.granule;
      if (isRebuilt(op->getOperand(r.operand)))
        continue;
      Node from{op->getOperand(r.operand), r.operandDim},
          to{result, r.resultDim};
      edges[from].push_back({to, r.mul, r.div});
      edges[to].push_back({from, r.div, r.mul});
    }
    // The tiles of a norm have the same rows and columns, though no part of
    // them has only some of the columns.
    if (auto norm = dyn_cast<quant::NormOpInterface>(op)) {
      SmallVector<Value> tiles(
          op->getResults().take_front(norm.getNumTileResults()));
      llvm::append_range(
          tiles, op->getOperands().take_front(norm.getNumTileOperands()));
      for (Value other : ArrayRef(tiles).drop_front())
        for (unsigned d = 0; d < 2 && !isRebuilt(other); ++d) {
          edges[{tiles.front(), d}].push_back({{other, d}, 1, 1});
          edges[{other, d}].push_back({{tiles.front(), d}, 1, 1});
        }
    }
  }

  // Walk each class from one of its members.
  for (Value root : cone) {
    auto rootType = cast<RankedTensorType>(root.getType());
    for (unsigned d = 0; d < rootType.getRank(); ++d) {
      if (members.contains({root, d}))
        continue;
      int cls = classes.size();
      Class info;
      SmallVector<std::pair<Node, Fraction>> nodes{{{root, d}, {}}};
      DenseMap<Node, Fraction> units{{{root, d}, {}}};
      for (size_t i = 0; i < nodes.size(); ++i) {
        auto [node, unit] = nodes[i];
        // A step of the result is mul / div steps of the operand.
        for (const Edge &e : edges[node]) {
          Fraction next = unit.times(e.num, e.den);
          auto [it, inserted] = units.try_emplace(e.to, next);
          if (inserted)
            nodes.push_back({e.to, next});
          else if (it->second != next)
            info.rigid = true;
        }
      }
      int64_t lcm = 1, gcd = 0;
      for (auto &[node, unit] : nodes)
        lcm = std::lcm(lcm, unit.den);
      for (auto &[node, unit] : nodes)
        gcd = std::gcd(gcd, unit.num * (lcm / unit.den));
      llvm::SmallDenseSet<Value> seen;
      double leafVotes = 0, votes = 0;
      for (auto &[node, unit] : nodes) {
        auto type = cast<RankedTensorType>(node.first.getType());
        int64_t steps = unit.num * (lcm / unit.den) / gcd;
        members[node] = {cls, steps};
        // Half a byte has no address: rows of four-bit codes split in pairs.
        int64_t extent = type.getDimSize(node.second);
        bool pairs = node.second + 1 == type.getRank() &&
                     type.getElementType().isIntOrFloat() &&
                     type.getElementTypeBitWidth() == 4 &&
                     (ShapedType::isDynamic(extent) || extent % 2 == 0);
        if (pairs)
          info.atom = std::lcm(info.atom, 2 * steps);
        if (int64_t granule = granules.lookup(node))
          info.atom = std::lcm(info.atom, granule * steps);
        info.granule = std::lcm(std::lcm(info.granule, steps), info.atom);
        info.extent = type.isDynamicDim(node.second)
                          ? ShapedType::kDynamic
                          : type.getDimSize(node.second) * steps;
        info.isRebuilt &= isRebuilt(node.first);
        if (!seen.insert(node.first).second)
          info.rigid = info.isSquare = true;
        double weight = 1;
        for (int64_t extent : type.getShape())
          weight *= ShapedType::isDynamic(extent) ? 4096 : extent;
        double vote = node.second + 1 == type.getRank() ? weight : -weight;
        votes += vote;
        Operation *def = node.first.getDefiningOp();
        if (!def || def->getNumOperands() == 0 ||
            !isa<RankedTensorType>(def->getOperand(0).getType()))
          leafVotes += vote;
      }
      info.isColumn = (leafVotes != 0 ? leafVotes : votes) >= 0;
      classes.push_back(info);
    }
  }
}

DimClasses::Member DimClasses::member(Value v, unsigned dim) const {
  auto it = members.find({v, dim});
  return it == members.end() ? Member{-1, 1} : it->second;
}

} // namespace dither::transforms
