// SPDX-License-Identifier: Apache-2.0
// How fast random schedules are, and what mutations that nothing guides leave of their speed.
//
//   study_mutations [--machine=real|cores] [--operators=known|unseen|random] [--random_shapes=SEED]
//                   [--threads=N] [--programs=N] [--seeds=N --first_seed=N --tasks=N]
//
// The operators are those of operators.hpp (known). For each, `--programs` (32) random schedules and as many others
// after 1, 2, 4 and 8 mutations in a row are measured in random order. A mutation that is illegal or exceeds a limit is
// repeated; a schedule without neighbours is replaced. Counters, of each operator, @n after n mutations:
//   speed@n    time of the fastest of all its programs / theirs, geometric mean over those that ran
//   fastest@n  time of the fastest of all its programs / that of the fastest of them

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chosen_machine.hpp"
#include "operators.hpp"
#include "task_results.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::MultiLevelTiling;

constexpr unsigned mutations_in_a_row[] = {0, 1, 2, 4, 8};

/// Seconds of the programs that ran, by number of mutations.
using Times = std::map<unsigned, std::vector<double>>;

/// A feasible neighbour; empty if no try leads to one.
std::optional<schedule::Schedule> neighbour(const Space& space, const Task& task, const schedule::Schedule& of,
                                            Rng& rng) {
  constexpr unsigned tries = 20;
  for (unsigned attempt = 0; attempt < tries; ++attempt) {
    auto changed = space.mutate(task, of, rng);
    if (changed && space.feasible(task, *changed)) return changed;
  }
  return std::nullopt;
}

/// A schedule after `mutations`; empty if the draw or one of them fails.
std::optional<schedule::Schedule> walked(const Space& space, const Task& task, unsigned mutations, Rng& rng) {
  std::optional<schedule::Schedule> at = space.sample(task, rng);
  for (unsigned step = 0; step < mutations && at; ++step) at = neighbour(space, task, *at, rng);
  return at;
}

template <class Measurer>
Times times_of(const Task& task, Measurer& measurer, std::size_t programs, Rng rng) {
  constexpr std::size_t batch = 32, most_failures = 1000;
  const Space space;
  std::vector<std::pair<unsigned, schedule::Schedule>> all;
  for (const unsigned mutations : mutations_in_a_row) {
    std::size_t found = 0;
    for (std::size_t failures = 0; found < programs && failures < most_failures;) {
      if (auto one = walked(space, task, mutations, rng)) {
        all.emplace_back(mutations, *std::move(one));
        ++found;
      } else {
        ++failures;
      }
    }
  }
  rng.shuffle(std::span(all));  // so that none has all of the machine's quiet minutes
  Times seconds;
  for (std::size_t begin = 0; begin < all.size(); begin += batch) {
    std::vector<loops::LoopNest> nests;
    for (std::size_t i = begin; i < std::min(begin + batch, all.size()); ++i)
      nests.push_back(space.lower(task, all[i].second));
    const std::vector<Outcome> outcomes = measurer.measure(task, nests);
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      if (outcomes[i].valid()) seconds[all[begin + i].first].push_back(cost_s(outcomes[i]));
  }
  return seconds;
}

void add_speeds(const std::string& name, const Times& times, study::TaskCounters& counters) {
  const auto least = [](const std::vector<double>& seconds) {
    return *std::min_element(seconds.begin(), seconds.end());
  };
  double fastest = std::numeric_limits<double>::infinity();
  for (const auto& [mutations, seconds] : times) fastest = std::min(fastest, least(seconds));
  for (const auto& [mutations, seconds] : times) {
    double logs = 0;
    for (const double time : seconds) logs += std::log(fastest / time);
    const std::string at = "@" + std::to_string(mutations);
    counters["speed" + at][name] = std::exp(logs / static_cast<double>(seconds.size()));
    counters["fastest" + at][name] = fastest / least(seconds);
  }
}

/// The machine that `--machine` names, with as many threads as `--threads` says.
Target chosen_target(const study::Options& options) {
  Target target;
  bench::with_chosen_machine(options, [&](const Target& machine, const auto&) {
    target = machine.with_threads(options.threads_or(machine.threads));
  });
  return target;
}

study::TaskCounters measured(const study::Options& options, const Target& target, const bench::Operators& operators,
                             std::uint64_t seed) {
  study::TaskCounters counters;
  bench::with_chosen_machine(options, [&](const Target&, auto measurer) {
    const std::size_t programs = options.number("programs");
    std::uint64_t stream = 0;
    for (const auto& problem : bench::problems(operators, options, target, measurer)) {
      const Rng rng = Rng(seed).split(stream++);
      add_speeds(problem.name, times_of(problem.task, measurer, programs, rng), counters);
    }
  });
  return counters;
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "mutations",
                     .seeds = 3,
                     .options = {"machine=real", "operators=known", "random_shapes=1", "programs=32"}},
                    [](const study::Study& study) {
                      const Target target = chosen_target(study.options());
                      const study::Options options =
                          study::depending_on(study.options(), "target", stable_hash(target));
                      const bench::Operators chosen = bench::chosen_operators(options);
                      if (options.number("programs") == 0) throw std::invalid_argument("--programs=0: give at least 1");
                      for (const std::uint64_t seed : options.all_seeds())
                        study::add_of_tasks(options, "unguided", options.text("operators"), seed,
                                            [=](benchmark::State&) { return measured(options, target, chosen, seed); });
                    });
}
