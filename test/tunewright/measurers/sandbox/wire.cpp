// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/wire.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace tunewright::measurers::sandbox;

TEST_CASE("what is written is read, values in place being aligned") {
  const std::vector<double> values{1, 2, 3};
  Writer writer;
  writer.put(std::uint8_t{7});
  writer.put_text("name");
  writer.put_all(std::span<const double>(values));
  writer.put_all(std::span<const double>());
  writer.put(std::int64_t{-1});
  const Descriptor memory = share(writer.bytes());
  const Mapping mapping(memory.get(), writer.bytes().size());
  Reader reader(mapping.bytes());
  CHECK(reader.get<std::uint8_t>() == 7);
  CHECK(reader.get_text() == "name");
  const auto read = reader.get_all<double>();
  CHECK(std::vector<double>(read.begin(), read.end()) == values);
  CHECK(reinterpret_cast<std::uintptr_t>(read.data()) % alignof(double) == 0);
  CHECK(reader.get_all<double>().empty());
  CHECK(reader.get<std::int64_t>() == -1);
  CHECK_THROWS_AS(static_cast<void>(reader.get<char>()), std::logic_error);
}

TEST_CASE("records arrive with their descriptor, late or never") {
  auto [ours, theirs] = socket_pair();
  const std::string text = "contents";
  const Descriptor memory = share(text);
  CHECK(send_record(ours.get(), 42, memory.get()));
  int record = 0;
  Descriptor passed;
  CHECK(receive_record(theirs.get(), record, &passed) == Received::Message);
  CHECK(record == 42);
  const Mapping mapping(passed.get(), text.size());
  CHECK(std::string(mapping.bytes().begin(), mapping.bytes().end()) == text);

  const auto start = std::chrono::steady_clock::now();
  CHECK(receive_record(theirs.get(), record, nullptr, std::chrono::duration<double>(0.02)) == Received::TimedOut);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(20));

  // Other sizes than is waited for.
  CHECK(send_record(ours.get(), char{1}));
  CHECK(receive_record(theirs.get(), record) == Received::Closed);
  CHECK(send_record(ours.get(), std::array<int, 2>{42, 43}));
  CHECK(receive_record(theirs.get(), record) == Received::Closed);
  ours.close();
  CHECK(receive_record(theirs.get(), record) == Received::Closed);
  CHECK(!send_record(theirs.get(), 1));
}
