// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <vector>

#include "tunewright/core/observer.hpp"
#include "tunewright/data/replaced_file.hpp"

namespace tunewright::study {

/// The expected latency of a network after each round of its search, an observer of the search.
class SearchCurve {
 public:
  SearchCurve() = default;
  /// The lines `seconds latency` of a file.
  explicit SearchCurve(const std::filesystem::path& path) {
    std::ifstream file(path);
    for (Point point; file >> point.elapsed_s >> point.latency_s;) points_.push_back(point);
  }
  void save(const std::filesystem::path& path) const {
    data::ReplacedFile file(path.string());
    file.stream().precision(17);
    for (const Point& point : points_) file.stream() << point.elapsed_s << ' ' << point.latency_s << '\n';
    file.replace();
  }

  void on_round(const RunStatus& status) {
    if (const auto latency = status.network->end_to_end())
      points_.push_back({status.elapsed.count(), latency->count()});
  }
  [[nodiscard]] double elapsed_s() const { return points_.empty() ? 0 : points_.back().elapsed_s; }

  /// What a search spent on a latency.
  struct Spent {
    double seconds = 0;
    bool reached = false;
  };
  /// The seconds until `latency_s` was reached; all of them where it was not. Over several searches, the mean of
  /// `seconds` over the mean of `reached` is the expected running time (`study::running_time`): leaving out those that
  /// did not reach it would favour the search.
  [[nodiscard]] Spent spent_on(double latency_s) const {
    for (const Point& point : points_)
      if (point.latency_s <= latency_s) return {point.elapsed_s, true};
    return {elapsed_s(), false};
  }

 private:
  struct Point {
    double elapsed_s = 0, latency_s = 0;
  };
  std::vector<Point> points_;
};

}  // namespace tunewright::study
