// SPDX-License-Identifier: Apache-2.0
//
// Tuned kernels against cuBLAS, cuBLASLt and cuDNN on an NVIDIA GPU, both in one run. --help lists the options.
//
// Each kernel is tuned, or taken from the journal as far as that goes; each recipe needs a journal of its own. Of the
// seconds for all kernels each gets its share of what is left, but 15 at least; with less left, none is begun.
//
// A finished kernel is a line of the results at once: seconds, gflops, ratio (library time / ours, above 1 is faster),
// trials, failed ones by fault, trials_per_s. Kernels that the results already hold with a ratio and as many trials, or
// as long a search by --seconds_per_kernel, are not run again, so a run that was stopped goes on when it is started
// again; those that lack only the ratio come last.
// What was measured, and for how long, is counted over all runs. The summary is the whole: geometric means of the
// ratios by operator, trials per second, what failed.
//
// Ends with 0 when all is done, 75 when time ran out before, 77 when there is no device, 1 when a kernel failed.
//
// NVIDIA's libraries need not be there: without them ratios are missing and it is said why.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_library_kernels.hpp"
#include "shapes.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/core/write_file.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/nvrtc.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/tuner.hpp"
#include "tuning_options.hpp"
#include "usage.hpp"

namespace {

using namespace tunewright;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

enum ExitStatus { done = 0, failed = 1, out_of_time = 75, no_device = 77 };

constexpr const char* usage = R"(usage: bench_gpu_kernels [options]

Tunes kernels for an NVIDIA GPU and compares them with cuBLAS, cuBLASLt and cuDNN.

  --cases=PREFIX,..       only kernels whose names begin so, e.g. --cases=conv2d
  --list                  only names the kernels
  --recipe=NAME           draft_and_trees, ansor, or random for a small data set (draft_and_trees)
  --seconds=N             for all kernels together (no limit)
  --results=FILE          a line for each kernel; those that it holds are not run again
  --summary=FILE          what is found of all kernels, as one JSON object
)";
constexpr std::array<std::string_view, 4> option_names{"journal", "trials", "seconds_per_kernel", "seed"};

struct Options {
  bench::TuningOptions tuning;
  std::vector<std::string> cases;  ///< prefixes of names; none: all
  std::string results, summary;    ///< files, empty for none
  double seconds = std::numeric_limits<double>::infinity();
  std::string recipe = "draft_and_trees";
  bool list = false;
};

/// Throws `std::invalid_argument` for what is no option.
Options take_options(int argc, char** argv) {
  Options options;
  options.tuning = bench::take_tuning_options(argc, argv, option_names);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = word.substr(std::min(word.find('=') + 1, word.size()));
    const auto is = [&](std::string_view name) { return word.rfind(name, 0) == 0; };
    if (is("--cases=")) {
      for (std::size_t at = 0; at <= value.size();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        options.cases.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    } else if (is("--results=")) {
      options.results = value;
    } else if (is("--summary=")) {
      options.summary = value;
    } else if (is("--seconds=")) {
      options.seconds = static_cast<double>(bench::parse_trials(value));
    } else if (is("--recipe=")) {
      options.recipe = value;
    } else if (word == "--list") {
      options.list = true;
    } else {
      throw std::invalid_argument("'" + word + "' is no option; see --help");
    }
  }
  return options;
}

/// A library, made when it is needed: making it takes device memory.
struct Library {
  std::string name;
  std::function<bench::TimedWork(const bench::GpuDevice&)> make;
};
struct Case {
  std::string name;
  std::shared_ptr<const program::ComputeGraph> graph;
  std::vector<Library> libraries;

  [[nodiscard]] std::string family() const { return name.substr(0, name.find('/')); }
};

void add_product_libraries([[maybe_unused]] Case& c, [[maybe_unused]] const bench::Product& p,
                           [[maybe_unused]] program::ScalarType type) {
#ifdef TUNEWRIGHT_BENCH_HAS_CUBLAS
  c.libraries.push_back({"cuBLAS", [=](const auto& device) { return cublas_product(device, p, type); }});
  if (p.batch == 1)
    c.libraries.push_back({"cuBLASLt", [=](const auto& device) { return cublas_lt_product(device, p, type); }});
#endif
}

