# dither_python_module(NAME sources... [LINK libs...] [MLIR targets...] [LLVM components...])
#
# The Python extension NAME: self-contained, with its own hidden copy of MLIR and
# LLVM. A process that holds another LLVM (torch, Triton and jaxlib each bring
# one) dies of a second visible one, so this module never links libLLVM.so and
# exports PyInit_NAME and nothing else:
#   * MLIR and LLVM come from archives (dither_static_closure);
#   * --exclude-libs,ALL, -Bsymbolic and a version script
#     (libstdc++'s weak symbols would be left over without the last);
#   * libstdc++, libgcc, zlib and zstd are static too: it needs libc and libm, of glibc 2.34
#     or later (runtime/Glibc/Glibc.c).
# Sources are compiled with exceptions and RTTI, which pybind11 needs; the
# libraries it calls are compiled without exceptions.
#
# It lands in build/python/dither, beside links to the Python sources (the target
# dither-python makes both). For each of DITHER_EXTRA_PYTHONS there is a target
# NAME-1, NAME-2, ... that leaves it in build/wheel/NAME-<n>; wheels are made of these.
#
#   dither_python_module(_dither Module.cpp
#     LINK DitherPipelines DitherRuntimeCore)       # libraries of this project
#
#   // Module.cpp
#   #include <pybind11/pybind11.h>
#   #include "mlir/IR/MLIRContext.h"
#   PYBIND11_MODULE(_dither, m) {
#     m.def("dialects", [] { return mlir::MLIRContext().getLoadedDialects().size(); });
#   }
#
# Libraries in LINK, and what they link in turn, are taken apart the same way: one
# that names MLIR or LLVM publicly does not drag the shared library in.

# dither_static_closure(OUT targets...): the archives of targets and of all they
# link, without the shared MLIR and LLVM. Debian exports each MLIR archive with
# LLVM.so among its dependencies, hence the walk. What is not an archive (rt, dl, m,
# zstd, the Z3 solver, which nothing here reaches) is left out: the caller names it.
function(dither_static_closure out)
  set(todo ${ARGN})
  set(seen)
  set(files)
  while(todo)
    list(POP_FRONT todo target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(target IN_LIST seen OR target STREQUAL "" OR target MATCHES "^\\$<")
      continue()
    endif()
    list(APPEND seen ${target})
    if(NOT TARGET ${target} OR target STREQUAL "LLVM" OR target STREQUAL "MLIR")
      continue()
    endif()
    get_target_property(aliased ${target} ALIASED_TARGET)
    if(aliased)
      list(PREPEND todo ${aliased})
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND files $<TARGET_FILE:${target}>)
    endif()
    get_target_property(deps ${target} INTERFACE_LINK_LIBRARIES)
    if(deps)
      list(APPEND todo ${deps})
    endif()
  endwhile()
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

# What a compiler of quantize kernels links of MLIR, by default.
set(DITHER_MLIR_ROOTS
  MLIRIR MLIRParser MLIRBytecodeReader MLIRPass MLIRTransforms MLIRTransformUtils MLIRRemarkStreamer MLIRReduce
  MLIRFuncDialect MLIRFuncTransforms MLIRFuncInlinerExtension
  MLIRArithDialect MLIRArithTransforms MLIRArithValueBoundsOpInterfaceImpl
  MLIRMathDialect MLIRMathTransforms
  MLIRVectorDialect MLIRVectorTransforms
  MLIRSCFDialect MLIRSCFTransforms MLIRSCFUtils
  MLIRControlFlowDialect
  MLIRMemRefDialect MLIRMemRefTransforms
  MLIRTensorDialect MLIRTensorTransforms MLIRTensorTilingInterfaceImpl
  MLIRLinalgDialect MLIRLinalgTransforms
  MLIRAffineDialect MLIRUBDialect MLIRIndexDialect MLIRDLTIDialect
  MLIRGPUDialect MLIRGPUTransforms MLIRNVVMDialect MLIRLLVMDialect MLIRLLVMIRTransforms
  MLIRTilingInterface MLIRDestinationStyleOpInterface
  MLIRArithToLLVM MLIRMathToLLVM MLIRVectorToLLVM MLIRVectorToLLVMPass MLIRVectorToSCF MLIRSCFToControlFlow
  MLIRControlFlowToLLVM MLIRFuncToLLVM MLIRMemRefToLLVM MLIRGPUToNVVMTransforms MLIRNVVMToLLVM
  MLIRIndexToLLVM MLIRUBToLLVM MLIRReconcileUnrealizedCasts MLIRAffineToStandard MLIRConvertToLLVMPass
  MLIRBuiltinToLLVMIRTranslation MLIRLLVMToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation
  MLIRGPUToLLVMIRTranslation MLIRTargetLLVMIRExport)
