// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/write_file.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/stats/robust.hpp"
#include "tunewright/study/comparison.hpp"
#include "tunewright/study/intervals.hpp"
#include "tunewright/study/running_time.hpp"

/// Tables and figures of a study from a `Comparison`.
namespace tunewright::study {

namespace report {

inline std::string digits(double value, const char* format = "%.3g") {
  if (std::isnan(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
inline std::string digits(const Interval& interval, const char* format = "%.3g") {
  return digits(interval.value, format) + " [" + digits(interval.low, format) + ", " + digits(interval.high, format) +
         "]";
}
inline Interval percent(const Interval& share) { return {100 * share.value, 100 * share.low, 100 * share.high}; }

inline void header(std::ostream& out, const std::vector<std::string>& columns) {
  out << '\n';
  for (const std::string& column : columns) out << "| " << column << ' ';
  out << "|\n";
  for (std::size_t i = 0; i < columns.size(); ++i) out << "| --- ";
  out << "|\n";
}
inline void row(std::ostream& out, const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) out << "| " << cell << ' ';
  out << "|\n";
}

/// The results of a recipe, and its comparison with the first one.
struct Findings {
  Interval speed, speed_difference, speedup_trials, speedup_seconds, speedup_over_itself;
  Interval score, score_difference;  // where there are any, and the next likewise
  Interval score_seconds, score_seconds_difference;
  Interval finalist_speed, finalist_difference;  // likewise
};

/// Computes the findings of each recipe once: intervals take seconds, and tables and JSON share them.
inline std::vector<Findings> findings(const Comparison& comparison) {
  std::vector<Findings> all;
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    Findings& of = all.emplace_back();
    of.speed = comparison.speed(r);
    of.speed_difference = comparison.speed_difference(r, 0);
    of.speedup_trials = comparison.speedup(r, 0, Effort::Trials);
    of.speedup_seconds = comparison.speedup(r, 0, Effort::Seconds);
    of.speedup_over_itself = comparison.speedup_over_itself(r, 0, Effort::Seconds);
    if (comparison.has_scores()) {
      of.score = comparison.score(r);
      of.score_difference = comparison.score_difference(r, 0);
    }
    if (comparison.has_scores(Effort::Seconds)) {
      of.score_seconds = comparison.score(r, {}, Effort::Seconds);
      of.score_seconds_difference = comparison.score_difference(r, 0, Effort::Seconds);
    }
    if (comparison.has_finalists()) {
      of.finalist_speed = comparison.finalist_speed(r);
      of.finalist_difference = comparison.finalist_difference(r, 0);
    }
  }
  return all;
}

inline void write_recipes(const Comparison& comparison, const std::vector<Findings>& found, std::ostream& out) {
  std::vector<std::string> columns{"recipe"};
  if (comparison.has_scores()) columns.emplace_back("score");
  if (comparison.has_scores(Effort::Seconds)) columns.emplace_back("score over seconds");
  columns.insert(columns.end(),
                 {"speed at the end, % of the best known", "failed trials, %", "imprecise, %", "seconds a search"});
  header(out, columns);
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    std::vector<std::string> cells{comparison.recipes()[r]};
    if (comparison.has_scores()) cells.push_back(digits(found[r].score, "%.2f"));
    if (comparison.has_scores(Effort::Seconds)) cells.push_back(digits(found[r].score_seconds, "%.2f"));
    cells.push_back(digits(percent(found[r].speed), "%.1f"));
    cells.push_back(digits(100 * comparison.failed_share(r), "%.1f"));
    cells.push_back(digits(100 * comparison.imprecise_share(r), "%.1f"));
    cells.push_back(digits(comparison.seconds_a_search(r)));
    row(out, cells);
  }
}

/// The verdict by the rule of `Interval::excludes`.
inline std::string verdict(const Interval& interval, double draw) {
  if (std::isnan(interval.low)) return "too few searches to say";
  if (!interval.excludes(draw)) return "not told apart";
  return interval.value > draw ? "better" : "worse";
}

/// A sentence for each recipe whose speed at the end, from single measurements, has another verdict than its finalists.
/// None where scores decide: they judge the whole course of a search.
inline void write_disagreements(const Comparison& comparison, const std::vector<Findings>& found, std::ostream& out) {
  if (!comparison.has_finalists() || comparison.has_scores()) return;
  for (std::size_t r = 1; r < comparison.recipes().size(); ++r) {
    const std::string single = verdict(found[r].speed_difference, 0);
    const std::string in_turns = verdict(found[r].finalist_difference, 0);
    if (single == in_turns) continue;
    out << '\n'
        << comparison.recipes()[r] << ": " << single << " by single measurements, during the searches; " << in_turns
        << " where the finalists are measured in turns, below. Trust the latter.\n";
  }
}

inline void write_differences(const Comparison& comparison, const std::vector<Findings>& found, std::ostream& out) {
  const std::string& reference = comparison.recipes().front();
  out << "\n## Against " << reference
      << "\n\nPaired over problems and seeds. Better or worse is said where the interval "
      << "of the first column excludes 0.\n";
  std::vector<std::string> columns{"recipe"};
  if (comparison.has_scores()) columns.emplace_back("score");
  if (comparison.has_scores(Effort::Seconds)) columns.emplace_back("score over seconds");
  columns.insert(columns.end(),
                 {"speed at the end, points of %", "times shorter to where " + reference + " ends, in trials",
                  "in seconds", "in seconds, than " + reference + " to there", ""});
  header(out, columns);
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    const Interval speed = found[r].speed_difference;
    std::vector<std::string> cells{comparison.recipes()[r] + (r == 0 ? " itself" : "")};
    Interval first = speed;
    if (comparison.has_scores()) {
      first = found[r].score_difference;
      cells.push_back(digits(first, "%.2f"));
    }
    if (comparison.has_scores(Effort::Seconds)) cells.push_back(digits(found[r].score_seconds_difference, "%.2f"));
    cells.push_back(digits(percent(speed), "%.1f"));
    cells.push_back(digits(found[r].speedup_trials, "%.2f"));
    cells.push_back(digits(found[r].speedup_seconds, "%.2f"));
    cells.push_back(digits(found[r].speedup_over_itself, "%.2f"));
    cells.push_back(r == 0 ? "" : verdict(first, 0));
    row(out, cells);
  }
  write_disagreements(comparison, found, out);
}

inline void write_finalists(const Comparison& comparison, const std::vector<Findings>& found, std::ostream& out) {
  if (!comparison.has_finalists()) return;
  out << "\n## Finalists, measured in turns\n\nWhat the searches of a problem and seed ended with, as a share of the "
      << "fastest of them.";
  if (!comparison.noise().empty()) {
    out << " The same program measured twice lies apart by " << digits(100 * stats::median(comparison.noise()), "%.1f")
        << " % (median), in one of twenty cases by more than "
        << digits(100 * stats::quantile(comparison.noise(), 0.95), "%.1f") << " %.";
  }
  out << '\n';
  header(out, {"recipe", "speed, % of the fastest", "against " + comparison.recipes().front() + ", points", ""});
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    row(out, {comparison.recipes()[r], digits(percent(found[r].finalist_speed), "%.1f"),
              digits(percent(found[r].finalist_difference), "%.1f"),
              r == 0 ? "" : verdict(found[r].finalist_difference, 0)});
  }
}

