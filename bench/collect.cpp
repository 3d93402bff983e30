// SPDX-License-Identifier: Apache-2.0
//
// Measures random and evolved programs of all tasks of networks, a dataset to learn from. --help lists the options.
//
// A target is an instruction set and a number of threads of this machine. Of the programs of each task on each target,
// or as many as the space has, one half are random schedules, the other half is what evolution finds that starts from
// them (`recipes::AnsorQuick`). Numerics are checked as in any search. Some of these, drawn at random, are measured
// again, which tells how well measurements repeat.
//
// What is measured is kept the moment it is known; started again, the program goes on where it was stopped, by Ctrl-C
// or by force. With --shard=i/n it does every n-th task, so that several machines that share DIR, or processes on
// processors of their own, do it together. At the end DIR/index.jsonl has a line a journal, and a summary is printed.
// `data::read_journals` reads the journals; collection.hpp describes the folder.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collection.hpp"
#include "instruction_sets.hpp"
#include "known_networks.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/orc.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/decode_records.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/options.hpp"
#include "tunewright/tuner.hpp"
#include "tuning_options.hpp"
#include "usage.hpp"

namespace {

using namespace tunewright;
using measurers::OrcJit;
using study::command_line::names;
using Space = spaces::MultiLevelTiling;

constexpr const char* usage = R"(usage: collect --out=DIR [options]

Measures random and evolved programs of all tasks of networks, a dataset to learn from.

  --out=DIR        the folder of the dataset; started again, the program goes on where it was stopped
  --networks=A,B   only these
  --isa=A,B        instruction sets: sse4.2, avx2, avx512, amx or native (all that this machine has from avx2 on)
  --threads=N,M    threads of a kernel (one, and one a core)
  --programs=N     programs of each task on each target (400)
  --repeat=N       so many of these are measured again (8)
  --tasks=N        only the first N tasks of each target
  --shard=i/n      only every n-th task, from the i-th on; other machines that share DIR do the rest
  --seed=N         seed of all that is drawn (1)
)";

struct Options {
  std::filesystem::path out;
  std::vector<std::string> networks;
  std::vector<bench::InstructionSet> instructions;
  std::vector<unsigned> threads;
  std::size_t programs = 400, repeat = 8, tasks = std::numeric_limits<std::size_t>::max();
  std::size_t shard = 1, shards = 1;
  std::uint64_t seed = 1;
};

Options read_options(int argc, char** argv) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  Options options;
  const std::map<std::string_view, std::function<void(std::string_view)>> readers{
      {"--out", [&](auto value) { options.out = value; }},
      {"--networks", [&](auto value) { options.networks = names(value); }},
      {"--isa",
       [&](auto value) {
         for (const std::string& set : names(value)) options.instructions.push_back(bench::parse_instruction_set(set));
       }},
      {"--threads",
       [&](auto value) {
         for (const std::string& count : names(value))
           options.threads.push_back(static_cast<unsigned>(bench::parse_number(count, "threads", 1, 1024)));
       }},
      {"--programs", [&](auto value) { options.programs = bench::parse_number(value, "programs", 1, any); }},
      {"--repeat", [&](auto value) { options.repeat = bench::parse_number(value, "repeat", 0, any); }},
      {"--tasks", [&](auto value) { options.tasks = bench::parse_number(value, "tasks", 1, any); }},
      {"--seed", [&](auto value) { options.seed = bench::parse_number(value, "seed", 0, any); }},
      {"--shard", [&](auto value) {
         const std::size_t slash = std::min(value.find('/'), value.size() - 1);
         options.shards = bench::parse_number(value.substr(slash + 1), "the number of shards", 1, any);
         options.shard = bench::parse_number(value.substr(0, slash), "shard", 1, options.shards);
       }}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::size_t equals = argument.find('=');
    const auto reader = readers.find(argument.substr(0, equals));
    if (reader == readers.end() || equals == std::string_view::npos || equals + 1 == argument.size())
      throw std::invalid_argument("'" + std::string(argument) + "' is no option with a value; see --help");
    reader->second(argument.substr(equals + 1));
  }
  if (options.out.empty()) throw std::invalid_argument("--out=DIR is missing: the folder for what is measured");
  return options;
}

