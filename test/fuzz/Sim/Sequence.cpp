#include "Targets.h"

#include <vector>

namespace dither::fuzz {

namespace {

/// $ and a letter is a register: r b32, d b64, h b16, f f32, g f64, q a
/// predicate; capital where it is written. $i is a b32 register or a number, $n
/// a number of 0 to 63, $a an address of four words in local memory, which the
/// instruction before has put in its register.
const char *const instructions[] = {
    // Integers.
    "add.s32 $R, $i, $i;",
    "sub.u32 $R, $r, $i;",
    "add.sat.s32 $R, $r, $r;",
    "mul.lo.s32 $R, $r, $i;",
    "mul.hi.u32 $R, $r, $r;",
    "mul.hi.s32 $R, $r, $r;",
    "mul.wide.s32 $D, $r, $i;",
    "mul.wide.u16 $R, $h, $h;",
    "mad.lo.s32 $R, $r, $r, $r;",
    "mad.hi.u32 $R, $r, $r, $r;",
    "mad.wide.u32 $D, $r, $r, $d;",
    "mad.lo.u64 $D, $d, $d, $d;",
    "div.s32 $R, $r, $i;",
    "rem.u32 $R, $r, $r;",
    "div.u64 $D, $d, $d;",
    "rem.s64 $D, $d, $d;",
    "add.s64 $D, $d, $d;",
    "sub.s64 $D, $d, $d;",
    "mul.hi.s64 $D, $d, $d;",
    "add.s16 $H, $h, $h;",
    "mul.lo.u16 $H, $h, $h;",
    "add.cc.u32 $R, $r, $r;\naddc.u32 $R, $r, $r;",
    "sub.cc.u64 $D, $d, $d;\nsubc.u64 $D, $d, $d;",
    "min.s32 $R, $r, $i;",
    "max.u32 $R, $r, $r;",
    "min.s64 $D, $d, $d;",
    "max.s16x2 $R, $r, $r;",
    "add.u16x2 $R, $r, $r;",
    "abs.s32 $R, $r;",
    "neg.s64 $D, $d;",
    "sad.u32 $R, $r, $r, $r;",
    "and.b32 $R, $r, $i;",
    "or.b64 $D, $d, $d;",
    "xor.b16 $H, $h, $h;",
    "not.b32 $R, $r;",
    "cnot.b32 $R, $r;",
    "lop3.b32 $R, $r, $r, $r, $n;",
    "shl.b32 $R, $r, $n;",
    "shr.s32 $R, $r, $r;",
    "shr.u64 $D, $d, $n;",
    "shl.b64 $D, $d, $r;",
    "shr.s16 $H, $h, $n;",
    "shf.l.wrap.b32 $R, $r, $r, $r;",
    "shf.r.clamp.b32 $R, $r, $r, $n;",
    "prmt.b32 $R, $r, $r, $r;",
    "prmt.b32.rc8 $R, $r, $r, $r;",
    "bfe.u32 $R, $r, $r, $n;",
    "bfe.s64 $D, $d, $r, $n;",
    "bfi.b32 $R, $r, $r, $n, $n;",
    "bfind.u32 $R, $r;",
    "bfind.shiftamt.s64 $R, $d;",
    "popc.b32 $R, $r;",
    "clz.b64 $R, $d;",
    "brev.b32 $R, $r;",
    "fns.b32 $R, $r, $n, 1;",
    "bmsk.clamp.b32 $R, $r, $r;",
    "szext.wrap.s32 $R, $r, $r;",
    "dp4a.s32.u32 $R, $r, $r, $r;",
    // Floats.
    "add.f32 $F, $f, $f;",
    "add.rz.ftz.f32 $F, $f, $f;",
    "sub.sat.f32 $F, $f, $f;",
    "mul.rp.f32 $F, $f, $f;",
    "mul.ftz.sat.f32 $F, $f, $f;",
    "fma.rn.f32 $F, $f, $f, $f;",
    "fma.rm.ftz.f32 $F, $f, $f, $f;",
    "div.rn.f32 $F, $f, $f;",
    "div.full.f32 $F, $f, $f;",
    "sqrt.rn.f32 $F, $f;",
    "rcp.rz.f32 $F, $f;",
    "rcp.approx.ftz.f32 $F, $f;",
    "rsqrt.approx.f32 $F, $f;",
    "ex2.approx.ftz.f32 $F, $f;",
    "lg2.approx.f32 $F, $f;",
    "sin.approx.f32 $F, $f;",
    "tanh.approx.f32 $F, $f;",
    "min.f32 $F, $f, $f;",
    "max.NaN.f32 $F, $f, $f;",
    "max.xorsign.abs.f32 $F, $f, $f;",
    "min.f32 $F, $f, $f, $f;",
    "abs.ftz.f32 $F, $f;",
    "neg.f32 $F, $f;",
    "copysign.f32 $F, $f, $f;",
    "add.f64 $G, $g, $g;",
    "fma.rz.f64 $G, $g, $g, $g;",
    "div.rp.f64 $G, $g, $g;",
    "min.f64 $G, $g, $g;",
    "sqrt.rn.f64 $G, $g;",
    "fma.rn.f32x2 $D, $d, $d, $d;",
    "add.rz.ftz.f32x2 $D, $d, $d;",
    "add.f16x2 $R, $r, $r;",
    "fma.rn.relu.bf16x2 $R, $r, $r, $r;",
    "mul.sat.f16 $H, $h, $h;",
    "fma.rn.ftz.f16 $H, $h, $h, $h;",
    "add.bf16 $H, $h, $h;",
    "max.bf16x2 $R, $r, $r;",
    "min.NaN.f16x2 $R, $r, $r;",
    "neg.bf16 $H, $h;",
    "ex2.approx.f16x2 $R, $r;",
    "fma.rn.f32.bf16 $F, $h, $h, $f;",
    "add.f32.f16 $F, $h, $f;",
    // Conversions.
    "cvt.s64.s32 $D, $r;",
    "cvt.u32.u64 $R, $d;",
    "cvt.sat.u8.s32 $R, $r;",
    "cvt.s16.s8 $H, $h;",
    "cvt.rn.f32.s32 $F, $r;",
    "cvt.rz.f32.u64 $F, $d;",
    "cvt.rn.f64.s64 $G, $d;",
    "cvt.rn.bf16.u32 $H, $r;",
    "cvt.rni.s32.f32 $R, $f;",
    "cvt.rzi.ftz.u64.f32 $D, $f;",
    "cvt.rmi.s32.f64 $R, $g;",
    "cvt.rpi.u16.f16 $H, $h;",
    "cvt.f64.f32 $G, $f;",
    "cvt.rn.f32.f64 $F, $g;",
    "cvt.rp.ftz.f32.f64 $F, $g;",
    "cvt.f32.f16 $F, $h;",
    "cvt.f32.bf16 $F, $h;",
    "cvt.rn.f16.f32 $H, $f;",
    "cvt.rm.f16.f64 $H, $g;",
    "cvt.rn.relu.bf16.f32 $H, $f;",
    "cvt.rn.satfinite.f16x2.f32 $R, $f, $f;",
    "cvt.rz.bf16x2.f32 $R, $f, $f;",
    "cvt.rni.f32.f32 $F, $f;",
    "cvt.sat.f32.f32 $F, $f;",
    "cvt.rn.satfinite.e4m3x2.f32 $H, $f, $f;",
    "cvt.rn.satfinite.relu.e5m2x2.f32 $H, $f, $f;",
    "cvt.rn.satfinite.e4m3x2.f16x2 $H, $r;",
    "cvt.rp.satfinite.ue8m0x2.f32 $H, $f, $f;",
    "cvt.rz.ue8m0x2.bf16x2 $H, $r;",
    "cvt.rn.f16x2.e4m3x2 $R, $h;",
    "cvt.rn.relu.f16x2.e5m2x2 $R, $h;",
    "cvt.rn.bf16x2.ue8m0x2 $R, $h;",
    "cvt.rn.satfinite.e2m1x2.f32 byte, $f, $f;\nmov.b16 $H, {byte, byte};",
    "mov.b16 {byte, _}, $h;\ncvt.rn.f16x2.e2m1x2 $R, byte;",
    "cvt.rs.satfinite.e5m2x4.f32 $R, {$f, $f, $f, $f}, $r;",
    "cvt.rs.bf16x2.f32 $R, $f, $f, $r;",
    "cvt.pack.sat.u8.s32.b32 $R, $r, $r, $r;",
    // Moves, comparisons and choices.
    "mov.b32 $R, $i;",
    "mov.b32 $F, $r;",
    "mov.b64 $D, {$r, $r};",
    "mov.b64 {$R, _}, $d;",
    "mov.b32 {$H, _}, $r;",
    "mov.b32 $R, {$h, $h};",
    "mov.b64 $G, $d;",
    "setp.lt.s32 $Q, $r, $i;",
    "setp.hs.u64 $Q, $d, $d;",
    "setp.ge.xor.s16 $Q, $h, $h, $q;",
    "setp.gtu.ftz.f32 $Q, $f, $f;",
    "setp.num.f64 $Q, $g, $g;",
    "setp.equ.f16 $Q, $h, $h;",
    "setp.lt.bf16 $Q, $h, $h;",
    "set.le.u32.f32 $R, $f, $f;",
    "set.ne.f32.s32 $F, $r, $r;",
    "selp.b32 $R, $r, $i, $q;",
    "selp.f64 $G, $g, $g, $q;",
    "slct.f32.s32 $F, $f, $f, $r;",
    "and.pred $Q, $q, $q;",
    "xor.pred $Q, $q, $q;",
    "not.pred $Q, $q;",
    "testp.subnormal.f32 $Q, $f;",
    "testp.finite.f64 $Q, $g;",
    "isspacep.global $Q, $d;",
    // Memory of the thread alone.
    "st.local.b32 [$a], $r;",
    "st.local.v4.b32 [$a], {$r, $r, $r, $r};",
    "st.local.v2.b64 [$a], {$d, $d};",
    "st.local.b16 [$a+6], $h;",
    "st.local.f32 [$a+8], $f;",
    "ld.local.b32 $R, [$a+4];",
    "ld.local.f32 $F, [$a+12];",
    "ld.local.b64 $D, [$a+8];",
    "ld.local.v2.b32 {$R, _}, [$a];",
    "ld.local.s8 $R, [$a+3];",
    "ld.local.u16 $H, [$a+2];",
    "st.shared.b32 [own], $r;",
    "st.shared.v2.f32 [own], {$f, $f};",
    "st.shared.u8 [own+5], $r;",
    "ld.shared.b64 $D, [own];",
    "ld.shared.s16 $R, [own+2];",
    "atom.shared.add.u32 $R, [own+4], $r;",
    "atom.shared.cas.b32 $R, [own], $r, $r;",
    "atom.shared.exch.b64 $D, [own], $d;",
    "atom.shared.max.s32 $R, [own+4], $r;",
    "red.shared.xor.b32 [own], $r;",
    "ld.global.b32 $R, [in+16];",
    "ld.global.v4.f32 {$F, _, _, _}, [in+32];",
    "st.global.b32 [out+160], $r;",
    "st.global.v2.b64 [out+176], {$d, $d};",
};

/// For all threads at once, outside of branches.
const char *const warpWide[] = {
    "shfl.sync.bfly.b32 $R, $r, $n, 31, -1;",
    "shfl.sync.idx.b32 $R|$Q, $r, $r, 31, -1;",
    "shfl.sync.up.b32 $R, $r, $n, 0, -1;",
    "shfl.sync.down.b32 $R|$Q, $r, $r, 0x181f, -1;",
    "vote.sync.ballot.b32 $R, $q, -1;",
    "vote.sync.any.pred $Q, $q, -1;",
    "match.any.sync.b32 $R, $r, -1;",
    "match.all.sync.b64 $R|$Q, $d, -1;",
    "redux.sync.add.s32 $R, $r, -1;",
    "redux.sync.min.u32 $R, $r, -1;",
    "activemask.b32 $R;",
    "elect.sync $R|$Q, -1;",
    "mov.u32 $R, %laneid;",
    "mov.u32 $R, %lanemask_lt;",
    "bar.sync 0;",
    "bar.red.popc.u32 $R, 0, $q;",
    "bar.warp.sync -1;",
};
/// For threads that see each other, anywhere.
const char *const shared[] = {
    "st.shared.b32 [$s], $r;",
    "ld.shared.b32 $R, [$s];",
    "ld.shared.f32 $F, [$s];",
    "atom.shared.add.f32 $F, [$s], $f;",
    "atom.shared.inc.u32 $R, [$s], $r;",
    "red.shared.min.s32 [$s], $r;",
    "atom.global.add.u32 $R, [all], $r;",
    "atom.global.max.s64 $D, [all+8], $d;",
    "red.global.add.f32 [all+16], $f;",
    "atom.global.cas.b64 $D, [all+24], $d, $d;",
    "atom.global.add.noftz.f16x2 $R, [all+32], $r;",
};

class Writer {
public:
  Writer(const uint8_t *data, size_t size) : data(data), size(size) {}

