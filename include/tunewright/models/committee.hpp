// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <map>
#include <ostream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/persistence.hpp"

namespace tunewright::models {

/// An ensemble of N models of one type, trained on different samples of the data with different seeds; their
/// disagreement measures uncertainty. Makes any model an UncertainCostModel.
///
///   score     = mean_k f_k            deviation^2 = 1/N sum_k (f_k - score)^2
///   f_k is trained on as many programs of each group as there are, drawn with replacement (bootstrap)
///
/// Paper:       Seung et al., Query by Committee, COLT 1992; Breiman, Bagging Predictors, Machine Learning 1996;
///              Lakshminarayanan et al., Deep Ensembles, NIPS 2017 (no bootstrap, only seeds).
/// Models:      CostModel, UncertainCostModel; EmbeddingCostModel (that of member 0), PersistentCostModel and
///              ParametricCostModel (all members' weights, one after another) if M is.
/// Units:       those of M. A ranking objective fixes scores only up to a scale; the deviations of its members compare
///              only programs of one task.
/// Cost:        N times that of M; members are trained in parallel, each with its share of the threads. A predict after
///              weights were written through `parameters` copies them.
/// Determinism: bit-identical at any number of threads, as M is.
/// Errors:      those of M; `fit` rejects members that could only be equal, `load` another number of members.
template <CostModel M, std::size_t N = 5>
struct Committee {
  static_assert(N >= 2, "one model cannot disagree; take at least two");
  template <class Featurizer>
  static constexpr bool reads_rows_of = ReadsRowsOf<M, Featurizer>;

  M member{};             ///< options of every member; a `seed` among them is replaced
  bool bootstrap = true;  ///< false: all train on the same data and differ only in their `seed`, which M must have
  unsigned threads = 0;   ///< 0: all hardware threads
  std::uint64_t seed = 43;

  std::vector<M> members{};         ///< [N] the trained members; empty before the first fit
  std::vector<float> weights = {};  ///< all members' weights, if `parameters` returned them; else empty
  bool learned_nothing = false;     ///< no member was shown a label above 0 in the last fit

  /// A committee of members with their own quick settings.
  [[nodiscard]] static Committee quick()
    requires requires { M::quick(); }
  {
    return {.member = M::quick()};
  }

  void predict(const FeatureBatch& x, std::span<float> score) const {
    check_predict_sizes("models::Committee", x, score.size());
    if (members.empty()) return member.predict(x, score);
    mean_of(opinions(x), score);
  }

  /// Before the first fit, and after one that taught no member anything, every deviation is 1, because labels are in
  /// [0, 1].
  void predict_with_deviation(const FeatureBatch& x, std::span<float> score, std::span<float> deviation) const {
    check_predict_sizes("models::Committee", x, score.size());
    check_predict_sizes("models::Committee", x, deviation.size());
    if (!taught()) {
      predict(x, score);
      for (std::size_t p = 0; p < score.size(); ++p) deviation[p] = std::isinf(score[p]) ? infinity : 1.0F;
      return;
    }
    const std::vector<float> all = opinions(x);
    mean_of(all, score);
    for (std::size_t p = 0; p < score.size(); ++p) {
      double sum = 0;
      for (std::size_t k = 0; k < N; ++k) {
        const double off = static_cast<double>(all[k * score.size() + p]) - static_cast<double>(score[p]);
        sum += off * off;
      }
      deviation[p] = std::isinf(score[p]) ? infinity : static_cast<float>(std::sqrt(sum / double{N}));
    }
  }

  /// Throws the errors of M's fit, and `std::invalid_argument` for members without a `seed` that would all learn the
  /// same, because `bootstrap` is false.
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_lesson("models::Committee", x, y, 1, group);  // all of it, whatever the members draw
    if constexpr (!requires(M& one) { one.seed = std::uint64_t{}; }) {
      require(bootstrap, "models::Committee", "bootstrap", 0, "true: members without a seed would all be equal");
    }
    const std::size_t all = threads == 0 ? hardware_threads() : threads;
    const std::size_t at_once = std::min(all, N);
    std::vector<M> fitted(N, member);
    std::array<bool, N> shown{};  // whether member k saw a label above 0
    parallel_for(N, static_cast<unsigned>(at_once), [&](std::size_t k) {
      M& one = fitted[k];
      const Rng rng = Rng(seed).split(k);
      if constexpr (requires { one.seed = std::uint64_t{}; }) one.seed = rng.split(1)();
      if constexpr (requires { one.threads = 1U; }) one.threads = static_cast<unsigned>(all / at_once);
      if (bootstrap) {
        const Lesson drawn = draw(x, y, group, rng.split(2));
        one.fit(drawn.x, drawn.y, drawn.group);
        shown[k] = has_success(drawn.x, drawn.y);
      } else {
        one.fit(x, y, group);
        shown[k] = has_success(x, y);
      }
      if constexpr (requires { one.threads = member.threads; }) one.threads = member.threads;
    });
    members = std::move(fitted);
    weights.clear();
    learned_nothing = std::none_of(shown.begin(), shown.end(), [](bool any) { return any; });
  }

  [[nodiscard]] bool trained() const
    requires requires(const M& model) { static_cast<bool>(model.trained()); }
  {
    if (members.empty()) return static_cast<bool>(member.trained());
    return std::any_of(members.begin(), members.end(), [](const M& one) { return static_cast<bool>(one.trained()); });
  }

  /// See EmbeddingCostModel.
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const
    requires EmbeddingCostModel<M>
  {
    if (members.empty()) return member.embed(x);
    FeatureBatch out;
    with_members([&](const std::vector<M>& all) { out = all[0].embed(x); });
    return out;
  }

