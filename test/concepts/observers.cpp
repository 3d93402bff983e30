// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/observer.hpp"

#include "tunewright/core/history.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/progress.hpp"

using namespace tunewright;

namespace {

using Trials = History<int>;
static_assert(observers::Observer<Progress, Trials>);
static_assert(observers::Observer<Interrupt, Trials>);
static_assert(observers::MayStop<Interrupt>);
static_assert(observers::SeesRecords<Progress>);

struct OnTrial {  // misspelt: no hook has this name
  void on_trial(const Record&, const RunStatus&);
};
static_assert(!observers::Observer<OnTrial, Trials>);
static_assert(!observers::Observer<int, Trials>);

}  // namespace
