//===- InferenceTest.cpp - Shape inference of the quant dialect -----------===//
//
// Builders call shape inference with whatever operands and attributes they were
// given, before any verifier has seen them. It has to fail with a message then,
// and what it accepts has to be what the verifier accepts.
//
//===----------------------------------------------------------------------===//

#include "dither/Dialect/Quant/QuantOps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace mlir;
using namespace dither;

namespace {

struct Inference : testing::Test {
  Inference() : loc(UnknownLoc::get(&context)) {
    context.loadDialect<quant::QuantDialect>();
    for (StringRef text : {"tensor<f32>",
                           "tensor<128xf32>",
                           "tensor<4x128xf32>",
                           "tensor<64x32xbf16>",
                           "tensor<?x?xf32>",
                           "tensor<4x?xf16>",
                           "tensor<0x0xf32>",
                           "tensor<4x128xf4E2M1FN>",
                           "tensor<4x8xf8E4M3FN>",
                           "tensor<4x4xf8E8M0FNU>",
                           "tensor<4x128xf8E5M2>",
                           "tensor<2x32x32xf32>",
                           "tensor<*xf32>",
                           "i32",
                           "memref<4x128xf32>",
                           "tensor<1x9223372036854775807xf8E4M3FN>",
                           "index",
                           "memref<i64>",
                           "i1",
                           "tensor<4x1xf32>",
                           "tensor<4x128xi32>"})
      values.push_back(block.addArgument(parseType(text, &context), loc));
  }

  struct Outcome {
    LogicalResult inferred = failure();
    SmallVector<Type> types;
    std::string message;
  };

  Outcome infer(StringRef name, ValueRange operands, DictionaryAttr attrs) {
    Outcome outcome;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      outcome.message = diagnostic.str();
      return success();
    });
    RegisteredOperationName info =
        *RegisteredOperationName::lookup(name, &context);
    std::vector<char> storage(info.getOpPropertyByteSize() + 1);
    OpaqueProperties properties(storage.data());
    info.initOpProperties(properties, OpaqueProperties(nullptr));
    LogicalResult set = success();
    if (info.getOpPropertyByteSize())
      set = info.setOpPropertiesFromAttribute(info, properties, attrs,
                                              [&] { return emitError(loc); });
    if (succeeded(set))
      outcome.inferred =
          info.getInterface<InferTypeOpInterface>()->inferReturnTypes(
              &context, loc, operands, attrs, properties, {}, outcome.types);
    info.destroyOpProperties(properties);
    return outcome;
  }

  DictionaryAttr dictionary(StringRef text) {
    return cast<DictionaryAttr>(parseAttribute(text, &context));
  }
  std::string types(StringRef name, ArrayRef<int> operands, StringRef attrs) {
    SmallVector<Value> picked;
    for (int i : operands)
      picked.push_back(values[i]);
    Outcome outcome = infer(name, picked, dictionary(attrs));
    if (failed(outcome.inferred))
      return "error: " + outcome.message;
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(outcome.types, os);
    return text;
  }

  MLIRContext context;
  Location loc;
  Block block;
  SmallVector<Value> values;
};

