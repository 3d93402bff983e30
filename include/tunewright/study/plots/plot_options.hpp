// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tunewright::study {

/// A latency for comparison, such as that of a library: a line in "best so far".
struct ReferenceLine {
  std::string name;
  double seconds = 0;
};

/// Options for plots of journals.
struct PlotOptions {
  std::vector<ReferenceLine> lines{};  ///< of every task that is drawn
  double peak_gflops = 0;              ///< of the machine; 0: the target's, which a GPU has
  double peak_gb_per_s = 0;            ///< of its memory, 10^9 bytes; 0: the target's, which a GPU has
  std::size_t max_points = 4000;       ///< of a picture with a point a candidate: more are thinned out evenly
};

}  // namespace tunewright::study
