// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/cholesky.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/program_vectors.hpp"

namespace tunewright::models {

/// Similarity of programs at distance r, in units of the length scale l.
enum class Kernel : std::uint8_t {
  Rbf,       ///< exp(-r^2 / 2)
  Matern52,  ///< (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r): rougher, and usually closer to real run times
};

/// Gaussian-process regression for small spaces, on the summed or mean rows of a program.
///
///   score       = b + k . K^-1 (y - b)            K_pq = kernel(|z_p - z_q| / l) + noise [p = q],  b = mean of y
///   deviation^2 = s^2 (1 - k . K^-1 k)            k_p = kernel(|z - z_p| / l)
///   s^2         = 1/n (y - b) . K^-1 (y - b)      which maximises the likelihood given l and noise; at least 1e-6
///
/// z are standardised features, see ProgramVectors, with one length scale for all. A length scale or noise of 0 is
/// chosen from a grid (median distance * 2^-3 .. 2^2; 1e-3 .. 0.5) by the largest marginal likelihood on at most 400
/// programs. The deviation is that of the mean, without noise.
///
/// Paper:       Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT Press 2006, algorithm 2.1.
/// Models:      CostModel, UncertainCostModel, EmbeddingCostModel (z / l: distances of the kernel),
///              PersistentCostModel.
/// Shapes:      P or n programs, D columns. Units: those of y.
/// Cost:        fit O(n^3 + n^2 D); predict O(n D) per program, deviation O(n^2); memory O(n^2).
/// Determinism: bit-identical at any number of threads; the seed draws subsets.
/// Errors:      `std::invalid_argument` as every CostModel, for labels not from 0 to `most_label`, for options out
///              of range, and for more than `most_programs` programs unless `draw_when_more`.
struct GaussianProcess {
  Kernel kernel = Kernel::Matern52;
  RowsAs rows = RowsAs::Sum;
  double length_scale = 0;           ///< l, in standard deviations of the features; 0: searched
  double noise = 0;                  ///< variance of the noise / s^2; 0: searched
  std::size_t most_programs = 2000;  ///< maximum n, at least 1
  bool draw_when_more = false;       ///< draws a random sample of that size instead of throwing
  unsigned threads = 0;              ///< 0: all hardware threads
  std::uint64_t seed = 43;

  /// The trained state; empty before the first fit.
  struct Learned {
    ProgramVectors vectors;
    Kernel kernel = Kernel::Matern52;
    double length_scale = 1, noise = 0;
    double mean = 0;                   // b
    double signal = 1;                 // s^2
    double log_likelihood = 0;         // of all n programs
    std::vector<double> inputs;        // (n, D)
    std::vector<double> labels;        // [n] y - b
    std::vector<double> coefficients;  // [n] K^-1 (y - b)
    Cholesky factor;                   // of K
  };
  Learned learned{};

  void predict(const FeatureBatch& x, std::span<float> score) const;

  /// Before the first fit every deviation is 1, because labels are in [0, 1].
  void predict_with_deviation(const FeatureBatch& x, std::span<float> score, std::span<float> deviation) const;

  /// [P, D], see EmbeddingCostModel.
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const;

  /// Throws `std::invalid_argument` for options out of range, sizes that do not match, labels that are negative
  /// or not finite, features that are NaN, and more programs than `most_programs`.
  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group);

  /// `load` computes what `fit` did, in O(n^3), and refuses more than `most_loaded` programs, or `most_programs` if
  /// that is more, since a file takes memory of the square of its size. See PersistentCostModel.
  static constexpr std::size_t most_loaded = 10'000;
  void save(std::ostream& out, std::uint64_t feature_schema) const;
  void load(std::istream& in, std::uint64_t feature_schema);

 private:
  static constexpr std::size_t search_programs = 400;

  static double likeness(Kernel kernel, double square);
  static double square_distance(const double* a, const double* b, std::size_t n);
  // Reduces the numbers to a random sample of at most `count`, in their order.
  static void draw(std::vector<std::uint32_t>& numbers, std::size_t count, Rng rng);

  // Squared distances (n, n), lower triangle, of the chosen programs.
  std::vector<double> distances(const Learned& of, std::span<const std::uint32_t> chosen) const;
  static std::optional<Cholesky> factor(const std::vector<double>& squares, std::size_t n, Kernel kernel,
                                        double length_scale, double noise);
  // s^2 and the log marginal likelihood.
  static std::pair<double, double> likelihood(const Cholesky& factor, std::vector<double> y);

  // Length scale and noise: the given ones, or the most likely of the grid.
  std::pair<double, double> search(const Learned& of) const;

  // Computes everything that follows from inputs, labels, length scale and noise.
  void complete(Learned& next) const;

