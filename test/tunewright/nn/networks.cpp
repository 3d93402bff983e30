// SPDX-License-Identifier: Apache-2.0
// Whole networks: numbers of parameters as published, and gradients against finite differences.
#include <doctest/doctest.h>

#include "network_check.hpp"
#include "tunewright/nn/bilstm_network.hpp"
#include "tunewright/nn/mlp_network.hpp"
#include "tunewright/nn/pattern_network.hpp"
#include "tunewright/nn/primitive_network.hpp"

using namespace tunewright;

TEST_CASE("as many parameters as published") {
  CHECK(nn::MlpNetwork<double>(174, 256, 1).layout().size() == 242'433);
  CHECK(nn::PatternNetwork<double>(1 + 174 + 23, 23, 256, 1).layout().size() == 417'409);
  CHECK(nn::PrimitiveNetwork<double>(22, 256, 8, 1).layout().size() == 610'369);
  // 174 d + d; 2 ways of 4 d (in + d + 1), in = d, 2 d, 2 d; 8 d^2 + 4 d; d + 1, with d = 128
  CHECK(nn::BiLstmNetwork<double>(174, {}, 1).layout().size() == 22'400 + 8 * 128 * (257 + 2 * 385) + 131'584 + 129);
}

TEST_CASE("gradients of whole networks") {
  CHECK(test::network_gradient_error(nn::MlpNetwork<double>(5, 6, 1), 130, 3, 0) < 1e-7);
  CHECK(test::network_gradient_error(nn::MlpNetwork<double>(5, 6, 2), 130, 5, 0.3F) < 1e-7);
  CHECK(test::network_gradient_error(nn::PatternNetwork<double>(8, 3, 16, 1), 130, 40, 0) < 1e-6);
  CHECK(test::network_gradient_error(nn::PatternNetwork<double>(8, 3, 16, 1), 20, 11, 0.3F) < 1e-6);
  CHECK(test::network_gradient_error(nn::PrimitiveNetwork<double>(5, 8, 2, 1), 130, 23, 0) < 1e-7);
  CHECK(test::network_gradient_error(nn::PrimitiveNetwork<double>(5, 8, 2, 3), 20, 7, 0.3F) < 1e-7);
  CHECK(test::network_gradient_error(nn::BiLstmNetwork<double>(5, {4, 3, 2, 2}, 1), 130, 31, 0) < 1e-7);
  CHECK(test::network_gradient_error(nn::BiLstmNetwork<double>(5, {4, 3, 2, 2}, 2), 20, 11, 0.3F) < 1e-7);
}
