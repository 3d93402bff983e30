// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/uninterrupted.hpp"

#include <doctest/doctest.h>

#include <cerrno>

using tunewright::uninterrupted;

TEST_CASE("a call that signals interrupt is repeated until it has a result, which may be 0") {
  int calls = 0;
  const auto third_time = [&] {
    if (++calls == 3) return 0L;
    errno = EINTR;
    return -1L;
  };
  CHECK(uninterrupted(third_time) == 0);
  CHECK(calls == 3);
}

TEST_CASE("other errors are returned at once, and a success whatever errno says of an earlier call") {
  int calls = 0;
  const auto fails = [&] {
    ++calls;
    errno = ENOSPC;
    return -1;
  };
  CHECK(uninterrupted(fails) == -1);
  CHECK(errno == ENOSPC);
  CHECK(calls == 1);
  errno = EINTR;
  CHECK(uninterrupted([&] { return ++calls; }) == 2);
  CHECK(calls == 2);
}
