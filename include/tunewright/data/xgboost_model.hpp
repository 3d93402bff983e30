// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "tunewright/data/whole_number.hpp"
#include "tunewright/data/xgboost/ensemble.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

namespace xgboost_detail {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error("not an XGBoost model in JSON that can be read: " + why);
}

// Numeric parameters are text: "5E-1", "[5E-1]" since XGBoost 3.
double number(const nlohmann::json& parameters, const char* name);

XgboostEnsemble::Link link_of(const std::string& objective);

template <class T>
std::vector<T> column(const nlohmann::json& tree, const char* name, std::size_t nodes) {
  const nlohmann::json& stored = tree.at(name);
  if (!stored.is_array() || stored.size() != nodes)
    refuse(std::string("'") + name + "' does not hold one number a node");
  std::vector<T> out;
  for (const nlohmann::json& value : stored) {
    if (value.is_boolean()) {  // flags are numbers in some versions and Booleans in others
      out.push_back(static_cast<T>(value.get<bool>()));
    } else if constexpr (std::is_floating_point_v<T>) {
      out.push_back(value.get<T>());
    } else {
      const std::optional<T> number = whole_number<T>(value);
      if (!number) refuse(std::string("'") + name + "' holds " + value.dump() + ", no whole number of its range");
      out.push_back(*number);
    }
  }
  return out;
}

XgboostEnsemble::Tree tree_of(const nlohmann::json& json, std::size_t columns);

XgboostEnsemble ensemble_of(const nlohmann::json& json);

}  // namespace xgboost_detail

/// Reads a model saved as JSON by XGBoost (1.0 or newer): boosted trees with one score per row. Throws
/// `std::runtime_error` with the reason for other and malformed files. O(bytes).
[[nodiscard]] XgboostEnsemble read_xgboost_model(std::istream& in);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

namespace tunewright::data::xgboost_detail {

TUNEWRIGHT_INLINE double number(const nlohmann::json& parameters, const char* name) {
  const auto& quoted = parameters.at(name).get_ref<const std::string&>();
  std::string_view text = quoted;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    refuse(std::string(name) + " is '" + quoted + "', not a number");
  return value;
}

TUNEWRIGHT_INLINE XgboostEnsemble::Link link_of(const std::string& objective) {
  using Link = XgboostEnsemble::Link;
  struct Known {
    std::string_view prefix;
    Link link;
  };
  constexpr std::array<Known, 12> known{{{"reg:logistic", Link::Logistic},
                                         {"binary:logistic", Link::Logistic},
                                         {"reg:gamma", Link::Exponential},
                                         {"reg:tweedie", Link::Exponential},
                                         {"count:poisson", Link::Exponential},
                                         {"reg:squarederror", Link::Identity},
                                         {"reg:squaredlogerror", Link::Identity},
                                         {"reg:pseudohubererror", Link::Identity},
                                         {"reg:absoluteerror", Link::Identity},
                                         {"rank:pairwise", Link::Identity},
                                         {"rank:ndcg", Link::Identity},
                                         {"rank:map", Link::Identity}}};
  for (const Known& one : known) {
    if (one.prefix == objective) return one.link;
  }
  refuse("objective '" + objective +
         "' is not known here; give a model with another, such as reg:squarederror or rank:pairwise");
}

TUNEWRIGHT_INLINE XgboostEnsemble::Tree tree_of(const nlohmann::json& json, std::size_t columns) {
  const std::size_t nodes = json.at("left_children").size();
  const auto left = column<std::int64_t>(json, "left_children", nodes);
  const auto right = column<std::int64_t>(json, "right_children", nodes);
  const auto threshold = column<double>(json, "split_conditions", nodes);
  const auto feature = column<std::int64_t>(json, "split_indices", nodes);
  const auto missing_left = column<int>(json, "default_left", nodes);
  if (json.contains("split_type")) {
    for (const int type : column<int>(json, "split_type", nodes)) {
      if (type != 0) refuse("there are splits by category");
    }
  }
  if (nodes == 0) refuse("a tree has no node");

  // Nodes in the order of traversal, without pruned ones.
  XgboostEnsemble::Tree tree(1);
  std::vector<std::size_t> stored{0};
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const std::size_t at = stored[i];
    tree[i].threshold = static_cast<float>(threshold[at]);
    if (!std::isfinite(tree[i].threshold)) refuse("node " + std::to_string(at) + " holds no finite number");
    if (left[at] == -1) continue;
    const auto is_node = [&](std::int64_t child) { return child > 0 && child < static_cast<std::int64_t>(nodes); };
    if (!is_node(left[at]) || !is_node(right[at]) || stored.size() + 2 > nodes)
      refuse("the children of node " + std::to_string(at) + " are not sound");
    if (feature[at] < 0 || feature[at] >= static_cast<std::int64_t>(columns))
      refuse("node " + std::to_string(at) + " splits on feature " + std::to_string(feature[at]) + " of " +
             std::to_string(columns));
    tree[i].feature = static_cast<std::uint32_t>(feature[at]);
    tree[i].missing_left = missing_left[at] != 0;
    tree[i].left = static_cast<std::uint32_t>(stored.size());
    tree[i].right = tree[i].left + 1;
    stored.push_back(static_cast<std::size_t>(left[at]));
    stored.push_back(static_cast<std::size_t>(right[at]));
    tree.resize(stored.size());
  }
  return tree;
}

TUNEWRIGHT_INLINE XgboostEnsemble ensemble_of(const nlohmann::json& json) {
  const nlohmann::json& learner = json.at("learner");
  const nlohmann::json& parameters = learner.at("learner_model_param");
  const nlohmann::json& booster = learner.at("gradient_booster");
  if (const auto name = booster.at("name").get<std::string>(); name != "gbtree")
    refuse("the booster is '" + name + "', not gbtree");
  for (const char* several : {"num_class", "num_target"}) {
    if (parameters.contains(several) && number(parameters, several) > 1)
      refuse(std::string(several) + " is above 1; models with one score a row can be read");
  }
  XgboostEnsemble out;
  out.objective = learner.at("objective").at("name").get<std::string>();
  out.link = link_of(out.objective);
  const double columns = number(parameters, "num_feature");
  if (!(columns >= 0 && columns <= 1e9)) refuse("num_feature is out of range");
  out.columns = static_cast<std::size_t>(columns);
  const auto base = static_cast<float>(number(parameters, "base_score"));
  switch (out.link) {
    case XgboostEnsemble::Link::Logistic: out.base_margin = -std::log(1.0F / base - 1.0F); break;
    case XgboostEnsemble::Link::Exponential: out.base_margin = std::log(base); break;
    case XgboostEnsemble::Link::Identity: out.base_margin = base; break;
  }
  if (!std::isfinite(out.base_margin)) refuse("base_score is out of the range of its objective");
  for (const nlohmann::json& tree : booster.at("model").at("trees")) out.trees.push_back(tree_of(tree, out.columns));
  return out;
}

}  // namespace tunewright::data::xgboost_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE XgboostEnsemble read_xgboost_model(std::istream& in) {
  try {
    return xgboost_detail::ensemble_of(nlohmann::json::parse(in));
  } catch (const nlohmann::json::exception& error) {
    xgboost_detail::refuse(error.what());
  }
}

}  // namespace tunewright::data

#endif