  void answer(const FeatureBatch& x, const char* where, std::span<float> score, std::span<float> deviation) const;

  // Programs [first, last), at most as many as are solved for at once.
  void answer_some(const FeatureBatch& x, std::size_t first, std::size_t last, std::span<float> score,
                   std::span<float> deviation) const;
};

}  // namespace tunewright::models

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/number_text.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/persistence.hpp"

namespace tunewright::models {

TUNEWRIGHT_INLINE void GaussianProcess::predict(const FeatureBatch& x, std::span<float> score) const {
  check_predict_sizes("models::GaussianProcess", x, score.size());
  answer(x, "predict", score, {});
}

TUNEWRIGHT_INLINE void GaussianProcess::predict_with_deviation(const FeatureBatch& x, std::span<float> score,
                                                               std::span<float> deviation) const {
  check_predict_sizes("models::GaussianProcess", x, score.size());
  check_predict_sizes("models::GaussianProcess", x, deviation.size());
  answer(x, "predict_with_deviation", score, deviation);
}

TUNEWRIGHT_INLINE FeatureBatch GaussianProcess::embed(const FeatureBatch& x) const {
  const std::size_t columns = learned.vectors.columns();
  if (columns != 0) learned.vectors.check_width("models::GaussianProcess::embed", x);
  FeatureBatch out(std::max<std::size_t>(columns, 1));
  std::vector<double> z(columns);
  for (std::size_t p = 0; p < x.programs(); ++p) {
    const auto row = out.append_row();
    if (columns != 0) learned.vectors.standardise(x, p, z);
    for (std::size_t c = 0; c < columns; ++c) row[c] = static_cast<float>(z[c] / learned.length_scale);
    out.close_program();
  }
  return out;
}

TUNEWRIGHT_INLINE void GaussianProcess::fit(const FeatureBatch& x, std::span<const float> y,
                                            std::span<const std::uint32_t> group) {
  require(length_scale >= 0 && std::isfinite(length_scale), "models::GaussianProcess", "length_scale", length_scale,
          "a finite value of at least 0");
  require(noise >= 0 && std::isfinite(noise), "models::GaussianProcess", "noise", noise,
          "a finite value of at least 0");
  require(most_programs > 0, "models::GaussianProcess", "most_programs", 0, "at least 1");
  check_lesson("models::GaussianProcess", x, y, 1, group);
  std::vector<std::uint32_t> chosen;
  for (std::size_t p = 0; p < x.programs(); ++p) {
    if (!x.program(p).empty()) chosen.push_back(static_cast<std::uint32_t>(p));
  }
  if (chosen.size() > most_programs && !draw_when_more) {
    throw std::invalid_argument("models::GaussianProcess::fit: " + std::to_string(chosen.size()) +
                                " programs where most_programs = " + std::to_string(most_programs) +
                                "; raise it (time grows with the cube) or set draw_when_more");
  }
  draw(chosen, most_programs, Rng(seed).split(1));
  if (chosen.empty()) {
    learned = {};
    return;
  }
  Learned next;
  next.kernel = kernel;
  next.vectors = ProgramVectors::fit(x, rows);
  const std::size_t columns = x.columns();
  next.inputs.resize(chosen.size() * columns);
  double sum = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    next.vectors.standardise(x, chosen[i], std::span(next.inputs).subspan(i * columns, columns));
    next.labels.push_back(static_cast<double>(y[chosen[i]]));
    sum += next.labels.back();
  }
  next.mean = sum / static_cast<double>(chosen.size());
  for (double& label : next.labels) label -= next.mean;
  std::tie(next.length_scale, next.noise) = search(next);
  complete(next);
  learned = std::move(next);
}

TUNEWRIGHT_INLINE void GaussianProcess::save(std::ostream& out, std::uint64_t feature_schema) const {
  const std::size_t columns = learned.vectors.columns();
  std::vector<data::Tensor> tensors;
  learned.vectors.keep(tensors);
  tensors.push_back(data::Tensor::of("kernel", std::vector<std::uint8_t>{static_cast<std::uint8_t>(learned.kernel)}));
  tensors.push_back(
      data::Tensor::of("numbers", std::vector<double>{learned.length_scale, learned.noise, learned.mean}));
  tensors.push_back(data::Tensor::of("labels", learned.labels));
  tensors.push_back(
      data::Tensor::of("inputs", {learned.labels.size(), columns}, std::span<const double>(learned.inputs)));
  save_tensors("models::GaussianProcess", out, feature_schema, tensors);
}

