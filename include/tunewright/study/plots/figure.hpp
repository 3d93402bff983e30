// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::study {

/// A plot as a gnuplot script with its own data, so that it is a single file.
class Figure {
 public:
  /// Draws `<name>.svg`, `width` by `height` pixels.
  explicit Figure(std::string name, unsigned width = 900, unsigned height = 540);

  /// Adds a block of data, a row for each of `rows`; returns its name for `command`. Non-finite numbers are gaps.
  std::string add_data(std::span<const std::vector<double>> rows);

  /// Appends a line to the script, after all data.
  void command(const std::string& line) { commands_ += line + '\n'; }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Writes `<name>.gp` to the existing folder and returns its path. Throws `std::runtime_error` if it cannot be
  /// written.
  std::filesystem::path write(const std::filesystem::path& folder) const;

  /// `text` in gnuplot's quotes.
  [[nodiscard]] static std::string quoted(std::string_view text);

 private:
  std::string name_, header_, data_, commands_;
  std::size_t blocks_ = 0;
};

/// Draws scripts written by `Figure::write` with gnuplot, next to them. Returns the images; none if gnuplot is missing
/// or fails, with its message on stderr.
[[nodiscard]] std::vector<std::filesystem::path> draw(std::span<const std::filesystem::path> scripts);

/// `name` as a part of a file name: all characters except letters, digits, '-' and '.' become '_', and only the first
/// 160 are kept, which leaves room for an ending: names of files have 255 bytes at most.
[[nodiscard]] std::string file_name(std::string_view name);

}  // namespace tunewright::study

#if TUNEWRIGHT_DEFINES(plots)

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <utility>

#include "tunewright/core/write_file.hpp"

namespace tunewright::study {

TUNEWRIGHT_INLINE Figure::Figure(std::string name, unsigned width, unsigned height)
    : name_(std::move(name)),
      header_("set terminal svg size " + std::to_string(width) + ',' + std::to_string(height) +
              " background 'white'\nset output " + quoted(name_ + ".svg") + '\n') {}

TUNEWRIGHT_INLINE std::string Figure::add_data(std::span<const std::vector<double>> rows) {
  const std::string block = "$data" + std::to_string(blocks_++);
  data_ += block + " << EOD\n";
  for (const std::vector<double>& row : rows) {
    const char* separator = "";
    for (const double value : row) {
      char text[32];
      std::snprintf(text, sizeof text, "%.6g", value);
      data_ += std::string(separator) + (std::isfinite(value) ? text : "NaN");
      separator = " ";
    }
    data_ += '\n';
  }
  data_ += "EOD\n";
  return block;
}

TUNEWRIGHT_INLINE std::filesystem::path Figure::write(const std::filesystem::path& folder) const {
  std::filesystem::path path = folder / (name_ + ".gp");
  write_file(path, "name another folder", [&](std::ostream& out) { out << header_ << data_ << commands_; });
  return path;
}

TUNEWRIGHT_INLINE std::string Figure::quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';  // a doubled quote is one
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '\'';
}

TUNEWRIGHT_INLINE std::vector<std::filesystem::path> draw(std::span<const std::filesystem::path> scripts) {
  const auto in_shell = [](const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + '\'';
  };
  std::vector<std::filesystem::path> pictures;
  for (const std::filesystem::path& script : scripts) {
    // A shell would look for a relative folder in CDPATH, and take a leading '-' for an option.
    const std::filesystem::path folder = std::filesystem::absolute(script).parent_path();
    const std::string call =
        "cd " + in_shell(folder.string()) + " && gnuplot ./" + in_shell(script.filename().string());
    if (std::system(call.c_str()) != 0) return {};
    std::filesystem::path picture = script;
    pictures.push_back(picture.replace_extension(".svg"));
  }
  return pictures;
}

TUNEWRIGHT_INLINE std::string file_name(std::string_view name) {
  std::string result(name.substr(0, 160));
  for (char& c : result)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  return result;
}

}  // namespace tunewright::study

#endif
