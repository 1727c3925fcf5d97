// What is refused at load, as ptxas refuses it.
#include "SimTest.h"

using namespace dither::test;
using namespace llvm;

namespace {

/// The error of one instruction on a target, without the kernel's name and the
/// line; empty where it loads.
std::string loadError(const std::string &instruction,
                      const std::string &target = "sm_90a",
                      const std::string &version = "9.1") {
  Sim sim(target);
  auto kernel = sim.load(
      kernelOf(".reg .pred q<4>; .reg .b8 b<4>; .reg .b16 h<4>; .reg .b32 "
               "r<9>; .reg .b64 d<5>; .reg .f32 f<5>; .reg .f64 g<5>; .reg "
               ".u32 u<4>; .shared .align 16 .b8 sm[64];\n" +
                   instruction,
               1, target, version),
      32, {ParamKind::Pointer});
  std::string text = message(std::move(kernel));
  if (text == "no error")
    return "";
  size_t at = text.find("line ");
  return text.substr(text.find(": ", at) + 2);
}

struct Need {
  const char *instruction;
  /// The first target that has it (of ours), and the first version.
  std::vector<const char *> targets;
  const char *version;
};

const std::vector<const char *> all = {"sm_80",   "sm_86",   "sm_89",
                                       "sm_90a",  "sm_100a", "sm_103a",
                                       "sm_120a", "sm_121a"};
std::vector<const char *> from(size_t first) {
  return {all.begin() + long(first), all.end()};
}

/// As ptxas of CUDA 13.0 accepts them, and that of 13.3 what is of PTX 9.1.
const Need needs[] = {
    {"cp.async.ca.shared.global [sm], [d0], 4;", from(0), "7.0"},
    {"cp.async.ca.shared::cta.global [sm], [d0], 4, r1;", from(0), "7.0"},
    {"cp.async.ca.shared.global [sm], [d0], 4, !q1;", from(0), "7.5"},
    {"cp.async.cg.shared.global.L2::64B [sm], [d0], 16;", from(0), "7.4"},
    {"cp.async.cg.shared.global.L2::cache_hint [sm], [d0], 16, d1;", from(0),
     "7.4"},
    {"cp.async.wait_all;", from(0), "7.0"},
    {"cp.async.mbarrier.arrive.noinc.shared.b64 [sm];", from(0), "7.0"},
    {"cp.async.bulk.commit_group;", from(3), "8.0"},
    {"cp.async.bulk.prefetch.L2.global [d0], 16;", from(3), "8.0"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sm], "
     "[d0], 16, [sm];",
     from(3), "8.0"},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sm], "
     "[d0], r1, [sm];",
     from(3), "8.6"},
    {"mbarrier.init.shared.b64 [sm], 1;", from(0), "7.0"},
    {"mbarrier.arrive.shared.b64 _, [sm];", from(0), "7.1"},
    {"mbarrier.arrive.shared.b64 d0, [sm], 2;", from(3), "7.8"},
    {"mbarrier.arrive.relaxed.cta.shared.b64 d0, [sm];", from(3), "8.6"},
    {"mbarrier.test_wait.parity.shared.b64 q1, [sm], 1;", from(0), "7.1"},
    {"mbarrier.try_wait.shared.b64 q1, [sm], d0;", from(3), "7.8"},
    {"mbarrier.expect_tx.shared.b64 [sm], 16;", from(3), "8.0"},
    {"fence.proxy.async;", from(3), "8.0"},
    {"fence.mbarrier_init.release.cluster;", from(3), "8.0"},

    {"cvt.f32.bf16 f0, h0;", from(0), "7.1"},
    {"cvt.rn.bf16.f32 h0, f0;", from(0), "7.0"},
    {"cvt.rn.satfinite.bf16x2.f32 r0, f0, f1;", from(0), "8.1"},
    {"cvt.rn.f16x2.f32 r0, f0, f1;", from(0), "7.0"},
    {"cvt.rn.bf16.s32 h0, r0;", from(3), "7.8"},
    {"cvt.rni.s32.bf16 r0, h0;", from(3), "7.8"},
    {"cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;", from(2), "8.1"},
    {"cvt.rn.satfinite.relu.e5m2x2.f32 h0, f0, f1;", from(2), "8.1"},
    {"cvt.rn.f16x2.e4m3x2 r0, h0;", from(2), "8.1"},
    {"cvt.rn.satfinite.e2m1x2.f32 b0, f0, f1;", from(4), "8.6"},
    {"cvt.rn.f16x2.e2m1x2 r0, b0;", from(4), "8.6"},
    {"cvt.rn.satfinite.e2m3x2.f32 h0, f0, f1;", from(4), "8.6"},
    {"cvt.rn.satfinite.relu.e3m2x2.f32 h0, f0, f1;", from(4), "8.6"},
    {"cvt.rn.f16x2.e3m2x2 r0, h0;", from(4), "8.6"},
    {"cvt.rp.satfinite.ue8m0x2.f32 h0, f0, f1;", from(4), "8.6"},
    {"cvt.rn.bf16x2.ue8m0x2 r0, h0;", from(4), "8.6"},
    {"cvt.rn.satfinite.e4m3x2.bf16x2 h0, r0;", from(4), "9.1"},
    {"cvt.rn.satfinite.relu.e5m2x2.bf16x2 h0, r0;", from(4), "9.1"},
    {"cvt.rn.satfinite.e2m3x2.bf16x2 h0, r0;", from(4), "9.1"},
    {"cvt.rn.satfinite.e3m2x2.f16x2 h0, r0;", from(4), "9.1"},
    {"cvt.rn.satfinite.e2m1x2.bf16x2 b0, r0;", from(4), "9.1"},
    {"cvt.rs.f16x2.f32 r0, f0, f1, r1;", {"sm_100a", "sm_103a"}, "8.7"},
    {"cvt.rs.satfinite.e2m1x4.f32 h0, {f0, f1, f2, f3}, r1;",
     {"sm_100a", "sm_103a"},
     "8.7"},
    {"add.f32x2 d0, d1, d2;", from(4), "8.6"},
    {"add.bf16 h0, h1, h2;", from(3), "7.8"},
    {"fma.rn.bf16 h0, h1, h2, h3;", from(0), "7.0"},
    {"min.f16 h0, h1, h2;", from(0), "7.0"},
    {"min.xorsign.abs.f32 f0, f1, f2;", from(1), "7.2"},
    {"max.f32 f0, f1, f2, f3;", from(4), "8.8"},
    {"max.u16x2 r0, r1, r2;", from(3), "8.0"},
    {"max.relu.s32 r0, r1, r2;", from(3), "8.0"},
    {"ld.global.v8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];", from(4), "8.8"},
    {"st.global.v4.b64 [d0], {d1, d2, d3, d4};", from(4), "8.8"},
    {"ld.global.L2::cache_hint.b32 r0, [d0], d1;", from(0), "7.4"},
    {"redux.sync.add.u32 r0, r1, r2;", from(0), "7.0"},
    {"redux.sync.max.f32 f0, f1, r2;", {"sm_100a", "sm_103a"}, "8.6"},
    {"elect.sync r0|q0, r1;", from(3), "8.0"},
    {"setp.lt.bf16 q0, h0, h1;", from(3), "7.8"},
    {"atom.global.add.noftz.bf16x2 r0, [d0], r1;", from(3), "7.8"},
    {"szext.clamp.s32 r0, r1, r2;", from(0), "7.6"},
    {"st.shared::cta.b32 [sm], r0;", from(0), "7.8"},
};

