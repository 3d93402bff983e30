// SPDX-License-Identifier: Apache-2.0
// A saved model of any type. One that is taken predicts for programs of the width that it was trained on, refuses
// others, and is saved again and predicts the same bits.
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/gaussian_process.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/gbdt_on_draft.hpp"
#include "tunewright/models/linear.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"

namespace {

using namespace tunewright;

/// Programs of no row, one and three, in whose first column the parts of models::PatternAware alternate.
FeatureBatch programs() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  FeatureBatch x(5);
  x.close_program();
  x.append_program(std::vector<float>{0, 1, -2, 0.5F, 3e4F});
  x.append_program(std::vector<float>{0, 1, 2, 3, 4, 1, 0, -infinity, 1e-6F, 7, 1, infinity, 0, 0, 1e30F});
  return x;
}

/// The bits of all that the model says of the programs, or nothing if it refuses their width.
template <class Model>
std::vector<std::uint32_t> answers(const Model& model, const FeatureBatch& x) {
  std::vector<float> numbers(2 * x.programs());
  const auto score = std::span(numbers).first(x.programs()), deviation = std::span(numbers).last(x.programs());
  if (!fuzz::accepts<std::invalid_argument>([&] { model.predict(x, score); })) return {};
  if constexpr (UncertainCostModel<Model>) model.predict_with_deviation(x, score, deviation);
  if constexpr (EmbeddingCostModel<Model>) {
    const FeatureBatch points = model.embed(x);
    fuzz::require(points.programs() == x.programs() && points.rows() == x.programs(), "a program has one point");
    numbers.insert(numbers.end(), points.values().begin(), points.values().end());
  }
  std::vector<std::uint32_t> bits;
  for (const float number : numbers) bits.push_back(std::bit_cast<std::uint32_t>(number));
  return bits;
}

template <class Model>
void load_and_use(const std::string& bytes) {
  Model model;
  if constexpr (requires { model.threads; }) model.threads = 1;
  if constexpr (requires { model.trees.threads; }) model.trees.threads = 1;
  Model again = model;
  std::stringstream in(bytes), written;
  if (!fuzz::accepts<std::runtime_error>([&] { model.load(in, 7); })) return;
  const FeatureBatch x = programs();
  const std::vector<std::uint32_t> answer = answers(model, x);
  model.save(written, 7);
  again.load(written, 7);
  fuzz::require(answers(again, x) == answer, "a model that was saved predicts the same bits");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(fuzz::text(data, size));
  std::string type;
  try {
    std::istringstream in(bytes);
    type = data::read_safetensors(in).metadata["model"];
  } catch (const std::runtime_error&) {
    return 0;  // the business of the target safetensors
  }
  const auto is = [&](const char* name) { return type == std::string("models::") + name; };
  if (is("Linear")) load_and_use<models::Linear>(bytes);
  if (is("GaussianProcess")) load_and_use<models::GaussianProcess>(bytes);
  if (is("Gbdt")) load_and_use<models::Gbdt>(bytes);
  if (is("GbdtOnDraft")) load_and_use<models::GbdtOnDraft>(bytes);
  if (is("Committee")) load_and_use<models::Committee<models::Gbdt, 2>>(bytes);
  if (is("Mlp")) load_and_use<models::Mlp>(bytes);
  if (is("PatternAware")) load_and_use<models::PatternAware>(bytes);
  if (is("PrimitiveAttention")) load_and_use<models::PrimitiveAttention>(bytes);
  if (is("BiLstmAttention")) load_and_use<models::BiLstmAttention>(bytes);
  return 0;
}