TUNEWRIGHT_INLINE void GaussianProcess::load(std::istream& in, std::uint64_t feature_schema) {
  learned = load_tensors("models::GaussianProcess", in, feature_schema, [this](const data::TensorFile& file) {
    Learned next;
    next.vectors = ProgramVectors::kept(file);
    const auto which = file.at("kernel").values<std::uint8_t>();
    const auto numbers = file.at("numbers").values<double>();
    next.labels = file.at("labels").values<double>();
    next.inputs = file.at("inputs").values<double>();
    if (which.size() != 1 || which[0] > 1 || numbers.size() != 3 ||
        next.inputs.size() != next.labels.size() * next.vectors.columns())
      throw std::runtime_error("the tensors do not belong to one model");
    if (!next.labels.empty() && next.vectors.columns() == 0) throw std::runtime_error("programs have no columns");
    if (next.labels.size() > std::max(most_programs, most_loaded)) {
      throw std::runtime_error("the file has " + std::to_string(next.labels.size()) +
                               " programs; raise most_programs if you trust it");
    }
    for (const std::vector<double>* all : {&numbers, &std::as_const(next.labels), &std::as_const(next.inputs)}) {
      for (const double number : *all) {
        if (!std::isfinite(number)) throw std::runtime_error("a number is not finite");
      }
    }
    next.kernel = static_cast<Kernel>(which[0]);
    next.length_scale = numbers[0];
    next.noise = numbers[1];
    next.mean = numbers[2];
    if (!(next.length_scale > 0) || next.noise < 0) throw std::runtime_error("length scale or noise is out of range");
    if (!next.labels.empty()) complete(next);
    return next;
  });
}

TUNEWRIGHT_INLINE double GaussianProcess::likeness(Kernel kernel, double square) {
  if (kernel == Kernel::Rbf) return std::exp(-0.5 * square);
  const double r = std::sqrt(5 * square);
  return (1 + r + r * r / 3) * std::exp(-r);
}

TUNEWRIGHT_INLINE double GaussianProcess::square_distance(const double* a, const double* b, std::size_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t i = 0;
  const auto square = [&](std::size_t c) { return (a[c] - b[c]) * (a[c] - b[c]); };
  for (; i + 4 <= n; i += 4) {
    s0 += square(i);
    s1 += square(i + 1);
    s2 += square(i + 2);
    s3 += square(i + 3);
  }
  for (; i < n; ++i) s0 += square(i);
  return (s0 + s1) + (s2 + s3);
}

TUNEWRIGHT_INLINE void GaussianProcess::draw(std::vector<std::uint32_t>& numbers, std::size_t count, Rng rng) {
  if (numbers.size() <= count) return;
  rng.shuffle(std::span(numbers));
  numbers.resize(count);
  std::sort(numbers.begin(), numbers.end());
}

TUNEWRIGHT_INLINE std::vector<double> GaussianProcess::distances(const Learned& of,
                                                                 std::span<const std::uint32_t> chosen) const {
  const std::size_t n = chosen.size(), columns = of.vectors.columns();
  std::vector<double> out(n * n, 0.0);
  parallel_for(n, n < 200 ? 1 : threads, [&](std::size_t i) {
    for (std::size_t j = 0; j < i; ++j)
      out[i * n + j] =
          square_distance(of.inputs.data() + chosen[i] * columns, of.inputs.data() + chosen[j] * columns, columns);
  });
  return out;
}

TUNEWRIGHT_INLINE std::optional<Cholesky> GaussianProcess::factor(const std::vector<double>& squares, std::size_t n,
                                                                  Kernel kernel, double length_scale, double noise) {
  std::vector<double> k(n * n, 0.0);
  const double scale = 1 / (length_scale * length_scale);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) k[i * n + j] = likeness(kernel, squares[i * n + j] * scale);
    k[i * n + i] = 1 + noise;
  }
  return Cholesky::of(std::move(k), n);
}

TUNEWRIGHT_INLINE std::pair<double, double> GaussianProcess::likelihood(const Cholesky& factor, std::vector<double> y) {
  const auto n = static_cast<double>(y.size());
  factor.solve_lower(y);
  // Constant labels get a small signal, so that deviations still grow with distance.
  const double fitted = dot(y.data(), y.data(), y.size()) / n;
  const double signal = std::max(fitted, 1e-6);
  const double square = n * (fitted / signal);  // (y - b) . K^-1 (y - b) / s^2: n unless the signal is the least
  return {signal,
          -0.5 * (n * std::log(signal) + factor.log_determinant() + square + n * std::log(2 * std::numbers::pi))};
}