/// What the machine can be: all instruction sets that it contains, one thread and all.
std::vector<Target> targets_of(const Options& options) {
  const Target host = host_target();
  std::vector<Target> targets;
  const auto add = [&](const Target& target) {
    for (const Target& known : targets)
      if (known == target) return;
    targets.push_back(target);
  };
  std::vector<Target> machines;
  for (const bench::InstructionSet set : options.instructions) machines.push_back(bench::held_to(host, set));
  if (machines.empty())
    for (const Isa isa : all_isas)
      if (isa != Isa::Sse42 && contains(host.isa, isa)) machines.push_back(host.with_isa(isa));
  for (const unsigned count : options.threads) bench::check_cores(count, host);
  const std::vector<unsigned> threads = !options.threads.empty() ? options.threads : std::vector{1U, host.threads};
  for (const Target& machine : machines)
    for (const unsigned count : threads) add(machine.with_threads(count));
  return targets;
}

/// How many programs of a task are drawn at random.
std::size_t drawn_by(const Options& options) { return (options.programs + 1) / 2; }

/// Measures what is missing of a task; false when it was stopped.
bool collect(bench::CollectedTask& one, const Options& options, OrcJit& measurer, Interrupt& interrupt) {
  const Task& task = one.task;
  const bench::CollectedFiles files(options.out, task);
  make_folder(files.measured.parent_path());
  data::Journal journal{{.path = files.measured.string()}};
  const auto search = [&]<class Recipe>(std::size_t programs) {
    Parts<Recipe> parts{.seed = options.seed};
    parts.measurer = measurer;
    return Tuner<Recipe>(std::move(parts)).run(task, {.trials = programs}, journal, interrupt);
  };
  const auto drawn = search.template operator()<recipes::Random<Space, OrcJit>>(drawn_by(options));
  if (drawn.stop == Stop::Requested) return false;
  one.drawn = std::min(one.drawn, drawn.status.trials);  // a small space has fewer
  const auto evolved = search.template operator()<recipes::AnsorQuick<Space, OrcJit>>(options.programs);
  if (evolved.stop == Stop::Requested) return false;

  const Rng rng = Rng(options.seed).split(stable_hash(task));
  const Space space;
  std::vector<Record> chosen = bench::draw_records(files.measured, options.repeat, rng);
  for (const Record& known : data::read_journal(files.again.string()).records)
    std::erase_if(chosen, [&](const Record& record) { return record.key == known.key; });
  const auto decoded = spaces::decode_records(space, task, chosen, measurer.identity());
  std::vector<loops::LoopNest> programs;
  for (const auto& candidate : decoded.batch) programs.push_back(space.lower(task, candidate.config));
  OrcJit fresh{.sandbox = measurer.sandbox};  // which knows of no best: all are measured in full
  const std::vector<Outcome> outcomes = fresh.measure(task, programs);
  data::Journal repeated{{.path = files.again.string()}};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto same = [&](const Record& record) { return record.key == decoded.batch[i].key; };
    Record record = *std::find_if(chosen.begin(), chosen.end(), same);
    record.outcome = outcomes[i];
    repeated.describe(task);
    repeated.append(record);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  if (bench::printed_usage(argc, argv, usage)) return 0;
  const Options options = read_options(argc, argv);
  OrcJit measurer;  // its worker starts before any thread does
  std::vector<networks::Network> networks;
  if (options.networks.empty())
    for (const bench::KnownNetwork& known : bench::known_networks()) networks.push_back(known.build());
  for (const std::string& name : options.networks) networks.push_back(bench::known_network(name));
  const std::vector<Target> targets = targets_of(options);
  std::vector<bench::CollectedTask> tasks;
  for (const Target& target : targets) {
    std::vector<bench::CollectedTask> own = bench::tasks_of(networks, std::span(&target, 1));
    if (own.size() > options.tasks) own.resize(options.tasks);
    for (bench::CollectedTask& task : own) task.drawn = drawn_by(options);
    tasks.insert(tasks.end(), own.begin(), own.end());
  }

  make_folder(options.out);
  Interrupt interrupt;
  try {
    for (std::size_t t = options.shard - 1; t < tasks.size(); t += options.shards) {
      std::cerr << '\r' << t + 1 << " of " << tasks.size() << ": " << tasks[t].task.name << " on "
                << bench::folder_name(tasks[t].task.target) << "\033[K" << std::flush;
      if (!collect(tasks[t], options, measurer, interrupt)) break;
    }
  } catch (...) {
    std::cerr << '\n';
    bench::write_index(options.out, tasks);  // readers need it, and the other tasks may be all that they want
    throw;
  }
  std::cerr << '\n';
  std::cout << bench::summary(bench::write_index(options.out, tasks));
  if (interrupt.should_stop()) std::cout << "stopped; start it again to go on\n";
} catch (const std::exception& error) {
  std::cerr << "collect: " << error.what() << '\n';
  return 1;
}
