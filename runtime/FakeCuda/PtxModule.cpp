#include "PtxModule.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>

namespace dither::fakecuda {

/// The text without comments.
static std::string strip(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = text.find('\n', i);
    } else if (text.compare(i, 2, "/*") == 0) {
      i = text.find("*/", i);
      i = i == std::string::npos ? i : i + 1;
    } else {
      out += text[i];
      continue;
    }
    if (i == std::string::npos)
      break;
    out += ' ';
  }
  return out;
}

/// ".param .u64 .ptr .global .align 16 name, ..." -> "u64", ...
static std::vector<std::string> paramTypes(const std::string &list) {
  std::vector<std::string> types;
  std::istringstream words(list);
  for (std::string word, last; words >> word; last = word)
    if (last == ".param" && word[0] == '.')
      types.push_back(word.substr(1));
  return types;
}

bool parsePtx(const std::string &text, PtxModule &module, std::string &log) {
  std::string ptx = strip(text);
  std::istringstream words(ptx);
  int major = 0, minor = 0;
  for (std::string word, last; words >> word; last = word) {
    if (last == ".version" &&
        std::sscanf(word.c_str(), "%d.%d", &major, &minor) == 2)
      module.version = 10 * major + minor;
    if (last == ".target")
      module.target = word.substr(0, word.find(','));
  }
  if (!module.version || module.target.empty()) {
    log = "ptxas fatal   : Missing .version or .target directive";
    return false;
  }
  const std::string entry = ".entry";
  for (size_t at = ptx.find(entry); at != std::string::npos;
       at = ptx.find(entry, at)) {
    at += entry.size();
    size_t open = ptx.find('(', at), close = ptx.find(')', at);
    if (open == std::string::npos || close == std::string::npos ||
        close < open) {
      log = "ptxas fatal   : Parsing error near '.entry': syntax error";
      return false;
    }
    std::string name;
    std::istringstream(ptx.substr(at, open - at)) >> name;
    module.entries[name] = paramTypes(ptx.substr(open + 1, close - open - 1));
  }
  return true;
}

template <typename T> static T read(const void *value) {
  T out;
  std::memcpy(&out, value, sizeof out);
  return out;
}

std::string paramText(const std::string &type, const void *value) {
  char text[64];
  if (type == "u64" || type == "b64")
    std::snprintf(text, sizeof text, "0x%" PRIx64, read<uint64_t>(value));
  else if (type == "s64")
    std::snprintf(text, sizeof text, "%" PRId64, read<int64_t>(value));
  else if (type == "s32" || type == "b32")
    std::snprintf(text, sizeof text, "%" PRId32, read<int32_t>(value));
  else if (type == "u32")
    std::snprintf(text, sizeof text, "%" PRIu32, read<uint32_t>(value));
  else if (type == "f32")
    std::snprintf(text, sizeof text, "%g", double(read<float>(value)));
  else
    return "?" + type;
  return text;
}

} // namespace dither::fakecuda
