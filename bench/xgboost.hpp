// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(TUNEWRIGHT_BENCH_HAS_XGBOOST) && __has_include(<xgboost/c_api.h>)
#include <xgboost/c_api.h>
#define TUNEWRIGHT_COMPARES_WITH_XGBOOST 1

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/models/gbdt.hpp"

namespace tunewright::bench {

/// XGBoost with the options of a models::Gbdt, on the same rows: histograms, scores summed over the rows of a
/// program, squared or label-weighted squared error; XGBoost's own squared error where every program has one row.
class XgBoost {
 public:
  XgBoost(const models::Gbdt& options, const FeatureBatch& x, std::span<const float> y) {
    matrix_ = make_matrix(x);
    require(XGBoosterCreate(&matrix_, 1, &booster_));
    set("tree_method", "hist");
    set("max_bin", std::to_string(options.max_bins));
    set("max_depth", std::to_string(options.max_depth));
    set("eta", std::to_string(options.learning_rate));
    set("gamma", std::to_string(options.gamma));
    set("min_child_weight", std::to_string(options.min_child_weight));
    set("lambda", std::to_string(options.lambda));
    set("base_score", "0");
    set("nthread", std::to_string(options.threads));
    set("seed", std::to_string(options.seed));
    set("verbosity", "0");
    const bool squared = options.objective == models::gbdt::Objective::Squared;
    if (squared && x.rows() == y.size()) {
      set("objective", "reg:squarederror");
      require(XGDMatrixSetFloatInfo(matrix_, "label", y.data(), y.size()));
      for (unsigned round = 0; round < options.rounds; ++round)
        require(XGBoosterUpdateOneIter(booster_, static_cast<int>(round), matrix_));
      return;
    }
    std::vector<float> gradient(x.rows()), hessian(x.rows());
    for (unsigned round = 0; round < options.rounds; ++round) {
      const std::vector<float> score = sum_rows(matrix_, x, 1);
      for (std::size_t p = 0; p < score.size(); ++p) {
        for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) {
          const float weight = squared ? 1.0F : y[p];
          gradient[r] = (score[p] - y[p]) * weight;
          hessian[r] = weight;
        }
      }
      require(XGBoosterBoostOneIter(booster_, matrix_, gradient.data(), hessian.data(), gradient.size()));
    }
  }
  ~XgBoost() {
    XGBoosterFree(booster_);
    XGDMatrixFree(matrix_);
  }
  XgBoost(const XgBoost&) = delete;
  XgBoost& operator=(const XgBoost&) = delete;

  [[nodiscard]] std::vector<float> predict(const FeatureBatch& x) {
    const DMatrixHandle matrix = make_matrix(x);
    std::vector<float> score = sum_rows(matrix, x, 0);
    XGDMatrixFree(matrix);
    return score;
  }
  /// The same on one core; `ms` is the time without making its matrix.
  [[nodiscard]] std::vector<float> predict_on_one_core(const FeatureBatch& x, double& ms) {
    set("nthread", "1");
    const DMatrixHandle matrix = make_matrix(x);
    const auto start = std::chrono::steady_clock::now();
    std::vector<float> score = sum_rows(matrix, x, 0);
    ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    XGDMatrixFree(matrix);
    return score;
  }

 private:
  static void require(int status) {
    if (status != 0) throw std::runtime_error(std::string("XGBoost: ") + XGBGetLastError());
  }
  static DMatrixHandle make_matrix(const FeatureBatch& x) {
    DMatrixHandle matrix = nullptr;
    require(XGDMatrixCreateFromMat(x.values().data(), x.rows(), x.columns(), std::numeric_limits<float>::quiet_NaN(),
                                   &matrix));
    return matrix;
  }
  void set(const char* name, const std::string& value) { require(XGBoosterSetParam(booster_, name, value.c_str())); }
  std::vector<float> sum_rows(DMatrixHandle matrix, const FeatureBatch& x, int training) {
    bst_ulong count = 0;
    const float* of_row = nullptr;
    require(XGBoosterPredict(booster_, matrix, 1, 0, training, &count, &of_row));
    std::vector<float> score(x.programs(), 0.0F);
    for (std::size_t p = 0; p < score.size(); ++p) {
      for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) score[p] += of_row[r];
    }
    return score;
  }

  BoosterHandle booster_ = nullptr;
  DMatrixHandle matrix_ = nullptr;
};

}  // namespace tunewright::bench
#endif
