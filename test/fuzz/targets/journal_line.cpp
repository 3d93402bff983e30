// SPDX-License-Identifier: Apache-2.0
// One line of a journal, as a record and as the description of a task. What is taken is written again and reads equal.
#include <exception>
#include <string>

#include "fuzz/fuzz.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view line = fuzz::text(bytes, size);
  Record record;
  if (fuzz::accepts<std::exception>([&] { record = data::from_line(line); })) {
    fuzz::require(data::record_json::refused_number(record).empty(), "a record that was read may be written");
    fuzz::require(data::from_line(data::to_line(record)) == record, "a record reads equal");
  }
  Task task;
  if (fuzz::accepts<std::exception>([&] { task = data::task_from_line(line); })) {
    const std::string written = data::to_line(task);
    fuzz::require(data::describes_task(written), "a task is written as one");
    const Task again = data::task_from_line(written);
    fuzz::require(stable_hash(again) == stable_hash(task), "a task keeps its hash");
    fuzz::require(data::to_line(again) == written, "a task reads equal");
  }
  return 0;
}
