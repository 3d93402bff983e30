// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/measurers/concept.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/concept.hpp"
#include "tunewright/spaces/given_only.hpp"

namespace tunewright::recipes {

/// Transfer-Tuning (Gibson and Cano, PACT 2022): no search, only the tuned schedules of another network. Each task
/// measures the best schedules of all tasks of its class, refitted to its shape, and keeps the fastest.
///
///   data::ScheduleStore donor(1);  // the fastest of each task
///   donor.add({"resnet50.jsonl"});
///   MultiTaskTuner<recipes::TransferTuning<Space, Measurer>, schedulers::RoundRobin> tuner{
///       {.starts = [&](const auto& space, const Task& task) {
///         std::vector<schedule::Schedule> given = donor.candidates(space, task, 1000, 1).schedules;
///         given.push_back(networks::default_schedule(task));  // for a class that the donor lacks
///         return given;
///       }}};
///
/// `data::ScheduleStore` defines classes and refitting, and `ScheduleStore::promise` compares networks to take
/// schedules from.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct TransferTuning : Random<spaces::GivenOnly<Space>, Measurer> {};

}  // namespace tunewright::recipes