TEST(Decoder, TargetsAndVersions) {
  for (const Need &need : needs) {
    for (const char *target : all) {
      bool has = is_contained(need.targets, StringRef(target));
      std::string error = loadError(need.instruction, target);
      EXPECT_EQ(error.empty(), has)
          << need.instruction << " on " << target << ": " << error;
      EXPECT_TRUE(has || error.find("needs ") != std::string::npos) << error;
    }
    // One version below.
    std::string version = need.version;
    EXPECT_EQ(loadError(need.instruction, need.targets[0], version), "");
    std::string before =
        version == "7.0" ? "6.9"
        : version == "8.0"
            ? "7.9"
            : version.substr(0, 2) + std::to_string(version[2] - '0' - 1);
    EXPECT_NE(loadError(need.instruction, need.targets[0], before)
                  .find("needs PTX " + version),
              std::string::npos)
        << need.instruction;
  }
}

TEST(Decoder, ErrorsNameTheLineAndTheInstruction) {
  Sim sim("sm_80");
  EXPECT_EQ(message(sim.load(kernelOf(".reg .b16 h; .reg .f32 f;\n\n"
                                      "cvt.rn.satfinite.e4m3x2.f32 h, f, f;",
                                      1, "sm_80"),
                             32, {ParamKind::Pointer})),
            "kernel 'k' for sm_80: line 17: 'cvt.rn.satfinite.e4m3x2.f32': "
            "needs sm_89, the target is sm_80");
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  auto refused = [](const std::string &instruction, const std::string &why) {
    EXPECT_EQ(loadError(instruction), why) << instruction;
  };
  refused("frobnicate.u32 r0, r1;", "'frobnicate.u32': is not simulated");
  refused("wgmma.fence.sync.aligned;",
          "'wgmma.fence.sync.aligned': is not simulated");
  // What neither dither nor the kernels of the tests need: copies of tensors,
  // reductions and tensor cores.
  for (const char *instruction :
       {"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::"
        "complete_"
        "tx::bytes [sm], [d0], [sm];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [d0], "
        "[sm], 16;",

        "getctarank.shared::cluster.u32 r0, r1;",
        "movmatrix.sync.aligned.m8n8.trans.b16 r0, r1;",
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {f0, f1, f2, f3}, "
        "{r0, r1}, {r2}, {f0, f1, f2, f3};"}) {
    StringRef opcode = StringRef(instruction).split(' ').first;
    refused(instruction,
            ("'" + opcode.rtrim(';') + "': is not simulated").str());
  }
  for (const char *instruction :
       {"cp.async.ca.shared::cluster.global [sm], [d0], 16;",
        "cp.async.ca.global.shared [d0], [sm], 16;",
        "cp.async.ca.shared [sm], [d0], 16;"}) {
    StringRef opcode = StringRef(instruction).split(' ').first;
    refused(instruction, ("'" + opcode +
                          "': needs .shared or .shared::cta, and .global "
                          "after it")
                             .str());
  }
  refused("cp.async.cg.shared.global [sm], [d0], 8;",
          "'cp.async.cg.shared.global': copies 16 bytes");
  refused("cp.async.ca.shared.global [sm], [d0], 32;",
          "'cp.async.ca.shared.global': copies 4, 8 or 16 bytes");
  refused("cp.async.ca.shared.global [sm], [d0], 8, 9;",
          "'cp.async.ca.shared.global': reads 9 bytes for a copy of 8");
  refused("barrier.cluster.arrive.acquire;",
          "'barrier.cluster.arrive.acquire': modifier '.acquire' is not "
          "simulated");
  refused("add.sideways.u32 r0, r1, r2;",
          "'add.sideways.u32': modifier '.sideways' is not simulated");
  refused("add.u32 r0, r1;", "'add.u32': 2 operands, expected 3");
  refused("add.s32 r0, f0, r1;",
          "'add.s32': register f0 has type .f32, expected .s32");
  refused("add.s32 d0, r0, r1;",
          "'add.s32': register d0 has type .b64, expected .s32");
  refused("add.f32 f0, f1, 1;", "'add.f32': expected a register or a float");
  refused("add.s32 r0, r1, 0f3F800000;",
          "'add.s32': expected a register or an integer");
  refused("mov.u32 r0, 0f3F800000;",
          "'mov.u32': expected a register or an integer");
  refused("add.b32 r0, r1, r2;", "'add.b32': '.b32' is not an arithmetic type");
  refused("add.rz.f16 h0, h1, h2;",
          "'add.rz.f16': roundings of .f16 other than .rn are not simulated");
  refused("cvt.rn.f32.f32 f0, f1;",
          "'cvt.rn.f32.f32': has no rounding: it is exact");
  refused("cvt.f16.f32 h0, f1;", "'cvt.f16.f32': needs a rounding");
  refused("cvt.s32.f32 r0, f1;", "'cvt.s32.f32': needs a rounding");
  refused("cvt.f32.s32 f0, r1;", "'cvt.f32.s32': needs a rounding");
  refused("cvt.rn.bf16x2.e4m3x2 r0, h0;",
          "'cvt.rn.bf16x2.e4m3x2': is not a conversion");
  refused("cvt.rn.e4m3x2.f32 h0, f0, f1;",
          "'cvt.rn.e4m3x2.f32': needs .satfinite");
  refused("div.f32 f0, f1, f2;", "'div.f32': needs a rounding");
  refused("sqrt.f32 f0, f1;", "'sqrt.f32': needs a rounding");
  refused("mov.b16 h0, b0;",
          "'mov.b16': register b0 has type .b8, expected .b16");
  refused("shl.u32 r0, r1, r2;", "'shl.u32': is not for .u32");
  refused("setp.lo.s32 q0, r1, r2;",
          "'setp.lo.s32': '.lo' is not a comparison of .s32");
  refused("setp.lt.b32 q0, r1, r2;",
          "'setp.lt.b32': '.lt' is not a comparison of .b32");
  refused("st.const.b32 [d0], r1;",
          "'st.const.b32': the const space is read only");
  refused("ld.global.b32 r0, [sm];",
          "'ld.global.b32': 'sm' is in the shared space");
  refused("ld.global.b32 r0, [h1];",
          "'ld.global.b32': addresses have 32 or 64 bits");
  refused("ld.global.v2.b32 {r0, r1, r2}, [d0];",
          "'ld.global.v2.b32': 3 elements, expected 2");
  refused("ld.global.v8.b64 {d0, d0, d0, d0, d0, d0, d0, d0}, [d0];",
          "'ld.global.v8.b64': is too wide");
  refused("ld.global.b64 r0, [d0];",
          "'ld.global.b64': register r0 has type .b32, expected .b64");
  refused("bra 5;", "'bra': expected a label");
  refused("call foo;", "'foo' is not declared");
}

