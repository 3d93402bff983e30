// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What libFuzzer calls with one input after the other, and test/fuzz/replay.cpp with those that are kept.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace tunewright::fuzz {

/// Ends the program unless `holds`, for the fuzzer to keep the input. An exception of a kind that a target does not
/// expect ends it as well.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

[[nodiscard]] inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Whether `read` takes the input. It may refuse with a `Refusal` that says why, and with nothing else.
template <class Refusal, class F>
[[nodiscard]] bool accepts(const F& read) {
  try {
    read();
    return true;
  } catch (const Refusal& refusal) {
    require(*refusal.what() != '\0', "a refusal gives a reason");
    return false;
  }
}

}  // namespace tunewright::fuzz