inline double median_end_s(std::span<const Course> courses) {
  std::vector<double> ends;
  for (const Course& course : courses) ends.push_back(course.best_s());
  return stats::median(std::move(ends));
}

inline void write_problems(const Comparison& comparison, std::ostream& out) {
  out << "\n## Problem by problem\n\nMicroseconds at the end, median over seeds"
      << (comparison.has_scores() ? "; the score.\n" : ".\n");
  std::vector<std::string> columns{"problem", "seeds", "best known"};
  for (const std::string& recipe : comparison.recipes()) columns.push_back(recipe);
  header(out, columns);
  for (std::size_t p = 0; p < comparison.problems().size(); ++p) {
    std::vector<std::string> cells{comparison.problems()[p], std::to_string(comparison.courses(0, p).size()),
                                   digits(1e6 * comparison.best_known_s(p), "%.4g")};
    for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
      cells.push_back(digits(1e6 * median_end_s(comparison.courses(r, p)), "%.4g"));
      if (comparison.has_scores()) cells.back() += "; " + digits(comparison.score(r, p), "%.2f");
    }
    row(out, cells);
  }
}

inline void write_scores_over_seconds(const Comparison& comparison, std::ostream& out) {
  if (!comparison.has_scores(Effort::Seconds)) return;
  out << "\n## Scores over seconds, problem by problem\n";
  std::vector<std::string> columns{"problem"};
  for (const std::string& recipe : comparison.recipes()) columns.push_back(recipe);
  header(out, columns);
  for (std::size_t p = 0; p < comparison.problems().size(); ++p) {
    std::vector<std::string> cells{comparison.problems()[p]};
    for (std::size_t r = 0; r < comparison.recipes().size(); ++r)
      cells.push_back(digits(comparison.score(r, p, Effort::Seconds), "%.2f"));
    row(out, cells);
  }
}

