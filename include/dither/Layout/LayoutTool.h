//===- LayoutTool.h - The dither-layout command -----------------*- C++ -*-===//
#ifndef DITHER_LAYOUT_LAYOUTTOOL_H
#define DITHER_LAYOUT_LAYOUTTOOL_H

#include <string>
#include <vector>

namespace dither::layout {

/// Runs dither-layout on its arguments (without the program name), appending to
/// what goes to the standard streams. Returns the exit code: 0, 1 for a bad
/// layout, 2 for bad usage.
int runLayoutTool(const std::vector<std::string> &args, std::string &out,
                  std::string &err);

} // namespace dither::layout

#endif // DITHER_LAYOUT_LAYOUTTOOL_H
