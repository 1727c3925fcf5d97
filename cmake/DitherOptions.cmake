# Flags for our own code. Warnings are errors here and nowhere else: headers of
# LLVM and MLIR are system headers.
add_library(dither_options INTERFACE)
target_compile_options(dither_options INTERFACE
  -fno-exceptions
  -ffunction-sections -fdata-sections
  -Wall -Wextra -Wno-comment -Wno-unused-parameter -Werror)
# With -fvisibility=hidden g++ hides the TypeIDs that MLIR's templates make for traits, and
# ours differ from libMLIR's: every hasTrait<> on an upstream operation is false. What must be
# hidden, the Python module, is so by its version script.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives inside LLVM's containers at -O2.
  target_compile_options(dither_options INTERFACE -Wno-maybe-uninitialized -Wno-dangling-pointer
    -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict -Wno-free-nonheap-object)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own stable_sort calls a function that it deprecates; g++ still warns of ours.
  target_compile_options(dither_options INTERFACE -Wno-deprecated-declarations)
endif()
# Numerics are bit-exact: the host compiler must not contract or reassociate.
target_compile_options(dither_options INTERFACE -ffp-contract=off -fno-fast-math)

find_program(DITHER_LLD NAMES ld.lld-22 ld.lld)
if(DITHER_LLD)
  get_filename_component(_lld_dir "${DITHER_LLD}" REALPATH)
  get_filename_component(_lld_dir "${_lld_dir}" DIRECTORY)
  add_link_options(-fuse-ld=lld -B${_lld_dir})
endif()
# Paths relative to the tree, so that a clone elsewhere finds the same entries.
find_program(DITHER_CCACHE ccache)
if(DITHER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DITHER_CCACHE})
endif()

# Build type Dev: our own assertions on (the package's LLVM has none), quick to compile.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -UNDEBUG")
set(CMAKE_C_FLAGS_DEV "-O1 -g1 -UNDEBUG")

set(DITHER_SANITIZE "" CACHE STRING "sanitizers, as for -fsanitize=: address,undefined or thread")
if(DITHER_SANITIZE)
  add_compile_options(-fsanitize=${DITHER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${DITHER_SANITIZE})
  # The CUDA driver's functions are called by declarations of ours, where handles are void *.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND DITHER_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=function)
  endif()
endif()
