# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DCOMPILER_ID=... -DFLAGS=... -DOWN_INCLUDES=a -DWARNINGS=-Wa|-Wb -DINCLUDES=a|b
#   -DDEFINITIONS=a|b -DHEADER=... -DSTAMP=<file> [-DBASE=<stamp>] [-DPRECOMPILE=TRUE] -P check.cmake
#
# Fails if HEADER does not compile alone, or with a warning that WARNINGS makes an error; otherwise it writes STAMP. The
# header is compiled with its own definitions and with the declarations of what it includes: a name that only another
# header's definitions bring is as missing as one that no header brings. With PRECOMPILE it precompiles HEADER, without
# definitions, beside STAMP instead, and BASE is the stamp of such a header, which HEADER includes. At the end of a
# source GCC instantiates templates, which takes half of its time and which test_odr does too; an assertion that fails
# behind the header stops it before.

cmake_minimum_required(VERSION 3.24)

string(REPLACE "|" ";" folders "${INCLUDES}")
list(REMOVE_ITEM folders /usr/include "${OWN_INCLUDES}")  # the first is known to the compiler, which must keep it last
list(TRANSFORM folders PREPEND "-isystem;")
string(REPLACE "|" ";" warnings "${WARNINGS}")
string(REPLACE "|" ";" definitions "${DEFINITIONS}")
list(APPEND definitions TUNEWRIGHT_SEPARATE_COMPILATION)
list(TRANSFORM definitions PREPEND -D)
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
list(APPEND flags -std=c++20 ${warnings} ${definitions} "-I${OWN_INCLUDES}" ${folders})
if(PRECOMPILE OR NOT COMPILER_ID STREQUAL "GNU")
  list(APPEND flags -MD -MF "${STAMP}.d" -MT "${STAMP}")
else()
  # A compiler that is stopped writes no dependencies: our headers, whether conditions include them or not.
  set(found "${HEADER}")
  set(left "${HEADER}")
  while(left)
    list(POP_FRONT left file)
    file(STRINGS "${file}" lines REGEX "^#include \"tunewright/[^\"]*\"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "${OWN_INCLUDES}/\\1" included "${line}")
      if(NOT included IN_LIST found)
        list(APPEND found "${included}")
        list(APPEND left "${included}")
      endif()
    endforeach()
  endwhile()
  list(JOIN found " " found)
  file(WRITE "${STAMP}.d" "${STAMP}: ${found}\n")
endif()
if(COMPILER_ID STREQUAL "GNU")
  list(APPEND flags --param=ggc-min-heapsize=1048576)
  set(suffix gch)
else()
  set(suffix pch)
endif()

if(PRECOMPILE)
  file(WRITE "${STAMP}.hpp" "#include \"${HEADER}\"\n")
  execute_process(COMMAND "${COMPILER}" ${flags} -x c++-header "${STAMP}.hpp" -o "${STAMP}.hpp.${suffix}"
    RESULT_VARIABLE status ERROR_VARIABLE output)
else()
  if(BASE)
    list(APPEND flags -include "${BASE}.hpp")
  endif()
  # What the header includes comes first, without definitions; then its own are switched on.
  set(source "")
  file(STRINGS "${HEADER}" lines REGEX "^#include \"tunewright/|^#if TUNEWRIGHT_DEFINES")
  foreach(line IN LISTS lines)
    if(line MATCHES "TUNEWRIGHT_DEFINES\\((.*)\\)")
      string(APPEND source "#undef TUNEWRIGHT_COMPILES\n#define TUNEWRIGHT_COMPILES TUNEWRIGHT_UNIT_${CMAKE_MATCH_1}\n")
      break()
    endif()
    string(APPEND source "${line}\n")
  endforeach()
  string(APPEND source "#include \"${HEADER}\"\n")
  if(COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -Wfatal-errors)  # -fmax-errors=1 would stop at the second error, after the instantiations
    string(APPEND source "static_assert(false, \"the header compiles alone\");\n")
  endif()
  file(WRITE "${STAMP}.cpp" "${source}")
  execute_process(COMMAND "${COMPILER}" ${flags} -fsyntax-only "${STAMP}.cpp" RESULT_VARIABLE status ERROR_VARIABLE output)
  if(output MATCHES "error: static assertion failed: the header compiles alone")
    set(status 0)
  endif()
endif()
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${HEADER} does not compile alone:\n${output}")
endif()
file(WRITE "${STAMP}" "")
