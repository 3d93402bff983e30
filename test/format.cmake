# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -P format.cmake: sources look as clang-format 19 prints them, and no line of them has more
# columns than .clang-format allows, comments included (they are not reflowed). With -DFIX=ON it formats them instead.
# Text of other languages in raw strings, which test/support has, is left alone.

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${ROOT}/.clang-format" limit REGEX "^ColumnLimit:")
string(REGEX REPLACE "[^0-9]" "" limit "${limit}")
math(EXPR too_long "${limit} + 1")

set(sources "")
foreach(folder IN ITEMS include examples bench test tools cmake)
  file(GLOB_RECURSE found "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.cpp")
  list(APPEND sources ${found})
endforeach()

# Conan builds the package's test beside its sources.
list(FILTER sources EXCLUDE REGEX "/conan/test_package/build/")

find_program(CLANG_FORMAT NAMES clang-format-19)
if(NOT CLANG_FORMAT)
  message(STATUS "skipped: clang-format-19 was not found; other versions print some things otherwise")
elseif(FIX)
  execute_process(COMMAND "${CLANG_FORMAT}" -i ${sources} COMMAND_ERROR_IS_FATAL ANY)
else()
  execute_process(COMMAND "${CLANG_FORMAT}" --dry-run -Werror ${sources} ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${errors}\nRun: cmake -DROOT=. -DFIX=ON -P test/format.cmake")
  endif()
endif()

set(faults "")
foreach(source IN LISTS sources)
  if(source MATCHES "/test/")
    continue()
  endif()
  file(STRINGS "${source}" long_lines LENGTH_MINIMUM ${too_long})
  foreach(line IN LISTS long_lines)
    string(APPEND faults "  ${source}: ${line}\n")
  endforeach()
endforeach()
if(faults)
  message(FATAL_ERROR "more than ${limit} columns:\n${faults}")
endif()
