// SPDX-License-Identifier: Apache-2.0
// What share of one core the side that tunes spends on its workers, as if there were a thousand of them. --help lists
// the options.
//
// Workers live on a virtual clock: each is busy with a kernel for as long as some measurement of the journal took (its
// run_s, drawn at random), and has `ahead` more to come. The host's side is real and its processor time is what moves
// its clock: it reads a result from a socket and decodes it (remote::Conversation), appends a record to a journal on
// disk, and encodes and writes the next kernel, object code and all, to the worker's socket. A result that finds it
// busy waits. Searching and compiling are not in it: compiling is told apart, as the processors that so many workers
// keep busy. Without a journal it makes one first, of 96 random candidates of products of 256 and 768, measured here on
// one thread.
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <queue>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parse_number.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/remote/conversation.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/remote/messages.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"
#include "usage.hpp"

namespace {

using namespace tunewright;
namespace remote = measurers::remote;

constexpr const char* usage = R"(usage: bench_manager_load [options]

Tells what share of one core the side that tunes spends on its workers.

  --workers=N     workers (1000)
  --results=N     results of all of them (100000)
  --ahead=N       kernels that a busy worker has got beyond the one that it runs (3)
  --journal=FILE  whose measurements tell how long workers are busy; without, some are made first
)";

constexpr Seconds patience{10};

Task product(std::int64_t size) {
  return program::make_task("matmul " + std::to_string(size),
                            program::operators::matmul_graph({.m = size, .n = size, .k = size}),
                            host_target().with_threads(1));
}

void measure_some(const std::string& path) {
  data::Journal journal({.path = path, .many_tasks = true});
  for (const std::int64_t size : {256, 768}) {
    Tuner<recipes::Random<spaces::MultiLevelTiling, measurers::OrcJit>> tuner{{.seed = 1}};
    tuner.run(product(size), {.trials = 48, .batch = 16}, journal);
  }
}

struct Compiled {
  std::vector<remote::MeasureRequest> requests;
  double seconds_each = 0, bytes_each = 0;
};

Compiled compile_some() {
  const Task task = product(768);
  codegen::LlvmCompiler compiler(task.target, {});
  const spaces::MultiLevelTiling space;
  Compiled compiled;
  Rng rng(2);
  while (compiled.requests.size() < 32) {
    const auto config = space.sample(task, rng);
    if (!config) continue;
    const loops::LoopNest nest = space.lower(task, *config);
    const auto start = std::chrono::steady_clock::now();
    auto result = compiler.compile(nest);
    compiled.seconds_each += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 32;
    remote::MeasureRequest request;
    request.kernel = std::move(result);
    compiled.bytes_each += static_cast<double>(request.kernel.object->size()) / 32;
    compiled.requests.push_back(std::move(request));
  }
  return compiled;
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Both ends of a conversation.
struct Worker {
  measurers::sandbox::Descriptor ours, theirs;
  std::unique_ptr<remote::FrameStream> carrier, other_end;
  std::unique_ptr<remote::Conversation> conversation;
  std::size_t queued = 0;  ///< kernels that it has, the one that it measures among them
  double busy = 0;
};

Worker make_worker() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no socket pair");
  Worker worker;
  worker.ours = measurers::sandbox::Descriptor(ends[0]);
  worker.theirs = measurers::sandbox::Descriptor(ends[1]);
  worker.carrier = std::make_unique<remote::FrameStream>(ends[0], ends[0], remote::reply_limit_bytes);
  worker.other_end = std::make_unique<remote::FrameStream>(ends[1], ends[1], remote::request_limit_bytes);
  worker.other_end->send(remote::FrameKind::Hello, remote::to_bytes(remote::Hello{.device = remote::this_device()}));
  worker.conversation = std::make_unique<remote::Conversation>(*worker.carrier, patience);
  return worker;
}

