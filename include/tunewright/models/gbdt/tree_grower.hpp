// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/thread_team.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"
#include "tunewright/models/gbdt/split.hpp"

namespace tunewright::models::gbdt {

/// Node of a grown tree. Its children are `left` and `left + 1`. A leaf has `left` = 0.
struct GrownNode {
  std::uint32_t id = 0;  ///< bin over all columns: rows at or below it go left
  std::uint32_t left = 0;
  float value = 0;  ///< of a leaf
};

struct GrowthRules {
  unsigned max_depth = 6;
  float learning_rate = 0.3F;
  SplitRules split;
};

/// Grows regression trees on binned rows, one after another. U = distinct rows, B = bins.
///
///   leaf value = -learning_rate * G / (H + lambda)
///
/// If only the depth is limited, the order of splits does not change the tree. Therefore nodes near the root are split
/// one by one with all threads on each, and the subtrees below are grown depth first, each by one thread, while their
/// rows are in its cache. Of two siblings only the smaller gets its histogram from rows; the other's is the difference
/// to the parent. Nodes of few rows have no histogram (see SplitFinder).
///
/// Cost:        O(depth * listed bins of all rows), and O(B) for each node that touches most bins.
/// Memory:      histograms of one path from the root per thread: 8 * B * depth * threads bytes.
/// Determinism: the same tree at any number of threads: sums are integers, ties are ordered.
class TreeGrower {
 public:
  TreeGrower(const BinnedRows& data, const GrowthRules& rules, ThreadTeam& team);

  /// Grows a tree. packed [U]: sums of each distinct row; allowed [F]: columns that may be split, empty for all. Writes
  /// the leaf value of every distinct row to row_value [U].
  std::vector<GrownNode> grow(std::span<const PackedSum> packed, const Quanta& quanta,
                              std::span<const std::uint8_t> allowed, std::span<float> row_value);

 private:
  using Histogram = std::unique_ptr<PackedSum[]>;  // [B]

  // A node with known rows that is not split yet.
  struct Work {
    std::uint32_t node = 0, begin = 0, end = 0, depth = 0;  // rows_[begin, end)
    PackedSum total = 0;
    Histogram histogram{};  // may be absent
    bool scanned = false;
    Split split{};  // once scanned
    [[nodiscard]] std::uint32_t size() const noexcept { return end - begin; }
  };

  struct Worker {
    explicit Worker(const BinnedRows& data) : finder(data) {}
    Worker(const Worker& other) : finder(other.finder) {}
    SplitFinder finder;
    std::vector<Histogram> free;  // any content
    std::vector<Work> stack;

    Histogram take_histogram(std::size_t bins, bool zeroed = true);
    void give_back(Histogram histogram) {
      if (histogram) free.push_back(std::move(histogram));
    }
  };

  std::span<const std::uint32_t> rows_of(const Work& work) const {
    return std::span(rows_).subspan(work.begin, work.size());
  }
  double listed_bins(const Work& work) const { return bins_a_row_ * work.size(); }
  bool may_split(const Work& work) const { return work.depth < rules_.max_depth && work.size() > 1; }
  // A histogram costs some operations per bin, visiting touched bins about as many per listed bin.
  bool worth_histogram(const Work& work) const { return listed_bins(work) > data_->bins; }
  // Below this, waking the team costs more than it saves.
  bool worth_sharing(const Work& work) const {
    return worth_histogram(work) && listed_bins(work) > 65536 && work.size() > data_->rows / (4 * team_->threads());
  }

  // Whether the split of a node is good enough: its gain is at least gamma and, as in XGBoost, above 1e-6.
  bool accepts(const Work& work) const;
  double strength(PackedSum sum) const;
  float leaf_value(PackedSum sum) const;

  void close(GrownNode& node, const Work& work) const;

  // Partitions the rows of `work` stably and makes its children, which are the next nodes in `tree`.
  std::pair<Work, Work> part(const Work& work, std::vector<GrownNode>& tree, const SplitFinder& finder);

  std::vector<GrownNode> grow_subtree(Work root, Worker& worker);

  static void append_subtree(std::vector<GrownNode>& tree, std::uint32_t at, const std::vector<GrownNode>& subtree);