Case product_case(const bench::Product& p) {
  const std::string extents = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  Case c{p.batch > 1 ? "batch_matmul/" + std::to_string(p.batch) + "x" + extents : "matmul/" + extents,
         bench::product_graph(p),
         {}};
  add_product_libraries(c, p, program::ScalarType::Float32);
  return c;
}

/// 16-bit floats in and out, sums of 32 bits between: what tensor units are for.
Case half_product_case(const bench::Product& p) {
  auto graph = std::make_shared<program::ComputeGraph>();
  using program::ScalarType;
  const auto a = graph->input("A", {p.m, p.k}, ScalarType::Float16);
  const auto b = graph->input("B", {p.k, p.n}, ScalarType::Float16);
  const auto sums = program::operators::matmul(*graph, a, b);
  program::operators::cast(*graph, sums, ScalarType::Float16);
  Case c{"matmul_fp16/" + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k), graph, {}};
  add_product_libraries(c, p, ScalarType::Float16);
  return c;
}

Case convolution_case(const bench::ConvolutionShape& s) {
  Case c{bench::name_of(s), bench::convolution_graph(s), {}};
#ifdef TUNEWRIGHT_BENCH_HAS_CUDNN
  for (const auto& [name, layout] :
       {std::pair("cuDNN, NCHW", CUDNN_TENSOR_NCHW), std::pair("cuDNN, NHWC", CUDNN_TENSOR_NHWC)}) {
    c.libraries.push_back({name, [s, in = layout](const auto& device) { return cudnn_convolution(device, s, in); }});
  }
#endif
  return c;
}

std::vector<Case> chosen_cases(const Options& options) {
  std::vector<Case> all, chosen;
  for (const std::int64_t size : {1024, 2048, 4096}) all.push_back(product_case({1, size, size, size}));
  all.push_back(product_case({1, 128, 3072, 768}));
  all.push_back(product_case({12, 128, 64, 128}));
  all.push_back(half_product_case({1, 1024, 1024, 1024}));
  all.push_back(half_product_case({1, 4096, 4096, 4096}));
  for (const bench::ConvolutionShape& s : bench::resnet50_convolutions()) all.push_back(convolution_case(s));
  for (Case& c : all) {
    if (options.cases.empty() || std::any_of(options.cases.begin(), options.cases.end(),
                                             [&](const std::string& prefix) { return c.name.rfind(prefix, 0) == 0; }))
      chosen.push_back(std::move(c));
  }
  if (chosen.empty()) throw std::invalid_argument("no case has a name that begins so; --list names them");
  return chosen;
}

constexpr const char* remedy = "create the folder, or name another file";

/// A line's seconds of `--seconds_per_kernel` where these ended a search, and not the share of `--seconds`.
constexpr const char* own_limit = "seconds_per_kernel";

