#include "dither/Cache/BuildId.h"
#include "Files.h"
#include "dither/Cache/Key.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <dlfcn.h>
#include <link.h>

using namespace llvm;

namespace dither::cache {

/// The build id in one segment of notes; empty where it has none.
static std::string findInNotes(StringRef notes) {
  while (notes.size() > sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof(note));
    size_t name = sizeof(note);
    size_t content = name + alignTo(note.n_namesz, 4);
    size_t end = content + alignTo(note.n_descsz, 4);
    if (end > notes.size())
      break;
    if (note.n_type == NT_GNU_BUILD_ID &&
        notes.substr(name, note.n_namesz) == StringRef("GNU\0", 4))
      return toHex(notes.substr(content, note.n_descsz), /*LowerCase=*/true);
    notes = notes.drop_front(end);
  }
  return "";
}

/// Called for each loaded binary; stops at the one that holds this function.
static int findInBinary(dl_phdr_info *info, size_t, void *result) {
  auto here = reinterpret_cast<ElfW(Addr)>(&findInBinary);
  ArrayRef<ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
  auto holds = [&](const ElfW(Phdr) & header) {
    ElfW(Addr) start = info->dlpi_addr + header.p_vaddr;
    return header.p_type == PT_LOAD && start <= here &&
           here - start < header.p_memsz;
  };
  if (none_of(headers, holds))
    return 0;
  for (const ElfW(Phdr) &header : headers)
    if (header.p_type == PT_NOTE) {
      auto *notes =
          reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
      std::string id = findInNotes(StringRef(notes, header.p_memsz));
      if (!id.empty())
        *static_cast<std::string *>(result) = id;
    }
  return 1;
}

const std::string &binaryId() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(findInBinary, &found);
    Dl_info about;
    if (!found.empty() ||
        !dladdr(reinterpret_cast<void *>(&findInBinary), &about))
      return found;
    Expected<Descriptor> file = openToRead(about.dli_fname, Trust::Any);
    Expected<std::string> bytes =
        file ? readAll(*file, UINT64_MAX) : file.takeError();
    if (!bytes) {
      consumeError(bytes.takeError());
      return found;
    }
    return toHex(digestOf(*bytes));
  }();
  return id;
}

} // namespace dither::cache
