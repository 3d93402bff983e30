// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/uncertainty.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <vector>

#include "support/toy_model.hpp"

using namespace tunewright;
using samplers::Acquisition;
using samplers::Uncertainty;

TEST_CASE("acquisition values") {
  Rng rng(1);
  const auto worth = [&](Acquisition acquisition, double m, double s, double f) {
    return Uncertainty{.acquisition = acquisition}.worth(m, s, f, rng);
  };
  CHECK(worth(Acquisition::Variance, 1, 3, 9) == 3);
  CHECK(worth(Acquisition::UpperConfidenceBound, 1, 3, 9) == 7);
  CHECK(worth(Acquisition::Margin, 1, 2, 4) == -1.5);
  // Tables of the normal distribution: C(0.5) = 0.69146, N(0.5) = 0.35207, N(0) = 0.39894, C(-1) = 0.15866,
  // N(1) = 0.24197.
  CHECK(worth(Acquisition::ProbabilityOfImprovement, 1, 1, 0.5) == doctest::Approx(0.69146).epsilon(1e-4));
  CHECK(worth(Acquisition::ExpectedImprovement, 1, 1, 0.5) == doctest::Approx(0.5 * 0.69146 + 0.35207).epsilon(1e-4));
  CHECK(worth(Acquisition::ExpectedImprovement, 3, 2, 3) == doctest::Approx(2 * 0.39894).epsilon(1e-4));
  CHECK(worth(Acquisition::ExpectedImprovement, 1, 2, 3) == doctest::Approx(-2 * 0.15866 + 2 * 0.24197).epsilon(1e-3));
  CHECK(worth(Acquisition::ExpectedImprovement, 3, 0, 2) == 1);
  CHECK(worth(Acquisition::ExpectedImprovement, 1, 0, 2) == 0);
  CHECK(worth(Acquisition::ProbabilityOfImprovement, 3, 0, 2) == 1);
  CHECK(worth(Acquisition::ProbabilityOfImprovement, 2, 0, 2) == 0);
  CHECK(Uncertainty{.kappa = 0.5}.worth(2, 0, 2, rng) == 0);
  CHECK(Uncertainty{.acquisition = Acquisition::ExpectedImprovement, .xi = 0.5}.worth(3, 0, 2, rng) == 0.5);
}

TEST_CASE("draws of Thompson have the mean and deviation of the model") {
  Rng rng(8);
  double sum = 0, squares = 0;
  constexpr int draws = 10000;
  for (int i = 0; i < draws; ++i) {
    const double value = Uncertainty{.acquisition = Acquisition::Thompson}.worth(5, 2, 0, rng);
    sum += value;
    squares += value * value;
  }
  CHECK(sum / draws == doctest::Approx(5).epsilon(0.02));
  CHECK(squares / draws - 25 == doctest::Approx(4).epsilon(0.1));
}

TEST_CASE("each acquisition chooses its own") {
  //                                      mean  deviation
  const FeatureBatch x = toy::programs({{0.9F, 0}, {0.5F, 0.1F}, {0.2F, 0.4F}, {0.7F, 0.125F}});
  const std::vector<float> score = toy::scores(toy::OpenBook{}, x);
  const FeatureBatch known = toy::programs({{0.75F, 0}});
  Rng rng(1);
  const auto order = [&](Acquisition acquisition) {
    return Uncertainty{.acquisition = acquisition}.select(toy::OpenBook{}, x, score, 4, rng, {.x = known});
  };
  using Positions = std::vector<std::size_t>;
  CHECK(order(Acquisition::Variance) == Positions{2, 3, 1, 0});
  CHECK(order(Acquisition::UpperConfidenceBound) == Positions{2, 3, 0, 1});  // 0.9, 0.7, 1.0, 0.95
  CHECK(order(Acquisition::Margin) == Positions{3, 2, 1, 0});                // never, 2.5, 1.375, 0.4 deviations
  CHECK(order(Acquisition::ProbabilityOfImprovement) == Positions{0, 3, 2, 1});
  CHECK(order(Acquisition::ExpectedImprovement).front() == 0);  // 0.15 for certain
}

TEST_CASE("the best to beat is the model's opinion of what its task has labelled") {
  //                                              mean deviation
  const FeatureBatch x = toy::programs({{0.55F, 0.1F}, {0.3F, 0.1F}, {0.3F, 0.1F}});
  const FeatureBatch known = toy::programs({{0.5F, 0}, {0.25F, 0}, {5, 0}});
  const std::array<std::uint32_t, 3> task{0, 1, 2}, pool_task{0, 1, 0};
  const std::vector<float> score = toy::scores(toy::OpenBook{}, x);
  Rng rng(1);
  const samplers::Labelled labelled{.x = known, .task = task, .pool_task = pool_task};
  // Both lead the best of their task by 0.05 with one deviation; program 2 is far behind that of task 0.
  const auto chosen =
      Uncertainty{.acquisition = Acquisition::Margin}.select(toy::OpenBook{}, x, score, 3, rng, labelled);
  CHECK(chosen.back() == 2);
  const auto improving = Uncertainty{}.select(toy::OpenBook{}, x, score, 3, rng, labelled);
  CHECK(improving.back() == 2);
}

TEST_CASE("options out of range are refused") {
  Rng rng(1);
  const FeatureBatch x = toy::programs({{1, 1}});
  CHECK_THROWS_WITH_AS((void)Uncertainty{.kappa = -1}.select(toy::OpenBook{}, x, std::array{1.0F}, 1, rng),
                       doctest::Contains("kappa is -1"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)Uncertainty{.xi = -1}.select(toy::OpenBook{}, x, std::array{1.0F}, 1, rng),
                       doctest::Contains("xi is -1"), std::invalid_argument);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS((void)Uncertainty{.kappa = infinity}.select(toy::OpenBook{}, x, std::array{1.0F}, 1, rng),
                       doctest::Contains("kappa is inf"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)Uncertainty{.xi = infinity}.select(toy::OpenBook{}, x, std::array{1.0F}, 1, rng),
                       doctest::Contains("xi is inf"), std::invalid_argument);
}