/// What is in no other table: searches of problems, or with seeds, that not all recipes have.
inline void write_not_compared(const Comparison& comparison, std::ostream& out) {
  if (comparison.not_compared().empty()) return;
  out << "\n## Not compared\n\nSearches of problems, or with seeds, that not all recipes have searched: how many there "
         "are, and where they end, in microseconds, median. --recipes=A,B compares these alone.\n";
  std::vector<std::string> columns{"problem"};
  for (const std::string& recipe : comparison.recipes()) columns.push_back(recipe);
  header(out, columns);
  for (const NotCompared& others : comparison.not_compared()) {
    std::vector<std::string> cells{others.problem};
    for (const std::vector<Course>& courses : others.courses) {
      cells.push_back(courses.empty()
                          ? "none"
                          : std::to_string(courses.size()) + "; " + digits(1e6 * median_end_s(courses), "%.4g"));
    }
    row(out, cells);
  }
}

/// Where curves are drawn: logarithmically from `first`, above 0, to `last`, each place once. Whole numbers if `whole`.
inline std::vector<double> places(double first, double last, bool whole) {
  constexpr double points = 30;
  std::vector<double> chosen;
  for (double i = 0; i <= points && first <= last; ++i) {
    double place = i < points ? first * std::pow(last / first, i / points) : last;
    if (whole) place = std::round(place);
    if (chosen.empty() || place > chosen.back()) chosen.push_back(place);
  }
  return chosen;
}

/// The same for one problem: from the first trial, or from when the first result was known, to the end of the longest
/// search.
inline std::vector<double> places(const Comparison& comparison, std::size_t p, Effort over) {
  double first = over == Effort::Trials ? 1 : Course::infinity, last = 0;
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    for (const Course& course : comparison.courses(r, p)) {
      last = std::max(last, effort_of(course, over));
      if (over == Effort::Trials) continue;
      // A logarithmic axis has no place for what was known after no time.
      for (const Improvement& one : course.improvements)
        if (one.elapsed_s > 0) first = std::min(first, one.elapsed_s);
    }
  }
  return places(first, last, over == Effort::Trials);
}

/// The only row of a block of a recipe that found nothing: without a row gnuplot would count no block, and draw those
/// of the recipes behind it under wrong names.
inline constexpr const char* without_data = "1 0 0 0";

/// A block per recipe: trials, speed as % of the best known, and its interval.
inline void write_curves(const Comparison& comparison, std::ostream& out) {
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    out << "# " << comparison.recipes()[r] << "\n# trials speed low high\n";
    if (comparison.most_trials() == 0) out << without_data << '\n';
    for (const double trials : places(1, static_cast<double>(comparison.most_trials()), true)) {
      const Interval speed = percent(comparison.speed(r, static_cast<std::size_t>(trials)));
      out << trials << ' ' << speed.value << ' ' << speed.low << ' ' << speed.high << '\n';
    }
    out << "\n\n";
  }
}

