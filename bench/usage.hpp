// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
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

/// Calls `read(name, value)` for each argument: of "--name=value" with "--name=" and the value, of any other with the
/// whole of it and nothing. `read` tells whether it knows the option, and throws for a value that it refuses. For the
/// first that is unknown or refused this says so and returns false: the program then ends with status 2.
template <class Read>
[[nodiscard]] bool read_options(const char* program, int argc, const char* const* argv, const Read& read) {
  try {
    for (int a = 1; a < argc; ++a) {
      const std::string_view word = argv[a];
      const std::size_t equals = word.find('=');
      const std::size_t end = equals == std::string_view::npos ? word.size() : equals + 1;
      if (!read(word.substr(0, end), word.substr(end)))
        throw std::invalid_argument("unknown option '" + std::string(word) + "'; see --help");
    }
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return false;
  }
}

}  // namespace tunewright::bench