/// Lines of earlier runs and of this one, the last of each kernel.
class Results {
 public:
  /// Throws `std::runtime_error` for a file that cannot be written.
  Results(std::string path, std::string identity) : path_(std::move(path)), identity_(std::move(identity)) {
    append("");
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      // A line cut short by the end of its writer is none.
      const Json entry = Json::parse(line, nullptr, false);
      if (entry.is_object() && entry.value("identity", "") == identity_) lines_[entry.value("case", "")] = entry;
    }
  }

  /// Whether so many trials have been made, or as many as fit into `--seconds_per_kernel`.
  [[nodiscard]] bool tuned(const Case& c, const bench::TuningOptions& wanted) const {
    const Json* line = of(c.name);
    if (line == nullptr || line->contains("error") || line->value("wanted_trials", std::size_t{0}) < wanted.trials)
      return false;
    if (line->value("stopped", "") != tunewright::name(Stop::Time)) return true;
    return wanted.seconds_per_kernel && line->value(own_limit, 0.0) >= wanted.seconds_per_kernel->count();
  }
  /// Whether there is a ratio, or no library to compare with. Libraries that were absent may be there in a later run.
  [[nodiscard]] bool compared(const Case& c) const {
    const Json* line = of(c.name);
    return c.libraries.empty() || (line != nullptr && line->contains("ratio"));
  }
  /// `measured` and `tuning_seconds` of `line` are those of one run; what is kept is their sums with earlier runs.
  void add(Json line) {
    const std::string name = line["case"];
    const Json* before = of(name);
    const auto total = [&](const char* key) {
      return line.value(key, 0.0) + (before != nullptr ? before->value(key, 0.0) : 0.0);
    };
    const double measured = total("measured"), seconds = total("tuning_seconds");
    line["measured"] = static_cast<std::size_t>(measured);
    if (seconds > 0) {
      line["tuning_seconds"] = seconds;
      line["trials_per_s"] = measured / seconds;
    }
    line["identity"] = identity_;
    std::cout << line.dump() << std::endl;
    append(line.dump() + '\n');
    lines_[name] = std::move(line);
  }
  [[nodiscard]] const Json* of(const std::string& name) const {
    const auto line = lines_.find(name);
    return line == lines_.end() ? nullptr : &line->second;
  }

 private:
  void append(std::string_view text) const {
    if (path_.empty()) return;
    std::ofstream file(path_, std::ios::app);
    file << text << std::flush;
    if (!file) throw std::runtime_error("cannot write '" + path_ + "'; " + remedy);
  }

  std::string path_, identity_;
  std::map<std::string, Json> lines_;
};

Json summary_of(const Results& results, const std::vector<Case>& cases) {
  struct Family {
    double log_ratios = 0;
    std::size_t compared = 0;
  };
  std::map<std::string, Family> families;
  Json errors = Json::object(), without = Json::object(), missing = Json::array(), ratios = Json::object(),
       means = Json::object();
  std::map<std::string, std::size_t> faults;
  double measured = 0, seconds = 0;
  for (const Case& c : cases) {
    const Json* line = results.of(c.name);
    if (line == nullptr) {
      missing.push_back(c.name);
      continue;
    }
    if (line->contains("error")) errors[c.name] = (*line)["error"];
    if (line->contains("without")) without.update((*line)["without"]);
    if (line->contains("failed")) {
      for (const auto& [fault, count] : (*line)["failed"].items()) faults[fault] += count.get<std::size_t>();
    }
    measured += line->value("measured", 0.0);
    seconds += line->value("tuning_seconds", 0.0);
    if (!line->contains("ratio")) continue;
    const double ratio = (*line)["ratio"];
    ratios[c.name] = ratio;
    Family& family = families[c.family()];
    family.log_ratios += std::log(ratio);
    ++family.compared;
  }
  for (const auto& [name, family] : families) {
    means[name] = {{"geometric_mean", std::exp(family.log_ratios / static_cast<double>(family.compared))},
                   {"kernels", family.compared}};
  }
  Json summary{{"kernels", cases.size()}, {"ratio", means}, {"ratios", ratios}};
  if (seconds > 0) summary["trials_per_s"] = measured / seconds;
  summary["failed_trials"] = faults;
  summary["not_run"] = missing;
  summary["without"] = without;
  summary["errors"] = errors;
  return summary;
}

template <class AnyTuner>
auto tune(AnyTuner& tuner, const Task& task, const Options& options, double seconds) {
  const Budget budget{.trials = options.tuning.trials,
                      .batch = 32,  // compiled at once by as many processors as a machine with a GPU has, or half
                      .time = std::min(Seconds(seconds), options.tuning.seconds_per_kernel.value_or(Budget{}.time))};
  if (!options.tuning.journal) return tuner.run(task, budget, Progress{});
  data::Journal journal{{.path = *options.tuning.journal, .many_tasks = true}};
  return tuner.run(task, budget, journal, Progress{});
}

/// The libraries that run here; why others do not goes into `line`.
std::vector<bench::TimedWork> libraries_of(const Case& c, std::unique_ptr<bench::GpuDevice>& device, Json& line) {
  std::vector<bench::TimedWork> libraries;
  for (const Library& library : c.libraries) {
    try {
      if (!device) device = std::make_unique<bench::GpuDevice>();
      libraries.push_back(library.make(*device));
    } catch (const std::exception& error) {
      line["without"][library.name] = error.what();
    }
  }
  return libraries;
}