  Sequence run() {
    sequence.seed = take(256);
    sequence.seed |= take(256) << 8;
    sequence.communicates = sequence.seed & 1;
    start();
    while (at < size && written < 80)
      statement(0);
    finish();
    return std::move(sequence);
  }

private:
  uint32_t take(uint32_t count) { return at < size ? data[at++] % count : 0; }

  void add(const std::string &text) { sequence.ptx += text + "\n"; }
  std::string label() { return "L" + std::to_string(labels++); }
  std::string reg(const char *name, uint32_t count) {
    return name + std::to_string(take(count));
  }

  void start() {
    add(R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_0, .param .u64 k_1)
{
.reg .b32 r<8>, c<4>, own, slot, place, id, number;
.reg .b64 d<4>, in, out, all, wide;
.reg .b16 h<4>;
.reg .b8 byte;
.reg .f32 f<6>;
.reg .f64 g<2>;
.reg .pred q<4>, more<4>;
.shared .align 16 .b8 everyone[512];
.local .align 16 .b8 mine[64];
mov.u32 id, %ctaid.x;
mov.u32 number, %ntid.x;
mov.u32 slot, %tid.x;
mad.lo.u32 id, id, number, slot;
ld.param.u64 in, [k_0];
ld.param.u64 out, [k_1];)");
    // In global memory the last words are for all.
    add("add.u64 all, out, " + std::to_string(64 * 4 * kSequenceOutput) + ";");
    add("mad.wide.u32 in, id, " + std::to_string(4 * kSequenceInput) +
        ", in;\nmad.wide.u32 out, id, " + std::to_string(4 * kSequenceOutput) +
        ", out;");
    for (int i = 0; i < 8; i += 4)
      add("ld.global.v4.b32 {r" + std::to_string(i) + ", r" +
          std::to_string(i + 1) + ", r" + std::to_string(i + 2) + ", r" +
          std::to_string(i + 3) + "}, [in+" + std::to_string(4 * i) + "];");
    for (int i = 0; i < 6; ++i)
      add("ld.global.f32 f" + std::to_string(i) + ", [in+" +
          std::to_string(32 + 4 * i) + "];");
    for (int i = 0; i < 4; ++i)
      add("ld.global.b64 d" + std::to_string(i) + ", [in+" +
          std::to_string(56 + 8 * i) + "];");
    add(R"(ld.global.v4.b16 {h0, h1, h2, h3}, [in+88];
mov.b64 g0, d1;
cvt.f64.f32 g1, f2;
setp.lt.s32 q0, r0, r1;
setp.gt.f32 q1, f0, f1;
setp.ne.b16 q2, h0, h1;
setp.lt.u64 q3, d0, d1;
mov.b32 own, everyone;
mad.lo.u32 own, slot, 8, own;
st.shared.b64 [own], d2;
mov.b32 place, mine;
st.local.v2.b64 [place], {d0, d1};
st.local.v2.b64 [place+16], {d2, d3};
st.local.v2.b64 [place+32], {d1, d3};
st.local.v2.b64 [place+48], {d3, d0};)");
    // A thread alone may be the only one of its block.
    if (sequence.communicates)
      add("bar.sync 0;");
  }