TEST(Decoder, AcceptsWhatPtxasDoes) {
  for (const char *instruction :
       {"and.b32 f0, f1, f2;",
        "selp.f32 r0, f0, r1, q0;",
        "ld.u8 r0, [d0];",
        "ld.b8 h0, [d0];",
        "ld.f32 d1, [d0];",
        "cvt.u16.u8 r0, r1;",
        "cvt.u8.u32 b0, r1;",
        "st.b8 [d0], r1;",
        "add.s32 u0, u1, r1;",
        "mov.b32 {b0, b1, b2, b3}, r0;",
        "mov.b64 {h0, h1, h2, h3}, d0;",
        "mov.b64 {_, r1}, d0;",
        "prefetch.global.L1 [d0];",
        "griddepcontrol.wait;",
        "nanosleep.u32 20;",
        "membar.gl;",
        "fence.acq_rel.gpu;",
        "fence.proxy.async;",
        "createpolicy.fractional.L2::evict_last.b64 d0, 1.0;",
        "ld.global.L1::no_allocate.L2::128B.v4.b32 {r0, r1, r2, r3}, [d0];",
        "ld.acquire.gpu.global.b32 r0, [d0];",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [sm];",
        "st.release.cta.shared.b32 [sm], r0;",
        "mov.b32 f0, 0f3F800000;",
        "mov.f32 f0, 1.5;",
        "bar.sync 0, 32;",
        "{ .reg .b8 b; cvt.u8.u32 b, r1; }"})
    EXPECT_EQ(loadError(instruction), "") << instruction;
}

