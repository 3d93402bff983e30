# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<file> -P command_line.cmake: the program answers --help by its usage and ends with 0, and names an
# option that it does not have in an error.

cmake_minimum_required(VERSION 3.24)

get_filename_component(name "${PROGRAM}" NAME_WE)
function(run option)
  execute_process(COMMAND "${PROGRAM}" ${option} TIMEOUT 60
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

run(--help)
if(NOT status STREQUAL "0" OR NOT output MATCHES "usage: [^\n]*${name}")
  message(FATAL_ERROR "'${name} --help' ended with ${status} and printed no usage:\n${output}${errors}")
endif()
run(--no-such-option)
if(NOT status MATCHES "^[1-9]" OR NOT errors MATCHES "--no-such-option")
  message(FATAL_ERROR "'${name} --no-such-option' ended with ${status} and no error that names it:\n${output}${errors}")
endif()
