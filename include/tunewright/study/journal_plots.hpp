// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tunewright/data/journal_report.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/study/plots/figure.hpp"
#include "tunewright/study/plots/plot_options.hpp"

namespace tunewright::study {

/// The plots that were written, and the reasons for missing ones.
struct JournalPlots {
  std::vector<std::filesystem::path> scripts{};  ///< gnuplot scripts, for `draw`
  std::vector<std::string> remarks{};            ///< data that a journal lacks for a plot, as messages
  data::JournalReport report{};                  ///< skipped lines
};

/// Writes plots of each task in the journals to `folder`, which is created, as gnuplot scripts:
///
///   [task].best_so_far        speed of the fastest program, against trials and seconds; a line per journal and seed
///   [task].model_accuracy     pairwise accuracy of the predictions for a batch before it was measured; rounds are
///                             joined to batches of 16 programs or more
///   [task].explored_space     candidates by the two principal components of their features, coloured by speed
///   [task].time_split         seconds of choosing, compiling, measuring and learning, summed over trials
///   [task].roofline           speed of candidates over operations per byte, under the roofline of the machine
///
/// A plot without sufficient data is omitted, with a remark: there is no accuracy without a model, and no roof on a CPU
/// unless its peaks are given. Speed is in 10^9 operations per second, or runs per second if the task has no operation
/// count. Seconds count from a search's first record and include pauses between two runs. Compiling and measuring are
/// summed over threads. Learning after the last record of a run is not recorded.
///
/// Errors: `std::invalid_argument` for no journals and for a line or peak that is not positive and finite,
///         `std::runtime_error` as `data::measured_tasks`, if no record remains, and if nothing can be written.
/// Cost:   that of `described_candidates` and `principal_components`.
[[nodiscard]] JournalPlots plot_journals(std::span<const std::string> journals, const std::filesystem::path& folder,
                                         const PlotOptions& options = {});

/// The command: `tunewright-plot [--out=DIR] [--line=NAME:MS]... [--peak=GFLOPS] [--bandwidth=GB/S] JOURNAL...`. Draws
/// with gnuplot, lists the plots on stdout, reports skipped lines on stderr, and returns 0; 1 if nothing could be
/// drawn, 2 for an invalid command line.
int plot_command(int argc, const char* const* argv);

}  // namespace tunewright::study

#if TUNEWRIGHT_DEFINES(plots)

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string_view>

#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/data/measured_tasks.hpp"
#include "tunewright/study/plots/task_figures.hpp"

namespace tunewright::study::journal_plots_detail {

inline void check(double value, const std::string& what) {
  if (value > 0 && std::isfinite(value)) return;
  throw std::invalid_argument("plot_journals: " + what + " is " + number_text(value) +
                              "; give a finite number above 0");
}

/// The value of `--name=value`; empty for another argument.
inline bool option(std::string_view argument, std::string_view name, std::string_view& value) {
  if (!argument.starts_with(name)) return false;
  value = argument.substr(name.size());
  return true;
}

inline double number(std::string_view text, std::string_view argument) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value > 0 && std::isfinite(value)) return value;
  throw std::invalid_argument("'" + std::string(argument) + "': '" + std::string(text) +
                              "' is no finite number above 0");
}

struct Command {
  std::vector<std::string> journals;
  std::filesystem::path out = "plots";
  PlotOptions options;
};

inline Command parse(std::span<const char* const> arguments) {
  Command command;
  for (const std::string_view argument : arguments) {
    std::string_view value;
    if (option(argument, "--out=", value)) {
      command.out = value;
    } else if (option(argument, "--peak=", value)) {
      command.options.peak_gflops = number(value, argument);
    } else if (option(argument, "--bandwidth=", value)) {
      command.options.peak_gb_per_s = number(value, argument);
    } else if (option(argument, "--line=", value)) {
      const std::size_t colon = value.rfind(':');
      if (colon == std::string_view::npos || colon == 0)
        throw std::invalid_argument("'" + std::string(argument) + "' is no line; write --line=NAME:MILLISECONDS");
      command.options.lines.push_back(
          {std::string(value.substr(0, colon)), 1e-3 * number(value.substr(colon + 1), argument)});
    } else if (argument.starts_with("-")) {
      throw std::invalid_argument("'" + std::string(argument) + "' is not an option");
    } else {
      command.journals.emplace_back(argument);
    }
  }
  if (command.journals.empty()) throw std::invalid_argument("no journal is named");
  return command;
}

}  // namespace tunewright::study::journal_plots_detail

namespace tunewright::study {

TUNEWRIGHT_INLINE JournalPlots plot_journals(std::span<const std::string> journals, const std::filesystem::path& folder,
                                             const PlotOptions& options) {
  if (journals.empty())
    throw std::invalid_argument("plot_journals: no journals were named; give the files of some runs");
  for (const ReferenceLine& line : options.lines) journal_plots_detail::check(line.seconds, "line '" + line.name + "'");
  if (options.peak_gflops != 0) journal_plots_detail::check(options.peak_gflops, "peak_gflops");
  if (options.peak_gb_per_s != 0) journal_plots_detail::check(options.peak_gb_per_s, "peak_gb_per_s");
  if (options.max_points == 0)
    throw std::invalid_argument("plot_journals: max_points is 0; allow a picture 1 point or more");
  JournalPlots plots;
  const std::vector<data::MeasuredTask> tasks = data::measured_tasks(journals, {}, plots.report);
  if (tasks.empty()) {
    throw std::runtime_error("plot_journals: no record is left to draw (" + summary(plots.report) +
                             "); give journals that describe their tasks");
  }
  make_folder(folder);
  std::set<std::string> taken;
  for (const data::MeasuredTask& task : tasks) {
    std::string name = file_name(task.task.name);
    for (int another = 2; !taken.insert(name).second; ++another)
      name = file_name(task.task.name) + '-' + std::to_string(another);
    TaskFigures figures(name, task, journals, options);
    for (const Figure& figure : figures.draw()) plots.scripts.push_back(figure.write(folder));
    for (const std::string& remark : figures.remarks()) plots.remarks.push_back(task.task.name + ": " + remark);
  }
  return plots;
}

TUNEWRIGHT_INLINE int plot_command(int argc, const char* const* argv) {
  constexpr std::string_view usage =
      "usage: tunewright-plot [--out=DIR] [--line=NAME:MS]... [--peak=GFLOPS] [--bandwidth=GB/S] JOURNAL...\n";
  const std::span<const char* const> arguments(argv + std::min(argc, 1),
                                               static_cast<std::size_t>(std::max(argc - 1, 0)));
  if (arguments.size() == 1 && std::string_view(arguments[0]) == "--help") {
    std::cout << usage;
    return 0;
  }
  journal_plots_detail::Command command;
  try {
    command = journal_plots_detail::parse(arguments);
  } catch (const std::invalid_argument& error) {
    std::cerr << "tunewright-plot: " << error.what() << '\n' << usage;
    return 2;
  }
  try {
    const JournalPlots plots = plot_journals(command.journals, command.out, command.options);
    if (plots.report.skipped() > 0) std::cerr << "tunewright-plot: " << summary(plots.report) << '\n';
    for (const std::string& remark : plots.remarks) std::cerr << "tunewright-plot: " << remark << '\n';
    const auto pictures = draw(plots.scripts);
    if (pictures.empty()) {
      std::cerr << "tunewright-plot: no picture, gnuplot is missing or failed; its scripts are in " << command.out
                << '\n';
      return 1;
    }
    for (const std::filesystem::path& picture : pictures) std::cout << picture.string() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "tunewright-plot: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace tunewright::study

#endif
