# The interpreter, and what the Python module is compiled against.
#
#   Python3_EXECUTABLE      default: the tree's .venv, else what CMake finds
#   DITHER_ENABLE_PYTHON    ON, OFF, or AUTO: on where pybind11 is installed
#   DITHER_EXTRA_PYTHONS    further interpreters to build the module for
#
# Only headers are used, never libpython; where they are and what a module is
# called come from each interpreter's own sysconfig.
if(NOT Python3_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "the Python interpreter")
endif()
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
set(DITHER_EXTRA_PYTHONS "" CACHE STRING "further interpreters to build the Python module for")

# dither_query_python(INTERPRETER prefix): sets <prefix>_INCLUDE and <prefix>_SUFFIX.
function(dither_query_python interpreter prefix)
  execute_process(COMMAND ${interpreter} -c "import sysconfig; print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'), sep='\\n')"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    message(FATAL_ERROR "'${interpreter}' cannot be run: expected a Python interpreter")
  endif()
  string(REPLACE "\n" ";" answer "${answer}")
  list(GET answer 0 include)
  list(GET answer 1 suffix)
  if(NOT EXISTS ${include}/Python.h)
    message(FATAL_ERROR "'${interpreter}' has no headers: ${include}/Python.h was not found; "
      "install them with 'apt-get install python3-dev'")
  endif()
  set(${prefix}_INCLUDE ${include} PARENT_SCOPE)
  set(${prefix}_SUFFIX ${suffix} PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${Python3_EXECUTABLE} -c "import pybind11; print(pybind11.get_include())"
  OUTPUT_VARIABLE DITHER_PYBIND11_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _rc)
if(NOT _rc EQUAL 0)
  set(_how "pybind11 was not found by '${Python3_EXECUTABLE}': run 'tools/setup', or '${Python3_EXECUTABLE} -m pip install pybind11==3.0.4'")
  if(DITHER_ENABLE_PYTHON STREQUAL "AUTO")
    message(WARNING "the Python module will not be built: ${_how}")
    set(DITHER_ENABLE_PYTHON OFF)
  elseif(DITHER_ENABLE_PYTHON)
    message(FATAL_ERROR "${_how}")
  endif()
endif()

# Where XLA's headers of its foreign function interface are, for custom calls of JAX.
# Without Python, where the interpreter that was named has them, for the sanitized tests.
set(DITHER_XLA_INCLUDE "")
if(Python3_EXECUTABLE)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import importlib.util; print(importlib.util.find_spec('jaxlib').submodule_search_locations[0] + '/include')"
    OUTPUT_VARIABLE DITHER_XLA_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _rc)
  if(NOT _rc EQUAL 0 OR NOT EXISTS ${DITHER_XLA_INCLUDE}/xla/ffi/api/ffi.h)
    set(DITHER_XLA_INCLUDE "")
  endif()
endif()
if(DITHER_ENABLE_PYTHON AND NOT DITHER_XLA_INCLUDE)
  message(FATAL_ERROR "jaxlib's headers (xla/ffi/api) were not found by '${Python3_EXECUTABLE}': run 'tools/setup', or "
    "'${Python3_EXECUTABLE} -m pip install --no-deps jaxlib==0.10.2'")
endif()

# dither-python: build/python/dither, an importable package: links to the sources
# (so that editing them needs no build) and the extension modules.
if(DITHER_ENABLE_PYTHON AND DITHER_ENABLE_COMPILER)
  include(DitherPythonModule)
  add_custom_target(dither-python ALL
    COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_SOURCE_DIR}/python/dither -DTO=${PROJECT_BINARY_DIR}/python/dither
      -P ${PROJECT_SOURCE_DIR}/cmake/StagePython.cmake
    COMMENT "Linking the Python sources into build/python" VERBATIM)
endif()
