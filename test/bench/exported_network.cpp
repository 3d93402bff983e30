// SPDX-License-Identifier: Apache-2.0
#include "../../bench/exported_network.hpp"

#include <doctest/doctest.h>

#include <sched.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "../../bench/kept_to_processor.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/squeezenet.hpp"
#include "tunewright/networks/values.hpp"

using namespace tunewright;

namespace {

/// The processors that each thread of this process may use.
std::map<int, std::vector<int>> threads() {
  std::map<int, std::vector<int>> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(entry.path().filename().string());
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(thread, sizeof set, &set) != 0) continue;  // it has ended
    for (std::size_t p = 0; p < CPU_SETSIZE; ++p)
      if (CPU_ISSET(p, &set)) all[thread].push_back(static_cast<int>(p));
  }
  return all;
}

}  // namespace

TEST_CASE("an exported network has threads on processors of their own, also if its caller keeps to one") {
  const std::vector<int> processors = host_processors();
  if (processors.size() < 2) return;  // nothing to choose from
  const support::TemporaryFolder folder;
  const networks::Network network = networks::squeezenet1_1({.image_size = 32, .width = 0.125});
  const networks::Partition partition = networks::partition(network, host_target().with_threads(2));
  const reference::Tensors values = networks::random_values(network, Rng(1));
  const networks::CompiledNetwork compiled(network, partition,
                                           networks::default_schedules(partition.tasks, {.candidates = 2}), values);
  const auto before = threads();
  const auto made_since = [&] {
    std::vector<std::vector<int>> made;
    for (const auto& [thread, may_use] : threads())
      if (!before.contains(thread)) made.push_back(may_use);
    return made;
  };
  {
    const bench::KeptToProcessor kept(processors.front());
    const bench::ExportedNetworkLibrary exported(compiled, values, processors, folder.path());
    CHECK(made_since() == std::vector<std::vector<int>>{{processors[1]}});
    CHECK_NOTHROW(exported.run());
  }
  CHECK(made_since().empty());
}