TUNEWRIGHT_INLINE std::pair<double, double> GaussianProcess::search(const Learned& of) const {
  if (length_scale > 0 && noise > 0) return {length_scale, noise};
  std::vector<std::uint32_t> chosen(of.labels.size());
  std::iota(chosen.begin(), chosen.end(), 0U);
  draw(chosen, search_programs, Rng(seed).split(2));
  const std::size_t n = chosen.size();
  const std::vector<double> squares = distances(of, chosen);
  std::vector<double> y, positive;
  for (const std::uint32_t i : chosen) y.push_back(of.labels[i]);
  for (const double square : squares) {
    if (square > 0) positive.push_back(square);
  }
  double middle = 1;
  if (!positive.empty()) {
    const auto at = positive.begin() + static_cast<std::ptrdiff_t>(positive.size() / 2);
    std::nth_element(positive.begin(), at, positive.end());
    middle = std::sqrt(*at);
  }
  std::vector<double> lengths{length_scale}, noises{noise};
  if (!(length_scale > 0)) lengths = {middle / 8, middle / 4, middle / 2, middle, middle * 2, middle * 4};
  if (!(noise > 0)) noises = {1e-3, 1e-2, 0.1, 0.5};
  std::vector<double> found(lengths.size() * noises.size(), -std::numeric_limits<double>::infinity());
  parallel_for(found.size(), threads, [&](std::size_t i) {
    const auto k = factor(squares, n, of.kernel, lengths[i / noises.size()], noises[i % noises.size()]);
    if (k) found[i] = likelihood(*k, y).second;
  });
  const auto best = static_cast<std::size_t>(std::max_element(found.begin(), found.end()) - found.begin());
  return {lengths[best / noises.size()], noises[best % noises.size()]};
}

TUNEWRIGHT_INLINE void GaussianProcess::complete(Learned& next) const {
  std::vector<std::uint32_t> all(next.labels.size());
  std::iota(all.begin(), all.end(), 0U);
  auto k = factor(distances(next, all), all.size(), next.kernel, next.length_scale, next.noise);
  if (!k) {
    throw std::invalid_argument("models::GaussianProcess::fit: noise = " + number_text(next.noise) +
                                " is too little for programs this alike; choose more, or 0 to search");
  }
  next.factor = std::move(*k);
  std::tie(next.signal, next.log_likelihood) = likelihood(next.factor, next.labels);
  next.coefficients = next.labels;
  next.factor.solve(next.coefficients);
}

TUNEWRIGHT_INLINE void GaussianProcess::answer(const FeatureBatch& x, const char* where, std::span<float> score,
                                               std::span<float> deviation) const {
  if (!learned.labels.empty()) learned.vectors.check_width(std::string("models::GaussianProcess::") + where, x);
  constexpr std::size_t chunk = solve_lanes;  // programs
  parallel_for((x.programs() + chunk - 1) / chunk, x.programs() <= chunk ? 1 : threads, [&](std::size_t part) {
    const std::size_t first = part * chunk, last = std::min(x.programs(), first + chunk);
    answer_some(x, first, last, score, deviation);
  });
}

TUNEWRIGHT_INLINE void GaussianProcess::answer_some(const FeatureBatch& x, std::size_t first, std::size_t last,
                                                    std::span<float> score, std::span<float> deviation) const {
  const std::size_t columns = learned.vectors.columns(), n = learned.labels.size();
  const double scale = 1 / (learned.length_scale * learned.length_scale);
  std::vector<double> z(columns), k(n), lanes(deviation.empty() ? 0 : n * solve_lanes, 0.0);
  for (std::size_t p = first; p < last; ++p) {
    const bool described = !x.program(p).empty();
    score[p] = described ? 0.0F : -std::numeric_limits<float>::infinity();
    if (!deviation.empty()) deviation[p] = described ? 1.0F : std::numeric_limits<float>::infinity();
    if (!described || n == 0) continue;
    learned.vectors.standardise(x, p, z);
    for (std::size_t i = 0; i < n; ++i) {
      const double square = square_distance(z.data(), learned.inputs.data() + i * columns, columns);
      k[i] = likeness(learned.kernel, square * scale);
      if (!deviation.empty()) lanes[i * solve_lanes + (p - first)] = k[i];
    }
    score[p] = static_cast<float>(learned.mean + dot(k.data(), learned.coefficients.data(), n));
  }
  if (lanes.empty()) return;
  learned.factor.solve_lower_lanes(lanes);
  for (std::size_t p = first; p < last; ++p) {
    if (x.program(p).empty()) continue;
    double left = 1;
    for (std::size_t i = 0; i < n; ++i)
      left -= lanes[i * solve_lanes + (p - first)] * lanes[i * solve_lanes + (p - first)];
    deviation[p] = static_cast<float>(std::sqrt(learned.signal * std::max(left, 0.0)));
  }
}

}  // namespace tunewright::models

#endif
