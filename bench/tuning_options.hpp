// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "instruction_sets.hpp"
#include "parse_number.hpp"
#include "tunewright/core/outcome.hpp"

/// What benchmarks that tune kernels are told.
namespace tunewright::bench {

struct TuningOptions {
  std::optional<std::string> journal;
  std::size_t trials = 500;
  std::optional<Seconds> seconds_per_kernel;
  std::uint64_t seed = 1;
  InstructionSet instructions = InstructionSet::Native;
  std::optional<unsigned> threads;  ///< without, one a core
  std::optional<std::uint64_t> random_shapes;
  std::optional<std::string> served;
};

/// A number of trials as somebody wrote it. Throws `std::invalid_argument` for what is none.
[[nodiscard]] inline std::size_t parse_trials(std::string_view text) {
  return parse_number(text, "trials", 1, std::numeric_limits<std::uint64_t>::max());
}

/// One of `TuningOptions` on the command line, `--name=value`.
struct TuningOption {
  std::string_view name, value, meaning;
  void (*read)(std::string_view value, TuningOptions& options);
};

/// Options by their names; each program has some of them. Throws `std::invalid_argument` for a name that is none.
[[nodiscard]] inline const TuningOption& tuning_option(std::string_view name) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::array all{
      TuningOption{"isa", "NAME", "instruction set: sse4.2, avx2, avx512, amx or native (native)",
                   [](std::string_view value, TuningOptions& o) { o.instructions = parse_instruction_set(value); }},
      TuningOption{"threads", "N", "threads of a kernel (one a core)",
                   [](std::string_view value, TuningOptions& o) {
                     o.threads = static_cast<unsigned>(parse_number(value, "threads", 1, 1024));
                   }},
      TuningOption{"journal", "FILE", "what it has is not measured again; what is measured goes there",
                   [](std::string_view value, TuningOptions& o) { o.journal = value; }},
      TuningOption{"trials", "N", "candidates measured for each kernel, at most (500)",
                   [](std::string_view value, TuningOptions& o) { o.trials = parse_trials(value); }},
      TuningOption{"seconds_per_kernel", "S", "of searching for each kernel, at most (no limit)",
                   [](std::string_view value, TuningOptions& o) {
                     o.seconds_per_kernel = parse_seconds(value, "seconds_per_kernel");
                   }},
      TuningOption{"seed", "N", "seed of the searches (1)",
                   [](std::string_view value, TuningOptions& o) { o.seed = parse_number(value, "seed", 0, any); }},
      TuningOption{"random_shapes", "SEED", "kernels that nobody chose instead of the listed ones",
                   [](std::string_view value, TuningOptions& o) {
                     o.random_shapes = parse_number(value, "random_shapes", 0, any);
                   }},
      TuningOption{"serve", "KERNEL", "only that kernel, timed once for every line of the standard input",
                   [](std::string_view value, TuningOptions& o) { o.served = value; }}};
  for (const TuningOption& option : all) {
    if (option.name == name) return option;
  }
  throw std::invalid_argument("no option is called '" + std::string(name) + "'");
}

/// What `--help` says of the options of these names.
[[nodiscard]] inline std::string usage_of(std::span<const std::string_view> names) {
  std::string usage;
  for (const std::string_view name : names) {
    const TuningOption& option = tuning_option(name);
    std::string line = "  --" + std::string(name) + "=" + std::string(option.value);
    line.resize(26, ' ');
    usage.append(line).append(option.meaning).append("\n");
  }
  return usage;
}

/// Removes and returns the options of these names; other arguments stay. Throws `std::invalid_argument` for a value
/// that is none.
inline TuningOptions take_tuning_options(int& argc, char** argv, std::span<const std::string_view> names) {
  TuningOptions options;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.starts_with("--") ? argument.substr(2, equals - 2) : std::string_view();
    if (equals != std::string_view::npos && std::ranges::find(names, name) != names.end())
      tuning_option(name).read(argument.substr(equals + 1), options);
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  return options;
}

/// Throws `std::invalid_argument` for more threads than the host has cores.
inline void check_cores(unsigned threads, const Target& host) {
  if (threads > host.threads) {
    throw std::invalid_argument(std::to_string(threads) + " threads were asked for and there are " +
                                std::to_string(host.threads) + " cores: threads that take turns are not timed");
  }
}

/// `host` as far as the options go. Throws `std::invalid_argument` for instructions or cores that it lacks.
[[nodiscard]] inline Target chosen_target(const TuningOptions& options, const Target& host) {
  Target target = held_to(host, options.instructions);
  if (options.threads) target = target.with_threads(*options.threads);
  check_cores(target.threads, host);
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