/// The fastest of `nests` that runs, in turns with the others. Throws `std::runtime_error` when none does.
loops::LoopNest winner_of(measurers::Nvrtc& measurer, const Task& task, const std::vector<loops::LoopNest>& nests) {
  const std::vector<Outcome> heats = measurer.confirm(task, nests);
  const loops::LoopNest* winner = nullptr;
  double best_s = 0;
  std::string failure = "there is none";
  for (std::size_t i = 0; i < heats.size(); ++i) {
    if (!heats[i].valid()) {
      failure = heats[i].failure()->detail;
    } else if (winner == nullptr || cost_s(heats[i]) < best_s) {
      winner = &nests[i];
      best_s = cost_s(heats[i]);
    }
  }
  if (winner == nullptr) throw std::runtime_error("no tuned kernel runs: " + failure);
  return *winner;
}

/// Our best and the libraries in turns, three times: clocks that drift meet both. What decided which is our best does
/// not count, so that luck helps nobody.
void compare(measurers::Nvrtc& measurer, const Task& task, const Case& c, const std::vector<schedule::Schedule>& best,
             std::unique_ptr<bench::GpuDevice>& device, Json& line) {
  std::vector<loops::LoopNest> nests;
  for (const schedule::Schedule& schedule : best) nests.push_back(loops::lower(schedule));
  const std::vector<loops::LoopNest> ours{winner_of(measurer, task, nests)};
  std::vector<bench::TimedWork> libraries = libraries_of(c, device, line);
  std::vector<double> our_s, their_s, ratios;
  std::string fastest;
  for (int block = 0; block < 3; ++block) {
    const Outcome own = measurer.confirm(task, ours).front();
    if (!own.valid()) throw std::runtime_error("the tuned kernel fails: " + own.failure()->detail);
    our_s.push_back(cost_s(own));
    double library_s = 0;
    for (auto at = libraries.begin(); at != libraries.end();) {
      try {
        const double s = at->median_seconds(*device, 11);
        if (library_s == 0 || s < library_s) {
          library_s = s;
          fastest = at->name;
        }
        ++at;
      } catch (const std::exception& error) {
        line["without"][at->name] = error.what();
        at = libraries.erase(at);
      }
    }
    if (library_s == 0) continue;
    their_s.push_back(library_s);
    ratios.push_back(library_s / our_s.back());
  }
  const double tuned_s = stats::median(our_s);
  line["seconds"] = tuned_s;
  line["gflops"] = task.flops / tuned_s * 1e-9;
  if (ratios.empty()) return;
  line["library"] = fastest;
  line["library_seconds"] = stats::median(their_s);
  line["library_gflops"] = task.flops / stats::median(their_s) * 1e-9;
  line["ratio"] = stats::median(ratios);
}

template <class AnyTuner>
Json tuned_and_compared(const Case& c, const Options& options, double seconds, AnyTuner& tuner,
                        std::unique_ptr<bench::GpuDevice>& device) {
  Json line{{"case", c.name}, {"recipe", options.recipe}};
  try {
    measurers::Nvrtc& measurer = tuner.parts().measurer;
    const Task task = program::make_task(c.name, c.graph, measurer.target());
    const auto run = tune(tuner, task, options, seconds);
    const std::size_t measured = run.status.trials - run.status.recalled;
    line["wanted_trials"] = options.tuning.trials;
    line["trials"] = run.status.trials;
    line["measured"] = measured;
    line["stopped"] = name(run.stop);
    const double own_seconds = options.tuning.seconds_per_kernel.value_or(Budget{}.time).count();
    if (run.stop == Stop::Time && own_seconds <= seconds) line[own_limit] = own_seconds;
    Json faults = Json::object();
    for (std::size_t f = 0; f < run.status.faults.size(); ++f) {
      if (run.status.faults[f] != 0) faults[std::string(fault_names[f])] = run.status.faults[f];
    }
    line["failed"] = faults;
    // To read a journal is no tuning.
    if (measured > 0) line["tuning_seconds"] = run.status.elapsed.count();
    compare(measurer, task, c, run.history.fastest(4), device, line);
  } catch (const std::exception& error) {
    line["error"] = error.what();
  }
  return line;
}

