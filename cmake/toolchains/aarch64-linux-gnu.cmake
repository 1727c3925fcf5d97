# For aarch64, with Debian's cross compiler: the preset aarch64 uses this file.
#
#   DITHER_SYSROOT   a directory with Debian's arm64 packages of libc, zlib, zstd, GoogleTest and LLVM 22
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# What CMake runs to try the compiler does not get -D otherwise.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DITHER_SYSROOT)
set(CMAKE_SYSROOT ${DITHER_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${DITHER_SYSROOT})
# Libraries and packages are those of the sysroot, programs those of this machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
