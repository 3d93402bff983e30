// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/huge_pages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace {

using namespace tunewright;

struct Release {
  void operator()(char* bytes) const { ::operator delete(bytes, std::align_val_t{huge_page_bytes}); }
};

TEST_CASE("the request changes nothing of what memory holds, wherever it begins and ends") {
  const std::size_t bytes = 3 * huge_page_bytes;
  const std::unique_ptr<char, Release> block(
      static_cast<char*>(::operator new(bytes, std::align_val_t{huge_page_bytes})));
  std::fill_n(block.get(), bytes, 'x');
  for (const std::size_t begin : {std::size_t{0}, std::size_t{64}, huge_page_bytes - 1, huge_page_bytes})
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, huge_page_bytes - 1, huge_page_bytes, bytes - begin})
      advise_huge_pages(block.get() + begin, std::min(size, bytes - begin));
  CHECK(std::all_of(block.get(), block.get() + bytes, [](char c) { return c == 'x'; }));
}

}  // namespace