void simulate(std::size_t worker_count, std::size_t results, std::size_t ahead, const std::vector<Record>& records,
              const Compiled& compiled, const std::string& output) {
  std::vector<Worker> workers;
  for (std::size_t w = 0; w < worker_count; ++w) workers.push_back(make_worker());
  data::Journal journal({.path = output, .many_tasks = true});
  Rng rng(3);
  double host_free_at = 0, host_seconds = 0, waited = 0, now = 0;
  std::size_t sent = 0, received = 0;

  struct Finish {
    double at;
    std::size_t worker, record;
    bool operator>(const Finish& other) const { return at > other.at; }
  };
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> finishes;
  const auto begin_kernel = [&](std::size_t w, double at) {
    const auto record = static_cast<std::size_t>(rng.below(records.size()));
    const double duration = records[record].outcome.run_time.count();
    workers[w].busy += duration;
    finishes.push({at + duration, w, record});
  };
  const auto send = [&](std::size_t w, double at) {
    remote::MeasureRequest request = compiled.requests[sent % compiled.requests.size()];
    request.number = sent++;
    const double start = processor_seconds();
    workers[w].conversation->send(request, patience);
    const double spent = processor_seconds() - start;
    static_cast<void>(workers[w].other_end->receive(patience));
    host_seconds += spent;
    host_free_at = std::max(host_free_at, at) + spent;
    if (workers[w].queued++ == 0) begin_kernel(w, host_free_at);
  };
  for (std::size_t round = 0; round <= ahead; ++round) {
    for (std::size_t w = 0; w < worker_count; ++w) send(w, 0);
  }
  while (received < results) {
    const Finish finish = finishes.top();
    finishes.pop();
    Worker& worker = workers[finish.worker];
    now = finish.at;
    if (--worker.queued > 0) begin_kernel(finish.worker, now);
    worker.other_end->send(remote::FrameKind::Result,
                           remote::to_bytes(remote::MeasureResult{received, records[finish.record].outcome}));
    Record record = records[finish.record];
    waited += std::max(0.0, host_free_at - now);
    const double start = processor_seconds();
    record.outcome = worker.conversation->receive(patience).outcome;
    journal.append(std::move(record));
    const double spent = processor_seconds() - start;
    host_seconds += spent;
    host_free_at = std::max(host_free_at, now) + spent;
    ++received;
    send(finish.worker, now);
  }
  double busy = 0;
  for (const Worker& worker : workers) busy += worker.busy;
  const double rate = static_cast<double>(received) / now;
  std::printf("%zu workers: %.0f results a second, workers busy %.1f %% of the time\n", worker_count, rate,
              100 * std::min(1.0, busy / (now * static_cast<double>(worker_count))));
  std::printf("host: %.1f us of a processor a result, %.3f of one core; a result waits %.0f us for it on average\n",
              1e6 * host_seconds / static_cast<double>(received), host_seconds / now,
              1e6 * waited / static_cast<double>(received));
  std::printf("compiling, not in this: %.2f ms each, %.1f processors to keep up\n", 1e3 * compiled.seconds_each,
              rate * compiled.seconds_each);
}

}  // namespace

int main(int argc, char** argv) {
  if (bench::printed_usage(argc, argv, usage)) return 0;
  std::size_t workers = 1000, results = 100'000, ahead = 3;
  std::string journal;
  const auto read = [&](std::string_view option, std::string_view value) {
    if (option == "--workers=")
      workers = bench::parse_number(value, "workers", 1);
    else if (option == "--results=")
      results = bench::parse_number(value, "results", 1);
    else if (option == "--ahead=")
      ahead = bench::parse_number(value, "ahead", 0);
    else if (option == "--journal=")
      journal = value;
    else
      return false;
    return true;
  };
  if (!bench::read_options("bench_manager_load", argc, argv, read)) return 2;
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("bench-manager-load-" + std::to_string(::getpid()))).string();
  try {
    std::filesystem::create_directory(folder);
    if (journal.empty()) measure_some(journal = folder + "/measured.jsonl");
    std::vector<Record> records = data::read_journal(journal).records;
    std::erase_if(records, [](const Record& record) { return record.outcome.run_time <= Seconds(0); });
    if (records.empty()) throw std::runtime_error("no records with a run time in '" + journal + "'");
    std::vector<double> times;
    double sum = 0;
    for (const Record& record : records) {
      times.push_back(record.outcome.run_time.count());
      sum += times.back();
    }
    std::ranges::sort(times);
    const Compiled compiled = compile_some();
    std::printf("%zu latencies of '%s': min %.4f s, median %.4f s, mean %.4f s, 90 %% %.4f s, max %.4f s\n",
                times.size(), journal.c_str(), times.front(), times[times.size() / 2],
                sum / static_cast<double>(times.size()), times[times.size() * 9 / 10], times.back());
    std::printf("%zu kernels of %.1f KiB of object code, %zu ahead\n", compiled.requests.size(),
                compiled.bytes_each / 1024, ahead);
    simulate(workers, results, ahead, records, compiled, folder + "/written.jsonl");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_manager_load: %s\n", error.what());
    std::filesystem::remove_all(folder);
    return 1;
  }
  std::filesystem::remove_all(folder);
}