  /// See ParametricCostModel.
  [[nodiscard]] std::span<float> parameters()
    requires ParametricCostModel<M>
  {
    if (weights.empty()) {
      for (M& one : members) {
        const std::span<float> own = one.parameters();
        weights.insert(weights.end(), own.begin(), own.end());
      }
    }
    return weights;
  }

  /// See PersistentCostModel. Tensors of member k are named "k.<name>".
  void save(std::ostream& out, std::uint64_t feature_schema) const
    requires PersistentCostModel<M>
  {
    std::vector<data::Tensor> tensors;
    std::map<std::string, std::string> metadata{{"members", std::to_string(members.size())}};
    if (learned_nothing) metadata["learned_nothing"] = "1";
    with_members([&](const std::vector<M>& all) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        const std::string prefix = std::to_string(k) + '.';
        std::stringstream stream;
        all[k].save(stream, feature_schema);
        data::TensorFile file = data::read_safetensors(stream);
        for (data::Tensor& tensor : file.tensors) {
          tensor.name = prefix + tensor.name;
          tensors.push_back(std::move(tensor));
        }
        for (const auto& [key, text] : file.metadata) metadata[prefix + key] = text;
      }
    });
    save_tensors("models::Committee", out, feature_schema, tensors, std::move(metadata));
  }
  void load(std::istream& in, std::uint64_t feature_schema)
    requires PersistentCostModel<M>
  {
    bool nothing = false;
    members = load_tensors("models::Committee", in, feature_schema, [&](const data::TensorFile& file) {
      const auto stored = file.metadata.find("members");
      const std::string count = stored == file.metadata.end() ? "no" : stored->second;
      nothing = file.metadata.contains("learned_nothing");
      std::vector<M> all;
      if (count == "0") return all;
      if (count != std::to_string(N)) {
        throw std::runtime_error("the file holds " + count + " members, this committee has " + std::to_string(N));
      }
      for (std::size_t k = 0; k < N; ++k) {
        std::stringstream stream;
        write_member(file, std::to_string(k) + '.', stream);
        all.push_back(member);
        all.back().load(stream, feature_schema);
      }
      return all;
    });
    weights.clear();
    learned_nothing = nothing;
  }

 private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  struct Lesson {
    FeatureBatch x;
    std::vector<float> y;
    std::vector<std::uint32_t> group;
  };

  static bool has_success(const FeatureBatch& x, std::span<const float> y) {
    for (std::size_t p = 0; p < y.size(); ++p) {
      if (y[p] > 0 && !x.program(p).empty()) return true;
    }
    return false;
  }

  // Whether the members may disagree. Those that cannot tell have learned nothing from failures alone.
  bool taught() const {
    if (members.empty()) return false;
    if constexpr (requires { this->trained(); })
      return trained();
    else
      return !learned_nothing;
  }

  // A bootstrap sample: as many programs of each group as it has, drawn with replacement, in their order.
  static Lesson draw(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group, Rng rng) {
    const std::vector<std::uint32_t> number = numbered_by_appearance(group);
    std::vector<std::vector<std::size_t>> by_group(1);
    for (std::size_t p = 0; p < y.size(); ++p) {
      const std::size_t own = number.empty() ? 0 : number[p];
      if (own == by_group.size()) by_group.emplace_back();
      by_group[own].push_back(p);
    }
    std::vector<std::size_t> drawn;
    for (const std::vector<std::size_t>& programs : by_group) {
      for (std::size_t i = 0; i < programs.size(); ++i) drawn.push_back(programs[rng.below(programs.size())]);
    }
    std::sort(drawn.begin(), drawn.end());
    Lesson out{FeatureBatch(x.columns()), {}, {}};
    for (const std::size_t p : drawn) {
      out.x.append_program(x.program(p));
      out.y.push_back(y[p]);
      if (!group.empty()) out.group.push_back(group[p]);
    }
    return out;
  }

  // Calls f(members) with the weights that were written through `parameters`.
  template <class F>
  void with_members(F&& f) const {
    if constexpr (ParametricCostModel<M>) {
      if (!weights.empty()) {
        std::vector<M> copies = members;
        const float* from = weights.data();
        for (M& one : copies) {
          const std::span<float> own = one.parameters();
          std::copy_n(from, own.size(), own.begin());
          from += own.size();
        }
        return f(std::as_const(copies));
      }
    }
    f(members);
  }

  // Scores of every member, (N, P).
  std::vector<float> opinions(const FeatureBatch& x) const {
    std::vector<float> all(N * x.programs());
    with_members([&](const std::vector<M>& asked) {
      for (std::size_t k = 0; k < N; ++k) asked[k].predict(x, std::span(all).subspan(k * x.programs(), x.programs()));
    });
    return all;
  }
  static void mean_of(const std::vector<float>& all, std::span<float> score) {
    for (std::size_t p = 0; p < score.size(); ++p) {
      double sum = 0;
      for (std::size_t k = 0; k < N; ++k) sum += static_cast<double>(all[k * score.size() + p]);
      score[p] = static_cast<float>(sum / double{N});
    }
  }

  // The tensors and metadata of one member, as its own file.
  static void write_member(const data::TensorFile& file, const std::string& prefix, std::ostream& out) {
    std::vector<data::Tensor> tensors;
    for (const data::Tensor& tensor : file.tensors) {
      if (tensor.name.compare(0, prefix.size(), prefix) != 0) continue;
      tensors.push_back(tensor);
      tensors.back().name.erase(0, prefix.size());
    }
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : file.metadata) {
      if (key.compare(0, prefix.size(), prefix) == 0) metadata[key.substr(prefix.size())] = text;
    }
    data::write_safetensors(out, tensors, metadata);
  }
};

}  // namespace tunewright::models
