# SPDX-License-Identifier: Apache-2.0
# cmake -DCOMPILER=... -DCOMPILER_ID=... -DFLAGS=... -DOWN_INCLUDES=a -DWARNINGS=-Wa|-Wb -DINCLUDES=a|b
#   -DDEFINITIONS=a|b -DHEADER=... -DSTAMP=<file> [-DBASE=<stamp>] [-DPRECOMPILE=TRUE] -P check.cmake
#
# Fails if HEADER does not compile alone, or with a warning that WARNINGS makes an error. Otherwise it writes STAMP, and
# with PRECOMPILE the precompiled form of the header beside it. BASE is the stamp of a precompiled header that HEADER
# includes. At the end of a source GCC instantiates templates, which takes half of its time and which test_odr does too;
# an assertion that fails behind the header stops it before.

string(REPLACE "|" ";" folders "${INCLUDES}")
list(REMOVE_ITEM folders /usr/include "${OWN_INCLUDES}")  # the first is known to the compiler, which must keep it last
list(TRANSFORM folders PREPEND "-isystem;")
string(REPLACE "|" ";" warnings "${WARNINGS}")
string(REPLACE "|" ";" definitions "${DEFINITIONS}")
list(TRANSFORM definitions PREPEND -D)
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
list(APPEND flags -std=c++20 ${warnings} ${definitions} "-I${OWN_INCLUDES}" ${folders})
if(COMPILER_ID STREQUAL "GNU")
  list(APPEND flags --param=ggc-min-heapsize=1048576)
endif()
set(dependencies -MD -MF "${STAMP}.d" -MT "${STAMP}")

if(PRECOMPILE)
  if(COMPILER_ID STREQUAL "GNU")
    set(suffix gch)
  else()
    set(suffix pch)
  endif()
  file(WRITE "${STAMP}.hpp" "#include \"${HEADER}\"\n")
  execute_process(COMMAND "${COMPILER}" ${flags} ${dependencies} -x c++-header "${STAMP}.hpp" -o "${STAMP}.hpp.${suffix}"
    RESULT_VARIABLE status ERROR_VARIABLE output)
else()
  if(BASE)
    list(APPEND flags -include "${BASE}.hpp")
  endif()
  if(COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -fmax-errors=1)
  endif()
  execute_process(COMMAND "${COMPILER}" ${flags} ${dependencies} -fsyntax-only -include "${HEADER}"
    "${CMAKE_CURRENT_LIST_DIR}/behind_header.cpp" RESULT_VARIABLE status ERROR_VARIABLE output)
  if(output MATCHES "error: static assertion failed: the header compiles alone")
    set(status 0)
  endif()
endif()
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${HEADER} does not compile alone:\n${output}")
endif()
file(WRITE "${STAMP}" "")
