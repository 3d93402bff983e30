// SPDX-License-Identifier: Apache-2.0
// Makes tables and figures of what studies measured. --help tells what it is given.
//
// For each JSON it writes to OUT, under the name of the study:
//   .md   a table a data set: a row a recipe, every counter's mean and 95 % interval
//   .dat  the same numbers, a block a (data set, recipe), for gnuplot
//   .gp   draws counters of recipes named "name@number" against the number, others as bars; gives an .svg
//
// FILE, such as bench/study/pools.json, says of each study which data sets are also shown as one, of all their tasks,
// and which recipes are compared with which, task by task and seed by seed:
//
//   {"study_transfer": {"pools": [{"name": "new tasks", "data": ".*_new_tasks"}],
//                       "differences": [{"name": "m = 0.99 less m = 1", "of": "momentum_m99", "less": "momentum_m1"}]}}
//
// `data` is a regular expression for the whole of a name. A pool has the recipes that all of its data sets have.
// Recipes named "name@number" are compared at equal numbers; `counter` may name another one than pairwise_accuracy.
//
// Where OUT/<study>/tasks.*.jsonl tells a counter task by task, its interval is drawn over tasks and, from 3 of them
// on, over seeds, each of which is one training that judges all tasks; else over seeds alone, from 3 of them on.
// `study::mean_over_tasks_and_trainings` says how, and what intervals of few seeds or tasks are worth.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../usage.hpp"
#include "study_results.hpp"
#include "tunewright/core/make_folder.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/write_file.hpp"
#include "tunewright/study/intervals.hpp"

namespace {

using tunewright::study::Counters;
using tunewright::study::Difference;
using tunewright::study::Interval;
using tunewright::study::StudyResults;

constexpr const char* usage = R"(usage: report [--pools=FILE] OUT study_models.json...

Makes tables and figures of what studies measured, in the folder OUT.

  --pools=FILE  which data sets are also shown as one, and which recipes are compared, as in bench/study/pools.json
)";

std::string compact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string with_interval(const Interval& interval) {
  if (interval.low == interval.high) return compact(interval.value);
  return compact(interval.value) + " [" + compact(interval.low) + ", " + compact(interval.high) + "]";
}

/// Rows of a table: nothing where one of both is missing, where tasks or seeds are not the same, and where they are too
/// few for an interval.
void write_difference(const StudyResults& study, const Difference& difference, const std::string& data,
                      const std::vector<std::string>& recipes, std::ostream& out) {
  for (const std::string& recipe : recipes) {
    const auto other = partner(recipe, difference);
    if (!other) continue;
    const auto second = study.results.find({data, *other});
    if (second == study.results.end()) continue;
    const Counters& first = study.results.at({data, recipe});
    const auto of = first.find(difference.counter), less = second->second.find(difference.counter);
    if (of == first.end() || less == second->second.end()) continue;
    const auto tasks = tunewright::study::differences(of->second, less->second);
    if (!tunewright::study::has_interval(tasks)) continue;
    const std::size_t at = std::min(recipe.find('@'), recipe.size() - 1);
    out << "| " << data << " | " << difference.name << " | " << recipe.substr(at + 1) << " | " << tasks.size() << " | "
        << tunewright::study::count_of_seeds(tasks) << " | "
        << with_interval(tunewright::study::mean_over_tasks_and_trainings(tasks, tunewright::Rng(1))) << " |\n";
  }
}

void write_tables(const StudyResults& study, const std::string& title, const std::vector<Difference>& differences,
                  std::ostream& out) {
  out << "# " << title
      << "\n\nMean and 95 % interval over tasks and seeds, a seed being one training for all tasks; with fewer than "
      << tunewright::study::fewest_trainings << " seeds over tasks alone, which says nothing of other trainings; "
      << study.date;
  if (!study.options.empty()) out << "; `" << study.options << "`";
  out << ".\n";
  for (const auto& [data, recipes] : study.recipes) {
    std::set<std::string> columns;
    for (const std::string& recipe : recipes)
      for (const auto& [name, samples] : study.results.at({data, recipe})) columns.insert(name);
    out << "\n## " << data << "\n\n| recipe | seeds |";
    for (const std::string& name : columns) out << ' ' << name << " |";
    out << "\n|---|---|";
    for (std::size_t i = 0; i < columns.size(); ++i) out << "---|";
    out << '\n';
    for (const std::string& recipe : recipes) {
      const Counters& counters = study.results.at({data, recipe});
      out << "| " << recipe << " | " << study.seeds.at({data, recipe}).size() << " |";
      for (const std::string& name : columns) {
        const auto found = counters.find(name);
        if (found == counters.end()) {
          out << " |";
          continue;
        }
        out << ' ' << with_interval(found->second.interval());
        out << " |";
      }
      out << '\n';
    }
  }
  if (!differences.empty()) {
    out << "\n## Differences\n\nTask by task and seed by seed.\n\n| data | difference | at | tasks | seeds | value "
           "|\n|---|---|---|---|---|---|\n";
    for (const Difference& difference : differences)
      for (const auto& [data, recipes] : study.recipes) write_difference(study, difference, data, recipes, out);
  }
  for (const std::string& error : study.errors) out << "\n- failed: " << error << '\n';
}

