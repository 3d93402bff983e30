# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> [-DBASE=<revision>] [-DHEADERS=<pattern>] -P lint.cmake: clang-tidy 19 with .clang-tidy finds
# nothing in the headers that changed since BASE, or else in those whose path below include/tunewright/ matches HEADERS, a
# regular expression. Without either, in those that differ from the last commit. Needs no network, and some seconds a header.

cmake_minimum_required(VERSION 3.24)

get_filename_component(ROOT "${ROOT}" ABSOLUTE)
find_program(CLANG_TIDY NAMES clang-tidy-19)
if(NOT CLANG_TIDY)
  message(STATUS "skipped: clang-tidy-19 was not found; other versions find other things")
  return()
endif()

if(HEADERS)
  file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/tunewright" "${ROOT}/include/tunewright/*.hpp")
  list(FILTER headers INCLUDE REGEX "${HEADERS}")
else()
  if(NOT BASE)
    set(BASE HEAD)
  endif()
  execute_process(COMMAND git diff --name-only --diff-filter=d --relative=include/tunewright "${BASE}" -- include/tunewright
    WORKING_DIRECTORY "${ROOT}" OUTPUT_VARIABLE changed COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND git ls-files --others --exclude-standard
    WORKING_DIRECTORY "${ROOT}/include/tunewright" OUTPUT_VARIABLE added COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+\\.hpp" headers "${changed}${added}")
endif()
list(FILTER headers EXCLUDE REGEX "^(src/|detail/)")  # macros alone

set(folders "-I${ROOT}/include")
foreach(folder IN ITEMS /usr/include/eigen3 /usr/lib/llvm-19/include)
  if(IS_DIRECTORY "${folder}")
    list(APPEND folders -isystem "${folder}")
  endif()
endforeach()

set(faulty "")
foreach(header IN LISTS headers)
  execute_process(COMMAND "${CLANG_TIDY}" --quiet "--header-filter=^$" "${ROOT}/include/tunewright/${header}"
      -- -std=c++20 -x c++ -Wno-pragma-once-outside-header ${folders}
    OUTPUT_VARIABLE found ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    string(APPEND faulty "${found}")
    if(found STREQUAL "")
      string(APPEND faulty "${header}: ${errors}")
    endif()
  endif()
endforeach()
if(faulty)
  message(FATAL_ERROR "${faulty}")
endif()
list(LENGTH headers count)
message(STATUS "${count} headers are clean")
