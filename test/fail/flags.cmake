# SPDX-License-Identifier: Apache-2.0
# What must-fail cases and the header that is precompiled for them are compiled with; reads INCLUDES, sets flags.

string(REPLACE "|" ";" folders "${INCLUDES}")
# What a header declares decides; without definitions the compiler has half as much to read.
set(flags -std=c++20 -DTUNEWRIGHT_SEPARATE_COMPILATION)
list(REMOVE_ITEM folders /usr/include)  # known to the compiler, which must keep it last
foreach(folder IN LISTS folders)
  list(APPEND flags -isystem "${folder}")
endforeach()
