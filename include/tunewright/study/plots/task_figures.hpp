// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/data/measured_tasks.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/plots/described_candidates.hpp"
#include "tunewright/study/plots/figure.hpp"
#include "tunewright/study/plots/plot_options.hpp"
#include "tunewright/study/plots/principal_components.hpp"

namespace tunewright::study {

/// The plots of one task; see `plot_journals`.
class TaskFigures {
 public:
  TaskFigures(std::string name, const data::MeasuredTask& measured, std::span<const std::string> files,
              const PlotOptions& options)
      : name_(std::move(name)), measured_(measured), options_(options) {
    for (std::size_t i = 0; i < measured.records.size(); ++i) {
      const Record& record = measured.records[i];
      const std::string file = std::filesystem::path(files[measured.lines[i].file]).filename().string();
      searches_[{measured.lines[i].file, record.seed}].records.push_back(&record);
      searches_[{measured.lines[i].file, record.seed}].name = file + ", seed " + std::to_string(record.seed);
      if (record.outcome.valid()) best_s_ = std::min(best_s_, cost_s(record.outcome));
    }
  }

  [[nodiscard]] std::vector<Figure> draw() {
    std::vector<Figure> figures;
    const auto add = [&](std::optional<Figure> figure) {
      if (figure) figures.push_back(*std::move(figure));
    };
    if (best_s_ == Course::infinity) {
      remarks_.push_back("no program ran, so there is only the time that it took");
      add(time_split());
      return figures;
    }
    add(best_so_far());
    add(model_accuracy());
    add(time_split());
    const DescribedCandidates candidates = described_candidates(measured_.task, thinned());
    if (candidates.left_out > 0)
      remarks_.push_back(std::to_string(candidates.left_out) + " candidates could not be described");
    add(explored_space(candidates));
    add(roofline(candidates));
    return figures;
  }

  [[nodiscard]] const std::vector<std::string>& remarks() const noexcept { return remarks_; }

 private:
  struct Search {
    std::string name;
    std::vector<const Record*> records;  // in the order of the file
  };
  using Rows = std::vector<std::vector<double>>;

  [[nodiscard]] double speed(double seconds) const {
    return measured_.task.flops > 0 ? measured_.task.flops / seconds * 1e-9 : 1 / seconds;
  }
  [[nodiscard]] const char* speed_label() const { return measured_.task.flops > 0 ? "GFLOP/s" : "runs a second"; }

  [[nodiscard]] Figure figure(const char* kind, const char* what, unsigned height = 540) const {
    Figure figure(name_ + '.' + kind, 900, height);
    figure.command("set title " +
                   Figure::quoted(measured_.task.name + " on " + measured_.task.target.name + ": " + what) +
                   " noenhanced\nset grid back linetype 1 linecolor rgb '#dddddd'");
    return figure;
  }

  static std::string digits(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }

  /// The command that draws them into one plot.
  static std::string plot_of(const std::vector<std::string>& curves) {
    std::string plot;
    for (const std::string& curve : curves) plot += (plot.empty() ? "plot " : ", ") + curve;
    return plot;
  }

  /// Evenly spaced records, at most as many as a plot has points.
  [[nodiscard]] std::vector<Record> thinned() const {
    const std::size_t all = measured_.records.size(), kept = std::min(all, options_.max_points);
    std::vector<Record> records;
    for (std::size_t i = 0; i < kept; ++i) records.push_back(measured_.records[i * all / kept]);
    return records;
  }

  [[nodiscard]] std::optional<Figure> best_so_far() {
    Figure picture = figure("best_so_far", "best so far", 900);
    std::vector<std::string> by_trials, by_seconds;
    bool timed = true;
    for (const auto& [key, search] : searches_) {
      Course course;
      const Seconds begin = search.records.front()->timestamp;
      for (const Record* record : search.records)
        course.add(cost_s(record->outcome), (record->timestamp - begin).count());
      if (course.improvements.empty()) continue;
      timed = timed && begin > Seconds(0);
      Rows rows;
      for (const Improvement& one : course.improvements)
        rows.push_back({static_cast<double>(one.trial), one.elapsed_s, speed(one.best_s)});
      rows.push_back({static_cast<double>(course.trials), course.elapsed_s, speed(course.best_s())});
      const std::string data = picture.add_data(rows);
      const std::string look = " with steps linewidth 2 title " + Figure::quoted(search.name) + " noenhanced";
      by_trials.push_back(data + " using 1:3" + look);
      by_seconds.push_back(data + " using 2:3" + look);
    }
    for (const ReferenceLine& line : options_.lines) {
      const std::string look = digits(speed(line.seconds)) + " with lines dashtype 2 linewidth 2 title " +
                               Figure::quoted(line.name) + " noenhanced";
      by_trials.push_back(look);
      by_seconds.push_back(look);
    }
    picture.command(std::string("set ylabel '") + speed_label() +
                    "'\nset yrange [0:*]\nset offsets 0,0,graph 0.05,0\nset key bottom right");
    if (timed) picture.command("set multiplot layout 2,1");
    picture.command("set xlabel 'trials'\n" + plot_of(by_trials));
    if (timed) {
      picture.command("unset title\nset xlabel 'seconds since the first record'\n" + plot_of(by_seconds) +
                      "\nunset multiplot");
    }
    if (!timed) remarks_.push_back("records have no time, so the best so far is drawn against trials alone");
    return picture;
  }

