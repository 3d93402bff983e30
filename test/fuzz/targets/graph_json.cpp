// SPDX-License-Identifier: Apache-2.0
// A compute graph as JSON. One that is taken is written again and reads with the same hash, and can be analysed,
// printed and lowered.
#include <memory>
#include <stdexcept>
#include <string>

#include "fuzz/fuzz.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/graph_json.hpp"
#include "tunewright/program/print.hpp"
#include "tunewright/schedule/schedule.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  program::ComputeGraph graph;
  if (!fuzz::accepts<FormatError>([&] { graph = program::graph_from_json(fuzz::text(bytes, size)); })) return 0;
  const std::string written = program::to_json(graph);
  const program::ComputeGraph again = program::graph_from_json(written);
  fuzz::require(program::to_json(again) == written, "a graph reads equal");
  fuzz::require(stable_hash(again) == stable_hash(graph), "a graph keeps its hash");
  fuzz::require(program::flops(graph) >= 0 && program::bytes(graph) >= 0, "work is not negative");
  (void)program::to_text(graph);
  if (graph.size() == 0) return 0;
  (void)fuzz::accepts<std::invalid_argument>(
      [&] { (void)loops::lower(schedule::Schedule{std::make_shared<const program::ComputeGraph>(graph), {}}); });
  return 0;
}
