// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/wire.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
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

TEST_CASE("who makes a mapping writable changes neither the memory nor other mappings") {
  const std::string text = "contents";
  const Descriptor memory = share(text);
  const Mapping forged(memory.get(), text.size()), other(memory.get(), text.size());
  auto* const begin = const_cast<char*>(forged.bytes().data());
  REQUIRE(::mprotect(begin, text.size(), PROT_READ | PROT_WRITE) == 0);
  begin[0] = 'k';
  const Mapping later(memory.get(), text.size());
  for (const Mapping* mapping : {&other, &later})
    CHECK(std::string(mapping->bytes().begin(), mapping->bytes().end()) == text);
}

TEST_CASE("of several descriptors one is taken, and the others are closed, as are all that nobody asked for") {
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  auto [ours, theirs] = socket_pair();
  const auto send_two = [socket = ours.get()] {
    int record = 42;
    const int descriptors[2] = {socket, socket};
    iovec part{&record, sizeof record};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    REQUIRE(::sendmsg(socket, &message, 0) == sizeof record);
  };
  const auto before = open_descriptors();
  int record = 0;
  send_two();
  CHECK(receive_record(theirs.get(), record) == Received::Message);
  CHECK(open_descriptors() == before);
  {
    Descriptor passed;
    send_two();
    CHECK(receive_record(theirs.get(), record, &passed) == Received::Message);
    CHECK(passed);
    CHECK(open_descriptors() == before + 1);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a wait takes no more of a limit than it asked for, whatever the clock says") {
  using Duration = std::chrono::duration<double>;
  TimeLeft left(Duration(1.2));
  CHECK(left.next_ms() == 500);
  left.take(Duration(3600));  // frozen meanwhile
  CHECK_FALSE(left.over());
  CHECK(left.next_ms() == 500);
  left.take(Duration(0.1));  // interrupted by a signal
  CHECK(left.next_ms() == 500);
  left.take(Duration(0.5));
  CHECK_FALSE(left.over());
  const int rest_ms = left.next_ms();  // rounded up
  CHECK(rest_ms >= 100);
  CHECK(rest_ms <= 101);
  left.take(Duration(3600));
  CHECK(left.over());
  CHECK(left.next_ms() == 0);
  // No time is used up as well.
  const TimeLeft none(Duration(0));
  CHECK(none.over());
  CHECK(none.next_ms() == 0);
  TimeLeft endless(Duration(-1));
  endless.take(Duration(3600));
  CHECK(endless.next_ms() == -1);
  CHECK_FALSE(endless.over());
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
