# SPDX-License-Identifier: Apache-2.0
# Programs of our own: tests, examples and benchmarks.

# What our programs link: everything that was found. Of headers and static libraries an unused component costs nothing.
# Tests and benchmarks link what is compiled once; lessons, but for some where they are compiled together, and checks of
# headers are header-only.
set(TUNEWRIGHT_DEVELOPMENT_TARGETS tunewright_development tunewright_test_data ${TUNEWRIGHT_USED_TARGETS})
set(TUNEWRIGHT_COMPILED_DEVELOPMENT_TARGETS
  tunewright_development tunewright_test_data ${TUNEWRIGHT_COMPILED_TARGETS})
foreach(target IN LISTS TUNEWRIGHT_COMPILED_TARGETS)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(${target} PRIVATE tunewright_development)
  endif()
endforeach()

# The folder of recorded data, told to programs: compilers may shorten or replace the paths that __FILE__ gives. And the
# compiler that tests call for C programs which use what is exported.
add_library(tunewright_test_data INTERFACE)
target_compile_definitions(tunewright_test_data INTERFACE "TUNEWRIGHT_TEST_DATA=\"${PROJECT_SOURCE_DIR}/test/data\""
  "TUNEWRIGHT_C_COMPILER=\"${CMAKE_C_COMPILER}\"")

# Components that the sources need and that were not found; says so, because the program is then left out.
function(tunewright_missing_components out what)
  tunewright_components_of(needs ${ARGN})
  list(REMOVE_ITEM needs ${TUNEWRIGHT_FOUND_COMPONENTS})
  if(needs)
    list(JOIN needs ", " text)
    message(STATUS "tunewright: ${what} is left out, component ${text} is missing")
  endif()
  set(${out} "${needs}" PARENT_SCOPE)
endfunction()

