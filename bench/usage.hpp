// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string_view>

namespace tunewright::bench {

/// With `--help` among the arguments, prints `usage` and tells so: the program then ends with status 0.
[[nodiscard]] inline bool printed_usage(int argc, const char* const* argv, std::string_view usage) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--help") continue;
    std::fwrite(usage.data(), 1, usage.size(), stdout);
    return true;
  }
  return false;
}

}  // namespace tunewright::bench
