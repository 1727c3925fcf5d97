# Debian's packages put LLVM 22 under /usr/lib/llvm-22; MLIR_DIR names another.
find_package(MLIR 22.1 CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT MLIR_FOUND)
  message(FATAL_ERROR "MLIR 22.1 was not found. Install it with 'tools/setup' or "
    "'apt-get install libmlir-22-dev mlir-22-tools llvm-22-dev', or point MLIR_DIR at its cmake directory")
endif()
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(_llvm_defs NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${_llvm_defs})
