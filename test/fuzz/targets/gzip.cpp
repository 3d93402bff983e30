// SPDX-License-Identifier: Apache-2.0
// A plain or gzip file. What comes of it does not depend on how much is asked for at a time, nor on whether it is read
// as a text or as lines.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "tunewright/data/gzip.hpp"

using namespace tunewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text(bytes, size));
  constexpr std::size_t most = std::size_t{1} << 16;
  std::string text;
  const bool whole = fuzz::accepts<std::runtime_error>([&] { text = data::read_text(file.path(), most); });

  data::GzipReader reader(file.path());
  std::string pieces;
  char piece[97];
  for (std::size_t got = 1, asked = 1; got > 0 && pieces.size() <= most; asked = asked % sizeof piece + 1) {
    got = reader.read(piece, asked);
    fuzz::require(got <= asked, "no more is given than asked for");
    pieces.append(piece, got);
  }
  if (!whole) {
    fuzz::require(!reader.damage().empty() || pieces.size() > most, "what is refused is damaged or too long");
    return 0;
  }
  fuzz::require(reader.damage().empty() && pieces == text, "pieces make up the text");
  data::GzipLines lines(file.path(), 512);
  std::string_view line;
  std::size_t at = 0;
  while (lines.next(line)) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view expected = std::string_view(text).substr(at, end - at);
    if (expected.ends_with('\r')) expected.remove_suffix(1);
    fuzz::require(lines.too_long() ? line.empty() && expected.size() >= 512 : line == expected, "lines are the text's");
    at = end + 1;
  }
  fuzz::require(at >= text.size(), "no line is left out");
  return 0;
}
