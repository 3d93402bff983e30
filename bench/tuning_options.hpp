// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

/// What benchmarks that tune kernels are told.
namespace tunewright::bench {

struct TuningOptions {
  std::optional<std::string> journal;  ///< --journal=FILE
  std::size_t trials = 500;            ///< --trials=N
};

/// Removes and returns our own options; the others stay.
inline TuningOptions take_tuning_options(int& argc, char** argv) {
  TuningOptions options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--journal=", 0) == 0)
      options.journal = argument.substr(10);
    else if (argument.rfind("--trials=", 0) == 0)
      options.trials = std::strtoul(argument.c_str() + 9, nullptr, 10);
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  return options;
}

}  // namespace tunewright::bench
