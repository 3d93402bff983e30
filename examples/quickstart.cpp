// SPDX-License-Identifier: Apache-2.0
//
// Tunes five kernels on this machine and compares them with plain loops and with the libraries people use.
//
//   bash examples/quickstart.sh                      sets everything up and runs this
//   quickstart --output FOLDER --trials N            leaves a journal, a plot and exported kernels in FOLDER
//
// With the same folder, a later run resumes from its journal.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "../bench/tune_kernel.hpp"
#include "../bench/tuning_options.hpp"
#include "tunewright/codegen/export.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/study/plots/figure.hpp"

namespace {

using namespace tunewright;

struct Options {
  std::filesystem::path output = "quickstart-output";
  std::size_t trials = 320;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") {
      std::cout << "usage: quickstart [--output FOLDER] [--trials N]\n";
      std::exit(0);
    }
    if (i + 1 == argc || (argument != "--output" && argument != "--trials")) {
      throw std::invalid_argument("'" + argument + "' is not an option with a value; see --help");
    }
    const std::string value = argv[++i];
    if (argument == "--output")
      options.output = value;
    else
      options.trials = bench::parse_trials(value);
  }
  return options;
}

/// Observer that stores the best latency over time, for the plot.
struct Curve {
  std::vector<std::pair<double, double>> points = {};  ///< seconds, best latency so far
  double final_ratio = 0;  ///< final speed over the best library's, measured alternately; 0: no library
  void on_record(const Record&, const RunStatus& status) {
    if (status.best) points.emplace_back(status.elapsed.count(), status.best->count());
  }
};

/// Plots the speed of the best so far over that of the best library: the ratio measured alternately at the end, scaled
/// for earlier points by the search's own latencies.
void write_plot(const std::filesystem::path& folder, const std::map<std::string, Curve>& curves) {
  study::Figure figure("best_so_far");
  std::string plot = "plot ";
  for (const auto& [name, curve] : curves) {
    if (curve.points.empty() || curve.final_ratio <= 0) continue;
    std::vector<std::vector<double>> rows;
    for (const auto& [seconds, best] : curve.points)
      rows.push_back({seconds, curve.final_ratio * curve.points.back().second / best});
    plot += figure.add_data(rows) + " with steps linewidth 2 title " + study::Figure::quoted(name) + " noenhanced, ";
  }
  if (plot == "plot ") return;
  figure.command(
      "set xlabel 'seconds'\nset ylabel 'speed of the best so far, times the best library'\nset logscale y 2\n"
      "set key outside\n" +
      plot + "1 with lines linewidth 2 linecolor 'black' title 'best library'");
  const std::vector<std::filesystem::path> scripts{figure.write(folder)};
  if (study::draw(scripts).empty())
    std::cerr << "no plot: gnuplot is missing or failed; its script is in " << folder << '\n';
}

std::string milliseconds(std::optional<double> seconds) {
  if (!seconds) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", *seconds * 1e3);
  return text;
}

std::string faults(const RunStatus& status) {
  std::string text;
  for (std::size_t f = 0; f < status.faults.size(); ++f) {
    if (status.faults[f] != 0)
      text += (text.empty() ? "" : ", ") + std::to_string(status.faults[f]) + " " + std::string(fault_names[f]);
  }
  return text.empty() ? "none" : text;
}

/// Tunes one kernel, compares it with the libraries, exports it, and returns its row of the table. Throws
/// `std::runtime_error` if ours or a library's does not run to its end.
std::string row_of(const bench::KernelCase& kernel_case, const Target& target, const Options& options,
                   bench::KernelTuner& tuner, data::Journal& journal, Curve& curve, Interrupt& interrupt) {
  const Task task = program::make_task(kernel_case.name, kernel_case.graph, target);
  measurers::OrcJit& measurer = tuner.parts().measurer;
  const Outcome naive = measurer.measure_kernel(
      task, measurer.compile_kernel(task, loops::lower(schedule::Schedule{kernel_case.graph, {}})));
  const bench::KernelRun found = tuner.run(task, {.trials = options.trials}, journal, curve, Progress{}, interrupt);
  const std::vector<schedule::Schedule> best = bench::finalists(tuner, task, found);
  if (best.empty()) throw std::runtime_error("no program of '" + task.name + "' ran; faults: " + faults(found.status));
  const bench::Comparison result = bench::compare(measurer, task, kernel_case, best);
  curve.final_ratio = result.ratio.value_or(0);
  codegen::export_kernel(measurer.compile_kernel(task, loops::lower(best[0])), kernel_case.name,
                         options.output / "kernels");

  const auto gflops = [&](double seconds) { return task.flops / seconds * 1e-9; };
  char row[400];
  std::snprintf(row, sizeof row, "%-28s %10s %10s %-8s %9s %6.2fx %8.1f %6.1f%% %7zu %7.1f  %s\n",
                kernel_case.name.c_str(),
                milliseconds(naive.valid() ? std::optional(naive.timing()->median.count()) : std::nullopt).c_str(),
                milliseconds(result.library_s).c_str(), result.library.c_str(), milliseconds(result.tuned_s).c_str(),
                result.ratio.value_or(0), gflops(result.tuned_s), 100 * task.flops / result.tuned_s / result.peak,
                found.status.trials, found.status.elapsed.count(), faults(found.status).c_str());
  for (const auto& [library, fault] : result.library_faults) std::cerr << library << ": " << fault << '\n';
  return row;
}

int run(const Options& options) {
  const Target target = host_target();
  const auto unrestricted = bench::InstructionSet::Native;
  const bench::Peers peers(target, unrestricted, {}, "");  // before the measurer, see library_kernels.hpp
  const std::vector<bench::KernelCase> cases = bench::quickstart_cases(peers);
  std::filesystem::create_directories(options.output);
  bench::KernelTuner tuner = bench::kernel_tuner(1, target.threads);
  data::Journal journal{{.path = (options.output / "journal.jsonl").string(), .many_tasks = true}};
  Interrupt interrupt;
  std::map<std::string, Curve> curves;

  std::printf("%s, %u threads, %s\n\n", target.name.c_str(), target.threads, std::string(name(target.isa)).c_str());
  for (const bench::RestrictionReport& library : peers.reports()) {
    std::printf("compared with %s %s%s\n", library.library.c_str(), library.version.c_str(),
                library.fault.empty() ? "" : (": NOT, it " + library.fault).c_str());
  }
  std::string table;
  bool all_compared = true;
  for (const bench::KernelCase& kernel_case : cases) {
    try {
      table += row_of(kernel_case, target, options, tuner, journal, curves[kernel_case.name], interrupt);
    } catch (const std::runtime_error& error) {  // the other kernels are compared all the same
      std::cerr << kernel_case.name << ": " << error.what() << '\n';
      all_compared = false;
    }
    if (interrupt.should_stop()) break;
  }
  write_plot(options.output, curves);
  std::printf("\n%-28s %10s %10s %-8s %9s %7s %8s %7s %7s %7s  %s\n%s", "kernel", "naive ms", "library ms", "",
              "tuned ms", "faster", "GFLOP/s", "of peak", "trials", "seconds", "faults", table.c_str());
  std::printf("\njournal, plot (best_so_far.svg) and kernels (objects with C headers): %s\n", options.output.c_str());
  if (interrupt.should_stop()) return 130;
  return all_compared ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "quickstart: " << error.what() << '\n';
    return 1;
  }
}
