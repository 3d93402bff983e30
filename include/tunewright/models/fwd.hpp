// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tunewright::models {

namespace gbdt {
enum class Objective : std::uint8_t;
}

struct BiLstmAttention;
struct GaussianProcess;
struct Gbdt;
struct Linear;
struct Mlp;
struct PatternAware;
struct PrimitiveAttention;
struct Random;

}  // namespace tunewright::models
