// SPDX-License-Identifier: Apache-2.0
// Recipes that search schedules, on operators that played no part in developing them.
//
//   study_schedules [--operators=unseen|known|random] [--random_shapes=SEED] [--machine=real|cores]
//                   [--trials=N] [--batch=N] [--seeds=N] [--recipes=A,B] [--taught=N]
//
// Eight operators are searched (operators.hpp names them), or the first `--tasks` of those that `bench_cpu_kernels
// --random_shapes=SEED` draws, with `--trials` measurements (100) in batches of `--batch` (10): on this machine's CPU,
// where programs are compiled and run, or on two simulated cores. schedule_recipes.hpp names the recipes. Those whose
// models are trained before (pretrained.hpp) search this machine only.

#include <concepts>
#include <memory>

#include "chosen_machine.hpp"
#include "operators.hpp"
#include "pretrained.hpp"
#include "schedule_recipes.hpp"
#include "tunewright/study/study.hpp"

using namespace tunewright;
using namespace tunewright::bench;

int main(int argc, char** argv) {
  return study::run(
      argc, argv,
      {.name = "schedules",
       .seeds = 5,
       .options = {"machine=real", "operators=unseen", "random_shapes=1", "trials=100", "batch=10", "taught=64"},
       .choosing = {"operators", "random_shapes"},
       .one_training_a_seed = true},
      [](study::Study& study) {
        with_chosen_machine(study.options(), [&]<class M>(const Target& target, const M& measurer) {
          const auto searched = problems(chosen_operators(study.options()), study.options(), target, measurer);
          const Budget budget = bench::budget(study.options());
          if constexpr (std::same_as<M, measurers::OrcJit>) {
            const auto pretrained = std::make_shared<Pretrained>(study.options(), target);
            study.compare<AnsorQuick<M>, Random<M>, Ansor<M>, Pruner<M>, PrunerQuick<M>, NoDraft<M>, DraftAndTrees<M>,
                          TreesAlone<M>, NoDataflow<M>, TenSet<M>, Tlp<M>, TlpQuick<M>, BaltoTaught<M>, OneShot<M>,
                          HetFeatTransfer<M>, MoaPrunerQuick<M>>(
                searched, budget, [pretrained](auto& parts) { pretrained->prepare(parts); });
          } else {
            study.compare<AnsorQuick<M>, Random<M>, Ansor<M>, Pruner<M>, PrunerQuick<M>, NoDraft<M>, DraftAndTrees<M>,
                          TreesAlone<M>, NoDataflow<M>>(searched, budget);
          }
        });
      });
}
