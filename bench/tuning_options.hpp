// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

/// What benchmarks that tune kernels are told.
namespace tunewright::bench {

struct TuningOptions {
  std::optional<std::string> journal;  ///< --journal=FILE
  std::size_t trials = 500;            ///< --trials=N
};

/// A number of trials as somebody wrote it. Throws `std::invalid_argument` for what is none.
[[nodiscard]] inline std::size_t parse_trials(std::string_view text) {
  std::size_t trials = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), trials);
  if (error != std::errc() || end != text.data() + text.size() || trials == 0) {
    throw std::invalid_argument("'" + std::string(text) + "' was given for trials; give a whole number, at least 1");
  }
  return trials;
}

/// Removes and returns our own options; the others stay. Throws as `parse_trials`.
inline TuningOptions take_tuning_options(int& argc, char** argv) {
  TuningOptions options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--journal=", 0) == 0)
      options.journal = argument.substr(10);
    else if (argument.rfind("--trials=", 0) == 0)
      options.trials = parse_trials(std::string_view(argument).substr(9));
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  return options;
}

}  // namespace tunewright::bench