  // ---- nodes near the root: all threads work on one node ----

  // Runs `f(first column, last column, worker)` over parts of the columns with about equally many bins.
  template <class F>
  void for_column_parts(F&& f) {
    const std::size_t parts = team_->threads();
    const auto boundary = [&](std::size_t part) {
      const std::size_t bin = part * data_->bins / parts;
      std::size_t f_at = 0;
      while (f_at < data_->columns.size() && data_->columns[f_at].first_bin < bin) ++f_at;
      return part == parts ? data_->columns.size() : f_at;
    };
    team_->for_each(parts,
                    [&](std::size_t part, unsigned worker) { f(part, boundary(part), boundary(part + 1), worker); });
  }

  // Histograms of equal parts of the rows, not yet added up.
  std::vector<Histogram> fill_shared(const Work& work);

  // Adds the parts up into `small`, subtracts them from `large` if there is one, and scans both.
  void scan_shared(std::vector<Histogram> parts, Work& small, Work* large);

  void share_root(Work& root) { scan_shared(fill_shared(root), root, nullptr); }

  void split_shared(Work root, std::vector<GrownNode>& tree, std::vector<Work>& open);

  const BinnedRows* data_;
  GrowthRules rules_;
  ThreadTeam* team_;
  std::vector<Worker> workers_;
  std::vector<std::uint32_t> rows_, spare_;  // [U]
  double bins_a_row_ = 1;
  const PackedSum* packed_ = nullptr;
  Quanta quanta_;
  float* row_value_ = nullptr;
};

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/order.hpp"

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE TreeGrower::TreeGrower(const BinnedRows& data, const GrowthRules& rules, ThreadTeam& team)
    : data_(&data),
      rules_(rules),
      team_(&team),
      workers_(team.threads(), Worker(data)),
      rows_(data.rows),
      spare_(data.rows) {
  const std::size_t listed = data.rows == 0 ? 0 : data.list_offsets[data.rows];
  bins_a_row_ = data.rows == 0 ? 1.0 : std::max(1.0, static_cast<double>(listed) / static_cast<double>(data.rows));
}

TUNEWRIGHT_INLINE std::vector<GrownNode> TreeGrower::grow(std::span<const PackedSum> packed, const Quanta& quanta,
                                                          std::span<const std::uint8_t> allowed,
                                                          std::span<float> row_value) {
  packed_ = packed.data();
  quanta_ = quanta;
  row_value_ = row_value.data();
  for (Worker& worker : workers_) {
    worker.finder.set_rules(rules_.split, quanta);
    worker.finder.set_allowed(allowed.empty() ? nullptr : allowed.data());
  }
  std::iota(rows_.begin(), rows_.end(), std::uint32_t{0});

  std::vector<GrownNode> tree(1);
  Work root{.end = static_cast<std::uint32_t>(data_->rows),
            .total = std::accumulate(packed.begin(), packed.end(), PackedSum{0})};
  std::vector<Work> open;
  if (team_->threads() > 1 && worth_sharing(root) && may_split(root)) {
    share_root(root);
    split_shared(std::move(root), tree, open);
  } else {
    if (may_split(root) && worth_histogram(root)) {
      root.histogram = workers_[0].take_histogram(data_->bins);
      workers_[0].finder.template add_rows<1>(rows_of(root), packed_, root.histogram.get());
    }
    open.push_back(std::move(root));
  }

  sort_few(open, [](const Work& a, const Work& b) {  // the longest first: threads end together
    return a.size() != b.size() ? a.size() > b.size() : a.begin < b.begin;
  });
  std::vector<std::vector<GrownNode>> subtrees(open.size());
  team_->for_each(open.size(), [&](std::size_t i, unsigned worker) {
    subtrees[i] = grow_subtree(std::move(open[i]), workers_[worker]);
  });
  // The storage order of nodes depends on the number of threads; Ensemble::add renumbers them.
  for (std::size_t i = 0; i < open.size(); ++i) append_subtree(tree, open[i].node, subtrees[i]);
  return tree;
}

TUNEWRIGHT_INLINE TreeGrower::Histogram TreeGrower::Worker::take_histogram(std::size_t bins, bool zeroed) {
  if (free.empty()) return zeroed ? std::make_unique<PackedSum[]>(bins) : Histogram(new PackedSum[bins]);
  Histogram histogram = std::move(free.back());
  free.pop_back();
  if (zeroed) std::fill_n(histogram.get(), bins, PackedSum{0});
  return histogram;
}

TUNEWRIGHT_INLINE bool TreeGrower::accepts(const Work& work) const {
  if (!(work.split.gain > 0)) return false;
  const PackedSum right = work.total - work.split.left;
  const double gain = strength(work.split.left) + strength(right) - strength(work.total);
  return gain > 1e-6 && gain >= static_cast<double>(rules_.split.gamma);
}

TUNEWRIGHT_INLINE double TreeGrower::strength(PackedSum sum) const {
  const double g = gradient_quanta(sum) * quanta_.gradient, h = hessian_quanta(sum) * quanta_.hessian;
  return g * g / (h + static_cast<double>(rules_.split.lambda));
}

TUNEWRIGHT_INLINE float TreeGrower::leaf_value(PackedSum sum) const {
  const double g = gradient_quanta(sum) * quanta_.gradient, h = hessian_quanta(sum) * quanta_.hessian;
  const double weight = h + static_cast<double>(rules_.split.lambda);
  return weight > 0 ? static_cast<float>(-static_cast<double>(rules_.learning_rate) * g / weight) : 0.0F;
}

TUNEWRIGHT_INLINE void TreeGrower::close(GrownNode& node, const Work& work) const {
  node.value = leaf_value(work.total);
  for (const std::uint32_t row : rows_of(work)) row_value_[row] = node.value;
}

TUNEWRIGHT_INLINE std::pair<TreeGrower::Work, TreeGrower::Work> TreeGrower::part(const Work& work,
                                                                                 std::vector<GrownNode>& tree,
                                                                                 const SplitFinder& finder) {
  const Column& column = data_->columns[finder.column_of(work.split.id)];
  const std::uint8_t* bins = data_->column_bins(finder.column_of(work.split.id));
  const auto last_left = static_cast<std::uint8_t>(work.split.id - column.first_bin);
  std::uint32_t* rows = rows_.data();
  std::uint32_t* spare = spare_.data() + work.begin;  // its own range: threads do not meet
  std::uint32_t left_end = work.begin, moved = 0;
  for (std::uint32_t i = work.begin; i < work.end; ++i) {
    const std::uint32_t row = rows[i];
    const bool right = bins[row] > last_left;
    rows[left_end] = row;
    spare[moved] = row;
    left_end += right ? 0U : 1U;
    moved += right ? 1U : 0U;
  }
  std::copy_n(spare, moved, rows + left_end);
  const auto first_child = static_cast<std::uint32_t>(tree.size());
  tree[work.node].id = work.split.id;
  tree[work.node].left = first_child;
  tree.resize(tree.size() + 2);
  return {
      Work{
          .node = first_child, .begin = work.begin, .end = left_end, .depth = work.depth + 1, .total = work.split.left},
      Work{.node = first_child + 1,
           .begin = left_end,
           .end = work.end,
           .depth = work.depth + 1,
           .total = work.total - work.split.left}};
}

TUNEWRIGHT_INLINE std::vector<GrownNode> TreeGrower::grow_subtree(Work root, Worker& worker) {
  std::vector<GrownNode> tree(1);
  root.node = 0;
  worker.stack.clear();
  worker.stack.push_back(std::move(root));
  while (!worker.stack.empty()) {
    Work work = std::move(worker.stack.back());
    worker.stack.pop_back();
    if (!work.scanned && may_split(work)) {
      work.split = work.histogram
                       ? worker.finder.scan_histogram(work.histogram.get(), work.total, 0, data_->columns.size())
                       : worker.finder.scan_rows(rows_of(work), packed_, work.total);
    }
    if (!accepts(work)) {
      worker.give_back(std::move(work.histogram));
      close(tree[work.node], work);
      continue;
    }
    auto [left, right] = part(work, tree, worker.finder);
    Work& small = left.size() < right.size() ? left : right;
    Work& large = left.size() < right.size() ? right : left;
    if (work.histogram && may_split(large) && worth_histogram(large)) {
      if (may_split(small) && worth_histogram(small)) {
        small.histogram = worker.take_histogram(data_->bins);
        worker.finder.template add_rows<1>(rows_of(small), packed_, small.histogram.get());
        for (std::size_t bin = 0; bin < data_->bins; ++bin) work.histogram[bin] -= small.histogram[bin];
      } else {
        worker.finder.template add_rows<-1>(rows_of(small), packed_, work.histogram.get());
      }
      large.histogram = std::move(work.histogram);
    }
    worker.give_back(std::move(work.histogram));
    worker.stack.push_back(std::move(right));
    worker.stack.push_back(std::move(left));
  }
  return tree;
}

TUNEWRIGHT_INLINE void TreeGrower::append_subtree(std::vector<GrownNode>& tree, std::uint32_t at,
                                                  const std::vector<GrownNode>& subtree) {
  // Node 0 of the subtree takes its reserved place; the others move behind the tree.
  const auto shift = static_cast<std::uint32_t>(tree.size()) - 1;
  const auto moved = [shift](GrownNode node) {
    if (node.left != 0) node.left += shift;
    return node;
  };
  tree[at] = moved(subtree[0]);
  for (std::size_t i = 1; i < subtree.size(); ++i) tree.push_back(moved(subtree[i]));
}

TUNEWRIGHT_INLINE std::vector<TreeGrower::Histogram> TreeGrower::fill_shared(const Work& work) {
  std::vector<Histogram> parts(team_->threads());
  for (Histogram& part : parts) part = workers_[0].take_histogram(data_->bins);
  team_->for_each(parts.size(), [&](std::size_t i, unsigned) {
    const std::size_t begin = i * work.size() / parts.size(), end = (i + 1) * work.size() / parts.size();
    workers_[i].finder.template add_rows<1>(rows_of(work).subspan(begin, end - begin), packed_, parts[i].get());
  });
  return parts;
}

TUNEWRIGHT_INLINE void TreeGrower::scan_shared(std::vector<Histogram> parts, Work& small, Work* large) {
  std::vector<std::pair<Split, Split>> found(team_->threads());
  for_column_parts([&](std::size_t part, std::size_t first, std::size_t last, unsigned worker) {
    if (first == last) return;
    const std::size_t begin = data_->columns[first].first_bin;
    const std::size_t end = data_->columns[last - 1].first_bin + data_->columns[last - 1].bins;
    for (std::size_t bin = begin; bin < end; ++bin) {
      PackedSum sum = 0;
      for (const Histogram& histogram : parts) sum += histogram[bin];
      parts[0][bin] = sum;
      if (large != nullptr) large->histogram[bin] -= sum;
    }
    SplitFinder& finder = workers_[worker].finder;
    if (may_split(small)) found[part].first = finder.scan_histogram(parts[0].get(), small.total, first, last);
    if (large != nullptr && may_split(*large)) {
      found[part].second = finder.scan_histogram(large->histogram.get(), large->total, first, last);
    }
  });
  for (const auto& [of_small, of_large] : found) {  // in the order of columns, so that ties go to the first
    if (of_small.gain > small.split.gain) small.split = of_small;
    if (large != nullptr && of_large.gain > large->split.gain) large->split = of_large;
  }
  small.scanned = true;
  if (large != nullptr) large->scanned = true;
  small.histogram = std::move(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) workers_[0].give_back(std::move(parts[i]));
}

TUNEWRIGHT_INLINE void TreeGrower::split_shared(Work root, std::vector<GrownNode>& tree, std::vector<Work>& open) {
  std::vector<Work> queue;
  queue.push_back(std::move(root));
  while (!queue.empty()) {
    Work work = std::move(queue.back());
    queue.pop_back();
    if (!worth_sharing(work) || !accepts(work)) {
      open.push_back(std::move(work));
      continue;
    }
    auto [left, right] = part(work, tree, workers_[0].finder);
    Work& small = left.size() < right.size() ? left : right;
    Work& large = left.size() < right.size() ? right : left;
    large.histogram = std::move(work.histogram);
    scan_shared(fill_shared(small), small, &large);
    queue.push_back(std::move(right));
    queue.push_back(std::move(left));
  }
}

}  // namespace tunewright::models::gbdt

#endif