/// ptxas converts a number that a narrow store has a part of.
TEST(Decoder, RefusesNarrowStoresOfNumbers) {
  const char *words = ": ptxas converts it, expected a move first";
  for (auto [definition, store, what] :
       {std::tuple{"add.f32 r1, f0, f1;", "st.global.b8 [d0], r1;",
                   "'st.global.b8': stores a part of r1, which add.f32 makes"},
        {"max.f32 r2, f0, f1;", "st.shared.u16 [sm], r2;",
         "'st.shared.u16': stores a part of r2, which max.f32 makes"},
        {"cvt.rn.f16.f32 h1, f0;", "st.global.v2.b8 [d0], {h0, h1};",
         "'st.global.v2.b8': stores a part of h1, which cvt.rn.f16.f32 makes"},
        {"cvt.f64.f32 g0, f0;", "st.global.b32 [d0], g0;",
         "'st.global.b32': stores a part of g0, which cvt.f64.f32 makes"}})
    EXPECT_EQ(loadError(std::string(definition) + store),
              std::string(what) + words);
  // Moved bits, all of a register, packed numbers, and what two instructions
  // make, are stored as they are.
  for (const char *text :
       {"add.f32 r1, f0, f1; mov.b32 r2, r1; st.global.b8 [d0], r2;",
        "add.f32 r1, f0, f1; st.global.b32 [d0], r1;",
        "cvt.rn.f16x2.f32 r1, f0, f1; st.global.b8 [d0], r1;",
        "add.f32 r1, f0, f1; @q1 mov.b32 r1, 7; st.global.b8 [d0], r1;"})
    EXPECT_EQ(loadError(text), "") << text;
}

} // namespace
