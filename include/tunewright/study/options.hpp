// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/clock.hpp"

namespace tunewright::study {

/// The defaults of a study, for options missing on the command line.
struct Plan {
  std::string name;                    ///< of the study: what its results are filed under
  unsigned seeds = 5;                  ///< searches per recipe and problem
  std::vector<std::string> folders{};  ///< of `Options::data`, all needed
  /// The study's own options, "name=default", or "name" where the default depends on more than the study; others are
  /// refused: a misspelt `--seeds` would otherwise search with the default. They are no `std::string`s, because
  /// `{{"a", "b"}}` would make a single one, from two iterators.
  std::vector<const char*> options{};
  /// A study may list here what only chooses among its searches: each finds the same with another value of it.
  std::vector<const char*> choosing{};
  /// Options that studies usually read and this one does not, such as "tasks": giving them is refused.
  std::vector<const char*> unread{};
  /// What searches begin with is trained once a seed, for all problems: they share the luck of that training, and
  /// intervals draw it once for all of them (`bootstrap_of_trainings`).
  bool one_training_a_seed = false;
};

/// Options of a study's command line.
///
///   --out=DIR          folder of the results, default `results-<study>`
///   --data=DIR         folder of recorded data
///   --seeds=N          searches per recipe and problem;  --first_seed=N   the first seed, default 0
///   --shard=i/n        the i-th of n parts of the searches, 1 to n; each may be a process, with a shared folder
///   --recipes=A,B      only these;  --problems=A,B   only these
///   --reference=A      the recipe that others are compared with, default the first one
///   --tasks=N          maximum number of tasks, if a study has more
///   --threads=N        threads of a search
///   --minutes=N        no search, and no other part of a study whose results are kept part by part, begins later
///   --report           no search: tables and figures of finished searches
///   --name=value       the study's own
struct Options {
  std::filesystem::path out{}, data{};
  unsigned seeds = 5, first_seed = 0;
  unsigned shard = 1, shards = 1;
  std::vector<std::string> recipes{}, problems{};  ///< all, if empty
  std::string reference{};                         ///< the first recipe, if empty
  std::size_t tasks = 0;                           ///< 0: the study's own choice
  unsigned threads = 0;                            ///< 0: the study's own choice
  bool report_only = false;
  std::map<std::string, std::string> others{};    ///< the study's own that are given
  std::vector<std::string> known{};               ///< names in `Plan::options`; reading another is a `std::logic_error`
  std::map<std::string, std::string> defaults{};  ///< those that `Plan::options` states
  std::vector<std::string> choosing{};            ///< names in `Plan::choosing`
  std::string study{};                            ///< `Plan::name`
  Seconds began = steady_seconds()();             ///< when these were made: `--minutes` count from then

  /// The seeds of a recipe's searches of a problem.
  [[nodiscard]] std::vector<std::uint64_t> all_seeds() const {
    std::vector<std::uint64_t> all(seeds);
    std::iota(all.begin(), all.end(), std::uint64_t{first_seed});
    return all;
  }
  /// The study's own options that what a search finds depends on, each as " name=value", without those that have their
  /// defaults, given or not.
  [[nodiscard]] std::string conditions() const {
    std::string text;
    for (const auto& [name, value] : others) {
      const auto stated = defaults.find(name);
      const bool is_default = stated != defaults.end() && stated->second == value;
      const bool only_chooses =
          name == "minutes" || std::find(choosing.begin(), choosing.end(), name) != choosing.end();
      if (!is_default && !only_chooses) text += " " + name + "=" + value;
    }
    return text;
  }

  [[nodiscard]] unsigned threads_or(unsigned otherwise) const { return threads == 0 ? otherwise : threads; }
  /// One of the study's own options: what is given, or the plan's default. Throws `std::logic_error` if the plan states
  /// none.
  [[nodiscard]] std::string text(const std::string& name) const { return given_or_default(name); }
  [[nodiscard]] std::size_t number(const std::string& name) const { return parse(name, given_or_default(name)); }
  /// Like `number`, for small counts: threads, steps.
  [[nodiscard]] unsigned few(const std::string& name) const { return parse<unsigned>(name, given_or_default(name)); }

