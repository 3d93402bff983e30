// SPDX-License-Identifier: Apache-2.0
// How soon drafting first reaches what Ansor's search ends with.
//
//   study_pruner [--machine=cores|gpus|real] [--trials=N] [--trial_ms=N] [--population=N] [--seeds=N] [--tasks=N]
//
// Eight products and convolutions are searched, `--trials` measurements (100) in batches of 10, by
//   Ansor          `recipes::AnsorQuick`, whose trees are trained anew whenever data grew by a fifth: the reference
//   PrunerQuick    `recipes::PrunerQuick`
//   RandomDraft    the same without a draft: its network chooses from 512 random schedules
//   Released, Printed   on GPUs: Pruner's draft in the form of its code and of its paper
// Machines: two simulated cores; simulated GPUs like an A100 and a T4; with real, this machine's CPU, where programs
// are compiled and run. A simulated measurement takes `--trial_ms` (1000: compiling and measuring a candidate), and the
// search on top of it what it takes on this machine's processor. Drafts are bred from `--population` (768) candidates.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "../drafted.hpp"
#include "../two_cores.hpp"
#include "operators.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;
using Space = spaces::MultiLevelTiling;
using Form = drafts::SymbolAnalyzer::Form;

template <class Measurer>
struct Ansor : recipes::AnsorQuick<Space, Measurer> {
  static void set_adaptation(adaptations::Refit& refit) { refit.min_growth = 0.2; }
};
template <class Measurer>
using PrunerQuick = recipes::PrunerQuick<Space, Measurer>;
template <class Measurer>
struct RandomDraft : bench::NoDraft<Measurer> {};
struct Released : PrunerQuick<measurers::Simulated> {
  static void set_draft(drafts::SymbolAnalyzer& draft) { draft.form = Form::Released; }
};
struct Printed : PrunerQuick<measurers::Simulated> {
  static void set_draft(drafts::SymbolAnalyzer& draft) { draft.form = Form::Printed; }
};

template <class Measurer>
std::vector<study::Problem<Space, Measurer>> problems(const study::Options& options, const std::vector<Target>& targets,
                                                      const Measurer& measurer) {
  std::vector<study::Problem<Space, Measurer>> all;
  for (const Target& target : targets) {
    const bench::Operators operators = bench::known_operators();
    std::size_t left = options.tasks == 0 ? operators.size() : options.tasks;
    for (const auto& [name, graph] : operators) {
      if (left-- == 0) break;
      all.push_back(bench::problem(name + "_" + target.name, program::make_task(name, graph, target), measurer));
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const study::Plan plan{
      .name = "pruner", .seeds = 5, .options = {"machine=cores", "trials=100", "population=768", "trial_ms=1000"}};
  return study::run(argc, argv, plan, [](study::Study& study) {
    const study::Options& options = study.options();
    const Budget budget{.trials = options.number("trials"), .batch = 10};
    const auto prepare = [population = options.number("population")](auto& parts) {
      if constexpr (requires { parts.explorer.explorer.population; }) parts.explorer.explorer.population = population;
    };
    const std::string machine = options.text("machine");
    using measurers::Simulated;
    measurers::Simulated simulated;
    simulated.trial = Seconds(static_cast<double>(options.number("trial_ms")) / 1e3);
    if (machine == "cores") {
      study.compare<Ansor<Simulated>, PrunerQuick<Simulated>, RandomDraft<Simulated>>(
          problems(options, {bench::two_cores()}, simulated), budget, prepare);
    } else if (machine == "gpus") {
      study.compare<Ansor<Simulated>, PrunerQuick<Simulated>, RandomDraft<Simulated>, Released, Printed>(
          problems(options, {gpu_target("A100"), gpu_target("T4")}, simulated), budget, prepare);
    } else if (machine == "real") {
      Target host = host_target();
      host.name = "host";
      using measurers::OrcJit;
      study.compare<Ansor<OrcJit>, PrunerQuick<OrcJit>, RandomDraft<OrcJit>>(problems(options, {host}, OrcJit{}),
                                                                             budget, prepare);
    } else {
      throw std::invalid_argument("--machine=" + machine + ": give cores, gpus or real");
    }
  });
}
