// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace tunewright::test {

/// The text of the error that `f` throws.
template <class Error = std::invalid_argument, class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace tunewright::test

/// `f` must throw `std::invalid_argument` with a message that contains `part`.
#define CHECK_REFUSES(part, ...)                                                 \
  do {                                                                           \
    const std::string message = tunewright::test::refusal([&] { __VA_ARGS__; }); \
    CHECK_MESSAGE(message.find(part) != std::string::npos, message);             \
  } while (false)
