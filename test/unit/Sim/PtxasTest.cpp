// The simulator and ptxas, where there is one, accept the same instructions:
// all combinations of modifiers and types of the arithmetic, and a list of the
// rest.
#include "dither/Runtime/Ptxas.h"
#include "SimTest.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace dither::test;
using namespace llvm;

namespace {

const char *const registers =
    ".reg .pred q<8>; .reg .b8 b<8>; .reg .b16 h<8>; .reg .b32 r<9>; .reg .b64 "
    "d<9>; .reg .f32 f<8>; .reg .f64 g<8>; .shared .align 16 .b8 sm[256]; "
    ".local .align 8 .b8 lo[16];\n";

/// Name of the i-th register that holds a type.
std::string reg(StringRef type, int i) {
  std::string n = std::to_string(i);
  if (type == "pred")
    return "q" + n;
  if (type == "f32")
    return "f" + n;
  if (type == "f64")
    return "g" + n;
  if (type == "e2m1x2" || type == "b8" || type == "u8" || type == "s8")
    return type == "e2m1x2" ? "b" + n : "h" + n;
  if (type == "f16" || type == "bf16" || type.ends_with("16") ||
      type == "e4m3x2" || type == "e5m2x2" || type == "e2m3x2" ||
      type == "e3m2x2" || type == "ue8m0x2")
    return "h" + n;
  if (type.ends_with("64") || type == "f32x2")
    return "d" + n;
  return "r" + n;
}

/// Every way to take one of each list, joined.
std::vector<std::string>
combine(const std::vector<std::vector<std::string>> &lists) {
  std::vector<std::string> all = {""};
  for (const auto &list : lists) {
    std::vector<std::string> next;
    for (const std::string &head : all)
      for (const std::string &tail : list)
        next.push_back(head + tail);
    all = std::move(next);
  }
  return all;
}

/// mbarriers, bulk copies and the fences between these and threads.
void addBulkCopies(std::vector<std::string> &all) {
  const std::vector<std::string> spaces = {"", ".shared", ".shared::cta",
                                           ".shared::cluster", ".global"};
  const std::vector<std::string> orders = {"",
                                           ".release",
                                           ".release.cta",
                                           ".acquire.cluster",
                                           ".relaxed.cta",
                                           ".release.gpu",
                                           ".cluster"};
  auto add = [&](const std::vector<std::vector<std::string>> &modifiers,
                 const std::vector<std::string> &operands) {
    for (const std::string &modifier : combine(modifiers))
      for (const std::string &tail : operands)
        all.push_back("mbarrier" + modifier + " " + tail + ";");
  };
  add({{".init", ".inval", ".expect_tx", ".complete_tx"},
       {"", ".relaxed.cta", ".relaxed", ".release.cta"},
       spaces,
       {".b64", ".b32"}},
      {"[d1]", "[d1], 16", "[d1], r2", "[d1], d2", "[d1], 0"});
  add({{".arrive", ".arrive_drop"},
       {"", ".noComplete", ".expect_tx"},
       orders,
       spaces,
       {".b64"}},
      {"d0, [d1]", "_, [d1]", "d0, [d1], r2", "_, [r1], 3", "d0, [d1], 0",
       "r0, [d1]", "d0, [d1], d2", "[d1]"});
  add({{".test_wait", ".try_wait"},
       {"", ".parity"},
       {"", ".acquire", ".release.cta", ".acquire.cta", ".relaxed.cluster"},
       spaces,
       {".b64"}},
      {"q0, [d1], d2", "q0, [d1], r2", "q0, [d1], 1", "q0, [d1], 2",
       "q0, [d1], d2, 5", "q0, [d1], r2, r3", "q0, [d1]", "r0, [d1], d2"});
  for (const char *text :
       {"mbarrier.shared.init.b64 [sm], 1;",
        "mbarrier.noComplete.arrive.shared.b64 d0, [sm], 1;",
        "mbarrier.arrive.shared.noComplete.b64 d0, [sm], 1;",
        "mbarrier.arrive.noComplete.release.cluster.shared.b64 d0, [sm], 1;",
        "mbarrier.arrive.release.cta.expect_tx.shared.b64 _, [sm], 1;",
        "mbarrier.try_wait.acquire.cta.parity.shared.b64 q0, [sm], 1;",
        "cp.async.mbarrier.noinc.arrive.shared.b64 [sm];",
        "mbarrier.pending_count.b64 r0, d1;",
        "mbarrier.pending_count.shared.b64 r0, d1;",
        "cp.async.mbarrier.arrive.shared.b64 [sm];",
        "cp.async.mbarrier.arrive.b64 [d1];",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [sm];",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [sm];",
        "cp.async.mbarrier.arrive.noinc.b64 [d1];",
        "cp.async.mbarrier.arrive.shared.noinc.b64 [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], 16, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[r2], [d0], r1, [r3];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], 8, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], 0, [sm];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sm], "
        "[d0], r1, [sm];",
        "cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [sm], [d0], "
        "r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::"
        "cache_hint [sm], [d0], r1, [sm], d2;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster [sm], [d0], r1, [sm], h1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster.L2::cache_hint [sm], [d0], r1, [sm], h1, d2;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster [sm], [d0], r1, [sm], 3;",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes."
        "multicast::cluster [sm], [d0], r1, [sm], h1;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
        "bytes [r2], [sm], r1, [r3];",
        "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes "
        "[r2], [sm], r1, [r3];",
        "cp.async.bulk.global.shared::cta.bulk_group [d0], [sm], 16;",
        "cp.async.bulk.global.shared::cta.bulk_group [d0], [sm], r1;",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [d0], "
        "[sm], r1, d2;",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [d0], [sm], r1, "
        "h1;",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask "
        "[d0], [sm], r1, d2, h1;",
        "cp.async.bulk.global.shared.bulk_group [d0], [sm], r1;",
        "cp.async.bulk.global.shared::cluster.bulk_group [d0], [sm], r1;",
        "cp.async.bulk.global.shared::cta [d0], [sm], r1;",
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.wait_group 0;",
        "cp.async.bulk.wait_group 3;",
        "cp.async.bulk.wait_group r1;",
        "cp.async.bulk.wait_group.read 0;",
        "cp.async.bulk.wait_all;",
        "cp.async.bulk.prefetch.L2.global [d0], 16;",
        "cp.async.bulk.prefetch.L2.global [d0], r1;",
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [d0], r1, d2;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [d0], "
        "[sm], 16;",
        "fence.proxy.async;",
        "fence.proxy.async.shared::cta;",
        "fence.proxy.async.global;",
        "fence.proxy.async.shared::cluster;",
        "fence.proxy.alias;",
        "fence.mbarrier_init.release.cluster;",
        "fence.mbarrier_init.release.cta;",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster."
        "cluster;",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta."
        "cluster;",
        "mbarrier.pending_count.b64 d0, d1;",
        "mbarrier.pending_count.b64 r0, 17;",
        "mbarrier.pending_count.b64 f0, d1;",
        "cp.async.mbarrier.arrive.shared.b32 [sm];",
        "cp.async.mbarrier.arrive.shared [sm];",
        "cp.async.mbarrier.shared.b64 [sm];",
        "cp.async.mbarrier.arrive.shared::cluster.b64 [sm];",
        "cp.async.mbarrier.arrive.global.b64 [d1];",
        "cp.async.bulk.commit_group 0;",
        "cp.async.bulk.wait_group;",
        "cp.async.bulk.wait_group.read;",
        "cp.async.bulk.wait_group.write 0;",
        "cp.async.bulk.wait_group -1;",
        "cp.async.bulk.wait_group 4294967296;",
        "cp.async.bulk.prefetch.L2.global [sm], 16;",
        "cp.async.bulk.prefetch.L2.global [d0], 8;",
        "cp.async.bulk.prefetch.L2.shared [sm], 16;",
        "cp.async.bulk.prefetch.L1.global [d0], 16;",
        "cp.async.bulk.prefetch.global [d0], 16;",
        "cp.async.bulk.prefetch.L2.global [d0];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [sm], r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], d1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], h1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], r1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], r1, [sm], h1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster [sm], [d0], r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
        "multicast::cluster [sm], [d0], r1, [sm], r2;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::"
        "cache_hint [sm], [d0], r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::"
        "cache_hint.multicast::cluster [sm], [d0], r1, [sm], h1, d2;",
        "cp.async.bulk.shared::cluster.global.bulk_group [sm], [d0], r1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
        "bulk_group [sm], [d0], r1, [sm];",
        "cp.async.bulk.mbarrier::complete_tx::bytes.shared::cluster.global "
        "[sm], [d0], r1, [sm];",
        "cp.async.bulk.global.shared::cluster.mbarrier::complete_tx::bytes "
        "[d0], [sm], r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes sm, "
        "[d0], r1, [sm];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], 16, sm;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[sm], [d0], -16, [sm];",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
        "bytes.L2::cache_hint [r2], [sm], r1, [r3], d2;",
        "cp.async.bulk.global.shared::cta.bulk_group [d0], [sm], 24;",
        "cp.async.bulk.global.shared::cta.bulk_group [sm], [d0], 16;",
        "cp.async.bulk.global.shared::cta.bulk_group.multicast::cluster [d0], "
        "[sm], 16, h1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.b64 "
        "[sm], [d0], 16, [sm];",
        "fence.proxy.async.local;",
        "fence.proxy.async.shared;",
        "fence.proxy.async.cta;",
        "fence.mbarrier_init;",
        "fence.mbarrier_init.release;",
        "fence.mbarrier_init.cluster;",
        "fence.mbarrier_init.acquire.cluster;",
        "fence.mbarrier_init.release.cluster.shared::cta;",
        "fence.proxy.async::generic.acquire.cluster;",
        "fence.proxy;"})
    all.push_back(text);
}

std::vector<std::string> instructions() {
  std::vector<std::string> all;
  const std::vector<std::string> types = {
      "b16",   "b32",    "b64",   "u16",   "s16",  "u32",
      "s32",   "u64",    "s64",   "f16",   "bf16", "f32",
      "f16x2", "bf16x2", "u16x2", "s16x2", "f64",  "f32x2"};
  const std::vector<std::string> roundings = {"", ".rn", ".rz", ".rm", ".rp"};
  auto add = [&](const std::string &name,
                 const std::vector<std::vector<std::string>> &modifiers,
                 int sources) {
    for (const std::string &type : types)
      for (const std::string &modifier : combine(modifiers)) {
        std::string text = name + modifier + "." + type + " " + reg(type, 0);
        for (int i = 1; i <= sources; ++i)
          text += ", " + reg(type, i);
        all.push_back(text + ";");
      }
  };
  for (const char *name : {"add", "sub", "mul"})
    add(name, {roundings, {"", ".ftz"}, {"", ".sat"}}, 2);
  add("fma", {roundings, {"", ".ftz"}, {"", ".sat"}, {"", ".relu"}}, 3);
  for (const char *type : {"f16", "bf16"}) // mixed precision
    for (const std::string &modifier :
         combine({roundings, {"", ".ftz"}, {"", ".sat"}})) {
      std::string tail = modifier + ".f32." + type + " f0, h1, ";
      for (const char *name : {"add", "sub", "mul"})
        all.push_back(name + tail + "f2;");
      for (const char *name : {"fma", "mad"})
        all.push_back(name + tail + "h2, f3;");
    }
  add("div", {{"", ".rn", ".rp", ".approx", ".full"}, {"", ".ftz"}}, 2);
  for (const char *name : {"mul.lo", "mul.hi", "rem"})
    add(name, {{""}}, 2);
  for (const char *name : {"mad.lo", "mad.hi", "sad"})
    add(name, {{""}}, 3);
  for (const char *name : {"min", "max"}) {
    add(name, {{"", ".ftz"}, {"", ".NaN"}, {"", ".xorsign.abs"}, {"", ".relu"}},
        2);
    add(name, {{"", ".ftz"}, {"", ".NaN"}, {"", ".abs"}}, 3);
  }
  for (const char *name : {"abs", "neg"})
    add(name, {{"", ".ftz"}}, 1);
  for (const char *name : {"sqrt", "rcp"})
    add(name, {{"", ".rn", ".rz", ".approx"}, {"", ".ftz"}}, 1);
  for (const char *name : {"rsqrt", "ex2", "lg2", "sin", "cos", "tanh"})
    add(name, {{"", ".approx"}, {"", ".ftz"}}, 1);
  for (const char *name : {"and", "or", "xor"})
    add(name, {{""}}, 2);
  for (const char *name : {"not", "cnot", "brev", "mov"})
    add(name, {{""}}, 1);
  add("copysign", {{""}}, 2);
  for (const std::string &type : types) {
    for (const char *name : {"shl", "shr"})
      all.push_back(std::string(name) + "." + type + " " + reg(type, 0) + ", " +
                    reg(type, 1) + ", r2;");
    for (const char *name : {"popc", "clz", "bfind", "bfind.shiftamt"})
      all.push_back(std::string(name) + "." + type + " r0, " + reg(type, 1) +
                    ";");
    all.push_back("bfe." + type + " " + reg(type, 0) + ", " + reg(type, 1) +
                  ", r2, r3;");
    all.push_back("bfi." + type + " " + reg(type, 0) + ", " + reg(type, 1) +
                  ", " + reg(type, 2) + ", r2, r3;");
    all.push_back("selp." + type + " " + reg(type, 0) + ", " + reg(type, 1) +
                  ", " + reg(type, 2) + ", q1;");
    all.push_back("slct." + type + ".s32 " + reg(type, 0) + ", " +
                  reg(type, 1) + ", " + reg(type, 2) + ", r3;");
    for (const char *op : {"eq", "lt", "lo", "hs", "ltu", "num"})
      for (const char *ftz : {"", ".ftz"})
        all.push_back(std::string("setp.") + op + ftz + "." + type +
                      (StringRef(type).ends_with("x2") ? " q0|q1, " : " q0, ") +
                      reg(type, 1) + ", " + reg(type, 2) + ";");
    for (const char *wide : {"mul.wide", "mad.wide"})
      if (type[0] == 'u' || type[0] == 's') {
        std::string to = StringRef(type).ends_with("16") ? "b32" : "b64";
        all.push_back(std::string(wide) + "." + type + " " + reg(to, 0) + ", " +
                      reg(type, 1) + ", " + reg(type, 2) +
                      (wide[2] == 'd' ? ", " + reg(to, 3) : "") + ";");
      }
    for (const char *op : {"add", "min", "and", "exch", "inc", "add.noftz"})
      for (const char *space : {"global.", "shared.", ""}) {
        all.push_back(std::string("atom.") + space + op + "." + type + " " +
                      reg(type, 0) + ", [d1], " + reg(type, 2) + ";");
        all.push_back(std::string("red.") + space + op + "." + type +
                      " [d1], " + reg(type, 2) + ";");
      }
  }
  // Conversions of one value, to a register of the type's size or wider.
  const std::vector<std::string> converted = {
      "u8",  "s8",  "u16", "s16", "u32",  "s32", "u64",
      "s64", "f16", "f32", "f64", "bf16", "tf32"};
  for (const std::string &to : converted)
    for (const std::string &from : converted)
      for (const std::string &modifier :
           combine({{"", ".rn", ".rz", ".rp", ".rni", ".rzi"},
                    {"", ".ftz"},
                    {"", ".sat"}}))
        all.push_back("cvt" + modifier + "." + to + "." + from + " " +
                      reg(to, 0) + ", " + reg(from, 1) + ";");
  for (const char *to : {"bf16", "f16", "tf32"})
    for (const std::string &modifier : combine(
             {{".rn", ".rz", ".rm", ".rp"}, {"", ".satfinite"}, {"", ".relu"}}))
      all.push_back("cvt" + modifier + "." + to + ".f32 " + reg(to, 0) +
                    ", f1;");
  for (const char *to : {"f16x2", "bf16x2", "e4m3x2", "e5m2x2", "e2m1x2",
                         "e2m3x2", "e3m2x2", "ue8m0x2"})
    for (const std::string &modifier : combine(
             {{"", ".rn", ".rz", ".rp"}, {"", ".satfinite"}, {"", ".relu"}})) {
      std::string head = "cvt" + modifier + "." + to;
      all.push_back(head + ".f32 " + reg(to, 0) + ", f1, f2;");
      for (const char *from : {"f16x2", "bf16x2"})
        all.push_back(head + "." + from + " " + reg(to, 0) + ", r1;");
      for (const char *wide : {"f16x2", "bf16x2"})
        all.push_back("cvt" + modifier + "." + wide + "." + to + " r0, " +
                      reg(to, 1) + ";");
    }
  for (const char *to : {"f16x2", "bf16x2"})
    for (const std::string &modifier :
         combine({{"", ".satfinite"}, {"", ".relu"}}))
      all.push_back("cvt.rs" + modifier + "." + to + ".f32 r0, f1, f2, r3;");
  for (const char *to : {"e4m3x4 r0", "e5m2x4 r0", "e2m1x4 h0"})
    for (const std::string &modifier :
         combine({{"", ".satfinite"}, {"", ".relu"}}))
      all.push_back("cvt.rs" + modifier + "." +
                    StringRef(to).split(' ').first.str() + ".f32 " +
                    StringRef(to).split(' ').second.str() +
                    ", {f1, f2, f3, f4}, r3;");
  // Loads and stores.
  for (const char *space : {"", ".global", ".shared", ".local"})
    for (const char *vector : {"", ".v2", ".v4", ".v8"})
      for (const char *type :
           {"b8", "s8", "u16", "b32", "f32", "u64", "f64", "f16", "b128"}) {
        std::string list = reg(type, 0);
        int count = vector[0] ? vector[2] - '0' : 1;
        for (int i = 1; i < count; ++i)
          list += ", " + reg(type, i % 7);
        if (count > 1)
          list = "{" + list + "}";
        std::string suffix = std::string(space) + vector + "." + type;
        all.push_back("ld" + suffix + " " + list + ", [d8];");
        all.push_back("st" + suffix + " [d8], " + list + ";");
      }
  // Asynchronous copies.
  for (const std::string &modifier :
       combine({{"", ".ca", ".cg", ".ca.cg", ".cs"},
                {".shared", ".shared::cta", ".shared::cluster", ".local", ""},
                {".global", ".shared", ""},
                {"", ".L2::cache_hint"},
                {"", ".L2::64B", ".L2::128B", ".L2::256B", ".L2::32B"}}))
    for (const char *tail : {"16;", "16, d2;", "4, r1;", "8, r1, d2;"})
      all.push_back("cp.async" + modifier + " [d0], [d1], " + tail);
  for (const char *sizes :
       {"2",     "4",         "8",         "12",      "16",           "32",
        "-16",   "r1",        "16, 0",     "16, 5",   "8, 8",         "8, 9",
        "4, -1", "4, d1",     "4, h1",     "4, f1",   "4, q1",        "4, !q1",
        "4, sm", "4, %tid.x", "4, r1, q1", "4, 4, 4", "4, 0f00000000"})
    for (const char *cache : {"ca", "cg"})
      all.push_back(std::string("cp.async.") + cache +
                    ".shared.global [sm], [d1], " + sizes + ";");
  for (const char *text : {"cp.async.ca.global.shared [d0], [sm], 16;",
                           "cp.async.ca.L2::64B.shared.L2::cache_hint.global "
                           "[sm+4], [d0+4], 4, !q1, 17;",
                           "cp.async.ca.shared.global [r0], [d1], 4;",
                           "cp.async.ca.shared.global [sm], [sm], 4;",
                           "cp.async.ca.shared.global [lo], [d1], 4;",
                           "cp.async.ca.shared.global sm, [d1], 4;",
                           "cp.async.ca.shared.global.b32 [sm], [d1], 4;",
                           "cp.async.ca.shared.global.nc [sm], [d1], 4;",
                           "cp.async.ca.shared.global.volatile [sm], [d1], 4;",
                           "cp.async.ca.shared.global.L2::cache_hint [sm], "
                           "[d1], 4, g1;",
                           "cp.async.ca.shared.global.L2::cache_hint [sm], "
                           "[d1], 4, sm;",
                           "cp.async.ca.shared.global.L2::cache_hint [sm], "
                           "[d1], 4, d2, r1;",
                           "cp.ca.async.shared.global [sm], [d1], 4;",
                           "cp.async;",
                           "cp.async.commit_group;",
                           "cp.async.commit_group 0;",
                           "cp.async.commit_group.ca;",
                           "cp.async.ca.commit_group;",
                           "cp.async.wait_group 0;",
                           "cp.async.wait_group 4294967296;",
                           "cp.async.wait_group -1;",
                           "cp.async.wait_group r1;",
                           "cp.async.wait_group;",
                           "cp.async.wait_group 1, 2;",
                           "cp.async.wait_group.wait_all;",
                           "cp.async.wait_all;",
                           "cp.async.wait_all 0;"})
    all.push_back(text);
  addBulkCopies(all);
  for (const char *text : {"ld.volatile.global.b32 r0, [d1];",
                           "ld.relaxed.gpu.b32 r0, [d1];",
                           "ld.global.nc.b32 r0, [d1];",
                           "ld.global.cs.b32 r0, [d1];",
                           "ld.global.L1::no_allocate.b32 r0, [d1];",
                           "ld.global.L2::128B.b32 r0, [d1];",
                           "ld.global.L2::cache_hint.b32 r0, [d1], d2;",
                           "ld.const.b32 r0, [d1];",
                           "st.const.b32 [d1], r0;",
                           "ld.shared.b32 r0, [sm+4];",
                           "ld.global.b32 r0, [sm];",
                           "ld.local.b32 r0, [lo];",
                           "ld.shared.b32 r0, [r1+4];",
                           "ld.global.b32 r0, [r1];",
                           "ld.global.v2.b32 {r0, _}, [d1];",
                           "ld.global.u8 r0, [d1];",
                           "ld.global.b32 d0, [d1];",
                           "ld.global.b64 r0, [d1];",
                           "st.global.b8 [d1], r0;",
                           "ld.global.b32 f0, [d1];",
                           "atom.global.cas.b16 h0, [d1], h2, h3;",
                           "atom.shared.cas.b64 d0, [sm], d2, d3;",
                           "atom.global.cas.b32 r0, [d1], r2, r3;",
                           "atom.add.f32 _, [d1], f2;",
                           "red.global.cas.b32 [d1], r2, r3;",
                           "red.exch.b32 [d1], r0;",
                           "shfl.sync.bfly.b32 r0|q1, r1, 1, 31, -1;",
                           "shfl.sync.idx.b32 f0, f1, r2, 31, -1;",
                           "shfl.sync.up.b64 d0, d1, 1, 0, -1;",
                           "vote.sync.ballot.b32 r0, q1, -1;",
                           "vote.sync.all.pred q0, !q1, -1;",
                           "match.any.sync.b64 r0, d1, -1;",
                           "match.all.sync.b32 r0|q1, r1, -1;",
                           "redux.sync.add.s32 r0, r1, -1;",
                           "redux.sync.and.b32 r0, r1, -1;",
                           "redux.sync.and.u32 r0, r1, -1;",
                           "redux.sync.add.b32 r0, r1, -1;",
                           "redux.sync.min.f32 f0, f1, -1;",
                           "activemask.b32 r0;",
                           "elect.sync r0|q1, -1;",
                           "elect.sync _|q1, -1;",
                           "bar.sync 0;",
                           "bar.sync 0, 64;",
                           "bar.arrive 0, 64;",
                           "bar.arrive 0;",
                           "bar.warp.sync -1;",
                           "barrier.cta.sync.aligned 0;",
                           "barrier.sync 0;",
                           "bar.red.popc.u32 r0, 0, q1;",
                           "bar.red.and.pred q0, 0, 64, !q1;",
                           "setp.lt.and.u32 q0|q1, r1, r2, !q3;",
                           "setp.lt.and.u32 q0, r1, r2;",
                           "and.pred q0, q1, q2;",
                           "not.pred q0, q1;",
                           "cnot.pred q0, q1;",
                           "mov.pred q0, q1;",
                           "mov.pred q0, 1;",
                           "mov.b32 r0, {h1, h2};",
                           "mov.b64 {r0, r1}, d0;",
                           "mov.b64 {_, r1}, d0;",
                           "mov.b16 h0, {b0, b1};",
                           "mov.b8 b0, b1;",
                           "mov.u32 r0, %tid.x;",
                           "mov.u64 d0, %clock64;",
                           "mov.b64 d0, sm;",
                           "mov.u32 r0, %laneid;",
                           "cvta.to.global.u64 d0, d1;",
                           "cvta.shared.u64 d0, d1;",
                           "isspacep.shared q0, d1;",
                           "prmt.b32 r0, r1, r2, r3;",
                           "prmt.b32.f4e r0, r1, r2, r3;",
                           "lop3.b32 r0, r1, r2, r3, 0x96;",

                           "lop3.b32 r0, r1, r2, r3, r4;",
                           "shf.l.wrap.b32 r0, r1, r2, r3;",
                           "shf.l.b32 r0, r1, r2, r3;",
                           "szext.wrap.u32 r0, r1, r2;",
                           "bmsk.clamp.b32 r0, r1, r2;",
                           "dp4a.u32.s32 r0, r1, r2, r3;",
                           "fns.b32 r0, r1, r2, r3;",
                           "testp.finite.f32 q0, f1;",
                           "testp.normal.f64 q0, g1;",
                           "add.cc.u32 r0, r1, r2;",
                           "addc.cc.u64 d0, d1, d2;",
                           "add.cc.u16 h0, h1, h2;",
                           "subc.s32 r0, r1, r2;",
                           "mul24.lo.u32 r0, r1, r2;",
                           "mad24.hi.s32 r0, r1, r2, r3;",
                           "mul24.u32 r0, r1, r2;",
                           "cvt.pack.sat.s16.s32 r0, r1, r2;",
                           "cvt.pack.sat.u8.s32.b32 r0, r1, r2, r3;",
                           "membar.cta;",
                           "fence.acq_rel.gpu;",
                           "nanosleep.u32 10;",
                           "trap;",
                           "exit;",
                           "add.u32 r0, r1;",
                           "add.u32 r0, r1, r2, r3;",
                           "add.s32 r0, f0, r1;",
                           "add.f32 f0, f1, 1;",
                           "add.f32 f0, f1, 1.0;",
                           "add.s32 r0, r1, 0f3F800000;",
                           "add.f32 f0, f1, 0f3F800000;",
                           "mov.b32 r0, 0f3F800000;",
                           "mov.u32 r0, 0f3F800000;",
                           "add.u32 r0, q0, r1;",
                           "frobnicate.u32 r0, r1;"})
    all.push_back(text);
  return all;
}

TEST(Ptxas, AcceptsTheSame) {
  Expected<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << toString(ptxas.takeError());
  std::vector<std::string> all = instructions();
  // That of CUDA 13.0 takes PTX 9.0.
  std::string version = "9.1";
  std::string empty = ".visible .entry k() { ret; }\n";
  if (Error e = runPtxas(*ptxas, header("sm_80", version) + empty, "sm_80")
                    .takeError()) {
    consumeError(std::move(e));
    version = "9.0";
  }
  for (const char *target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a",
                             "sm_103a", "sm_120a", "sm_121a"}) {
    // One instruction a line: ptxas says which lines are wrong.
    std::string text =
        header(target, version) + ".visible .entry k() {\n" + registers;
    unsigned first = 6;
    for (const std::string &instruction : all)
      text += instruction + "\n";
    Expected<PtxasResult> result = runPtxas(*ptxas, text + "ret;\n}\n", target);
    ASSERT_FALSE(bool(result)); // there are wrong ones
    std::string log = toString(result.takeError());
    std::set<unsigned> wrong;
    SmallVector<StringRef> lines;
    StringRef(log).split(lines, '\n');
    for (StringRef line : lines) {
      unsigned number = 0;
      if (size_t at = line.find("line "); at != StringRef::npos) {
        StringRef rest = line.drop_front(at + 5);
        if (!rest.consumeInteger(10, number) && line.contains("error"))
          wrong.insert(number);
      }
    }
    ASSERT_GT(wrong.size(), all.size() / 4) << log.substr(0, 1000);
    Sim sim(target);
    unsigned differ = 0, accepted = 0, left = 0;
    for (unsigned i = 0; i < all.size(); ++i) {
      std::string error =
          message(sim.load(header(target, version) + ".visible .entry k() {\n" +
                               registers + all[i] + "\n}\n",
                           32, {}));
      bool theirs = !wrong.count(first + i), ours = error == "no error";
      accepted += ours;
      // What ptxas has and the simulator leaves out it must say.
      bool leftOut =
          !ours && theirs && StringRef(error).contains("not simulated");
      left += leftOut;
      if (ours != theirs && !leftOut && ++differ <= 40)
        ADD_FAILURE() << target << ": " << all[i] << " is "
                      << (theirs ? "accepted by ptxas: " + error
                                 : "refused by ptxas");
    }
    EXPECT_EQ(differ, 0u) << target << " of " << all.size();
    EXPECT_GT(accepted, 1200u);
    EXPECT_LT(left, 150u);
  }
}

} // namespace
