//===- FormatTest.cpp - Formats built in C++ ------------------------------===//

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Numerics/Formats.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace dither;
using numerics::ScaleRounding;
using numerics::ScaleRule;
using quant::FormatAttr;

namespace {

struct Formats : testing::Test {
  Formats() { context.loadDialect<quant::QuantDialect>(); }

  /// The message for a format with these parameters; empty if it is valid.
  std::string check(Type elem, Type scale, int64_t rows, int64_t cols,
                    bool tensorScale, ScaleRule rule = {}) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    FormatAttr format = FormatAttr::getChecked(
        [&] { return emitError(UnknownLoc::get(&context)); }, &context, elem,
        scale, rows, cols, tensorScale, /*transposed=*/false, rule);
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
    EXPECT_EQ(format.getName().str(), f.name);
    auto extent = [](unsigned n) {
      return n ? int64_t(n) : ShapedType::kDynamic;
    };
    EXPECT_EQ(format.getBlockRows(), extent(f.blockRows));
    EXPECT_EQ(format.getBlockCols(), extent(f.blockCols));
    EXPECT_EQ(format.getTensorScale(), f.tensorScale);
    EXPECT_EQ(format.getTransposed(), f.transposed);
    EXPECT_EQ(format.getRange(), f.range());
    EXPECT_EQ(&format.getElemFormat(), f.elem);
    EXPECT_EQ(&format.getScaleFormat(), f.scale);
    EXPECT_EQ(format.getRule(), f.rule);
  }
  EXPECT_FALSE(FormatAttr::named(&context, "nvfp5"));
}

TEST_F(Formats, AreWhatTheirFieldsSay) {
  Type e2m1 = Float4E2M1FNType::get(&context),
       e4m3 = Float8E4M3FNType::get(&context),
       e8m0 = Float8E8M0FNUType::get(&context);
  auto with = [&](Type elem, Type scale, int64_t cols, bool tensorScale) {
    return check(elem, scale, 1, cols, tensorScale);
  };
  EXPECT_EQ(with(e2m1, e8m0, 32, false), "");
  EXPECT_EQ(with(e4m3, e8m0, 32, false), "");
  EXPECT_EQ(with(e2m1, e4m3, 64, false), "");
  EXPECT_EQ(with(e8m0, e8m0, 32, false),
            "found elements of 'f8E8M0FNU', expected f4E2M1FN, f6E2M3FN, "
            "f6E3M2FN, i8, f8E4M3FN or f8E5M2");
  EXPECT_EQ(with(e2m1, e2m1, 32, false),
            "found scales of 'f4E2M1FN', expected f8E8M0FNU, f8E4M3FN or f32");
  EXPECT_EQ(with(e2m1, e8m0, 0, false),
            "found blocks of [1, 0], expected positive powers of two, "
            "[1, ?] or [?, ?]");
  // No name stands for a description that is not its own.
  FormatAttr f = FormatAttr::get(&context, e2m1, e8m0, 1, 16, false, false,
                                 ScaleRule{ScaleRounding::Floor});
  EXPECT_EQ(f.getName(), "");
  EXPECT_NE(f, FormatAttr::named(&context, "mxfp4"));
  EXPECT_EQ(f.describe(), "f4E2M1FN, scale = f8E8M0FNU, block = [1, 16], "
                          "scale_rounding = floor");
}

TEST_F(Formats, BlocksRunAlongTheAxis) {
  FormatAttr f = FormatAttr::named(&context, "nvfp4");
  EXPECT_EQ(f.getBlockExtents(1, 2), (SmallVector<int64_t>{1, 16}));
  EXPECT_EQ(f.getBlockExtents(0, 2), (SmallVector<int64_t>{16, 1}));
  EXPECT_EQ(f.getBlockExtents(0, 1), (SmallVector<int64_t>{16}));
  f = FormatAttr::get(&context, f.getElem(), f.getScale(), 4, 16, false, false,
                      ScaleRule{});
  EXPECT_EQ(f.getBlockExtents(1, 2), (SmallVector<int64_t>{4, 16}));
  EXPECT_EQ(f.getBlockExtents(0, 2), (SmallVector<int64_t>{16, 4}));
}

} // namespace
