#include "dither/Layout/LayoutTool.h"

#include <gtest/gtest.h>

using namespace dither::layout;

namespace {

std::string run(const std::vector<std::string> &args, int expectedCode = 0) {
  std::string out, err;
  EXPECT_EQ(runLayoutTool(args, out, err), expectedCode);
  EXPECT_EQ(expectedCode != 0, out.empty());
  return out + err;
}

const char *const small = "(2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)] warp=[]";

TEST(LayoutTool, BothViews) {
  EXPECT_EQ(run({small}),
            R"((2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)] warp=[]
shape (2,8), 4 registers, 4 lanes, 1 warps, 4 contiguous registers

lane 0: (0,0) (0,1) (0,2) (0,3)
lane 1: (0,4) (0,5) (0,6) (0,7)
lane 2: (1,0) (1,1) (1,2) (1,3)
lane 3: (1,4) (1,5) (1,6) (1,7)

0:0 0:1 0:2 0:3 1:0 1:1 1:2 1:3
2:0 2:1 2:2 2:3 3:0 3:1 3:2 3:3
)");
}

TEST(LayoutTool, BroadcastsHolesWarpsRepeats) {
  EXPECT_EQ(run({"--tensor", "(4) reg=[] lane=[(0)] warp=[(2)] rep (2)"}),
            R"((4) reg=[] lane=[(0)] warp=[(2)] rep (2)
shape (8), 2 registers, 2 lanes, 2 warps, 1 contiguous registers
holds 2^1 of 2^2 elements of each tile
broadcast along lane bits 0

0.0:0|0.1:0           - 1.0:0|1.1:0           - 0.0:1|0.1:1           - 1.0:1|1.1:1           -
)");
  EXPECT_EQ(run({"--hardware", "(2) reg=[] lane=[] warp=[(1)] rep (2)"}),
            R"((2) reg=[] lane=[] warp=[(1)] rep (2)
shape (4), 2 registers, 1 lanes, 2 warps, 1 contiguous registers

warp 0 lane 0: (0) (2)
warp 1 lane 0: (1) (3)
)");
}

TEST(LayoutTool, MemoryAndRanks) {
  EXPECT_EQ(run({"(2,2) offset=[(1,1),(1,0)] rep (1,2)"}),
            R"((2,2) offset=[(1,1),(1,0)] rep (1,2)
shape (2,4), 8 offsets, 1 contiguous

offset 0: (0,0)
offset 1: (1,1)
offset 2: (1,0)
offset 3: (0,1)
offset 4: (0,2)
offset 5: (1,3)
offset 6: (1,2)
offset 7: (0,3)

0 3 4 7
2 1 6 5
)");
  EXPECT_EQ(run({"--tensor", "(2,1,2) reg=[(0,0,1)] lane=[(1,0,0)] warp=[]"}),
            R"((2,1,2) reg=[(0,0,1)] lane=[(1,0,0)] warp=[]
shape (2,1,2), 2 registers, 2 lanes, 1 warps, 2 contiguous registers

plane 0
0:0 0:1
plane 1
1:0 1:1
)");
  EXPECT_EQ(run({"() reg=[] lane=[()] warp=[]"}), R"(() reg=[] lane=[()] warp=[]
shape (), 1 registers, 2 lanes, 1 warps, 1 contiguous registers
broadcast along lane bits 0

lane 0: ()
lane 1: ()

0:0|1:0
)");
}

TEST(LayoutTool, ScaleFactors) {
  std::string text = run({"--tensor", "scale128x4"});
  EXPECT_EQ(
      text.substr(0, text.find("\n\n")),
      R"((128,4) offset=[(0,1),(0,2),(32,0),(64,0),(1,0),(2,0),(4,0),(8,0),(16,0)]
shape (128,4), 512 offsets, 4 contiguous)");
  EXPECT_NE(text.find("\n496 497 498 499\n  4   5   6   7\n"),
            std::string::npos);
}

TEST(LayoutTool, ConflictsOfATranspose) {
  const char *rows = "(32,32) reg=[(1,0),(2,0),(4,0),(8,0),(16,0)] "
                     "lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] warp=[]";
  const char *cols = "(32,32) reg=[(0,1),(0,2),(0,4),(0,8),(0,16)] "
                     "lane=[(1,0),(2,0),(4,0),(8,0),(16,0)] warp=[]";
  const char *memory = "(32,32) offset=[(0,1),(0,2),(0,4),(0,8),(0,16),"
                       "(1,0),(2,0),(4,0),(8,0),(16,0)]";
  EXPECT_EQ(run({"--conflicts", rows, memory}),
            "access: 32 accesses of 1 x 4 bytes, 1 wavefronts each (1 without "
            "conflicts), "
            "0 conflicts in all\n");
  EXPECT_EQ(run({"--conflicts", cols, memory}),
            "access: 32 accesses of 1 x 4 bytes, 32 wavefronts each (1 without "
            "conflicts), "
            "992 conflicts in all\n");
  EXPECT_EQ(run({"--conflicts", "--vec", "4", cols, memory}),
            "access: 8 accesses of 4 x 4 bytes, 32 wavefronts each (4 without "
            "conflicts), "
            "224 conflicts in all\n");
  EXPECT_EQ(run({"--swizzle", "--max-bytes", "4", rows, cols}),
            "(32,32) offset=[(1,0),(2,0),(4,0),(8,0),(16,0),"
            "(1,1),(2,2),(4,4),(8,8),(16,16)]\n"
            "store: 32 accesses of 1 x 4 bytes, 1 wavefronts each (1 without "
            "conflicts), "
            "0 conflicts in all\n"
            "load: 32 accesses of 1 x 4 bytes, 1 wavefronts each (1 without "
            "conflicts), "
            "0 conflicts in all\n");
  EXPECT_EQ(
      run({"--swizzle", "--bytes", "1", rows, cols}),
      "(32,32) "
      "offset=[(0,1),(0,2),(0,4),(0,8),(1,0),(2,0),(4,0),(1,16),(8,0),(16,0)]\n"
      "store: 32 accesses of 1 x 1 bytes, 1 wavefronts each (1 without "
      "conflicts), "
      "0 conflicts in all\n"
      "load: 2 accesses of 16 x 1 bytes, 4 wavefronts each (4 without "
      "conflicts), "
      "0 conflicts in all\n");
}

TEST(LayoutTool, Reduce) {
  EXPECT_EQ(run({"--reduce", "1,8", small}), R"(reg bit 0 -> 2 registers
reg bit 0 -> 1 registers
lane bit 0 -> 1 registers
(2,1) reg=[] lane=[(0,0),(1,0)] warp=[]
)");
  EXPECT_EQ(run({"--reduce", "0,2", small}),
            R"(lane bit 1 exchanging reg bit 1 -> 2 registers
(1,8) reg=[(0,1)] lane=[(0,4),(0,2)] warp=[]
)");
}

TEST(LayoutTool, Errors) {
  auto first = [](const std::string &text) {
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first(run({}, 2)), "dither-layout: found 0 layouts, expected 1");
  EXPECT_EQ(first(run({"--swizzle", small}, 2)),
            "dither-layout: found 1 layouts, expected 2");
  EXPECT_EQ(first(run({"--nope", small}, 2)),
            "dither-layout: unknown option '--nope'");
  EXPECT_EQ(first(run({small, "--bytes"}, 2)),
            "dither-layout: --bytes expects a number, found ''");
  EXPECT_EQ(first(run({"--reduce", "1", small}, 2)),
            "dither-layout: --reduce expects AXIS,EXTENT, found '1'");
  EXPECT_EQ(first(run({"--tensor", "--conflicts", small, small}, 2)),
            "dither-layout: --conflicts, --swizzle, --reduce and the tables "
            "exclude each other");
  EXPECT_EQ(
      run({"(3)"}, 1),
      "dither-layout: size 3 of output dimension 0 is not a power of two\n");
  EXPECT_EQ(run({"--reduce", "2,2", small}, 1),
            "dither-layout: reduction along axis 2 of a layout of rank 2\n");
  EXPECT_EQ(run({"--help"}).substr(0, 20), "usage: dither-layout");
}

} // namespace
