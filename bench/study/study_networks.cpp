// SPDX-License-Identifier: Apache-2.0
// Recipes that tune whole networks: latency against trials and seconds.
//
//   study_networks [--networks=A,B] [--trials_per_task=N] [--batch=N] [--seeds=N] [--recipes=A,B]
//                  [--taught=N]
//
// The tasks of each network, with all that is fused to them, are searched by one `MultiTaskTuner` with
// `schedulers::Gradient`, on this machine's CPU: `--trials_per_task` measurements (32) times tasks, in batches of
// `--batch` (8). known_networks.hpp names the networks; those searched unless others are given played no part in
// developing drafts and defaults. schedule_recipes.hpp has the recipes, pretrained.hpp what models were taught before.
//
// The latency of a network is the sum over its tasks of occurrences times best, as measured in the search; finalists
// are measured again, task by task in turns.

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../known_networks.hpp"
#include "pretrained.hpp"
#include "schedule_recipes.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/study/network_problem.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::bench;
using M = measurers::OrcJit;

std::vector<study::NetworkProblem<Space, M>> networks_of(const study::Options& options, const Target& target) {
  const std::size_t trials_per_task = options.number("trials_per_task");
  if (trials_per_task == 0) throw std::invalid_argument("--trials_per_task=0: give at least 1");
  std::vector<study::NetworkProblem<Space, M>> all;
  const std::string chosen = options.text("networks");
  for (const std::string& name : study::command_line::names(chosen)) {
    // [snippet-begin problem]
    study::NetworkProblem<Space, M> network{.name = name,
                                            .tasks = networks::partition(known_network(name), target).tasks};
    network.trials = trials_per_task * network.tasks.size();
    // [snippet-end problem]
    all.push_back(std::move(network));
  }
  if (all.empty()) throw std::invalid_argument("--networks=" + chosen + ": give at least one");
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(
      argc, argv,
      {.name = "networks",
       .seeds = 3,
       .options = {"networks=squeezenet1_1,vision_transformer,vgg16", "trials_per_task=32", "batch=8", "taught=64"},
       .choosing = {"networks"},
       .unread = {"tasks"},
       .one_training_a_seed = true},
      [](study::Study& study) {
        Target host = host_target();
        host.name = "host";
        const auto pretrained = std::make_shared<Pretrained>(study.options(), host);
        const Budget budget{.batch = study.options().number("batch")};
        study.compare<AnsorQuick<M>, Random<M>, Ansor<M>, Pruner<M>, PrunerQuick<M>, NoDraft<M>, DraftAndTrees<M>,
                      TenSet<M>, TlpQuick<M>, HetFeatTransfer<M>, MoaPrunerQuick<M>>(
            networks_of(study.options(), host), budget, [pretrained](auto& parts) { pretrained->prepare(parts); });
      });
}