/// A block per recipe: seconds, % of the reached (search, target) pairs. The targets of a problem are the best known
/// latency and 1, 2, 5, 10, 20 and 50 % more.
inline void write_targets(const Comparison& comparison, std::ostream& out) {
  std::vector<std::vector<double>> targets;
  for (std::size_t p = 0; p < comparison.problems().size(); ++p)
    for (auto& of_problem = targets.emplace_back(); const double more : {0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5})
      of_problem.push_back((1 + more) * comparison.best_known_s(p));
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    std::vector<TargetedRuns> runs;
    for (std::size_t p = 0; p < comparison.problems().size(); ++p)
      runs.push_back({comparison.courses(r, p), targets[p]});
    out << "# " << comparison.recipes()[r] << "\n# seconds reached\n";
    const RunningTimeDistribution reached(runs, Effort::Seconds);
    double share = 0;
    bool is_drawn = false;
    for (const auto& step : reached.steps()) {
      // A logarithmic axis has no place for what was reached in no time.
      if (step.effort > 0)
        out << step.effort << ' ' << 100 * share << '\n' << step.effort << ' ' << 100 * step.share << '\n';
      is_drawn = is_drawn || step.effort > 0;
      share = step.share;
    }
    if (reached.steps().empty())
      out << without_data << '\n';
    else if (!is_drawn)
      out << "1 " << 100 * share << '\n';
    out << "\n\n";
  }
}

/// Curves of single problems: blocks of trials, or seconds, speed as % of the best known and its interval. A block a
/// recipe, problem by problem, first all over trials, then all over seconds.
inline void write_problem_curves(const Comparison& comparison, std::ostream& out) {
  for (const Effort over : {Effort::Trials, Effort::Seconds}) {
    for (std::size_t p = 0; p < comparison.problems().size(); ++p) {
      const std::vector<double> at = places(comparison, p, over);
      for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
        out << "# " << comparison.problems()[p] << ", " << comparison.recipes()[r] << "\n# "
            << (over == Effort::Trials ? "trials" : "seconds") << " speed low high\n";
        if (at.empty()) out << without_data << '\n';
        for (const double place : at) {
          const Interval speed = percent(comparison.speed_within(r, p, place, over));
          out << place << ' ' << speed.value << ' ' << speed.low << ' ' << speed.high << '\n';
        }
        out << "\n\n";
      }
    }
  }
}

/// What gnuplot draws them with: a row a problem, over trials and over seconds.
inline void write_problem_script(const Comparison& comparison, const std::string& study, std::ostream& out) {
  const std::size_t problems = comparison.problems().size(), recipes = comparison.recipes().size();
  out << "set terminal svg size 1200," << 260 * problems << "\nset output '" << study
      << ".problems.svg'\nset multiplot layout " << problems
      << ",2\nset key right bottom noenhanced font ',9'\nset title noenhanced\nset logscale x\n"
      << "set ylabel 'speed, % of the best known'\nset yrange [0:*]\n";
  for (std::size_t p = 0; p < problems; ++p) {
    for (const bool seconds : {false, true}) {
      out << "set title '" << comparison.problems()[p] << "'\nset xlabel '" << (seconds ? "seconds" : "trials")
          << "'\nplot ";
      for (std::size_t r = 0; r < recipes; ++r) {
        const std::string data =
            "'" + study + ".problems.dat' index " + std::to_string(((seconds ? problems : 0) + p) * recipes + r);
        const std::string colour = " lc " + std::to_string(r + 1);
        out << data << " using 1:3:4 with filledcurves" << colour << " fs transparent solid 0.15 notitle, \\\n  "
            << data << " using 1:2 with lines" << colour << " lw 2 title '" << comparison.recipes()[r] << "'"
            << (r + 1 < recipes ? ", \\\n  " : "\n");
      }
    }
  }
  out << "unset multiplot\n";
}

/// What gnuplot draws the two files with, one above the other.
inline void write_script(const Comparison& comparison, const std::string& study, std::ostream& out) {
  const auto plot = [&](const char* file, const char* columns, bool band) {
    out << "plot ";
    for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
      const std::string data = "'" + study + file + "' index " + std::to_string(r);
      const std::string colour = " lc " + std::to_string(r + 1);
      if (band)
        out << data << " using 1:3:4 with filledcurves" << colour << " fs transparent solid 0.15 notitle, \\\n  ";
      out << data << " using " << columns << colour << " lw 2 title '" << comparison.recipes()[r] << "'"
          << (r + 1 < comparison.recipes().size() ? ", \\\n  " : "\n");
    }
  };
  out << "set terminal svg size 900,900\nset output '" << study
      << ".svg'\nset multiplot layout 2,1\nset key outside noenhanced\nset logscale x\n"
      << "set xlabel 'trials'\nset ylabel 'speed, % of the best known'\n";
  plot(".curves.dat", "1:2 with lines", true);
  out << "set xlabel 'seconds'\nset ylabel 'targets reached, %'\n";
  plot(".targets.dat", "1:2 with lines", false);
  out << "unset multiplot\n";
}

