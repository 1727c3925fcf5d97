/* What static archives would take from a glibc that is newer than the oldest
 * one dither runs on (2.34): defined here, the linker does not look further,
 * and the version script of each library hides it.
 *
 *   arc4random        2.36   LLVM's Support and libstdc++, for random numbers
 *   _dl_find_object   2.35   libgcc's unwinder, for the frames of an address
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <features.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t number;
  if (getentropy(&number, sizeof number) == 0)
    return number;
  /* Kernels before 3.17, and sandboxes that forbid the call. */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)now.tv_nsec ^ (uint32_t)getpid() << 16;
}

#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 35) &&                        \
    !DLFO_STRUCT_HAS_EH_DBASE

struct search {
  uintptr_t address;
  struct dl_find_object *result;
};

/* Whether an object holds the address; the result is filled where it does. */
static int look(struct dl_phdr_info *object, size_t size, void *data) {
  struct search *search = data;
  uintptr_t first = UINTPTR_MAX, end = 0, frames = 0;
  int holds = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME)
      frames = begin;
    if (part->p_type != PT_LOAD)
      continue;
    if (begin < first)
      first = begin;
    if (begin + part->p_memsz > end)
      end = begin + part->p_memsz;
    holds |=
        begin <= search->address && search->address < begin + part->p_memsz;
  }
  if (!holds || !frames)
    return 0;
  memset(search->result, 0, sizeof *search->result);
  search->result->dlfo_map_start = (void *)first;
  search->result->dlfo_map_end = (void *)end;
  search->result->dlfo_eh_frame = (void *)frames;
  return 1;
}

/* glibc's also gives the link map, which the unwinder does not read. */
int _dl_find_object(void *address, struct dl_find_object *result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

#endif