  /// The same where the default depends on more than the study. Throws `std::logic_error` if the plan states one too.
  [[nodiscard]] std::string text(const std::string& name, std::string otherwise) const {
    const std::string* given = find_without_default(name);
    return given == nullptr ? std::move(otherwise) : *given;
  }
  [[nodiscard]] std::size_t number(const std::string& name, std::size_t otherwise) const {
    const std::string* given = find_without_default(name);
    return given == nullptr ? otherwise : parse(name, *given);
  }
  [[nodiscard]] unsigned few(const std::string& name, unsigned otherwise) const {
    const std::string* given = find_without_default(name);
    return given == nullptr ? otherwise : parse<unsigned>(name, *given);
  }
  /// Whether the study has had the minutes that `--minutes=N` gives it, if any.
  [[nodiscard]] bool is_out_of_time() const {
    const std::size_t minutes = number("minutes", 0);
    return minutes != 0 && (steady_seconds()() - began).count() > 60.0 * static_cast<double>(minutes);
  }
  [[nodiscard]] bool knows(const std::string& name) const {
    return name == "minutes" || std::find(known.begin(), known.end(), name) != known.end();
  }

  /// Throws `std::invalid_argument` unless the value is a count that fits `Count`.
  template <class Count = std::size_t>
  [[nodiscard]] static Count parse(const std::string& name, std::string_view value) {
    Count count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc() || end != value.data() + value.size() || value.empty()) {
      throw std::invalid_argument("--" + name + "=" + std::string(value) + ": give a count up to " +
                                  std::to_string(std::numeric_limits<Count>::max()));
    }
    return count;
  }

  /// The same, above 0, which could be taken for no limit. `remedy` says what to give instead.
  template <class Count = std::size_t>
  [[nodiscard]] static Count parse_limit(const std::string& name, std::string_view value, const char* remedy) {
    const auto count = parse<Count>(name, value);
    if (count == 0) throw std::invalid_argument("--" + name + "=" + std::string(value) + ": " + remedy);
    return count;
  }

 private:
  /// What is given; null if nothing is.
  [[nodiscard]] const std::string* find(const std::string& name) const {
    if (!knows(name)) {
      throw std::logic_error("the study reads --" + name + ", which its Plan::options does not list; add \"" + name +
                             "\" there");
    }
    const auto given = others.find(name);
    return given == others.end() ? nullptr : &given->second;
  }
  [[nodiscard]] const std::string* find_without_default(const std::string& name) const {
    if (const auto stated = defaults.find(name); stated != defaults.end()) {
      throw std::logic_error("the study reads --" + name + " with a default, and its Plan::options states \"" + name +
                             "=" + stated->second + "\"; leave out one of them");
    }
    return find(name);
  }
  [[nodiscard]] const std::string& given_or_default(const std::string& name) const {
    const std::string* given = find(name);
    if (given != nullptr) return *given;
    const auto stated = defaults.find(name);
    if (stated == defaults.end()) {
      throw std::logic_error("the study reads --" + name +
                             ", of which its Plan::options states no default; make it \"" + name +
                             "=default\" there, or read it with one");
    }
    return stated->second;
  }
};

