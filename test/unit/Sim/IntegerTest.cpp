// Integer instructions against scalar definitions of the PTX ISA, 9.7.1 and
// 9.7.8.
#include "SimTest.h"

#include <functional>

using namespace dither::test;

namespace {

constexpr size_t kCount = 512;

__extension__ typedef __int128 Wide;

template <class T> std::string suffix(char kind) {
  return kind + std::to_string(8 * sizeof(T));
}

/// Runs `code`, in which $ stands for the type, and compares each element.
template <class D, class T, class... S>
void expectType(const std::string &text, const std::string &type,
                const std::function<D(T, S...)> &expected,
                const std::vector<T> &first, const std::vector<S> &...rest) {
  std::string code = text;
  for (size_t at; (at = code.find('$')) != std::string::npos;)
    code.replace(at, 1, type);
  std::vector<D> got = evaluate<D>("sm_90a", code, first, rest...);
  for (size_t i = 0; i < first.size(); ++i)
    ASSERT_EQ(got[i], expected(first[i], rest[i]...))
        << code << " of "
        << (std::to_string(first[i]) + ... + (" " + std::to_string(rest[i])));
}

template <class T> void binary(char kind) {
  std::string type = suffix<T>(kind);
  constexpr int bits = 8 * sizeof(T);
  auto a = interesting<T>(kCount, 1), b = interesting<T>(kCount, 2);
  using F = std::function<T(T, T)>;
  auto check = [&](const char *text, F f) { expectType(text, type, f, a, b); };
  check("add.$ d, a, b;", [](T x, T y) { return T(Wide(x) + y); });
  check("sub.$ d, a, b;", [](T x, T y) { return T(Wide(x) - y); });
  check("mul.lo.$ d, a, b;",
        [](T x, T y) { return T(uint64_t(x) * uint64_t(y)); });
  check("min.$ d, a, b;", [](T x, T y) { return std::min(x, y); });
  check("max.$ d, a, b;", [](T x, T y) { return std::max(x, y); });
  check("mul.hi.$ d, a, b;", [=](T x, T y) {
    if (sizeof(T) < 8)
      return T((Wide(x) * y) >> bits);
    // The high half by parts, as 128 bits hold signed products only.
    Wide low = Wide(uint64_t(x) & 0xFFFFFFFF) * y, high = (Wide(x) >> 32) * y;
    return T((high + (low >> 32)) >> 32);
  });
  check("div.$ d, a, b;",
        [](T x, T y) { return y == 0 ? T(-1) : T(Wide(x) / Wide(y)); });
  check("rem.$ d, a, b;",
        [](T x, T y) { return y == 0 ? x : T(Wide(x) % Wide(y)); });
  // Comparisons, as 0 or 1.
  using P = std::function<T(T, T)>;
  auto compare = [&](const std::string &name, P f) {
    std::string wide = sizeof(T) == 2 ? "b16" : sizeof(T) == 4 ? "b32" : "b64";
    expectType(".reg .pred p;\nsetp." + name + ".$ p, a, b;\nselp." + wide +
                   " d, 1, 0, p;",
               type, f, a, b);
  };
  auto c = a;
  for (size_t i = 0; i < kCount; i += 3)
    c[i] = b[i];
  a = c;
  compare("eq", [](T x, T y) { return x == y; });
  compare("ne", [](T x, T y) { return x != y; });
  compare("lt", [](T x, T y) { return x < y; });
  compare("le", [](T x, T y) { return x <= y; });
  compare("gt", [](T x, T y) { return x > y; });
  compare("ge", [](T x, T y) { return x >= y; });
  if (kind == 'u') {
    compare("lo", [](T x, T y) { return x < y; });
    compare("ls", [](T x, T y) { return x <= y; });
    compare("hi", [](T x, T y) { return x > y; });
    compare("hs", [](T x, T y) { return x >= y; });
  }
}

TEST(Integer, Binary) {
  binary<uint16_t>('u');
  binary<int16_t>('s');
  binary<uint32_t>('u');
  binary<int32_t>('s');
  binary<uint64_t>('u');
  binary<int64_t>('s');
}

template <class T> void shifts(char kind) {
  std::string type = suffix<T>(kind);
  constexpr uint32_t bits = 8 * sizeof(T);
  auto a = interesting<T>(kCount, 3);
  auto n = interesting<uint32_t>(kCount, 4);
  for (size_t i = 0; i < kCount; i += 2)
    n[i] %= bits + 2;
  using F = std::function<T(T, uint32_t)>;
  expectType("shr.$ d, a, b;", type, F([=](T x, uint32_t k) {
               return k < bits ? T(x >> k) : x < 0 ? T(-1) : T(0);
             }),
             a, n);
  if (kind == 'b')
    expectType("shl.$ d, a, b;", type, F([=](T x, uint32_t k) {
                 return k < bits ? T(uint64_t(x) << k) : T(0);
               }),
               a, n);
}

TEST(Integer, Shifts) {
  shifts<uint16_t>('b');
  shifts<uint16_t>('u');
  shifts<int16_t>('s');
  shifts<uint32_t>('b');
  shifts<uint32_t>('u');
  shifts<int32_t>('s');
  shifts<uint64_t>('b');
  shifts<uint64_t>('u');
  shifts<int64_t>('s');
}

template <class T> void logic() {
  std::string type = suffix<T>('b');
  auto a = interesting<T>(kCount, 5), b = interesting<T>(kCount, 6);
  using F = std::function<T(T, T)>;
  using G = std::function<T(T)>;
  expectType("and.$ d, a, b;", type, F([](T x, T y) { return x & y; }), a, b);
  expectType("or.$ d, a, b;", type, F([](T x, T y) { return x | y; }), a, b);
  expectType("xor.$ d, a, b;", type, F([](T x, T y) { return x ^ y; }), a, b);
  expectType("not.$ d, a;", type, G([](T x) { return T(~x); }), a);
  expectType("cnot.$ d, a;", type, G([](T x) { return T(x == 0); }), a);
}

TEST(Integer, Logic) {
  logic<uint16_t>();
  logic<uint32_t>();
  logic<uint64_t>();
}

template <class T> void unary() {
  using U = std::make_unsigned_t<T>;
  std::string type = suffix<T>('s');
  auto a = interesting<T>(kCount, 7);
  using F = std::function<T(T)>;
  expectType("abs.$ d, a;", type,
             F([](T x) { return x < 0 ? T(U(0) - U(x)) : x; }), a);
  expectType("neg.$ d, a;", type, F([](T x) { return T(U(0) - U(x)); }), a);
}

TEST(Integer, Unary) {
  unary<int16_t>();
  unary<int32_t>();
  unary<int64_t>();
}

template <class T, class W> void wide(char kind) {
  std::string type = suffix<T>(kind);
  auto a = interesting<T>(kCount, 8), b = interesting<T>(kCount, 9);
  auto c = interesting<W>(kCount, 10);
  expectType("mul.wide.$ d, a, b;", type,
             std::function<W(T, T)>([](T x, T y) { return W(W(x) * y); }), a,
             b);
  expectType("mad.wide.$ d, a, b, c;", type,
             std::function<W(T, T, W)>(
                 [](T x, T y, W z) { return W(Wide(x) * y + z); }),
             a, b, c);
}

template <class T> void threeSources(char kind) {
  std::string type = suffix<T>(kind);
  auto a = interesting<T>(kCount, 11), b = interesting<T>(kCount, 12);
  auto c = interesting<T>(kCount, 13);
  using F = std::function<T(T, T, T)>;
  expectType("mad.lo.$ d, a, b, c;", type, F([](T x, T y, T z) {
               return T(uint64_t(x) * uint64_t(y) + uint64_t(z));
             }),
             a, b, c);
  expectType("sad.$ d, a, b, c;", type, F([](T x, T y, T z) {
               return T(Wide(z) + (x < y ? Wide(y) - x : Wide(x) - y));
             }),
             a, b, c);
  if (sizeof(T) < 8)
    expectType("mad.hi.$ d, a, b, c;", type, F([](T x, T y, T z) {
                 return T(((Wide(x) * y) >> (8 * sizeof(T))) + z);
               }),
               a, b, c);
}

TEST(Integer, Products) {
  wide<uint16_t, uint32_t>('u');
  wide<int16_t, int32_t>('s');
  wide<uint32_t, uint64_t>('u');
  wide<int32_t, int64_t>('s');
  threeSources<uint16_t>('u');
  threeSources<int16_t>('s');
  threeSources<uint32_t>('u');
  threeSources<int32_t>('s');
  threeSources<uint64_t>('u');
  threeSources<int64_t>('s');
  auto a = interesting<int32_t>(kCount, 14),
       b = interesting<int32_t>(kCount, 15);
  using F = std::function<int32_t(int32_t, int32_t)>;
  auto low24 = [](int32_t x) {
    return int64_t(int32_t(uint32_t(x) << 8) >> 8);
  };
  expectType("mul24.lo.s32 d, a, b;", "", F([=](int32_t x, int32_t y) {
               return int32_t(low24(x) * low24(y));
             }),
             a, b);
  expectType("mul24.hi.s32 d, a, b;", "", F([=](int32_t x, int32_t y) {
               return int32_t((low24(x) * low24(y)) >> 16);
             }),
             a, b);
  expectType("add.sat.s32 d, a, b;", "", F([](int32_t x, int32_t y) {
               return int32_t(
                   std::clamp<int64_t>(int64_t(x) + y, INT32_MIN, INT32_MAX));
             }),
             a, b);
  expectType("sub.sat.s32 d, a, b;", "", F([](int32_t x, int32_t y) {
               return int32_t(
                   std::clamp<int64_t>(int64_t(x) - y, INT32_MIN, INT32_MAX));
             }),
             a, b);
}

TEST(Integer, CarriesChain) {
  auto a = interesting<uint64_t>(kCount, 16),
       b = interesting<uint64_t>(kCount, 17);
  std::string halves = ".reg .b32 al, ah, bl, bh, dl, dh;\n"
                       "mov.b64 {al, ah}, a;\nmov.b64 {bl, bh}, b;\n";
  using F = std::function<uint64_t(uint64_t, uint64_t)>;
  expectType(halves + "add.cc.u32 dl, al, bl;\naddc.u32 dh, ah, bh;\n"
                      "mov.b64 d, {dl, dh};",
             "", F([](uint64_t x, uint64_t y) { return x + y; }), a, b);
  // In place, and a borrow out of the top, read by a further subc.
  expectType(halves + "sub.cc.u32 al, al, bl;\nsubc.cc.u32 ah, ah, bh;\n"
                      "subc.u32 dh, 0, 0;\nmov.b64 d, {al, dh};",
             "", F([](uint64_t x, uint64_t y) {
               return uint64_t(x < y ? 0xFFFFFFFFu : 0u) << 32 |
                      uint32_t(x - y);
             }),
             a, b);
  expectType(std::string(".reg .b64 t;\nadd.cc.u64 t, a, b;\n"
                         "addc.u64 d, 0, 0;"),
             "", F([](uint64_t x, uint64_t y) { return uint64_t(x + y < x); }),
             a, b);
}

template <class T> void fields(char kind) {
  std::string type = suffix<T>(kind);
  constexpr uint32_t bits = 8 * sizeof(T);
  auto a = interesting<T>(kCount, 18);
  auto b = interesting<uint32_t>(kCount, 19),
       c = interesting<uint32_t>(kCount, 20);
  for (size_t i = 0; i < kCount; ++i)
    if (i % 8) {
      b[i] %= bits + 4;
      c[i] %= bits + 4;
    }
  // Bit by bit, as the ISA's pseudocode.
  expectType(
      "bfe.$ d, a, b, c;", type,
      std::function<T(T, uint32_t, uint32_t)>([=](T x, uint32_t p, uint32_t l) {
        uint32_t pos = p & 255, len = l & 255;
        uint64_t u = uint64_t(x), d = 0;
        bool sign =
            kind == 's' && len && (u >> std::min(pos + len - 1, bits - 1) & 1);
        for (uint32_t i = 0; i < bits; ++i) {
          bool bit = i < len && pos + i < bits ? u >> (pos + i) & 1 : sign;
          d |= uint64_t(bit) << i;
        }
        return T(d);
      }),
      a, b, c);
  if (kind == 's')
    return;
  auto base = interesting<T>(kCount, 21);
  expectType("bfi.b" + std::to_string(bits) + " d, a, e, b, c;", "",
             std::function<T(T, uint32_t, uint32_t, T)>(
                 [=](T x, uint32_t p, uint32_t l, T y) {
                   uint32_t pos = p & 255, len = l & 255;
                   for (uint32_t i = 0; i < len && pos + i < bits; ++i) {
                     T bit = T(T(x >> i) & 1);
                     y = T((y & ~(T(1) << (pos + i))) | bit << (pos + i));
                   }
                   return y;
                 }),
             a, b, c, base);
}

TEST(Integer, Fields) {
  fields<uint32_t>('u');
  fields<int32_t>('s');
  fields<uint64_t>('u');
  fields<int64_t>('s');
}

template <class T> void counts() {
  std::string bits = suffix<T>('b');
  constexpr int width = 8 * sizeof(T);
  auto a = interesting<T>(kCount, 22);
  a[0] = 0;
  a[1] = T(-1);
  using F = std::function<uint32_t(T)>;
  expectType("popc.$ d, a;", bits, F([](T x) {
               uint32_t n = 0;
               for (int i = 0; i < width; ++i)
                 n += x >> i & 1;
               return n;
             }),
             a);
  expectType("clz.$ d, a;", bits, F([](T x) {
               uint32_t n = 0;
               while (n < width && !(x >> (width - 1 - n) & 1))
                 ++n;
               return n;
             }),
             a);
  expectType("brev.$ d, a;", bits, std::function<T(T)>([](T x) {
               T d = 0;
               for (int i = 0; i < width; ++i)
                 d = T(d | T(x >> i & 1) << (width - 1 - i));
               return d;
             }),
             a);
  auto find = [](T x, bool isSigned) {
    bool sign = isSigned && (x >> (width - 1) & 1);
    for (int i = width - 1; i >= 0; --i)
      if ((x >> i & 1) != T(sign))
        return uint32_t(i);
    return ~0u;
  };
  expectType("bfind.$ d, a;", suffix<T>('u'),
             F([=](T x) { return find(x, false); }), a);
  expectType("bfind.$ d, a;", suffix<T>('s'),
             F([=](T x) { return find(x, true); }), a);
  expectType("bfind.shiftamt.$ d, a;", suffix<T>('u'), F([=](T x) {
               uint32_t at = find(x, false);
               return at == ~0u ? at : width - 1 - at;
             }),
             a);
}

TEST(Integer, Counts) {
  counts<uint32_t>();
  counts<uint64_t>();
}

TEST(Integer, BytesAndTruthTables) {
  auto a = interesting<uint32_t>(kCount, 23),
       b = interesting<uint32_t>(kCount, 24);
  auto c = interesting<uint32_t>(kCount, 25);
  using F = std::function<uint32_t(uint32_t, uint32_t, uint32_t)>;
  auto check = [&](const std::string &code, F f) {
    expectType(code, "", f, a, b, c);
  };
  auto byteOf = [](uint32_t x, uint32_t y, uint32_t i) {
    return uint8_t((uint64_t(y) << 32 | x) >> (8 * (i & 7)));
  };
  check("prmt.b32 d, a, b, c;", [=](uint32_t x, uint32_t y, uint32_t s) {
    uint32_t d = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t control = s >> (4 * i) & 15;
      uint8_t byte = byteOf(x, y, control);
      if (control & 8)
        byte = byte & 0x80 ? 0xFF : 0;
      d |= uint32_t(byte) << (8 * i);
    }
    return d;
  });
  // The tables of the ISA: selectors from the highest byte down, by c & 3.
  auto table = [&](const std::string &mode,
                   std::array<std::array<int, 4>, 4> selectors) {
    check("prmt.b32." + mode + " d, a, b, c;",
          [=](uint32_t x, uint32_t y, uint32_t s) {
            uint32_t d = 0;
            for (int i = 0; i < 4; ++i)
              d |= uint32_t(byteOf(x, y, uint32_t(selectors[s & 3][3 - i])))
                   << (8 * i);
            return d;
          });
  };
  table("f4e", {{{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}});
  table("b4e", {{{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}});
  table("rc8", {{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}});
  table("ecl", {{{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}});
  table("ecr", {{{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}});
  table("rc16", {{{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}});
  // The ISA's definition: the table is f(F0, CC, AA).
  check("lop3.b32 d, a, b, c, 0x80;",
        [](uint32_t x, uint32_t y, uint32_t z) { return x & y & z; });
  check("lop3.b32 d, a, b, c, 0x1A;", [](uint32_t x, uint32_t y, uint32_t z) {
    return ((x & y) | z) ^ x; // (0xF0 & 0xCC | 0xAA) ^ 0xF0
  });
  check("lop3.b32 d, a, b, c, 0xCA;",
        [](uint32_t x, uint32_t y, uint32_t z) { return (x & y) | (~x & z); });
  auto funnel = [](uint32_t x, uint32_t y) { return uint64_t(y) << 32 | x; };
  check("shf.l.wrap.b32 d, a, b, c;", [=](uint32_t x, uint32_t y, uint32_t n) {
    return uint32_t(funnel(x, y) << (n & 31) >> 32);
  });
  check("shf.r.wrap.b32 d, a, b, c;", [=](uint32_t x, uint32_t y, uint32_t n) {
    return uint32_t(funnel(x, y) >> (n & 31));
  });
  check("shf.l.clamp.b32 d, a, b, c;", [=](uint32_t x, uint32_t y, uint32_t n) {
    return n >= 32 ? x : uint32_t(funnel(x, y) << n >> 32);
  });
  check("shf.r.clamp.b32 d, a, b, c;", [=](uint32_t x, uint32_t y, uint32_t n) {
    return n >= 32 ? y : uint32_t(funnel(x, y) >> n);
  });
  check("dp4a.u32.s32 d, a, b, c;", [](uint32_t x, uint32_t y, uint32_t z) {
    for (int i = 0; i < 4; ++i)
      z += uint32_t(int(uint8_t(x >> (8 * i))) * int(int8_t(y >> (8 * i))));
    return z;
  });
  check("dp4a.s32.s32 d, a, b, c;", [](uint32_t x, uint32_t y, uint32_t z) {
    for (int i = 0; i < 4; ++i)
      z += uint32_t(int(int8_t(x >> (8 * i))) * int(int8_t(y >> (8 * i))));
    return z;
  });
  check("slct.b32.s32 d, a, b, c;", [](uint32_t x, uint32_t y, uint32_t z) {
    return int32_t(z) >= 0 ? x : y;
  });
  check("slct.b32.f32 d, a, b, c;", [](uint32_t x, uint32_t y, uint32_t z) {
    return toFloat(z) >= 0 ? x : y;
  });
}

TEST(Integer, PackedHalves) {
  auto a = interesting<uint32_t>(kCount, 26),
       b = interesting<uint32_t>(kCount, 27);
  using F = std::function<uint32_t(uint32_t, uint32_t)>;
  auto halves = [](auto zero, auto f) {
    using T = decltype(zero);
    return F([=](uint32_t x, uint32_t y) {
      uint32_t low = uint16_t(f(T(x), T(y)));
      return uint32_t(uint16_t(f(T(x >> 16), T(y >> 16)))) << 16 | low;
    });
  };
  expectType("add.u16x2 d, a, b;", "",
             halves(uint16_t(), [](auto x, auto y) { return x + y; }), a, b);
  expectType("max.s16x2 d, a, b;", "",
             halves(int16_t(), [](auto x, auto y) { return std::max(x, y); }),
             a, b);
  expectType("min.u16x2 d, a, b;", "",
             halves(uint16_t(), [](auto x, auto y) { return std::min(x, y); }),
             a, b);
  expectType("max.relu.s32 d, a, b;", "", F([](uint32_t x, uint32_t y) {
               return uint32_t(std::max({int32_t(x), int32_t(y), 0}));
             }),
             a, b);
}

TEST(Integer, PredicatesCombine) {
  auto a = interesting<uint32_t>(kCount, 28),
       b = interesting<uint32_t>(kCount, 29);
  using F = std::function<uint32_t(uint32_t, uint32_t)>;
  auto check = [&](const std::string &name, const std::string &third, F f) {
    expectType(".reg .pred p, q, r;\nsetp.lt.u32 r, a, 100;\n"
               ".reg .b32 x, y;\nsetp.lt." +
                   name + ".u32 p|q, a, b, " + third +
                   ";\nselp.b32 x, 1, 0, p;\nselp.b32 y, 2, 0, q;\n"
                   "or.b32 d, x, y;",
               "", f, a, b);
  };
  for (bool negated : {false, true}) {
    std::string third = negated ? "!r" : "r";
    auto make = [=](auto op) {
      return F([=](uint32_t x, uint32_t y) {
        bool less = x < y, c = (x < 100) != negated;
        return uint32_t(op(less, c)) | uint32_t(op(!less, c)) << 1;
      });
    };
    check("and", third, make([](bool x, bool y) { return x && y; }));
    check("or", third, make([](bool x, bool y) { return x || y; }));
    check("xor", third, make([](bool x, bool y) { return x != y; }));
  }
  expectType(".reg .pred p, q, r, s, t;\nsetp.lt.u32 p, a, b;\n"
             "setp.lt.u32 q, a, 100;\nand.pred r, p, q;\nxor.pred s, p, q;\n"
             "not.pred t, q;\nor.pred r, r, t;\nmov.pred t, s;\n"
             "mov.pred p, -1;\nand.pred r, r, p;\n"
             ".reg .b32 x, y;\nselp.b32 x, 1, 0, r;\nselp.b32 y, 2, 0, t;\n"
             "or.b32 d, x, y;",
             "", F([](uint32_t x, uint32_t y) {
               bool p = x < y, q = x < 100;
               return uint32_t((p && q) || !q) | uint32_t(p != q) << 1;
             }),
             a, b);
  expectType("set.lt.u32.u32 d, a, b;", "",
             F([](uint32_t x, uint32_t y) { return x < y ? ~0u : 0; }), a, b);
  expectType("set.lt.f32.u32 d, a, b;", "",
             F([](uint32_t x, uint32_t y) { return x < y ? 0x3F800000u : 0; }),
             a, b);
}

/// Lanes whose guard is false keep what they have.
TEST(Integer, Guards) {
  auto a = interesting<uint32_t>(kCount, 30);
  auto wide = interesting<uint64_t>(kCount, 31);
  auto half = interesting<uint16_t>(kCount, 32);
  expectType(".reg .pred p;\nsetp.lt.s32 p, a, 5;\nmov.b32 d, 7;\n"
             "@p add.s32 d, d, a;\n@!p sub.s32 d, d, 1;",
             "", std::function<int32_t(int32_t)>([](int32_t x) {
               return int32_t(x < 5 ? uint32_t(x) + 7 : 6);
             }),
             std::vector<int32_t>(a.begin(), a.end()));
  expectType(".reg .pred p;\nsetp.lt.u64 p, a, 50;\nmov.b64 d, 7;\n"
             "@p shl.b64 d, a, 1;",
             "", std::function<uint64_t(uint64_t)>([](uint64_t x) {
               return x < 50 ? x << 1 : 7;
             }),
             wide);
  expectType(".reg .pred p;\nsetp.lt.u16 p, a, 50;\nmov.b16 d, 7;\n"
             "@p not.b16 d, a;",
             "", std::function<uint16_t(uint16_t)>([](uint16_t x) {
               return uint16_t(x < 50 ? ~x : 7);
             }),
             half);
  // A guarded comparison keeps the predicates of the other lanes.
  expectType(".reg .pred p, q;\nsetp.lt.u32 p, a, 50;\nsetp.ne.u32 q, a, a;\n"
             "@p setp.gt.u32 q, a, 20;\nselp.b32 d, 1, 0, q;",
             "", std::function<uint32_t(uint32_t)>([](uint32_t x) {
               return uint32_t(x < 50 && x > 20);
             }),
             a);
}

} // namespace