  [[nodiscard]] std::optional<Figure> model_accuracy() {
    constexpr std::size_t enough = 16;
    Figure picture = figure("model_accuracy", "pairs of a batch that the model ranked right");
    std::string plot = "plot ";
    for (const auto& [key, search] : searches_) {
      std::vector<const Record*> guided;
      for (const Record* record : search.records)
        if (record->predicted) guided.push_back(record);
      std::stable_sort(guided.begin(), guided.end(), [](const Record* a, const Record* b) {
        return std::tie(a->round, a->slot) < std::tie(b->round, b->slot);
      });
      const std::size_t unguided = search.records.size() - guided.size();
      Rows rows;
      std::vector<float> predicted, truth;
      for (std::size_t i = 0; i < guided.size(); ++i) {
        predicted.push_back(*guided[i]->predicted);
        truth.push_back(static_cast<float>(best_s_ / cost_s(guided[i]->outcome)));  // 0 for a failure
        const bool round_ends = i + 1 == guided.size() || guided[i + 1]->round != guided[i]->round;
        if (!round_ends || predicted.size() < enough) continue;
        rows.push_back({static_cast<double>(unguided + i + 1), stats::pairwise_accuracy(predicted, truth)});
        predicted.clear();
        truth.clear();
      }
      if (rows.empty()) continue;
      const std::string data = picture.add_data(rows);
      plot += data + " using 1:2 with linespoints pointtype 7 linewidth 2 title " + Figure::quoted(search.name) +
              " noenhanced, ";
    }
    if (plot == "plot ") {
      remarks_.push_back(
          "no accuracy of the model: fewer than 16 records say what a model expected, as where a recipe has none or a "
          "journal is older than that field");
      return std::nullopt;
    }
    picture.command("set xlabel 'trials'\nset ylabel 'pairwise accuracy'\nset yrange [0:1]\nset key bottom right\n" +
                    plot + "0.5 with lines dashtype 2 linecolor 'gray' title 'a guess'");
    return picture;
  }

  [[nodiscard]] std::optional<Figure> time_split() {
    constexpr std::size_t points = 400;
    double measure = 0, compile = 0, search = 0, learn = 0;
    Rows rows{{0, 0, 0, 0, 0}};
    const std::size_t all = measured_.records.size();
    for (std::size_t i = 0; i < all; ++i) {
      const Record& record = measured_.records[i];
      measure += record.outcome.run_time.count();
      compile += record.outcome.compile_time.count();
      search += record.search_time.count();
      learn += record.learn_time.count();
      if (i + 1 == all || (i + 1) * points / all != i * points / all)
        rows.push_back({static_cast<double>(i + 1), measure, measure + compile, measure + compile + search,
                        measure + compile + search + learn});
    }
    const double sum = measure + compile + search + learn;
    if (sum <= 0) {
      remarks_.push_back("no split of time: the records say of no step how long it took");
      return std::nullopt;
    }
    if (search + learn <= 0)
      remarks_.push_back("the split of time has no search and no learning: the records are older than these fields");
    Figure picture = figure("time_split", "where the time went");
    const std::string data = picture.add_data(rows);
    const auto area = [&](const char* lower, const char* upper, const char* what, double seconds, const char* colour) {
      char title[64];
      std::snprintf(title, sizeof title, "%s %.3g s, %.0f %%", what, seconds, 100 * seconds / sum);
      return data + " using 1:" + lower + ':' + upper + " with filledcurves fillcolor '" + colour + "' title " +
             Figure::quoted(title) + " noenhanced";
    };
    picture.command(
        "set xlabel 'trials'\nset ylabel 'seconds, one step on another'\nset yrange [0:*]\nset key top left\nplot " +
        area("4", "5", "learn", learn, "#e41a1c") + ", " + area("3", "4", "search", search, "#ff7f00") + ", " +
        area("2", "3", "compile", compile, "#4daf4a") + ", " + area("(0)", "2", "measure", measure, "#377eb8"));
    return picture;
  }