namespace command_line {

inline std::vector<std::string> names(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) names.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

inline void read_shard(const std::string& value, Options& options) {
  const std::size_t slash = value.find('/');
  const std::string_view text = value;
  if (slash != std::string::npos) {
    options.shard = Options::parse<unsigned>("shard", text.substr(0, slash));
    options.shards = Options::parse<unsigned>("shard", text.substr(slash + 1));
    if (options.shard >= 1 && options.shard <= options.shards) return;
  }
  throw std::invalid_argument("--shard=" + value + ": give i/n with i from 1 to n, such as --shard=2/4");
}

/// Name and default of one of `Plan::options`.
inline std::pair<std::string, std::optional<std::string>> own_option(const std::string& listed) {
  const std::size_t equals = listed.find('=');
  if (equals == std::string::npos) return {listed, std::nullopt};
  return {listed.substr(0, equals), listed.substr(equals + 1)};
}

/// An option that every study has.
struct CommonOption {
  std::string_view name, value, meaning;
  void (*read)(const std::string& value, Options& options);
  std::string (*otherwise)(const Plan& plan) = nullptr;  ///< its default, for the help
};

/// What `read`, the help and the error of an unknown option go by.
inline constexpr std::array common_options{
    CommonOption{"out", "DIR", "folder of the results",
                 [](const std::string& value, Options& o) {
                   if (value.empty()) throw std::invalid_argument("--out=: name a folder, such as --out=results");
                   o.out = value;
                 },
                 [](const Plan& plan) { return "results-" + plan.name; }},
    CommonOption{"data", "DIR", "folder of recorded data",
                 [](const std::string& value, Options& o) { o.data = value; }},
    CommonOption{"seeds", "N", "searches per recipe and problem",
                 [](const std::string& value, Options& o) { o.seeds = Options::parse<unsigned>("seeds", value); },
                 [](const Plan& plan) { return std::to_string(plan.seeds); }},
    CommonOption{
        "first_seed", "N", "the first seed",
        [](const std::string& value, Options& o) { o.first_seed = Options::parse<unsigned>("first_seed", value); },
        [](const Plan&) { return std::to_string(Options{}.first_seed); }},
    CommonOption{"shard", "i/n", "the i-th of n parts of the searches", read_shard},
    CommonOption{"recipes", "A,B", "only these",
                 [](const std::string& value, Options& o) { o.recipes = names(value); }},
    CommonOption{"problems", "A,B", "only these",
                 [](const std::string& value, Options& o) { o.problems = names(value); }},
    CommonOption{"reference", "A", "the recipe that others are compared with",
                 [](const std::string& value, Options& o) { o.reference = value; },
                 [](const Plan&) { return std::string("the first one"); }},
    CommonOption{"tasks", "N", "maximum number of tasks",
                 [](const std::string& value, Options& o) {
                   o.tasks = Options::parse_limit("tasks", value, "leave it out for the study's own choice");
                 }},
    CommonOption{"threads", "N", "threads of a search",
                 [](const std::string& value, Options& o) {
                   o.threads =
                       Options::parse_limit<unsigned>("threads", value, "leave it out for the study's own choice");
                 }},
    CommonOption{"minutes", "N", "no part of the study begins later than that",
                 [](const std::string& value, Options& o) {
                   const char* remedy = "leave it out for no limit, or give --report, which searches nothing";
                   static_cast<void>(Options::parse_limit("minutes", value, remedy));  // before anything is searched
                   o.others["minutes"] = value;
                 }}};

inline bool is_unread(std::string_view name, const Plan& plan) {
  return std::find(plan.unread.begin(), plan.unread.end(), name) != plan.unread.end();
}

/// Throws `std::invalid_argument` for a value out of range and for an option that the study does not have or read.
inline void read(const std::string& name, const std::string& value, const Plan& plan, Options& options) {
  if (is_unread(name, plan)) {
    throw std::invalid_argument("--" + name + "=" + value +
                                ": the study does not read it; leave it out, or choose what runs by "
                                "--benchmark_filter=REGEX");
  }
  std::string all;
  for (const CommonOption& common : common_options) {
    if (is_unread(common.name, plan)) continue;
    if (common.name == name) return common.read(value, options);
    all += (all.empty() ? "--" : ", --") + std::string(common.name);
  }
  for (const std::string& own : options.known) all += ", --" + own;
  if (!options.knows(name))
    throw std::invalid_argument("--" + name + "=" + value + ": the study has no such option; give " + all);
  options.others[name] = value;
}

}  // namespace command_line

/// What `--help` prints before the options of Google Benchmark.
[[nodiscard]] inline std::string usage(const Plan& plan) {
  std::string text = "Options of the study '" + plan.name + "'; those of Google Benchmark follow.\n";
  const auto add = [&](std::string option, std::string_view meaning) {
    constexpr std::size_t width = 18;
    option.resize(std::max(option.size(), width), ' ');
    text.append("  ").append(option).append(" ").append(meaning).append("\n");
  };
  for (const command_line::CommonOption& common : command_line::common_options) {
    if (command_line::is_unread(common.name, plan)) continue;
    add("--" + std::string(common.name) + "=" + std::string(common.value),
        std::string(common.meaning) + (common.otherwise == nullptr ? "" : " (" + common.otherwise(plan) + ")"));
  }
  add("--report", "no search: tables and figures of finished searches");
  for (const std::string own : plan.options) {
    const auto [name, otherwise] = command_line::own_option(own);
    if (!otherwise || otherwise->empty())
      text += "  --" + name + "=...\n";
    else
      add("--" + name + "=...", "(" + *otherwise + ")");
  }
  return text;
}

/// Removes the study's options from the command line and leaves those of Google Benchmark. Throws
/// `std::invalid_argument` for a value out of range and for an option that the study does not have or read.
inline Options take_options(int& argc, char** argv, const Plan& plan) {
  Options options{.out = "results-" + plan.name, .seeds = plan.seeds};
  for (const std::string own : plan.options) {
    auto [name, otherwise] = command_line::own_option(own);
    if (otherwise) options.defaults[name] = *std::move(otherwise);
    options.known.push_back(std::move(name));
  }
  options.choosing.assign(plan.choosing.begin(), plan.choosing.end());
  options.study = plan.name;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::size_t equals = word.find('=');
    if (word == "--report")
      options.report_only = true;
    else if (!word.starts_with("--") || word.starts_with("--benchmark_") || word.starts_with("--v=") ||
             equals == std::string_view::npos)
      argv[kept++] = argv[i];
    else
      command_line::read(std::string(word.substr(2, equals - 2)), std::string(word.substr(equals + 1)), plan, options);
  }
  argc = kept;
  return options;
}

}  // namespace tunewright::study
