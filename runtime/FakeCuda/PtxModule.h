//===- PtxModule.h - What the fake driver reads of PTX ---------*- C++ -*-===//

#ifndef DITHER_RUNTIME_FAKECUDA_PTXMODULE_H
#define DITHER_RUNTIME_FAKECUDA_PTXMODULE_H

#include <map>
#include <string>
#include <vector>

namespace dither::fakecuda {

/// The entries of a PTX text, each with the types of its parameters ("u64").
struct PtxModule {
  std::map<std::string, std::vector<std::string>> entries;
  /// .version, times ten: 8.4 is 84.
  int version = 0;
  /// .target: "sm_90a".
  std::string target;
};

/// Reads `text`; false, with what is wrong in `log`, if it is not PTX: no
/// .version or .target, or an entry whose parameter list does not end.
bool parsePtx(const std::string &text, PtxModule &module, std::string &log);

/// A parameter of PTX type `type` as text: pointers and u64 in hexadecimal.
std::string paramText(const std::string &type, const void *value);

} // namespace dither::fakecuda

#endif // DITHER_RUNTIME_FAKECUDA_PTXMODULE_H