# ... and of LLVM: PTX, code of both kinds of CPU, the JIT.
set(DITHER_LLVM_ROOTS core support passes target targetparser irreader bitwriter linker
  nvptxcodegen nvptxdesc nvptxinfo x86codegen x86desc x86info x86asmparser x86disassembler
  aarch64codegen aarch64desc aarch64info
  orcjit orctargetprocess jitlink native nativecodegen perfjitevents)

find_library(DITHER_STATIC_ZLIB NAMES libz.a)
find_library(DITHER_STATIC_ZSTD NAMES libzstd.a)

function(dither_python_module name)
  cmake_parse_arguments(ARG "" "" "LINK;MLIR;LLVM" ${ARGN})
  foreach(lib ZLIB ZSTD)
    if(NOT DITHER_STATIC_${lib})
      string(TOLOWER ${lib} file)
      message(FATAL_ERROR "the static ${file} was not found: install it with 'apt-get install zlib1g-dev libzstd-dev'")
    endif()
  endforeach()
  set(roots ${DITHER_MLIR_ROOTS} ${ARG_MLIR})
  foreach(root ${roots})
    if(NOT TARGET ${root})
      message(FATAL_ERROR "dither_python_module(${name}): found no target '${root}': expected a library of MLIR ${LLVM_PACKAGE_VERSION}")
    endif()
  endforeach()

  dither_static_closure(ours ${ARG_LINK})
  dither_static_closure(mlir ${roots})
  llvm_map_components_to_libnames(llvm_roots ${DITHER_LLVM_ROOTS} ${ARG_LLVM})
  dither_static_closure(llvm ${llvm_roots})
  # MLIR's archives name LLVM only as the dylib, and ours may name MLIR's too.
  set(archives ${ours} ${mlir} ${llvm})
  list(REMOVE_DUPLICATES archives)

  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.exports "{ global: PyInit_${name}; local: *; };\n")
  set(index 0)
  foreach(interpreter ${Python3_EXECUTABLE} ${DITHER_EXTRA_PYTHONS})
    dither_query_python(${interpreter} py)
    if(index EQUAL 0)
      set(target ${name})
      add_library(${target} MODULE ${ARG_UNPARSED_ARGUMENTS} ${PROJECT_SOURCE_DIR}/runtime/Glibc/Glibc.c)
      set(directory ${PROJECT_BINARY_DIR}/python/dither)
      add_dependencies(dither-python ${target})
    else()
      set(target ${name}-${index})
      add_library(${target} MODULE EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS}
        ${PROJECT_SOURCE_DIR}/runtime/Glibc/Glibc.c)
      set(directory ${PROJECT_BINARY_DIR}/wheel/${target})
    endif()
    math(EXPR index "${index} + 1")

    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} SUFFIX "${py_SUFFIX}"
      LIBRARY_OUTPUT_DIRECTORY ${directory})
    target_include_directories(${target} SYSTEM PRIVATE ${py_INCLUDE} ${DITHER_PYBIND11_INCLUDE})
    # dither_options, less one: linked, its -fno-exceptions would come after ours and hold.
    target_compile_options(${target} PRIVATE
      $<FILTER:$<TARGET_PROPERTY:dither_options,INTERFACE_COMPILE_OPTIONS>,EXCLUDE,^-fno-exceptions$>
      $<$<COMPILE_LANGUAGE:CXX>:-fexceptions> $<$<COMPILE_LANGUAGE:CXX>:-frtti>)
    if(ARG_LINK)
      add_dependencies(${target} ${ARG_LINK})
    endif()
    target_link_libraries(${target} PRIVATE
      -Wl,--start-group ${archives} -Wl,--end-group
      ${DITHER_STATIC_ZSTD} ${DITHER_STATIC_ZLIB} -lm -ldl -lpthread)
    target_link_options(${target} PRIVATE
      # The build id is a hash of the content: caches know this module by it.
      -static-libstdc++ -static-libgcc -Wl,--build-id=sha1
      -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
      -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/${name}.exports)
  endforeach()
endfunction()