  /// One of `table`, with registers in place of the letters.
  template <size_t N> void instruction(const char *const (&table)[N]) {
    std::string text = table[(take(256) << 8 | take(256)) % N], line;
    bool writesPredicate = text.find("$Q") != std::string::npos;
    if (text.find("$a") != std::string::npos) {
      add("mov.b32 place, mine;\nand.b32 slot, " + reg("r", 8) +
          ", 48;\nadd.u32 place, place, slot;");
    }
    if (text.find("$s") != std::string::npos)
      add("mov.b32 place, everyone;\nand.b32 slot, " + reg("r", 8) +
          ", 508;\nadd.u32 place, place, slot;");
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '$') {
        line += text[i];
        continue;
      }
      switch (char c = text[++i]) {
      case 'i':
        line += take(4) ? reg("r", 8) : std::to_string(int(take(256)) - 100);
        break;
      case 'n':
        line += std::to_string(take(64));
        break;
      case 'a':
      case 's':
        line += "place";
        break;
      default:
        line += reg(std::string(1, char(c | 32)).c_str(), count(char(c | 32)));
      }
    }
    // A guard is of the whole line, and not for what writes predicates.
    bool guarded = take(4) == 0 && !writesPredicate &&
                   text.find('\n') == std::string::npos && !uniform;
    add((guarded ? (take(2) ? "@" : "@!") + reg("q", 4) + " " : "") + line);
    ++written;
  }

