// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tunewright/data/table_builder.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Reads a Kernel Tuner cache, a T4 file or a KTT file, plain or gzip; the first key, or the one behind the version of
/// a schema, determines which.
///
///   const data::ImportedTable imported = data::read_table("MI250X.json.gz", {.device = "MI250X"});
///   std::cout << data::summary(imported.report) << '\n';
///
/// Throws `std::runtime_error` for a file that cannot be read, has a damaged gzip stream, or has none of the three
/// formats; otherwise the errors of its format.
[[nodiscard]] ImportedTable read_table(const std::string& path, TableSource source = {});

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(gzip)

#include "tunewright/data/gzip.hpp"
#include "tunewright/data/kernel_tuner.hpp"
#include "tunewright/data/ktt.hpp"
#include "tunewright/data/t4.hpp"

namespace tunewright::data::read_table_detail {

/// The first key of an object other than `schema_version`, which several formats have; empty for another text.
TUNEWRIGHT_INLINE std::string_view telling_key(std::string_view text) {
  json::Scanner in(text);
  try {
    for (char before = '{'; in.accept(before); before = ',') {
      const std::string_view key = in.plain_string();
      if (key != "schema_version") return key;
      in.expect(':');
      (void)in.skip_value();
    }
  } catch (const FormatError&) {  // the importer tells what is wrong with the text
  }
  return {};
}

}  // namespace tunewright::data::read_table_detail

namespace tunewright::data {

TUNEWRIGHT_INLINE ImportedTable read_table(const std::string& path, TableSource source) {
  const std::string text = read_text(path);
  if (source.file.empty()) source.file = path;
  const std::string_view key = read_table_detail::telling_key(text);
  if (key == "Metadata" || key == "Results") return parse_ktt(text, source);
  if (key == "metadata" || key == "results") return parse_t4(text, source);
  if (key == "input" || key == "i") {
    throw FormatError("'" + source.file + "' is no Kernel Tuner cache, but a log of TVM's " +
                      (key == "i" ? "auto_scheduler, which is no table; its programs are read by "
                                    "data::AutoSchedulerPrograms"
                                  : "AutoTVM; read it by data::read_autotvm_table"));
  }
  return parse_kernel_tuner(text, source);
}

}  // namespace tunewright::data

#endif
