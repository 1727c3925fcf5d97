/*===- dither.h - Running compiled kernels from C -----------------*- C -*-===*\
|*
|* libdither_runtime: kernels and programs that `python -m dither build` has
|* written, loaded and launched without Python. Plain C; the library needs libc
|* alone, and what it exports is in this header.
|*
|*   dither_device *device;
|*   dither_kernel *kernel;
|*   if (dither_device_open("cuda:0", &device) ||
|*       dither_kernel_load(device, "out/manifest.json", "scale", &kernel))
|*     return fprintf(stderr, "%s\n", dither_error_message()), 1;
|*
|* Every function that can fail returns a dither_status, 0 for success;
|* dither_error_message() then says what was found and what was expected. All
|* may be called from any thread. The DITHER_* environment variables apply.
|*
|* Nothing can be checked of a handle or of memory that is not null: a device is
|* what dither_device_open gave, a kernel what dither_kernel_load gave (a
|* program dither_program_load or dither_program_decode) and nobody has
|* unloaded, memory is as large as the call says and, for dither_release, what
|* dither_allocate of that device gave, once.
|*
|* The ABI is stable within a major version: functions are added, never changed
|* or removed, and each carries the version it came with.
|*
\*===----------------------------------------------------------------------===*/

#ifndef DITHER_C_DITHER_H
#define DITHER_C_DITHER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DITHER_ABI_MAJOR 1
#define DITHER_ABI_MINOR 0

typedef enum dither_status {
  DITHER_SUCCESS = 0,
  /* An argument: a null pointer, a wrong number of slots, a bad grid. */
  DITHER_INVALID_ARGUMENT = 1,
  /* The manifest or a file it names cannot be read, or is damaged; the bytes
   * are no program. */
  DITHER_BAD_FILE = 2,
  /* The manifest has no kernel or program of that name, or none that runs
   * there. */
  DITHER_NOT_FOUND = 3,
  /* The device is not there, or it refuses: no memory, a failed launch. */
  DITHER_DEVICE_ERROR = 4
} dither_status;

/* A device; never closed. */
typedef struct dither_device dither_device;
/* A kernel on a device. */
typedef struct dither_kernel dither_kernel;
/* What a call of an operator launches, on a device. */
typedef struct dither_program dither_program;

/* 65536 * major + minor of the library, to compare with the macros above. */
uint32_t dither_abi_version(void);

/* What the last call of this thread that failed found and expected. The text
 * lives until the next one that fails. */
const char *dither_error_message(void);

/* Devices: "cpu", "cuda:0", "sim:sm_90a" (a simulated GPU); NULL for what
 * DITHER_DEVICE names, else the first GPU, else the CPU. */
dither_status dither_device_open(const char *name, dither_device **device);
/* "cuda:0"; "sm_90a", what code is to be compiled for. They live as long as the
 * program. */
const char *dither_device_name(const dither_device *device);
const char *dither_device_target(const dither_device *device);

/* Memory of a device, aligned to 256 bytes; ordinary memory on the CPU. */
dither_status dither_allocate(dither_device *device, size_t bytes,
                              void **pointer);
/* NULL is allowed. */
dither_status dither_release(dither_device *device, void *pointer);
/* Copies to and from the device; done when they return. */
dither_status dither_copy_in(dither_device *device, void *destination,
                             const void *source, size_t bytes);
dither_status dither_copy_out(dither_device *device, void *destination,
                              const void *source, size_t bytes);
/* Waits for all that was launched on a stream. */
dither_status dither_synchronize(dither_device *device, void *stream);

/* Loads the kernel `name` of a manifest: of its files the one for this device's
 * target, else another one that runs there. The manifest and its files are code
 * that runs in this program: they belong to its user or to root, and nobody
 * else may write them. */
dither_status dither_kernel_load(dither_device *device, const char *manifest,
                                 const char *name, dither_kernel **kernel);
/* Nothing of it may be running. NULL is allowed. */
void dither_kernel_unload(dither_kernel *kernel);
/* How many slots a launch takes; the target of the code that was loaded. */
size_t dither_kernel_num_slots(const dither_kernel *kernel);
const char *dither_kernel_target(const dither_kernel *kernel);

/* Runs grid_x * grid_y * grid_z programs. A slot for each parameter, in the
 * order of the manifest: a pointer, an int64_t, an int32_t or the bits of a
 * float in the low half. The header beside the manifest has a function for each
 * kernel that fills them. No pointer is null where a program runs (of a tensor
 * without elements it may point anywhere). `stream` is the device's own
 * (CUstream; ignored on the CPU). Returns when the work is queued (CUDA) or
 * done.
 *
 * Nothing is known of the memory behind a pointer: it is the caller's duty that
 * it holds what the sizes and strides say, is aligned as the header says, and
 * that no tensor that the kernel writes has a byte in common with another
 * argument, or two of its elements with each other. */
dither_status dither_kernel_launch(dither_kernel *kernel, const int64_t *slots,
                                   size_t num_slots, int64_t grid_x,
                                   int64_t grid_y, int64_t grid_z,
                                   void *stream);

/* Programs: all that a call of an operator launches, for shapes that were known
 * when it was built, on memory that the caller gives. */

/* Loads the program `name` of a manifest, as dither_kernel_load does a kernel.
 */
dither_status dither_program_load(dither_device *device, const char *manifest,
                                  const char *name, dither_program **program);
/* Loads a program from the bytes of one of its files, which need not live on.
 * They are checked (a checksum, every place in them) and they are code that
 * runs in this program: take them from where you would take code. */
dither_status dither_program_decode(dither_device *device, const void *bytes,
                                    size_t size, dither_program **program);
/* Nothing of it may be running. NULL is allowed. */
void dither_program_unload(dither_program *program);
/* The target of its code; empty where it launches nothing. */
const char *dither_program_target(const dither_program *program);
/* How many buffers a run takes: the tensors of the call and of its result, in
 * the order of the manifest. */
size_t dither_program_num_buffers(const dither_program *program);
/* Bytes of one of them; 0 past the last. */
size_t dither_program_buffer_bytes(const dither_program *program, size_t index);
/* Bytes that a run needs besides, on this device; 0 where it needs none. */
size_t dither_program_workspace_bytes(const dither_program *program);

/* Launches all of it, in order. Each buffer is a dense tensor, at a multiple of
 * 32 bytes on a GPU; so is the workspace, of at least as many bytes as the
 * program says, whose contents are nobody's: the next run on the stream may
 * have the same, one at the same time may not. Buffers without bytes and
 * workspaces that are not needed may be NULL. `stream` is the device's own.
 * Returns when the work is queued (CUDA) or done, and neither allocates nor
 * waits on a GPU, so that a graph can hold it.
 *
 * Buffers that the program writes may have no byte in common with another one:
 * that is the caller's duty. */
dither_status dither_program_run(dither_program *program, void *const *buffers,
                                 size_t num_buffers, void *workspace,
                                 size_t workspace_bytes, void *stream);

/* A float as a slot. */
static inline int64_t dither_float_slot(float value) {
  union {
    float value;
    int32_t bits;
  } both;
  both.value = value;
  return (int64_t)both.bits;
}

#ifdef __cplusplus
}
#endif

#endif /* DITHER_C_DITHER_H */
