# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=... -DPREFIX=... -P install.cmake: installs into an empty prefix.

file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY
  OUTPUT_QUIET)
