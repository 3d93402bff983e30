// SPDX-License-Identifier: Apache-2.0
// Measured trials a second over the ranks of an MPI program; scale_out.sh compares numbers of ranks, and kill_ranks.sh
// kills processes of one while it runs. --help lists the options.
//
// A random search over a product of matrices on one thread, whose programs take milliseconds to a tenth of a second.
// Prints trials, seconds from the second batch on, their ratio, and how many failed. --verify says how many records are
// lost (witnessed, and not in the journal) and repeated (twice in either), and ends with status 1 where there are any,
// or where nothing was witnessed.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "parse_number.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/observer.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/measurers/mpi.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"
#include "usage.hpp"

namespace {

using namespace tunewright;
using Clock = std::chrono::steady_clock;

constexpr const char* usage = R"(usage: mpirun --bind-to none -n RANKS bench_scale_out [options]
usage: bench_scale_out --verify --journal=FILE --witness=FILE

Tells how many trials a second are measured over the ranks of an MPI program.

  --trials=N      candidates measured, more than the batch of 96 that is not timed (480)
  --size=N        rows and columns of the matrices (768)
  --journal=FILE  what is measured goes there
  --witness=FILE  the key of each outcome goes there, after the journal has it
  --verify        only says how many records of these files are lost or repeated
)";

constexpr std::size_t batch = 96;

struct Options {
  std::size_t trials = 480;
  std::int64_t size = 768;
  std::string journal, witness;
  bool verify = false;
};

/// Writes down what was completed, after the journal has; and when.
struct Witness {
  int fd = -1;
  std::size_t records = 0, failed = 0, unknown = 0, counted = 0;
  unsigned first_round = 0;
  std::optional<Clock::time_point> begin{};

  void on_record(const Record& record, const RunStatus&) {
    if (records++ == 0) first_round = record.round;
    if (const Failure* failure = record.outcome.failure()) {
      ++failed;
      if (failure->fault == Fault::Unknown) ++unknown;
    }
    // The first batch pays for the task's data and for starting compilers.
    if (record.round != first_round) {
      if (!begin) begin = Clock::now();
      ++counted;
    }
    const std::string line = to_hex(record.key) + "\n";
    if (fd >= 0 && ::write(fd, line.data(), line.size()) < 0) throw std::runtime_error("cannot write the witness");
  }
};

int verify(const Options& options) {
  if (options.journal.empty() || options.witness.empty())
    throw std::invalid_argument("--verify compares two files; name them by --journal=FILE and --witness=FILE");
  std::map<std::uint64_t, int> recorded, witnessed;
  const data::JournalContents contents = data::read_journal(options.journal);
  std::size_t unknown = 0;
  for (const Record& record : contents.records) {
    ++recorded[record.key];
    const Failure* failure = record.outcome.failure();
    if (failure != nullptr && failure->fault == Fault::Unknown) ++unknown;
  }
  std::ifstream in(options.witness);
  if (!in) throw std::runtime_error("cannot read the witness '" + options.witness + "'; name one that a search left");
  for (std::string line; std::getline(in, line);) {
    if (line.size() == 16) ++witnessed[from_hex(line, "a line of --witness")];
  }
  std::size_t lost = 0, repeated = 0;
  for (const auto& [key, times] : witnessed) {
    lost += recorded.contains(key) ? 0U : 1U;
    repeated += times > 1 ? 1U : 0U;
  }
  for (const auto& [key, times] : recorded) repeated += times > 1 ? 1U : 0U;
  std::printf("%zu records, %zu witnessed, %zu bad lines, %zu lost, %zu repeated, %zu unknown\n",
              contents.records.size(), witnessed.size(), contents.bad.size(), lost, repeated, unknown);
  return lost == 0 && repeated == 0 && !recorded.empty() && !witnessed.empty() ? 0 : 1;
}

int tune(measurers::mpi::World& world, const Options& options) {
  using Recipe = recipes::Random<spaces::MultiLevelTiling, measurers::Mpi>;
  measurers::Mpi measurer{.world = &world};
  measurer.protocol.run_timeout_seconds = 5;
  measurer.reply_grace_seconds = 5;
  const Task task = program::make_task(
      "matmul", program::operators::matmul_graph({.m = options.size, .n = options.size, .k = options.size}),
      measurer.target().with_threads(1));
  Tuner<Recipe> tuner{{.measurer = measurer, .seed = 1}};
  Witness witness;
  if (!options.witness.empty()) {
    witness.fd = ::open(options.witness.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (witness.fd < 0)
      throw std::runtime_error("cannot write the witness '" + options.witness + "'; name a file that you may write");
  }
  const Budget budget{.trials = options.trials, .batch = batch};
  if (options.journal.empty()) {
    tuner.run(task, budget, witness);
  } else {
    data::Journal journal({.path = options.journal});
    tuner.run(task, budget, journal, witness);
  }
  if (!witness.begin) {
    throw std::runtime_error(
        "nothing was timed: " + std::to_string(witness.records) +
        " candidates were measured, of one batch at most; give more --trials than the journal has, or a larger --size");
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - *witness.begin).count();
  std::printf("workers %d trials %zu seconds %.2f trials_per_second %.2f failed %zu unknown %zu handed_on %zu\n",
              world.size() - 1, witness.counted, seconds, static_cast<double>(witness.counted) / seconds,
              witness.failed, witness.unknown, measurer.state->handed_on);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (bench::printed_usage(argc, argv, usage)) return 0;
  Options options;
  const auto read = [&](std::string_view option, std::string_view value) {
    if (option == "--verify")
      options.verify = true;
    else if (option == "--trials=")
      options.trials = bench::parse_number(value, "trials", batch + 1);
    else if (option == "--size=")
      options.size = static_cast<std::int64_t>(bench::parse_number(value, "size", 1, 1U << 20));
    else if (option == "--journal=")
      options.journal = value;
    else if (option == "--witness=")
      options.witness = value;
    else
      return false;
    return true;
  };
  if (!bench::read_options("bench_scale_out", argc, argv, read)) return 2;
  try {
    if (options.verify) return verify(options);
    measurers::mpi::World world;
    return world.is_manager() ? tune(world, options) : world.serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_scale_out: %s\n", error.what());
    return 1;
  }
}