# A source that compiles the given ones: test/together.cmake, whose PROGRAMS, MAIN and CALLS may come before them.
function(tunewright_compile_together output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PROGRAMS" "MAIN;CALLS" "")
  set(members ${arg_UNPARSED_ARGUMENTS})
  set(script "${PROJECT_SOURCE_DIR}/test/together.cmake")
  list(JOIN members "|" sources)
  add_custom_command(OUTPUT "${output}" DEPENDS ${members} ${arg_MAIN} "${script}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DSOURCES=${sources}" "-DPROGRAMS=${arg_PROGRAMS}"
      "-DMAIN=${arg_MAIN}" "-DCALLS=${arg_CALLS}" -P "${script}" VERBATIM)
endfunction()

# With TUNEWRIGHT_COMPILED_TOGETHER, sources that compile the given ones in groups of that many.
function(tunewright_group_sources out name)
  set(groups "")
  set(rest ${ARGN})
  while(rest AND TUNEWRIGHT_COMPILED_TOGETHER GREATER 1)
    list(SUBLIST rest 0 ${TUNEWRIGHT_COMPILED_TOGETHER} members)
    list(REMOVE_ITEM rest ${members})
    list(LENGTH groups number)
    set(group "${CMAKE_CURRENT_BINARY_DIR}/together/${name}_${number}.cpp")
    tunewright_compile_together("${group}" ${members})
    list(APPEND groups "${group}")
  endwhile()
  set(${out} "${groups};${rest}" PARENT_SCOPE)
endfunction()

# What the program makes of --help and of an option that it does not have: test/command_line.cmake.
function(tunewright_add_command_line_test program)
  if(TUNEWRIGHT_BUILD_TESTS)
    add_test(NAME command_line_${program} COMMAND ${CMAKE_COMMAND} "-DPROGRAM=$<TARGET_FILE:${program}>"
      -P "${PROJECT_SOURCE_DIR}/test/command_line.cmake")
  endif()
endfunction()

# One doctest program from all .cpp files of a folder. Cases of a suite named "long..." run with TUNEWRIGHT_LONG_TESTS only,
# as a CTest test of their own, labelled long; the target long_tests builds the programs that have such cases. Those of a
# suite "gpu" need a device; they are a test labelled gpu, which is skipped without one.
function(tunewright_add_test_program name)
  tunewright_missing_components(missing ${name} ${ARGN})
  if(missing)
    return()
  endif()
  tunewright_group_sources(sources ${name} ${ARGN})
  add_executable(${name} ${sources} $<TARGET_OBJECTS:tunewright_test_main>)
  target_link_libraries(${name} PRIVATE ${TUNEWRIGHT_COMPILED_DEVELOPMENT_TARGETS} doctest::doctest)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/test")
  target_compile_options(${name} PRIVATE ${TUNEWRIGHT_TEST_OPTIONS})
  # Checks without a handler of their own for exceptions: they are caught, and told, once a test case.
  target_compile_definitions(${name} PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS)
  # Without it Clang warns of every result that a check for an exception does not use.
  target_compile_definitions(${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:DOCTEST_CONFIG_VOID_CAST_EXPRESSIONS>)
  add_test(NAME ${name} COMMAND ${name} --test-suite-exclude=long*,gpu)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TUNEWRIGHT_TEST_TIMEOUT})
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" long_cases REGEX "^TEST_SUITE.*\"long" LIMIT_COUNT 1)
    if(TUNEWRIGHT_LONG_TESTS AND long_cases AND NOT TEST ${name}_long)
      add_test(NAME ${name}_long COMMAND ${name} --test-suite=long*)
      set_tests_properties(${name}_long PROPERTIES TIMEOUT 7200 LABELS long)
      if(NOT TARGET long_tests)
        add_custom_target(long_tests)
      endif()
      add_dependencies(long_tests ${name})
    endif()
    file(STRINGS "${source}" device_cases REGEX "^TEST_SUITE.*\"gpu\"" LIMIT_COUNT 1)
    if(device_cases AND NOT TEST ${name}_gpu)
      add_test(NAME ${name}_gpu COMMAND ${name} --test-suite=gpu)
      set_tests_properties(${name}_gpu PROPERTIES TIMEOUT 1200 LABELS gpu RUN_SERIAL TRUE
        SKIP_REGULAR_EXPRESSION "skipped: no device")
    endif()
  endforeach()
endfunction()

# A source that must compile, and must not compile with TUNEWRIGHT_SHOULD_FAIL defined; see test/fail/check.cmake. The
# header that they start from is precompiled by a test that runs before the first of them.
function(tunewright_add_must_fail_test file flags_target)
  get_filename_component(case "${file}" NAME_WE)
  tunewright_missing_components(missing "fail_${case}" "${file}")
  if(missing)
    return()
  endif()
  set(includes "$<TARGET_PROPERTY:${flags_target},INCLUDE_DIRECTORIES>")
  set(header "${CMAKE_CURRENT_BINARY_DIR}/fail/precompiled.hpp")
  set(common "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DINCLUDES=$<JOIN:$<REMOVE_DUPLICATES:${includes}>,|>")
  if(NOT TEST fail_precompile)
    add_test(NAME fail_precompile COMMAND ${CMAKE_COMMAND} ${common} "-DCOMPILER_ID=${CMAKE_CXX_COMPILER_ID}"
      "-DHEADER=${header}" -P "${PROJECT_SOURCE_DIR}/test/fail/precompile.cmake")
    set_tests_properties(fail_precompile PROPERTIES FIXTURES_SETUP must_fail_header)
  endif()
  add_test(NAME fail_${case} COMMAND ${CMAKE_COMMAND} ${common} "-DSOURCE=${file}" "-DPRECOMPILED=${header}"
    -P "${PROJECT_SOURCE_DIR}/test/fail/check.cmake")
  set_tests_properties(fail_${case} PROPERTIES FIXTURES_REQUIRED must_fail_header)
endfunction()
