//===- FragmentBuilder.h - Builds the loops over fragments ------*- C++ -*-===//
//
// What fragments have of their own: values of blocks around this one, tiles
// that are kept as a whole, and reductions over more than a fragment, which
// become loops of their own.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTBUILDER_H
#define DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTBUILDER_H

#include "Fragments/FragmentPlan.h"
#include "Schedule/ScheduleBuilder.h"

namespace dither::transforms {

class FragmentBuilder : public ScheduleBuilder {
public:
  explicit FragmentBuilder(FragmentPlan &plan) : plan(plan) {}

private:
  mlir::LogicalResult buildNode(const Node &node) override;
  Resolved resolve(mlir::Value v, Offsets offsets, Sizes sizes) override;
  Resolved resolveBlocks(quant::BlockReduceOp reduce, Offsets offsets,
                         Sizes sizes);
  mlir::FailureOr<mlir::Value> partOfWhole(mlir::Value v, Offsets offsets,
                                           Sizes sizes);

  FragmentPlan &plan;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTBUILDER_H
