//===- FormatTest.cpp - Formats built in C++ ------------------------------===//

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Numerics/Formats.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace dither;
using quant::FormatAttr;
using quant::ScaleOrder;
using quant::ScaleRounding;

namespace {

struct Formats : testing::Test {
  Formats() { context.loadDialect<quant::QuantDialect>(); }

  /// The message for a format with these parameters; empty if it is valid.
  std::string check(StringRef name, Type elem, Type scale, int64_t block,
                    bool tensorScale, ScaleRounding rounding,
                    ScaleOrder order) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    FormatAttr format = FormatAttr::getChecked(
        [&] { return emitError(UnknownLoc::get(&context)); }, &context, name,
        elem, scale, block, tensorScale, rounding, order);
    EXPECT_EQ(bool(format), message.empty());
    return message;
  }

  MLIRContext context;
};

TEST_F(Formats, AreThoseOfTheNumericsLibrary) {
  ASSERT_EQ(FormatAttr::names().size(), std::size(numerics::kBlockFormats));
  for (const numerics::BlockFormat &f : numerics::kBlockFormats) {
    auto format =
        FormatAttr::named(&context, StringRef(f.name.data(), f.name.size()));
    ASSERT_TRUE(format);
    std::string elem, scale;
    llvm::raw_string_ostream(elem) << format.getElem();
    llvm::raw_string_ostream(scale) << format.getScale();
    EXPECT_EQ(elem, f.elem->name);
    EXPECT_EQ(scale, f.scale->name);
    EXPECT_EQ(format.getBlock(), f.block);
    EXPECT_EQ(format.getTensorScale(), f.tensorScale);
    EXPECT_EQ(format.getElemMax(), f.elem->max);
    EXPECT_EQ(format.getElemEmax(), f.elem->maxExponent());
    EXPECT_EQ(unsigned(format.getScaleRounding()), unsigned(f.rounding));
    EXPECT_EQ(unsigned(format.getOrder()), unsigned(f.order));
  }
  EXPECT_FALSE(FormatAttr::named(&context, "nvfp5"));
}

TEST_F(Formats, KeepTheTypesOfTheirName) {
  FormatAttr f = FormatAttr::named(&context, "mxfp4");
  auto with = [&](StringRef name, Type elem, Type scale, int64_t block,
                  bool tensorScale) {
    return check(name, elem, scale, block, tensorScale, f.getScaleRounding(),
                 f.getOrder());
  };
  Type e4m3 = Float8E4M3FNType::get(&context);
  EXPECT_EQ(with("mxfp4", f.getElem(), f.getScale(), 32, false), "");
  EXPECT_EQ(with("mxfp5", f.getElem(), f.getScale(), 32, false),
            "unknown format 'mxfp5', expected one of nvfp4, mxfp4, "
            "mxfp8_e4m3, mxfp8_e5m2");
  std::string other =
      "format 'mxfp4' with other types or another block than its own";
  EXPECT_EQ(with("mxfp4", e4m3, f.getScale(), 32, false), other);
  EXPECT_EQ(with("mxfp4", f.getElem(), e4m3, 32, false), other);
  EXPECT_EQ(with("mxfp4", f.getElem(), f.getScale(), 16, false), other);
  EXPECT_EQ(with("mxfp4", f.getElem(), f.getScale(), 32, true), other);
}

TEST_F(Formats, BlocksRunAlongTheAxis) {
  FormatAttr f = FormatAttr::named(&context, "nvfp4");
  EXPECT_EQ(f.getBlockExtents(1, 2), (SmallVector<int64_t>{1, 16}));
  EXPECT_EQ(f.getBlockExtents(0, 2), (SmallVector<int64_t>{16, 1}));
  EXPECT_EQ(f.getBlockExtents(0, 1), (SmallVector<int64_t>{16}));
}

} // namespace
