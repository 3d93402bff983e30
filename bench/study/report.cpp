// SPDX-License-Identifier: Apache-2.0
// Makes tables and figures of what studies measured.
//
//   report OUT study_models.json...
//
// Of each JSON it writes to OUT, under the name of the study:
//   .md   a table a data set: a row a recipe, every counter's mean and 95 % interval
//   .dat  the same numbers, a block a (data set, recipe), for gnuplot
//   .gp   draws counters of recipes named "name@number" against the number, others as bars; gives an .svg
//
// Where OUT/<study>/tasks.jsonl tells a counter task by task, its interval is drawn over tasks and over the seeds of
// each, else over seeds alone, from 3 of them on; `study::bootstrap` says how, and what intervals of few tasks are
// worth.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/study/intervals.hpp"

namespace {

using tunewright::study::Interval;

/// Values of one counter: one a seed, and, where they are known, those of each task and seed that it is the mean of.
struct Samples {
  std::vector<double> values;
  std::map<std::string, std::vector<double>> tasks;

  [[nodiscard]] Interval interval() const {
    if (known_) return *known_;
    std::vector<std::vector<double>> all;
    for (const auto& [task, of_seeds] : tasks) all.push_back(of_seeds);
    if (all.empty()) all.push_back(values);
    const bool finite = std::all_of(all.begin(), all.end(), [](const auto& one) {
      return std::all_of(one.begin(), one.end(), [](double value) { return std::isfinite(value); });
    });
    known_ = finite && (all.size() > 1 || all[0].size() > 2)
                 ? tunewright::study::mean_over_tasks(all, tunewright::Rng(1))
                 : without_interval(all);
    return *known_;
  }

 private:
  static Interval without_interval(const std::vector<std::vector<double>>& all) {
    double sum = 0;
    for (const std::vector<double>& of_seeds : all) {
      double of_task = 0;
      for (const double value : of_seeds) of_task += value / static_cast<double>(of_seeds.size());
      sum += of_task / static_cast<double>(all.size());
    }
    return {sum, sum, sum};
  }
  mutable std::optional<Interval> known_;  // draws take a while, and tables and figures share them
};

using Counters = std::map<std::string, Samples>;

struct Study {
  std::vector<std::pair<std::string, std::vector<std::string>>> recipes;  // by data set, as they ran
  std::map<std::pair<std::string, std::string>, Counters> results;        // by data set and recipe
  std::set<std::string> counters;
  std::vector<std::string> errors;
  std::string options, date;
};

// The last of several lines about one run counts; runs that the JSON does not tell of are left out.
void read_tasks(const std::filesystem::path& file, Study& study) {
  std::ifstream lines(file);
  std::map<std::pair<std::pair<std::string, std::string>, std::uint64_t>, nlohmann::json> runs;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json run = nlohmann::json::parse(line);
    runs[{{run.at("data"), run.at("subject")}, run.at("seed")}] = run.at("counters");
  }
  for (const auto& [run, counters] : runs) {
    const auto result = study.results.find(run.first);
    if (result == study.results.end()) continue;
    for (const auto& [counter, tasks] : counters.items())
      for (const auto& [task, value] : tasks.items())
        result->second[counter].tasks[task].push_back(value.get<double>());
  }
}

std::string compact(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

Study read(const std::string& path) {
  const auto json = nlohmann::json::parse(std::ifstream(path));
  Study study;
  study.options = json.at("context").value("options", "");
  study.date = json.at("context").value("date", "").substr(0, 10);
  for (const auto& run : json.at("benchmarks")) {
    const std::string name = run.at("name");
    const std::size_t first = name.find('/');
    const std::size_t second = first == std::string::npos ? first : name.find("/seed:", first + 1);
    if (second == std::string::npos) throw std::runtime_error(path + ": no recipe, data and seed in " + name);
    if (run.value("error_occurred", false)) {
      study.errors.push_back(name + ": " + run.value("error_message", ""));
      continue;
    }
    const std::string recipe = name.substr(0, first), data = name.substr(first + 1, second - first - 1);
    static const std::set<std::string> not_counters{"family_index", "per_family_instance_index",
                                                    "repetitions",  "repetition_index",
                                                    "threads",      "iterations",
                                                    "real_time",    "cpu_time"};
    if (study.results.find({data, recipe}) == study.results.end()) {
      if (study.recipes.empty() || study.recipes.back().first != data) {
        std::size_t known = 0;
        while (known < study.recipes.size() && study.recipes[known].first != data) ++known;
        if (known == study.recipes.size()) study.recipes.emplace_back(data, std::vector<std::string>{});
      }
      for (auto& [of, names] : study.recipes)
        if (of == data) names.push_back(recipe);
    }
    Counters& counters = study.results[{data, recipe}];
    for (const auto& [key, value] : run.items()) {
      if (!value.is_number() || not_counters.contains(key)) continue;
      counters[key].values.push_back(value.get<double>());
      study.counters.insert(key);
    }
  }
  return study;
}

std::string with_interval(const Samples& samples) {
  const Interval interval = samples.interval();
  if (interval.low == interval.high) return compact(interval.value);
  return compact(interval.value) + " [" + compact(interval.low) + ", " + compact(interval.high) + "]";
}

void write_tables(const Study& study, const std::string& title, std::ostream& out) {
  out << "# " << title << "\n\nMean and 95 % interval over tasks and seeds; " << study.date;
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
      out << "| " << recipe << " | " << (counters.empty() ? 0 : counters.begin()->second.values.size()) << " |";
      for (const std::string& name : columns) {
        const auto found = counters.find(name);
        if (found == counters.end()) {
          out << " |";
          continue;
        }
        out << ' ' << with_interval(found->second);
        out << " |";
      }
      out << '\n';
    }
  }
  for (const std::string& error : study.errors) out << "\n- failed: " << error << '\n';
}

struct Curve {
  std::string title;
  std::size_t block = 0;
};

// Blocks of rows "x mean low high mean low high...", in the order of study.counters; curves by (data, recipe).
std::map<std::string, std::vector<Curve>> write_data(const Study& study, std::ostream& out) {
  std::map<std::string, std::vector<Curve>> curves;
  std::size_t block = 0;
  for (const auto& [data, recipes] : study.recipes) {
    std::map<std::string, std::vector<std::pair<double, const Counters*>>> lines;
    double place = 0;
    for (const std::string& recipe : recipes) {
      const std::size_t at = recipe.rfind('@');
      const double x = at == std::string::npos ? place++ : std::stod(recipe.substr(at + 1));
      lines[recipe.substr(0, at)].emplace_back(x, &study.results.at({data, recipe}));
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

void write_script(const Study& study, const std::string& name, const std::map<std::string, std::vector<Curve>>& curves,
                  std::ostream& out) {
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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s OUT study.json...\n", argv[0]);
    return 2;
  }
  try {
    const std::filesystem::path out = argv[1];
    for (int i = 2; i < argc; ++i) {
      const std::string name = std::filesystem::path(argv[i]).stem().string();
      Study study = read(argv[i]);
      read_tasks(out / name / "tasks.jsonl", study);
      std::ofstream tables(out / (name + ".md")), numbers(out / (name + ".dat")), script(out / (name + ".gp"));
      write_tables(study, name, tables);
      write_script(study, name, write_data(study, numbers), script);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
