# dither_library(NAME sources... [LINK libs...] [DEPENDS targets...])
# A static library of ours. MLIR and LLVM are linked once, by the final binary:
# tools and tests take the shared libMLIR/libLLVM, the Python module the archives.
function(dither_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE dither_options PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# dither_tool(NAME sources... [LINK libs...]): an executable on the shared MLIR.
function(dither_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE dither_options ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set_property(GLOBAL APPEND PROPERTY DITHER_TOOLS ${name})
endfunction()

# dither_unittest(NAME sources... [LINK libs...]): one gtest binary in build/unit.
function(dither_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE dither_options ${ARG_LINK} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unit)
  set_property(GLOBAL APPEND PROPERTY DITHER_UNITTESTS ${name})
endfunction()

# dither_fuzzer(NAME sources... [CORPUS directory] [LINK libs...]): a libFuzzer program in build/fuzz, in
# builds whose DITHER_SANITIZE has fuzzer-no-link (clang alone). tools/run_tests.py runs it on the corpus and
# then for some seconds.
function(dither_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "LINK" ${ARGN})
  if(NOT DITHER_SANITIZE MATCHES "fuzzer")
    return()
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE dither_options ${ARG_LINK} -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  set(corpus "")
  if(ARG_CORPUS)
    set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  endif()
  set_property(GLOBAL APPEND PROPERTY DITHER_FUZZERS "${name}=${corpus}")
endfunction()
