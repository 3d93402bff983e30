// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/keywords.hpp"

#include <doctest/doctest.h>

using tunewright::codegen::is_keyword;

TEST_CASE("keywords of C and of C++, macros of compilers and the library's namespace are told from other words") {
  for (const char* word :
       {"alignas", "restrict", "typeof_unqual", "protected", "co_yield", "xor_eq", "linux", "unix", "std"}) {
    CAPTURE(word);
    CHECK(is_keyword(word));
  }
  for (const char* word : {"", "doubles", "For", "main", "size_t", "typ", "eq", "not not_eq ", "stds"}) {
    CAPTURE(word);
    CHECK_FALSE(is_keyword(word));
  }
}
