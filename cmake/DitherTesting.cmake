# dither_test_suites(): after everything that can be tested: writes build/test/suites.json,
# which tools/run_tests.py runs, and the targets
#   check-dither-lit, check-dither-unit, check-dither-python, check-dither (all three)

# Debian's LLVM names a lit that does not exist (LLVM_DEFAULT_EXTERNAL_LIT); the
# one it has is beside the tools.
if(DITHER_ENABLE_COMPILER)
  find_program(LLVM_EXTERNAL_LIT NAMES lit llvm-lit HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
  find_program(LLVM_EXTERNAL_LIT NAMES lit llvm-lit)
  find_program(DITHER_FILECHECK NAMES FileCheck HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
  if(NOT LLVM_EXTERNAL_LIT OR NOT DITHER_FILECHECK)
    message(FATAL_ERROR "lit or FileCheck was not found in ${LLVM_TOOLS_BINARY_DIR}: "
      "install them with 'apt-get install llvm-22-tools', or set LLVM_EXTERNAL_LIT")
  endif()
endif()

function(dither_test_suites)
  get_property(units GLOBAL PROPERTY DITHER_UNITTESTS)
  get_property(tools GLOBAL PROPERTY DITHER_TOOLS)
  set(lit "")
  if(DITHER_ENABLE_COMPILER)
    set(lit ${LLVM_EXTERNAL_LIT})
    set(DITHER_BUILD_TYPE ${CMAKE_BUILD_TYPE})
    configure_file(${PROJECT_SOURCE_DIR}/test/lit.site.cfg.py.in ${PROJECT_BINARY_DIR}/test/lit.site.cfg.py @ONLY)
  endif()
  set(python "")
  if(DITHER_ENABLE_PYTHON)
    set(python ${PROJECT_SOURCE_DIR}/test/python)
  endif()
  get_property(fuzzers GLOBAL PROPERTY DITHER_FUZZERS)
  list(TRANSFORM fuzzers REPLACE "(.+)=(.*)" "\"\\1\": \"\\2\"")
  list(JOIN fuzzers ", " fuzzers)
  list(TRANSFORM units REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE quoted)
  list(JOIN quoted ", " quoted)
  file(WRITE ${PROJECT_BINARY_DIR}/test/suites.json "{\n"
    "  \"lit\": \"${lit}\",\n  \"lit_site\": \"${PROJECT_BINARY_DIR}/test\",\n"
    "  \"fuzzers\": {${fuzzers}},\n  \"fuzz_dir\": \"${PROJECT_BINARY_DIR}/fuzz\",\n"
    "  \"units\": [${quoted}],\n  \"units_dir\": \"${PROJECT_BINARY_DIR}/unit\",\n"
    "  \"pytest\": \"${python}\",\n  \"pythonpath\": \"${PROJECT_BINARY_DIR}/python\"\n}\n")

  set(run ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/run_tests.py --build ${PROJECT_BINARY_DIR})
  set(modules)
  if(TARGET dither-python)
    set(modules dither-python)
  endif()
  add_custom_target(check-dither-unit COMMAND ${run} --only unit DEPENDS ${units} USES_TERMINAL VERBATIM)
  add_custom_target(check-dither COMMAND ${run} DEPENDS ${units} ${tools} ${modules} USES_TERMINAL VERBATIM)
  if(lit)
    add_custom_target(check-dither-lit COMMAND ${run} --only lit DEPENDS ${tools} USES_TERMINAL VERBATIM)
  endif()
  if(modules)
    add_custom_target(check-dither-python COMMAND ${run} --only pytest DEPENDS ${modules} USES_TERMINAL VERBATIM)
  endif()
endfunction()
