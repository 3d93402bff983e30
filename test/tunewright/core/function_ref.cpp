// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/function_ref.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using tunewright::FunctionRef;

namespace {
int twice(FunctionRef<int(int)> f, int x) { return f(f(x)); }
int add_one(int x) { return x + 1; }
const std::string& pick(FunctionRef<const std::string&(bool)> f) { return f(true); }
}  // namespace

TEST_CASE("a function reference calls what it refers to") {
  int calls = 0;
  CHECK(twice([&calls](int x) { return ++calls, 3 * x; }, 2) == 18);
  CHECK(calls == 2);
  const auto keeps_state = [count = 0](int x) mutable { return x + ++count; };
  auto own = keeps_state;
  CHECK(twice(own, 10) == 13);
  CHECK(own(0) == 3);  // the object itself was called, not a copy
  CHECK(twice(add_one, 5) == 7);
  const FunctionRef<void(int)> without_result = own;
  without_result(0);
  CHECK(own(0) == 5);
}

TEST_CASE("references and values that can only be moved pass through") {
  const std::string yes = "yes", no = "no";
  CHECK(&pick([&](bool which) -> const std::string& { return which ? yes : no; }) == &yes);
  const auto size = [](std::unique_ptr<std::string> text) { return text->size(); };
  const FunctionRef<std::size_t(std::unique_ptr<std::string>)> f = size;
  CHECK(f(std::make_unique<std::string>("four")) == 4);
}