struct Curve {
  std::string title;
  std::size_t block = 0;
};

// Blocks of rows "x mean low high mean low high...", in the order of study.counters; curves by (data, recipe).
std::map<std::string, std::vector<Curve>> write_data(const StudyResults& study, std::ostream& out) {
  std::map<std::string, std::vector<Curve>> curves;
  std::size_t block = 0;
  for (const auto& [data, recipes] : study.recipes) {
    std::map<std::string, std::vector<std::pair<double, const Counters*>>> lines;
    double place = 0;
    for (const std::string& recipe : recipes) {
      const std::optional<double> number = tunewright::study::number_of(recipe);
      const double x = number ? *number : place++;
      lines[recipe.substr(0, recipe.rfind('@'))].emplace_back(x, &study.results.at({data, recipe}));
    }
    for (const auto& [name, points] : lines) {
      out << "# " << data << ", " << name << "\n# x";
      for (const std::string& counter : study.counters) out << ' ' << counter << " low high";
      out << '\n';
      for (const auto& [x, counters] : points) {
        out << compact(x);
        for (const std::string& counter : study.counters) {
          const auto found = counters->find(counter);
          if (found == counters->end())
            out << " nan nan nan";
          else
            out << ' ' << compact(found->second.interval().value) << ' ' << compact(found->second.interval().low) << ' '
                << compact(found->second.interval().high);
        }
        out << '\n';
      }
      out << "\n\n";
      curves[data].push_back({name, block++});
    }
  }
  return curves;
}

void write_script(const StudyResults& study, const std::string& name,
                  const std::map<std::string, std::vector<Curve>>& curves, std::ostream& out) {
  const std::string wanted = study.counters.contains("pairwise_accuracy") || study.counters.empty()
                                 ? "pairwise_accuracy"
                                 : *study.counters.begin();
  std::size_t column = 2;
  for (const std::string& counter : study.counters) {
    if (counter == wanted) break;
    column += 3;
  }
  out << "# SPDX-License-Identifier: Apache-2.0\n"
      << "set terminal svg size 900," << 320 * std::max<std::size_t>(curves.size(), 1) << "\nset output '" << name
      << ".svg'\nset multiplot layout " << std::max<std::size_t>(curves.size(), 1)
      << ",1\nset key outside noenhanced\nset title noenhanced\nset ylabel '" << wanted << "' noenhanced\n";
  for (const auto& [data, lines] : curves) {
    out << "set title '" << data << "'\nplot ";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      out << (i == 0 ? "" : ", \\\n  ") << "'" << name << ".dat' index " << lines[i].block << " using 1:" << column
          << ":" << column + 1 << ":" << column + 2 << " with yerrorlines title '" << lines[i].title << "'";
    }
    out << '\n';
  }
  out << "unset multiplot\n";
}

/// Writes tables and a figure of the study in `file` to the folder `out`.
void report(const std::string& file, const std::filesystem::path& out, const nlohmann::json& pools) {
  const std::string name = std::filesystem::path(file).stem().string();
  StudyResults study = tunewright::study::read_study(file);
  read_tasks(out / name, study);
  std::vector<Difference> differences;
  if (const auto of_study = pools.find(name); of_study != pools.end()) {
    for (const auto& pool : of_study->value("pools", nlohmann::json::array()))
      add_pool(study, pool.at("name"), std::regex(pool.at("data").get<std::string>()));
    for (const auto& one : of_study->value("differences", nlohmann::json::array()))
      differences.push_back({one.at("name"), one.at("of"), one.at("less"), one.value("counter", "pairwise_accuracy")});
  }
  const auto write = [&](const char* ending, const auto& content) {
    tunewright::write_file(out / (name + ending), "free space or name another folder as OUT", content);
  };
  std::map<std::string, std::vector<Curve>> curves;
  write(".md", [&](std::ostream& tables) { write_tables(study, name, differences, tables); });
  write(".dat", [&](std::ostream& numbers) { curves = write_data(study, numbers); });
  write(".gp", [&](std::ostream& script) { write_script(study, name, curves, script); });
}

}  // namespace

int main(int argc, char** argv) {
  if (tunewright::bench::printed_usage(argc, argv, usage)) return 0;
  std::vector<std::string> words;
  const std::string pools_option = "--pools=";
  nlohmann::json pools = nlohmann::json::object();
  try {
    for (const std::string word : std::span(argv + 1, argv + argc)) {
      if (word.starts_with(pools_option)) {
        std::ifstream text(word.substr(pools_option.size()));
        if (!text) throw std::runtime_error(word + " cannot be read");
        pools = nlohmann::json::parse(text);
      } else if (word.starts_with("--")) {
        return std::fprintf(stderr, "report: unknown option '%s'; see --help\n", word.c_str()), 2;
      } else {
        words.push_back(word);
      }
    }
    if (words.size() < 2) {
      std::fputs(usage, stderr);
      return 2;
    }
    tunewright::make_folder(words.front(), "name another one as OUT");
    int unread = 0;
    for (const std::string& file : std::span(words).subspan(1)) {
      try {
        report(file, words.front(), pools);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: no tables: %s\n", file.c_str(), error.what());
        ++unread;
      }
    }
    return unread == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
