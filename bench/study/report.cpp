// SPDX-License-Identifier: Apache-2.0
// Makes tables and figures of what studies measured.
//
//   report OUT study_models.json...
//
// Of each JSON it writes to OUT, under the name of the study:
//   .md   a table a data set: a row a recipe, mean and standard error over the seeds of every counter
//   .dat  the same numbers, a block a (data set, recipe), for gnuplot
//   .gp   draws counters of recipes named "name@number" against the number, others as bars; gives an .svg
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Samples {
  std::vector<double> values;
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  // Of the mean; 0 for one value, which tells nothing about it.
  [[nodiscard]] double standard_error() const {
    const auto n = static_cast<double>(values.size());
    double square = 0;
    for (const double value : values) square += (value - mean()) * (value - mean());
    return n < 2 ? 0 : std::sqrt(square / (n - 1) / n);
  }
};

using Counters = std::map<std::string, Samples>;

struct Study {
  std::vector<std::pair<std::string, std::vector<std::string>>> recipes;  // by data set, as they ran
  std::map<std::pair<std::string, std::string>, Counters> results;        // by data set and recipe
  std::set<std::string> counters;
  std::vector<std::string> errors;
  std::string options, date;
};

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

void write_tables(const Study& study, const std::string& title, std::ostream& out) {
  out << "# " << title << "\n\nMean and standard error over seeds; " << study.date;
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
        out << ' ' << compact(found->second.mean());
        if (found->second.values.size() > 1) out << " ± " << compact(found->second.standard_error());
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

// Blocks of rows "x mean error mean error...", in the order of study.counters; curves by (data, recipe).
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
      for (const std::string& counter : study.counters) out << ' ' << counter << " error";
      out << '\n';
      for (const auto& [x, counters] : points) {
        out << compact(x);
        for (const std::string& counter : study.counters) {
          const auto found = counters->find(counter);
          if (found == counters->end())
            out << " nan nan";
          else
            out << ' ' << compact(found->second.mean()) << ' ' << compact(found->second.standard_error());
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
    column += 2;
  }
  out << "# SPDX-License-Identifier: Apache-2.0\n"
      << "set terminal svg size 900," << 320 * std::max<std::size_t>(curves.size(), 1) << "\nset output '" << name
      << ".svg'\nset multiplot layout " << std::max<std::size_t>(curves.size(), 1)
      << ",1\nset key outside noenhanced\nset title noenhanced\nset ylabel '" << wanted << "' noenhanced\n";
  for (const auto& [data, lines] : curves) {
    out << "set title '" << data << "'\nplot ";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      out << (i == 0 ? "" : ", \\\n  ") << "'" << name << ".dat' index " << lines[i].block << " using 1:" << column
          << ":" << column + 1 << " with yerrorlines title '" << lines[i].title << "'";
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
      const Study study = read(argv[i]);
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
