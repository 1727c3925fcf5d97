# LLVM alone, for builds without the compiler: what the runtime needs of it. LLVM's
# headers come in as system headers here as in DitherMLIR.cmake.
find_package(LLVM 22.1 CONFIG HINTS /usr/lib/llvm-22/lib/cmake/llvm)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM 22.1 was not found. Install it with 'tools/setup' or "
    "'apt-get install llvm-22-dev', or point LLVM_DIR at its cmake directory")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS})
separate_arguments(_llvm_defs NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${_llvm_defs})
