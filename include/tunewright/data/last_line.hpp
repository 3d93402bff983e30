// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tunewright/core/record.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/data/bad_line.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// What the text after the last complete line of a journal is; an index does not cover it.
struct LastLine {
  std::optional<std::uint64_t> task;
  std::optional<Record> record;
  std::optional<Task> description;
  std::vector<BadLine> bad;  ///< one if the text is cut short
};

[[nodiscard]] LastLine last_line_of(const JournalIndex& index);

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(journal)

#include <cstddef>
#include <exception>
#include <string>

#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"

namespace tunewright::data {

TUNEWRIGHT_INLINE LastLine last_line_of(const JournalIndex& index) {
  LastLine last;
  const std::string text = index.last_text();
  if (text.empty()) return last;
  try {
    if (describes_task(text)) {
      last.description = task_from_line(text);
      last.task = stable_hash(*last.description);
    } else {
      last.record = from_line(text);
      last.task = last.record->task;
    }
  } catch (const std::exception&) {
    last.bad.push_back({static_cast<std::size_t>(index.lines()) + 1, std::string(cut_short)});
  }
  return last;
}

}  // namespace tunewright::data

#endif
