# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DCOMPILER_ID=... -DHEADER=... -DINCLUDES=a|b -P precompile.cmake
#
# Writes HEADER, which includes what most must-fail cases include, and precompiles it beside itself: each case is
# compiled several times, and three quarters of that time are spent on these headers.

include("${CMAKE_CURRENT_LIST_DIR}/flags.cmake")
file(WRITE "${HEADER}" "#include \"tunewright/src/precompiled.hpp\"\n")
if(COMPILER_ID STREQUAL "GNU")
  set(suffix gch)
else()
  set(suffix pch)
endif()
execute_process(COMMAND "${COMPILER}" ${flags} -x c++-header "${HEADER}" -o "${HEADER}.${suffix}"
  COMMAND_ERROR_IS_FATAL ANY)
