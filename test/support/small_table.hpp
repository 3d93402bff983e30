// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/data/table.hpp"

/// A kernel of two parameters, a = 1, 2, 4, 8 and b = 0, 1, 2, measured with
///
///   latency = (1 + (log2(a) - 1)^2 + (b - 1)^2) ms,   a = 2, b = 1 is best with 1 ms
///
/// Compiling takes 2 s, running 1 s. a = 8 with b = 0 breaks a restriction and is absent; a = 8 with b = 2
/// fails to run. The value 3 of b is declared and occurs in no row.
inline tunewright::data::Table small_table(std::string device = "gpu") {
  using namespace tunewright;
  data::Table table;
  table.kernel = "small";
  table.device = std::move(device);
  table.parameters = {{"a", {"1", "2", "4", "8"}}, {"b", {"0", "1", "2", "3"}}};
  for (std::uint16_t a = 0; a < 4; ++a) {
    for (std::uint16_t b = 0; b < 3; ++b) {
      if (a == 3 && b == 0) continue;
      table.choices.insert(table.choices.end(), {a, b});
      Outcome outcome{.result = Failure{Fault::RunError, ""}, .compile_time = Seconds(2), .run_time = Seconds(1)};
      if (a != 3 || b != 2) {
        const Seconds latency(1e-3 * (1 + (a - 1) * (a - 1) + (b - 1) * (b - 1)));
        outcome.result = Timing{.repeats = {latency}, .median = latency};
      }
      table.outcomes.push_back(outcome);
    }
  }
  return table;
}