  static uint32_t count(char letter) {
    switch (letter) {
    case 'r':
      return 8;
    case 'f':
      return 6;
    case 'g':
      return 2;
    default:
      return 4;
    }
  }

  void statements(unsigned depth) {
    for (uint32_t i = 1 + take(4); i && at < size; --i)
      statement(depth + 1);
  }

  void statement(unsigned depth) {
    uint32_t kind = take(16);
    bool deep = depth >= 4 || written > 80;
    if (kind == 0 && !deep) {
      branch(depth);
    } else if (kind == 1 && !deep) {
      loop(depth);
    } else if (kind == 2 && !deep) {
      table(depth);
    } else if (kind == 3 && !loopEnds.empty()) {
      add("@" + reg("q", 4) + " bra " + loopEnds.back() + ";");
    } else if (kind == 4 && !sequence.communicates && depth) {
      add("@" + reg("q", 4) + " bra END;");
    } else if (kind == 5 && !sequence.communicates && depth) {
      add("@!" + reg("q", 4) + " ret;");
    } else if (kind < 8 && sequence.communicates && !depth) {
      uniform = true;
      instruction(warpWide);
      uniform = false;
    } else if (kind < 10 && sequence.communicates) {
      instruction(shared);
    } else {
      instruction(instructions);
    }
  }

