//===- dither-layout.cpp - Print and check layouts ------------------------===//
#include "dither/Layout/LayoutTool.h"

#include <cstdio>

int main(int argc, char **argv) {
  std::string out, err;
  int code = dither::layout::runLayoutTool(
      std::vector<std::string>(argv + 1, argv + argc), out, err);
  std::fputs(out.c_str(), stdout);
  std::fputs(err.c_str(), stderr);
  return code;
}