/// The numbers of a study as JSON, which has no infinity and nothing for what is unknown: both are null.
inline void write_json(const Comparison& comparison, const std::vector<Findings>& found, std::ostream& out) {
  std::string text = "{\"reference\": ";
  json::write(text, comparison.recipes().front());
  text += ", \"recipes\": [";
  const auto member = [&](const char* key, const Interval& interval) {
    text += std::string(", \"") + key + "\": ";
    json::write_array(text, std::array{interval.value, interval.low, interval.high}, [&](double number) {
      if (std::isfinite(number))
        json::write(text, number);
      else
        text += "null";
    });
  };
  for (std::size_t r = 0; r < comparison.recipes().size(); ++r) {
    text += r == 0 ? "\n  {\"recipe\": " : ",\n  {\"recipe\": ";
    json::write(text, comparison.recipes()[r]);
    member("speed", found[r].speed);
    member("speed_difference", found[r].speed_difference);
    member("speedup_trials", found[r].speedup_trials);
    member("speedup_seconds", found[r].speedup_seconds);
    member("speedup_seconds_over_itself", found[r].speedup_over_itself);
    if (comparison.has_scores()) {
      member("score", found[r].score);
      member("score_difference", found[r].score_difference);
    }
    if (comparison.has_scores(Effort::Seconds)) {
      member("score_over_seconds", found[r].score_seconds);
      member("score_over_seconds_difference", found[r].score_seconds_difference);
    }
    if (comparison.has_finalists()) {
      member("finalist_speed", found[r].finalist_speed);
      member("finalist_difference", found[r].finalist_difference);
    }
    text += ", \"failed_share\": ";
    json::write(text, comparison.failed_share(r));
    text += ", \"seconds_a_search\": ";
    json::write(text, comparison.seconds_a_search(r));
    text += '}';
  }
  out << text << "\n]}\n";
}

}  // namespace report

/// Writes `<study>.md` (tables), `<study>.results.json` (the same numbers), `<study>.curves.dat` and `.targets.dat`,
/// and `<study>.gp`, with which gnuplot draws them as `<study>.svg`; from `<study>.problems.dat` and `.problems.gp` it
/// draws the curves of single problems as `<study>.problems.svg`. Throws `std::runtime_error` where they cannot be
/// written.
inline void write_report(const Results& results, const std::filesystem::path& folder, const std::string& study) {
  const Comparison comparison(results);
  const auto write = [&](const char* ending, const auto& content) {
    write_file(folder / (study + ending), "name another folder by --out=DIR", content);
  };
  const std::vector<report::Findings> found = report::findings(comparison);
  write(".md", [&](std::ostream& out) {
    out << "# " << study << "\n\n"
        << results.searches.size() << " searches are finished, " << comparison.searches() * comparison.recipes().size()
        << " of them on problems and seeds that all recipes have searched; these are compared. Intervals: 95 %, "
           "bootstrap "
        << "over problems and seeds"
        << (results.one_training_a_seed ? "; a seed is one training for all problems, so it is drawn for all at once"
                                        : "")
        << ".\n";
    if (comparison.problems().empty()) {
      report::write_not_compared(comparison, out);
      return;
    }
    report::write_recipes(comparison, found, out);
    report::write_differences(comparison, found, out);
    report::write_finalists(comparison, found, out);
    report::write_problems(comparison, out);
    report::write_scores_over_seconds(comparison, out);
    report::write_not_compared(comparison, out);
  });
  if (comparison.problems().empty()) return;
  write(".results.json", [&](std::ostream& out) { report::write_json(comparison, found, out); });
  write(".curves.dat", [&](std::ostream& out) { report::write_curves(comparison, out); });
  write(".targets.dat", [&](std::ostream& out) { report::write_targets(comparison, out); });
  write(".gp", [&](std::ostream& out) { report::write_script(comparison, study, out); });
  write(".problems.dat", [&](std::ostream& out) { report::write_problem_curves(comparison, out); });
  write(".problems.gp", [&](std::ostream& out) { report::write_problem_script(comparison, study, out); });
}

}  // namespace tunewright::study