  void branch(unsigned depth) {
    std::string other = label(), end = label();
    add((take(2) ? "@" : "@!") + reg("q", 4) + " bra " + other + ";");
    statements(depth);
    add("bra " + end + ";\n" + other + ":");
    if (take(2))
      statements(depth);
    add(end + ":");
  }

  /// At most three times; each depth has a counter of its own.
  void loop(unsigned depth) {
    std::string head = label(), end = label(), d = std::to_string(depth);
    add("and.b32 c" + d + ", " + reg("r", 8) + ", 3;\n" + head + ":");
    loopEnds.push_back(end);
    statements(depth);
    loopEnds.pop_back();
    add("sub.u32 c" + d + ", c" + d + ", 1;\nsetp.gt.s32 more" + d + ", c" + d +
        ", 0;\n@more" + d + " bra " + head + ";\n" + end + ":");
  }

  void table(unsigned depth) {
    std::string name = label(), end = label(), targets[3];
    for (std::string &target : targets)
      target = label();
    add(name + ": .branchtargets " + targets[0] + ", " + targets[1] + ", " +
        targets[2] + ";\nrem.u32 slot, " + reg("r", 8) +
        ", 3;\nbrx.idx slot, " + name + ";");
    for (const std::string &target : targets) {
      add(target + ":");
      if (take(2))
        statements(depth);
      if (take(2)) // else falls into the next
        add("bra " + end + ";");
    }
    add(end + ":");
  }

  void finish() {
    add("END:");
    unsigned word = 0;
    auto store = [&](const std::string &type, const std::string &value,
                     unsigned words) {
      add("st.global." + type + " [out+" + std::to_string(4 * word) + "], " +
          value + ";");
      word += words;
    };
    for (int i = 0; i < 4; ++i)
      store("b64", "d" + std::to_string(i), 2);
    for (int i = 0; i < 2; ++i)
      store("f64", "g" + std::to_string(i), 2);
    for (int i = 0; i < 8; ++i)
      store("b32", "r" + std::to_string(i), 1);
    for (int i = 0; i < 6; ++i)
      store("f32", "f" + std::to_string(i), 1);
    for (int i = 0; i < 4; ++i) {
      add("cvt.u32.u16 slot, h" + std::to_string(i) + ";");
      store("b32", "slot", 1);
    }
    for (int i = 0; i < 4; ++i) {
      add("selp.u32 slot, 1, 0, q" + std::to_string(i) + ";");
      store("b32", "slot", 1);
    }
    add("ret;\n}");
  }

  const uint8_t *data;
  size_t size, at = 0;
  Sequence sequence;
  unsigned labels = 0, written = 0;
  bool uniform = false;
  std::vector<std::string> loopEnds;
};

} // namespace

Sequence makeSequence(const uint8_t *data, size_t size) {
  return Writer(data, size).run();
}

} // namespace dither::fuzz