/// A valid operation: operands by their index in Inference::values.
struct Example {
  const char *name;
  std::vector<int> operands;
  const char *attrs, *types;
};
const Example kExamples[] = {
    {"quant.program_id", {}, "{dim = #quant<dim x>}", "index"},
    {"quant.cluster_rank", {}, "{}", "index"},
    {"quant.tile_id", {}, "{count = 4}", "index"},
    {"quant.cluster_reduce",
     {0},
     "{kind = #quant<reduce_kind sum>, blocks = 2}",
     "tensor<f32>"},
    {"quant.num_programs", {}, "{dim = #quant<dim x>}", "index"},
    {"quant.fetch_add", {16, 17}, "{}", "index"},
    {"quant.first_part", {18}, "{}", "i1"},
    {"quant.likely", {18}, "{}", "i1"},
    {"quant.transpose", {3}, "{}", "tensor<32x64xbf16>"},
    {"quant.exp", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.exp2", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.log", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.log2", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.tanh", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.sigmoid", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.erf", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.sin", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.cos", {2}, "{}", "tensor<4x128xf32>"},
    {"quant.mulhi", {13, 13}, "{}", "i32"},
    {"quant.fma_toward_zero", {2, 2, 2}, "{}", "tensor<4x128xf32>"},
    {"quant.hadamard", {2}, "{axis = 1, size = 16}", "tensor<4x128xf32>"},
    {"quant.view",
     {14},
     "{dims = array<i64: 0, 1>}",
     "memref<4x128xf32, strided<[128, 1]>>"},
    {"quant.slice",
     {14, 16, 16},
     "{dim = 0}",
     "memref<?x128xf32, strided<[128, 1]>>"},
    {"quant.cluster_part",
     {14},
     "{run = 16, blocks = 4}",
     "memref<4x32xf32, strided<[128, 1]>>"},
    {"quant.has_special", {2}, "{}", "i1"},
    {"quant.reduce",
     {2},
     "{kind = #quant<reduce_kind sum>, axis = 1, count = 128}",
     "tensor<4x1xf32>"},
    {"quant.block_reduce",
     {2},
     "{kind = #quant<reduce_kind amax>, block = array<i64: 2, 16>}",
     "tensor<2x8xf32>"},
    {"quant.block_broadcast",
     {8},
     "{block = array<i64: 1, 16>}",
     "tensor<4x128xf8E4M3FN>"},
    {"quant.block_scale",
     {2, 0},
     "{format = #quant.format<nvfp4>, axis = 1}",
     "tensor<4x8xf8E4M3FN>"},
    {"quant.block_scale",
     {3},
     "{format = #quant.format<mxfp4>, axis = 0}",
     "tensor<2x32xf8E8M0FNU>"},
    {"quant.cast_fp4",
     {2, 9},
     "{format = #quant.format<mxfp4>, axis = 1}",
     "tensor<4x128xf4E2M1FN>"},
    {"quant.cast_fp6",
     {2, 9},
     "{format = #quant.format<f6E2M3FN, scale = f8E8M0FNU, block = [1, 32]>, "
     "axis = 1}",
     "tensor<4x128xf6E2M3FN>"},
    {"quant.cast_int8",
     {2, 9},
     "{format = #quant.format<mxint8>, axis = 1}",
     "tensor<4x128xi8>"},
    {"quant.cast_fp8",
     {2, 9},
     "{format = #quant.format<mxfp8_e5m2>, axis = 1}",
     "tensor<4x128xf8E5M2>"},
    {"quant.scale",
     {2, 9},
     "{format = #quant.format<mxfp8_e5m2>, axis = 1}",
     "tensor<4x128xf32>"},
    {"quant.stochastic_round",
     {2, 20},
     "{elem = f8E4M3FN}",
     "tensor<4x128xf32>"},
    {"quant.dequantize",
     {7, 8, 0},
     "{format = #quant.format<nvfp4>, axis = 1}",
     "tensor<4x128xf32>"},
    {"quant.rms_norm",
     {2, 1},
     "{eps = 0.0 : f32}",
     "tensor<4x128xf32>, tensor<4x1xf32>"},
    {"quant.layer_norm",
     {2, 1, 1},
     "{eps = 0.0 : f32}",
     "tensor<4x128xf32>, tensor<4x1xf32>, tensor<4x1xf32>"},
    {"quant.rms_norm_backward",
     {2, 2, 1, 19},
     "{}",
     "tensor<4x128xf32>, tensor<4x128xf32>"},
    {"quant.layer_norm_backward",
     {2, 2, 1, 19, 19},
     "{}",
     "tensor<4x128xf32>, tensor<4x128xf32>"},
    {"quant.swizzle_scales", {9}, "{}", "tensor<128x4xf8E8M0FNU>"},
};

TEST_F(Inference, Results) {
  for (const Example &example : kExamples)
    EXPECT_EQ(types(example.name, example.operands, example.attrs),
              example.types)
        << example.name;
  EXPECT_EQ(types("quant.rms_norm", {5, 1}, "{eps = 0.0 : f32}"),
            "tensor<4x?xf32>, tensor<4x1xf32>");
  EXPECT_EQ(types("quant.rms_norm_backward", {2, 5, 1, 19}, "{}"),
            "tensor<4x?xf32>, tensor<4x?xf32>");
}

TEST_F(Inference, Messages) {
  EXPECT_EQ(types("quant.reduce", {}, "{}"),
            "error: 'quant.reduce' op has 0 operands, expected at least 1");
  EXPECT_EQ(types("quant.reduce", {2}, "{kind = #quant<reduce_kind sum>}"),
            "error: 'quant.reduce' op has no attribute 'axis'");
  EXPECT_EQ(types("quant.reduce", {12}, "{axis = 1 : i64}"),
            "error: 'quant.reduce' op source is 'tensor<*xf32>', expected a "
            "ranked tensor");
  EXPECT_EQ(types("quant.reduce", {13}, "{axis = 1 : i64}"),
            "error: 'quant.reduce' op source is 'i32', expected a ranked "
            "tensor");
  EXPECT_EQ(types("quant.block_reduce", {2}, "{}"),
            "error: 'quant.block_reduce' op has no attribute 'block'");
  EXPECT_EQ(types("quant.block_scale", {2}, "{axis = 1 : i64}"),
            "error: 'quant.block_scale' op has no attribute 'format'");
  EXPECT_EQ(types("quant.cast_fp4", {2}, "{axis = 1 : i64}"),
            "error: 'quant.cast_fp4' op has 1 operands, expected at least 2");
  EXPECT_EQ(types("quant.cast_fp4", {2, 9}, "{axis = 1 : i64}"),
            "error: 'quant.cast_fp4' op has no attribute 'format'");
}