template <class AnyTuner>
ExitStatus run_all(AnyTuner& tuner, const Options& options) {
  const auto start = Clock::now();
  measurers::Nvrtc& measurer = tuner.parts().measurer;
  if (const std::string why = measurer.why_unavailable(); !why.empty()) {
    std::cerr << "skipped: no device: " << why << '\n';
    return no_device;
  }
  const std::vector<Case> cases = chosen_cases(options);
  Results results(options.results, options.recipe + ", " + measurer.identity());
  std::unique_ptr<bench::GpuDevice> device;  // of the libraries
  bool time_ran_out = false;
  const auto untrained = tuner.parts().model;
  std::vector<const Case*> open, only_compared;
  for (const Case& c : cases) {
    if (!results.tuned(c, options.tuning))
      open.push_back(&c);
    else if (!results.compared(c))
      only_compared.push_back(&c);
  }
  // Where libraries are absent these stay open for good, and must keep no time from the others.
  open.insert(open.end(), only_compared.begin(), only_compared.end());
  std::cerr << cases.size() << " kernels, " << cases.size() - open.size() << " of them done already, on "
            << measurer.identity() << std::endl;
  const auto write_summary = [&] {
    Json summary = summary_of(results, cases);
    if (!options.summary.empty())
      write_file(options.summary, remedy, [&](std::ostream& out) { out << summary.dump(2) << '\n'; });
    return summary;
  };
  write_summary();  // which tells before the first kernel that the file cannot be written
  for (std::size_t i = 0; i < open.size(); ++i) {
    const double left = options.seconds - std::chrono::duration<double>(Clock::now() - start).count();
    constexpr double comparison_s = 5;  // about what it takes, and the task's data with it
    constexpr double least_s = 10;      // enough for a round of trials, so that every run comes further
    if (left < comparison_s + least_s) {
      time_ran_out = true;
      break;
    }
    const double share = std::max(left / static_cast<double>(open.size() - i) - comparison_s, least_s);
    // Each kernel is tuned on its own, whatever ran before it.
    tuner.parts().training = {};
    tuner.parts().model = untrained;
    Json line = tuned_and_compared(*open[i], options, share, tuner, device);
    if (line.value("stopped", "") == name(Stop::Time) && !line.contains(own_limit)) time_ran_out = true;
    results.add(std::move(line));
    write_summary();  // in case the rest is cut short
  }
  const Json summary = write_summary();
  std::cout << summary.dump(2) << std::endl;
  if (!summary["errors"].empty()) return failed;
  return time_ran_out ? out_of_time : done;
}

}  // namespace

int main(int argc, char** argv) try {
  if (bench::printed_usage(argc, argv, usage + bench::usage_of(option_names))) return done;
  const Options options = take_options(argc, argv);
  if (options.list) {
    for (const Case& c : chosen_cases(options)) std::cout << c.name << '\n';
    return 0;
  }
  using Space = spaces::MultiLevelTiling;
  using measurers::Nvrtc;
  if (options.recipe == "draft_and_trees") {
    Tuner<recipes::DraftAndTrees<Space, Nvrtc>> tuner{{.seed = options.tuning.seed, .threads = hardware_threads()}};
    return run_all(tuner, options);
  }
  if (options.recipe == "ansor") {
    Tuner<recipes::AnsorQuick<Space, Nvrtc>> tuner{{.model = {.objective = models::gbdt::Objective::RankPairwise},
                                                    .seed = options.tuning.seed,
                                                    .threads = hardware_threads()}};
    return run_all(tuner, options);
  }
  if (options.recipe == "random") {
    Tuner<recipes::Random<Space, Nvrtc>> tuner{{.seed = options.tuning.seed, .threads = hardware_threads()}};
    return run_all(tuner, options);
  }
  throw std::invalid_argument("'" + options.recipe + "' is no recipe; there are draft_and_trees, ansor and random");
} catch (const std::exception& error) {
  std::cerr << "bench_gpu_kernels: " << error.what() << '\n';
  return 1;
}
