// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tunewright/study/random_search.hpp"

namespace tunewright::test {

/// A random search of 100 programs whose latencies are 0.01, 0.04 to 100.
inline study::RandomSearch squares() {
  std::vector<double> latencies;
  for (int i = 1; i <= 100; ++i) latencies.push_back(i * i / 100.0);
  return study::RandomSearch(latencies);
}

}  // namespace tunewright::test
