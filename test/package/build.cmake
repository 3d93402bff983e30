# SPDX-License-Identifier: Apache-2.0
# Configures, builds and runs one consumer in an empty folder.

file(REMOVE_RECURSE "${BINARY}")
string(REPLACE "|" ";" components "${COMPONENTS}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}"
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 "-DCMAKE_CXX_FLAGS=${FLAGS}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DTUNEWRIGHT_SOURCE=${ROOT}"
  "-DEXPECTED_COMPONENTS=${components}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BINARY}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${BINARY}/consumer" COMMAND_ERROR_IS_FATAL ANY)