/// Without a location nothing is reported.
TEST_F(Inference, IsSilentWithoutALocation) {
  unsigned diagnostics = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
    ++diagnostics;
    return success();
  });
  SmallVector<Type> results;
  EXPECT_TRUE(failed(quant::ReduceOp::inferReturnTypes(
      &context, std::nullopt, {values[2]}, dictionary("{}"),
      OpaqueProperties(nullptr), {}, results)));
  EXPECT_EQ(diagnostics, 0u);
}

/// Valid operations with random changes: inference fails with a message or
/// gives types that the verifier takes for the right ones.
TEST_F(Inference, SurvivesAnything) {
  std::set<StringRef> names;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "quant" &&
        name.hasInterface<InferTypeOpInterface>())
      names.insert(name.getStringRef());
  for (const Example &example : kExamples)
    names.erase(example.name);
  ASSERT_TRUE(names.empty()) << names.begin()->str() << " has no example";

  const std::vector<std::pair<StringRef, std::vector<StringRef>>> choices = {
      {"axis", {"-1", "0", "1", "2", "1099511627776", "1 : i8", "1 : i128"}},
      {"block",
       {"array<i64>", "array<i64: 1, 16>", "array<i64: 0, 0>",
        "array<i64: -1, 3>", "array<i64: 4611686018427387904, 2>",
        "array<i64: 16>", "array<i32: 1, 16>"}},
      {"format",
       {"#quant.format<nvfp4>", "#quant.format<mxfp4>",
        "#quant.format<mxfp8_e4m3>", "1"}},
      {"kind", {"#quant<reduce_kind sum>", "#quant<reduce_kind amax>"}},
      {"count", {"0", "1", "128", "129"}},
      {"eps", {"0.0 : f32", "-1.0 : f32", "1.0 : f64"}},
      {"dim", {"#quant<dim y>", "unit"}},
  };
  std::vector<NamedAttribute> attributes;
  for (auto &[key, texts] : choices)
    for (StringRef text : texts)
      attributes.emplace_back(StringAttr::get(&context, key),
                              parseAttribute(text, &context));

  std::mt19937 random(1);
  auto pick = [&](size_t n) { return size_t(random() % n); };
  unsigned inferred = 0, valid = 0;
  for (unsigned i = 0; i < 60000; ++i) {
    const Example &example = kExamples[i % std::size(kExamples)];
    SmallVector<Value> operands;
    for (int index : example.operands)
      operands.push_back(values[index]);
    NamedAttrList attrs(dictionary(example.attrs));
    for (size_t changes = pick(4); changes; --changes) {
      switch (pick(5)) {
      case 0:
        operands.push_back(values[pick(values.size())]);
        break;
      case 1:
        if (!operands.empty())
          operands.pop_back();
        break;
      case 2:
        if (!operands.empty())
          operands[pick(operands.size())] = values[pick(values.size())];
        break;
      case 3:
        attrs.erase(attributes[pick(attributes.size())].getName());
        break;
      default: {
        NamedAttribute attr = attributes[pick(attributes.size())];
        if (attrs.get(attr.getName()))
          attrs.set(attr.getName(), attr.getValue());
      }
      }
    }
    Outcome outcome =
        infer(example.name, operands, attrs.getDictionary(&context));
    if (failed(outcome.inferred)) {
      EXPECT_FALSE(outcome.message.empty()) << example.name;
      continue;
    }
    ++inferred;
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    OperationState state(loc, example.name, operands, outcome.types,
                         attrs.getAttrs());
    Operation *op = Operation::create(state);
    valid += succeeded(verify(op));
    // The verifier's own messages about results.
    EXPECT_EQ(message.find("op result"), std::string::npos) << message;
    EXPECT_EQ(message.find("block_scale' op scale has"), std::string::npos)
        << message;
    EXPECT_EQ(message.find("return type"), std::string::npos) << message;
    op->destroy();
  }
  // Neither side of either question is rare.
  EXPECT_GT(valid, 10000u);
  EXPECT_GT(inferred, valid + 1000);
  EXPECT_LT(inferred, 50000u);
}

} // namespace
