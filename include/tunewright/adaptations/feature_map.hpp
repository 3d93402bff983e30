// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/adaptations/aligned.hpp"
#include "tunewright/adaptations/alignment/columns.hpp"

namespace tunewright::adaptations {

/// Trains on the source, with each column mapped to its distribution on the target, and on the target. See `Aligned`
/// for the training and `alignment::Columns` for the map; `Mapped` uses the same map with a pretrained model.
///
///   adaptations::FeatureMap{.source = a4000, .map = {.method = alignment::Columns::Method::Quantile}}
///
/// Paper: Verma et al., "Transfer Learning Across Heterogeneous Features For Efficient Tensor Program Generation",
///        arXiv 2304.05430, which maps features between devices by an undescribed method.
using FeatureMap = Aligned<alignment::Columns>;

}  // namespace tunewright::adaptations
