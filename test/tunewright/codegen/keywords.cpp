// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/keywords.hpp"

#include <doctest/doctest.h>

using tunewright::codegen::is_keyword;

TEST_CASE("keywords of C and of C++ and macros of compilers are told from other words") {
  for (const char* word :
       {"alignas", "restrict", "typeof_unqual", "protected", "co_yield", "xor_eq", "linux", "unix"}) {
    CAPTURE(word);
    CHECK(is_keyword(word));
  }
  for (const char* word : {"", "doubles", "For", "main", "size_t", "typ", "eq", "not not_eq "}) {
    CAPTURE(word);
    CHECK_FALSE(is_keyword(word));
  }
}
