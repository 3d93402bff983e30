# SPDX-License-Identifier: Apache-2.0
# Every option of the build. Nothing here changes what a consumer compiles.

option(TUNEWRIGHT_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TUNEWRIGHT_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(TUNEWRIGHT_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(TUNEWRIGHT_BUILD_TOOLS "Build the programs tunewright-worker and tunewright-journal" ${PROJECT_IS_TOP_LEVEL})
option(TUNEWRIGHT_INSTALL "Generate the install rules" ${PROJECT_IS_TOP_LEVEL})
option(TUNEWRIGHT_WERROR "Treat warnings in our own tests, examples and benchmarks as errors" OFF)
option(TUNEWRIGHT_LONG_TESTS "Register the test cases of the suite 'long' as well" OFF)
option(TUNEWRIGHT_BUILD_FUZZERS "Build the programs of test/fuzz with libFuzzer, for which Clang is needed" OFF)
set(TUNEWRIGHT_TEST_TIMEOUT 600 CACHE STRING "Seconds that a test program may take")
set(TUNEWRIGHT_COMPILED_TOGETHER 1 CACHE STRING
  "Sources of a test program compiled together; above 1, lessons are one program, and so are replays of fuzz inputs")
set(TUNEWRIGHT_TEST_OPTIONS "" CACHE STRING "Options of the compiler for the sources of tests alone, not for what they link")

# CMake from 3.28 on runs the preprocessor over every source for modules, of which there are none here.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_EXTENSIONS OFF)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Type of build" FORCE)
  endif()
  find_program(TUNEWRIGHT_CCACHE ccache)
  mark_as_advanced(TUNEWRIGHT_CCACHE)
  if(TUNEWRIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${TUNEWRIGHT_CCACHE}")
  endif()
  # GCC begins to collect garbage at 1 GiB, which most of our sources never need, and not at 128 MiB: a tenth of its time.
  set(TUNEWRIGHT_COMPILER_MEMORY "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(TUNEWRIGHT_COMPILER_MEMORY "--param=ggc-min-heapsize=1048576")
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${TUNEWRIGHT_COMPILER_MEMORY}>")
  endif()
endif()

# Compile options of our own programs; consumers never see them.
add_library(tunewright_development INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(tunewright_development INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow
    $<$<BOOL:${TUNEWRIGHT_WERROR}>:-Werror>)
  # The optimiser of GCC 12 reports faults inside std::string and std::vector that are not there (GCC PR 105329, 105651);
  # what depends on inlining decisions stays a warning.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(tunewright_development INTERFACE -Wno-restrict
      -Wno-error=uninitialized -Wno-error=maybe-uninitialized -Wno-error=array-bounds -Wno-error=stringop-overflow
      -Wno-error=stringop-overread -Wno-error=dangling-pointer -Wno-error=free-nonheap-object)
  endif()
  # Clang reports what std::stable_sort of GCC 12's library uses and declares deprecated; GCC reports such uses of our own.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(tunewright_development INTERFACE -Wno-deprecated-declarations)
  endif()
  # Programs are linked with every component; only libraries they call are loaded when they start.
  target_link_options(tunewright_development INTERFACE $<$<PLATFORM_ID:Linux>:LINKER:--as-needed>)
endif()
