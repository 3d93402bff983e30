// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/measurers/concept.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/concept.hpp"
#include "tunewright/spaces/given_only.hpp"

namespace tunewright::recipes {

/// Transfer-Tuning (Gibson and Cano, PACT 2022): no search, but the schedules that another network was tuned to. Each
/// task measures the best schedules of all tasks of its class, made to fit, and keeps the fastest.
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
/// `data::ScheduleStore` says what a class is and how schedules are made to fit, and `ScheduleStore::promise` which of
/// several networks to take them from.
template <SearchSpace Space, MeasurerFor<program_t<Space>> Measurer>
struct TransferTuning : Random<spaces::GivenOnly<Space>, Measurer> {};

}  // namespace tunewright::recipes
