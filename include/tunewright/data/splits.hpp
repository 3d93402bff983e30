// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Positions of training and test records, ascending, without overlap.
struct Split {
  std::vector<std::size_t> train, test;
};

namespace splits_detail {

void check_share(const char* split, double test_share);

/// Throws if a side is empty, because a score on training records is meaningless.
Split checked(Split split, const char* name, const std::string& fix);

/// Moves whole classes of `value` to the test side, in random order, until it has the share; at least one class stays
/// on each side if there are two.
Split by_class(const std::vector<std::uint32_t>& value, double test_share, Rng rng);

}  // namespace splits_detail

/// Holds out a random share of every group (task on one target), to test a model on new programs of known tasks.
///
/// Throws `std::invalid_argument` if one side would be empty: testing on training records is an error.
/// Deviates: TenSet does not shuffle, and its files are in the order of a search, so that its two sides differ in
///           distribution.
[[nodiscard]] Split within_task(const Dataset& data, double test_share, const Rng& rng);

/// Holds out whole tasks, on all targets, until the share of the records is reached, to test a model on programs of new
/// tasks.
///
/// Throws `std::invalid_argument` for fewer than two tasks.
[[nodiscard]] Split by_task(const Dataset& data, double test_share, const Rng& rng);

/// Holds out whole targets until the share of the records is reached, to test a model on programs of a new device.
///
/// Throws `std::invalid_argument` for fewer than two targets.
/// Deviates: TenSet tests on the training records if there is only one target.
[[nodiscard]] Split by_target(const Dataset& data, double test_share, const Rng& rng);

/// The same with given test targets. Throws `std::invalid_argument` for an unknown name.
[[nodiscard]] Split by_target(const Dataset& data, const std::vector<std::string>& held_out);

/// The first `count` records of every group in measurement order. In logs of a guided search these were chosen before
/// the search had learned much.
[[nodiscard]] std::vector<std::size_t> first_records(const Dataset& data, std::size_t count);

/// The values at `indices`, for labels or groups of a whole dataset together with a subset of it. Throws
/// `std::out_of_range` for a position that there is not.
template <class T>
[[nodiscard]] std::vector<T> pick(const std::vector<T>& values, std::span<const std::size_t> indices) {
  std::vector<T> picked;
  picked.reserve(indices.size());
  for (const std::size_t i : indices) {
    if (i >= values.size()) {
      throw std::out_of_range("data::pick: position " + std::to_string(i) + " of " + std::to_string(values.size()) +
                              " was asked for; give positions below that");
    }
    picked.push_back(values[i]);
  }
  return picked;
}

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

#include "tunewright/core/number_text.hpp"

namespace tunewright::data::splits_detail {

TUNEWRIGHT_INLINE void check_share(const char* split, double test_share) {
  if (test_share > 0 && test_share < 1) return;
  throw std::invalid_argument(std::string(split) + ": a test share of " + number_text(test_share) +
                              " was asked for; give one between 0 and 1");
}

TUNEWRIGHT_INLINE Split checked(Split split, const char* name, const std::string& fix) {
  if (split.train.empty() || split.test.empty()) {
    throw std::invalid_argument(std::string(name) + ": the " + (split.test.empty() ? "test" : "training") +
                                " side would be empty; " + fix);
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.test.begin(), split.test.end());
  return split;
}

TUNEWRIGHT_INLINE Split by_class(const std::vector<std::uint32_t>& value, double test_share, Rng rng) {
  std::vector<std::uint32_t> classes(value);
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  rng.shuffle(std::span(classes));
  const double wanted = test_share * static_cast<double>(value.size());
  const std::size_t numbers = classes.empty() ? 0 : *std::max_element(classes.begin(), classes.end()) + std::size_t{1};
  std::vector<std::size_t> records(numbers);  // of each class
  for (const std::uint32_t one : value) ++records[one];
  std::vector<bool> is_test(numbers);
  double taken = 0;
  for (std::size_t c = 0; c + 1 < classes.size() && taken < wanted; ++c) {
    is_test[classes[c]] = true;
    taken += static_cast<double>(records[classes[c]]);
  }
  Split split;
  for (std::size_t i = 0; i < value.size(); ++i) (is_test[value[i]] ? split.test : split.train).push_back(i);
  return split;
}

}  // namespace tunewright::data::splits_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE Split within_task(const Dataset& data, double test_share, const Rng& rng) {
  splits_detail::check_share("within_task", test_share);
  Split split;
  std::uint64_t stream = 0;
  for (std::vector<std::size_t>& members : data.by_group()) {
    rng.split(stream++).shuffle(std::span(members));
    const auto held = static_cast<std::size_t>(std::lround(test_share * static_cast<double>(members.size())));
    for (std::size_t i = 0; i < members.size(); ++i) (i < held ? split.test : split.train).push_back(members[i]);
  }
  return splits_detail::checked(std::move(split), "within_task",
                                "the dataset has too few records a task for this test share");
}

TUNEWRIGHT_INLINE Split by_task(const Dataset& data, double test_share, const Rng& rng) {
  splits_detail::check_share("by_task", test_share);
  data.check();
  return splits_detail::checked(splits_detail::by_class(data.task, test_share, rng), "by_task",
                                "the dataset has fewer than two tasks: add tasks, or split within_task");
}

TUNEWRIGHT_INLINE Split by_target(const Dataset& data, double test_share, const Rng& rng) {
  splits_detail::check_share("by_target", test_share);
  data.check();
  return splits_detail::checked(splits_detail::by_class(data.target, test_share, rng), "by_target",
                                "the dataset has fewer than two targets: add records of another device, or "
                                "split by_task");
}

TUNEWRIGHT_INLINE Split by_target(const Dataset& data, const std::vector<std::string>& held_out) {
  data.check();
  std::vector<bool> is_test(data.targets.size());
  for (const std::string& name : held_out) {
    const auto found = std::find(data.targets.begin(), data.targets.end(), name);
    if (found == data.targets.end()) {
      std::string known;
      for (const std::string& target : data.targets) known += (known.empty() ? "" : ", ") + target;
      throw std::invalid_argument("by_target: no target '" + name + "' in the dataset; it has: " + known);
    }
    is_test[static_cast<std::size_t>(found - data.targets.begin())] = true;
  }
  Split split;
  for (std::size_t i = 0; i < data.size(); ++i) (is_test[data.target[i]] ? split.test : split.train).push_back(i);
  return splits_detail::checked(std::move(split), "by_target",
                                "hold out some of the targets that have records, and not all of them");
}

TUNEWRIGHT_INLINE std::vector<std::size_t> first_records(const Dataset& data, std::size_t count) {
  std::vector<std::size_t> first;
  for (const std::vector<std::size_t>& members : data.by_group())
    first.insert(first.end(), members.begin(),
                 members.begin() + static_cast<std::ptrdiff_t>(std::min(count, members.size())));
  std::sort(first.begin(), first.end());
  return first;
}

}  // namespace tunewright::data

#endif
