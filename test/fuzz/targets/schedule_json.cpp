// SPDX-License-Identifier: Apache-2.0
// Steps of a schedule as JSON. What is taken is written again and reads equal; applied to a product of matrices behind
// which comes an activation, steps are legal or refused, and legal ones are lowered. Mutated for a CPU and for a GPU,
// as searches do with what a journal holds, they are still steps that can be written, and legal or refused.
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/decisions.hpp"

using namespace tunewright;

namespace {

[[nodiscard]] bool lowers(const schedule::Schedule& candidate) {
  return fuzz::accepts<schedule::ScheduleError>([&] { (void)loops::lower(candidate); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const auto graph = [] {
    auto made = std::make_shared<program::ComputeGraph>();
    const auto a = made->input("a", {16, 24});
    const auto b = made->constant("b", {24, 32});
    (void)program::operators::relu(*made, program::operators::matmul(*made, a, b));
    return std::shared_ptr<const program::ComputeGraph>(std::move(made));
  }();
  std::vector<schedule::Step> steps;
  if (!fuzz::accepts<schedule::ScheduleError>([&] { steps = schedule::steps_from_json(fuzz::text(bytes, size)); }))
    return 0;
  const std::string written = schedule::to_json(steps);
  fuzz::require(schedule::steps_from_json(written) == steps, "steps read equal");
  fuzz::require(schedule::stable_hash(schedule::steps_from_json(written)) == schedule::stable_hash(steps),
                "steps keep their hash");
  if (steps.size() > 64) return 0;
  const schedule::Schedule decoded{graph, steps};
  if (!lowers(decoded)) return 0;
  static const std::array targets{Target{}, gpu_target("V100")};
  for (const Target& target : targets) {
    Rng rng(schedule::stable_hash(steps));
    schedule::Schedule candidate = decoded;
    for (int mutation = 0; mutation < 4; ++mutation) {
      schedule::Schedule mutated = candidate;
      if (!spaces::decisions::mutate_one(mutated.steps, target, rng)) continue;
      fuzz::require(schedule::steps_from_json(schedule::to_json(mutated.steps)) == mutated.steps,
                    "mutated steps read equal");
      if (lowers(mutated)) candidate = mutated;
    }
  }
  return 0;
}
