// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "instruction_sets.hpp"
#include "tunewright/core/outcome.hpp"

/// What benchmarks that tune kernels are told.
namespace tunewright::bench {

struct TuningOptions {
  std::optional<std::string> journal;                    ///< --journal=FILE
  std::size_t trials = 500;                              ///< --trials=N
  std::optional<Seconds> seconds_per_kernel;             ///< --seconds_per_kernel=S, the tuner's construction included
  std::uint64_t seed = 1;                                ///< --seed=N
  InstructionSet instructions = InstructionSet::Native;  ///< --isa=NAME
  std::optional<unsigned> threads;                       ///< --threads=N; without, one a core
  std::optional<std::uint64_t> random_shapes;            ///< --random_shapes=SEED
  std::optional<std::string> served;                     ///< --serve=KERNEL
};

/// A whole number from `least` to `most` as somebody wrote it. Throws `std::invalid_argument` for anything else.
[[nodiscard]] inline std::uint64_t parse_number(std::string_view text, const std::string& what, std::uint64_t least,
                                                std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    throw std::invalid_argument(
        "'" + std::string(text) + "' was given for " + what + "; give a whole number, at least " +
        std::to_string(least) +
        (most == std::numeric_limits<std::uint64_t>::max() ? std::string() : ", at most " + std::to_string(most)));
  }
  return number;
}

/// A positive number of seconds as somebody wrote it. Throws `std::invalid_argument` for anything else.
[[nodiscard]] inline Seconds parse_seconds(std::string_view text, const std::string& what) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0) || !std::isfinite(seconds)) {
    throw std::invalid_argument("'" + std::string(text) + "' was given for " + what +
                                "; give a positive number of seconds");
  }
  return Seconds(seconds);
}

/// A number of trials as somebody wrote it. Throws `std::invalid_argument` for what is none.
[[nodiscard]] inline std::size_t parse_trials(std::string_view text) {
  return parse_number(text, "trials", 1, std::numeric_limits<std::uint64_t>::max());
}

/// Removes and returns our own options; the others stay. Throws `std::invalid_argument` for a value that is none.
inline TuningOptions take_tuning_options(int& argc, char** argv) {
  TuningOptions options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto [option, value] = std::pair(argument.substr(0, argument.find('=') + 1),  // empty where there is no '='
                                           argument.substr(argument.find('=') + 1));
    if (option == "--journal=")
      options.journal = value;
    else if (option == "--trials=")
      options.trials = parse_trials(value);
    else if (option == "--seconds_per_kernel=")
      options.seconds_per_kernel = parse_seconds(value, "seconds_per_kernel");
    else if (option == "--seed=")
      options.seed = parse_number(value, "seed", 0, std::numeric_limits<std::uint64_t>::max());
    else if (option == "--isa=")
      options.instructions = parse_instruction_set(value);
    else if (option == "--threads=")
      options.threads = static_cast<unsigned>(parse_number(value, "threads", 1, 1024));
    else if (option == "--random_shapes=")
      options.random_shapes = parse_number(value, "random_shapes", 0, std::numeric_limits<std::uint64_t>::max());
    else if (option == "--serve=")
      options.served = value;
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  return options;
}

/// `host` as far as the options go. Throws `std::invalid_argument` for instructions or cores that it lacks.
[[nodiscard]] inline Target chosen_target(const TuningOptions& options, const Target& host) {
  Target target = held_to(host, options.instructions);
  if (options.threads) target = target.with_threads(*options.threads);
  if (target.threads > host.threads) {
    throw std::invalid_argument(std::to_string(target.threads) + " threads were asked for and there are " +
                                std::to_string(host.threads) + " cores: threads that take turns are not timed");
  }
  return target;
}

/// Arguments with a filter of Google Benchmark, if there is one, that takes the benchmark "summary" too.
[[nodiscard]] inline std::vector<std::string> with_summary(std::vector<std::string> arguments) {
  constexpr std::string_view option = "--benchmark_filter=";
  for (std::string& argument : arguments) {
    if (!argument.starts_with(option)) continue;
    const std::string filter = argument.substr(option.size());
    // A filter that begins so leaves out what it matches; "all" and none are Google Benchmark's words for everything.
    if (filter.empty() || filter == "all" || filter.starts_with('-')) continue;
    argument = std::string(option) + "(" + filter + ")|^summary";
  }
  return arguments;
}

}  // namespace tunewright::bench
