# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DSOURCE=... -DINCLUDES=a|b [-DPRECOMPILED=<header>] -P check.cmake
#
# Compiles SOURCE twice. It must pass as it is, so that what follows fails for the right reason; with TUNEWRIGHT_SHOULD_FAIL
# defined it must fail and print the text after "// error: " in the source. Where compilers differ in their words, there is
# such a line for each of them. A source of several cases has lines "// error <n>: " instead, and is compiled with
# TUNEWRIGHT_SHOULD_FAIL defined as each n.

file(READ "${SOURCE}" text)
if(NOT text MATCHES "// error( [0-9]+)?: [^\n]+")
  message(FATAL_ERROR "${SOURCE} has no line '// error: <text>' that says which diagnostic to expect")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/flags.cmake")
list(APPEND flags -fsyntax-only)
if(PRECOMPILED)
  list(APPEND flags -include "${PRECOMPILED}")
endif()

set(ENV{LC_ALL} C)  # plain quotation marks in diagnostics
execute_process(COMMAND "${COMPILER}" ${flags} "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must compile without TUNEWRIGHT_SHOULD_FAIL:\n${output}")
endif()

set(numbers "")
while(text MATCHES "// error ?([0-9]*): ([^\n]+)(.*)")
  set(number "${CMAKE_MATCH_1}")
  set(line "${CMAKE_MATCH_2}")
  set(text "${CMAKE_MATCH_3}")
  if(number STREQUAL "")
    set(number 0)  # the only case
  endif()
  list(APPEND numbers ${number})
  string(APPEND expected_${number} "${line}\n")
endwhile()
list(REMOVE_DUPLICATES numbers)
foreach(number IN LISTS numbers)
  execute_process(COMMAND "${COMPILER}" ${flags} -DTUNEWRIGHT_SHOULD_FAIL=${number} "${SOURCE}"
    RESULT_VARIABLE status ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} must not compile with TUNEWRIGHT_SHOULD_FAIL=${number}, but it does")
  endif()
  set(found FALSE)
  while(expected_${number} MATCHES "^([^\n]+)\n(.*)")
    set(line "${CMAKE_MATCH_1}")
    set(expected_${number} "${CMAKE_MATCH_2}")
    string(FIND "${output}" "${line}" position)
    if(NOT position EQUAL -1)
      set(found TRUE)
    endif()
  endwhile()
  if(NOT found)
    message(FATAL_ERROR "${SOURCE}, case ${number}, fails as it should, but without the text of an '// error' line:\n"
      "${output}")
  endif()
endforeach()
