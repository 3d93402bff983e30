// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/aligned.hpp"
#include "tunewright/adaptations/alignment/covariance.hpp"

namespace tunewright::adaptations {

/// Correlation alignment: trains on the source, mapped to the covariance of the target, and on the target. See
/// `Aligned` for the training and `alignment::Covariance` for the map.
///
///   adaptations::Coral{.source = a4000, .map = {.regularisation = 1}}
///
/// Paper: Sun, Feng and Saenko, AAAI 2016 (without target labels: it trains only on the source).
using Coral = Aligned<alignment::Covariance>;

}  // namespace tunewright::adaptations