  [[nodiscard]] std::optional<Figure> explored_space(const DescribedCandidates& candidates) {
    if (candidates.records.size() < 3) {
      remarks_.push_back(
          "no explored space: fewer than 3 configurations are schedules of the task or hold equally many numbers");
      return std::nullopt;
    }
    const PrincipalComponents plane = principal_components(candidates.features, candidates.columns);
    const std::vector<Record> records = thinned();
    Rows valid, failed;
    for (std::size_t i = 0; i < candidates.records.size(); ++i) {
      const Outcome& outcome = records[candidates.records[i]].outcome;
      const auto& [x, y] = plane.points[i];
      if (outcome.valid())
        valid.push_back({x, y, 100 * best_s_ / cost_s(outcome)});
      else
        failed.push_back({x, y});
    }
    // The fastest points are drawn last, on top.
    std::sort(valid.begin(), valid.end(), [](const auto& a, const auto& b) { return a[2] < b[2]; });
    Figure picture = figure("explored_space", ("explored space, " + candidates.what).c_str());
    const auto axis = [&](std::size_t a) {
      return "'component " + std::to_string(a + 1) + ", " + digits(100 * plane.share[a]) + " % of the variance'";
    };
    std::vector<std::string> curves;
    if (!failed.empty())
      curves.push_back(picture.add_data(failed) + " using 1:2 with points pointtype 2 linecolor 'gray' title 'failed'");
    if (!valid.empty()) {
      curves.push_back(picture.add_data(valid) +
                       " using 1:2:3 with points pointtype 7 pointsize 0.6 linecolor palette notitle");
    }
    picture.command(
        "set xlabel " + axis(0) + "\nset ylabel " + axis(1) +
        "\nset cblabel 'speed, % of the fastest'\nset cbrange [0:100]\nset palette defined (0 '#440154', 25 "
        "'#3b528b', 50 '#21908c', 75 '#5dc963', 100 '#fde725')\n" +
        plot_of(curves));
    return picture;
  }

  [[nodiscard]] std::optional<Figure> roofline(const DescribedCandidates& candidates) {
    const double flops = measured_.task.flops;
    const std::vector<Record> records = thinned();
    Rows points;
    double most_dense = 0, least_dense = Course::infinity;
    for (std::size_t i = 0; i < candidates.records.size(); ++i) {
      const Outcome& outcome = records[candidates.records[i]].outcome;
      if (!outcome.valid() || !(candidates.bytes[i] > 0) || !(flops > 0)) continue;
      const double density = flops / candidates.bytes[i];
      points.push_back({density, speed(cost_s(outcome))});
      most_dense = std::max(most_dense, density);
      least_dense = std::min(least_dense, density);
    }
    if (points.empty()) {
      remarks_.push_back("no roofline: it needs schedules of the task's graph, and operations to count");
      return std::nullopt;
    }
    const Target& target = measured_.task.target;
    const double peak = options_.peak_gflops > 0 ? options_.peak_gflops : target.peak_fp32_gflops;
    const double bandwidth = options_.peak_gb_per_s > 0 ? options_.peak_gb_per_s : target.peak_gb_per_s;
    Figure picture = figure("roofline", "roofline of the candidates");
    std::string plot =
        "plot " + picture.add_data(points) + " using 1:2 with points pointtype 7 pointsize 0.5 title 'candidates'";
    if (peak > 0 && bandwidth > 0) {
      const double ridge = peak / bandwidth;
      const double left = std::min(least_dense, ridge) / 4, right = std::max(most_dense, ridge) * 4;
      plot += ", " + picture.add_data(Rows{{left, left * bandwidth}, {ridge, peak}, {right, peak}}) +
              " using 1:2 with lines linewidth 2 linecolor 'black' title '" + digits(peak) + " GFLOP/s, " +
              digits(bandwidth) + " GB/s'";
    } else {
      remarks_.push_back("the roofline has no roof: a CPU's target names no peaks; give --peak and --bandwidth");
    }
    picture.command(
        "set logscale xy\nset xlabel 'operations of the task a byte that the program moves, by model'\nset ylabel "
        "'GFLOP/s'\nset key bottom right\n" +
        plot);
    return picture;
  }

  std::string name_;
  const data::MeasuredTask& measured_;
  const PlotOptions& options_;
  std::map<std::pair<std::size_t, std::uint64_t>, Search> searches_;  // by file and seed
  double best_s_ = Course::infinity;
  std::vector<std::string> remarks_;
};

}  // namespace tunewright::study
