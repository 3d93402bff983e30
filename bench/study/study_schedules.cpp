// SPDX-License-Identifier: Apache-2.0
// Recipes that search schedules, on operators that played no part in developing them.
//
//   study_schedules [--operators=unseen|known] [--machine=real|cores] [--trials=N] [--seeds=N] [--recipes=A,B]
//
// Eight operators are searched, `--trials` measurements (100) in batches of 10: on this machine's CPU, where programs
// are compiled and run, or on two simulated cores. operators.hpp names the operators.
//   AnsorQuick     the reference
//   Random         valid schedules at random
//   Ansor          by the paper's settings
//   Pruner         likewise
//   PrunerQuick    its variant for machines that measure quickly
//   NoDraft        the same without a draft: its network chooses from 512 random schedules
//   DraftAndTrees  the same with Ansor's trees for a network
//   NoDataflow     the same with rows of statements alone, for a network of TenSet's form and Pruner's size

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "../two_cores.hpp"
#include "operators.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::MultiLevelTiling;

template <class M>
using Random = recipes::Random<Space, M>;
template <class M>
using Ansor = recipes::Ansor<Space, M>;
template <class M>
using AnsorQuick = recipes::AnsorQuick<Space, M>;
template <class M>
using Pruner = recipes::Pruner<Space, M>;
template <class M>
using PrunerQuick = recipes::PrunerQuick<Space, M>;

template <class M>
struct NoDraft : PrunerQuick<M> {
  using draft = drafts::None;
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 512; }
};
template <class M>
struct DraftAndTrees : PrunerQuick<M> {
  using featurizer = features::PerStatement;
  using model = models::Gbdt;
  using adaptation = adaptations::Refit;
  static void set_model(models::Gbdt&) {}
  static void set_adaptation(adaptations::Refit&) {}
};

template <class M>
struct NoDataflow : PrunerQuick<M> {
  using featurizer = features::PerStatement;
  using model = models::Mlp;
  static void set_model(models::Mlp& network) {
    models::PatternAware of_pruner;
    PrunerQuick<M>::set_model(of_pruner);
    network.hidden = of_pruner.hidden;
    network.training = of_pruner.training;
  }
};

template <class M>
std::vector<study::Problem<Space, M>> problems(const study::Options& options, const Target& target, const M& measurer) {
  const std::string set = options.text("operators", "unseen");
  if (set != "unseen" && set != "known") throw std::invalid_argument("--operators=" + set + ": give unseen or known");
  std::vector<study::Problem<Space, M>> all;
  for (const auto& [name, graph] : set == "unseen" ? bench::unseen_operators() : bench::known_operators()) {
    if (options.tasks != 0 && all.size() == options.tasks) break;
    all.push_back({.name = name, .task = program::make_task(name, graph, target), .measurer = [measurer] {
                     M fresh = measurer;
                     if constexpr (study::HasOwnClock<M>) fresh.clock = {};
                     return fresh;
                   }});
  }
  return all;
}

template <class M>
void compare(study::Study& study, const Target& target, const M& measurer) {
  study.compare<AnsorQuick<M>, Random<M>, Ansor<M>, Pruner<M>, PrunerQuick<M>, NoDraft<M>, DraftAndTrees<M>,
                NoDataflow<M>>(problems(study.options(), target, measurer),
                               {.trials = study.options().number("trials", 100), .batch = 10});
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv, {.name = "schedules", .seeds = 5}, [](study::Study& study) {
    const std::string machine = study.options().text("machine", "real");
    if (machine == "real") {
      Target host = host_target();
      host.name = "host";
      compare(study, host, measurers::OrcJit{});
    } else if (machine == "cores") {
      compare(study, bench::two_cores(), measurers::Simulated{});
    } else {
      throw std::invalid_argument("--machine=" + machine + ": give real or cores");
    }
  });
}
