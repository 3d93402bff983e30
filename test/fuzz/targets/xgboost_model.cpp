// SPDX-License-Identifier: Apache-2.0
// A model of XGBoost in JSON. One that is taken predicts for any row, and refuses rows of another width.
#include <cstddef>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "tunewright/data/xgboost_model.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::istringstream in(std::string(fuzz::text(bytes, size)));
  data::XgboostEnsemble model;
  if (!fuzz::accepts<std::runtime_error>([&] { model = data::read_xgboost_model(in); })) return 0;
  if (model.columns > 100'000) return 0;
  std::vector<float> row(model.columns, std::numeric_limits<float>::quiet_NaN());
  (void)model.value(row);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i) - 2;
  (void)model.value(row);
  row.push_back(0);
  fuzz::require(!fuzz::accepts<std::invalid_argument>([&] { (void)model.margin(row); }), "another width is refused");
  return 0;
}
