# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DSOURCE=... -DINCLUDES=a|b -P check.cmake
#
# Compiles SOURCE twice. It must pass as it is, so that what follows fails for the right reason; with TUNEWRIGHT_SHOULD_FAIL
# defined it must fail and print the text after "// error: " in the source. Where compilers differ in their words, there is
# such a line for each of them.

file(READ "${SOURCE}" text)
if(NOT text MATCHES "// error: [^\n]+")
  message(FATAL_ERROR "${SOURCE} has no line '// error: <text>' that says which diagnostic to expect")
endif()

string(REPLACE "|" ";" folders "${INCLUDES}")
set(flags -std=c++20 -fsyntax-only)
list(REMOVE_ITEM folders /usr/include)  # known to the compiler, which must keep it last
foreach(folder IN LISTS folders)
  list(APPEND flags -isystem "${folder}")
endforeach()

set(ENV{LC_ALL} C)  # plain quotation marks in diagnostics
execute_process(COMMAND "${COMPILER}" ${flags} "${SOURCE}" RESULT_VARIABLE status ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must compile without TUNEWRIGHT_SHOULD_FAIL:\n${output}")
endif()
execute_process(COMMAND "${COMPILER}" ${flags} -DTUNEWRIGHT_SHOULD_FAIL "${SOURCE}"
  RESULT_VARIABLE status ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must not compile with TUNEWRIGHT_SHOULD_FAIL, but it does")
endif()
while(text MATCHES "// error: ([^\n]+)(.*)")
  set(text "${CMAKE_MATCH_2}")
  string(FIND "${output}" "${CMAKE_MATCH_1}" position)
  if(NOT position EQUAL -1)
    return()
  endif()
endwhile()
message(FATAL_ERROR "${SOURCE} fails as it should, but without the text of an '// error:' line:\n${output}")
