// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/helper_threads.hpp"

#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "support/address_space.hpp"

using namespace tunewright;
using namespace std::chrono_literals;

TEST_CASE("every helper works once for each start, and sees what the caller wrote before") {
  for (const HelperThreads::Watch watch : {HelperThreads::Watch{0ns, 0ns}, HelperThreads::Watch{1ms, 1ms}}) {
    int work = 0;  // not atomic: the protocol orders it
    std::vector<int> done(4, 0);
    HelperThreads helpers(3, watch, [&](unsigned number) { done[number] += work; });
    CHECK(helpers.count() == 3);
    for (int round = 1; round <= 500; ++round) {
      work = round;
      helpers.start();
      helpers.finish();
    }
    CHECK(done == std::vector<int>{0, 125250, 125250, 125250});  // 500 * 501 / 2
  }
}

TEST_CASE("helpers that fell asleep wake up, and a caller that fell asleep too") {
  std::atomic<int> runs = 0;
  HelperThreads helpers(2, {10us, 10us}, [&](unsigned) {
    std::this_thread::sleep_for(2ms);
    ++runs;
  });
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(2ms);
    helpers.start();
    helpers.finish();
    CHECK(runs == 2 * (round + 1));
  }
}

TEST_CASE("each helper prepares on its own thread before its first work") {
  std::vector<std::thread::id> prepared(3), worked(3);
  {
    HelperThreads helpers(
        2, {1ms, 1ms}, [&](unsigned number) { worked[number] = std::this_thread::get_id(); },
        [&](unsigned number) { prepared[number] = std::this_thread::get_id(); });
    helpers.start();
    helpers.finish();
  }
  CHECK(prepared == worked);
  CHECK(worked[1] != worked[2]);
  CHECK(worked[1] != std::this_thread::get_id());
}

TEST_CASE("without helpers there is nothing to wait for") {
  HelperThreads helpers(0, {}, [](unsigned) {});
  helpers.start();
  helpers.finish();
  CHECK(helpers.count() == 0);
}

TEST_CASE("helpers have stack for the temporaries of a kernel, whatever the system gives to threads") {
  pthread_attr_t usual, small;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  REQUIRE(pthread_attr_init(&small) == 0);
  REQUIRE(pthread_attr_setstacksize(&small, 1 << 20) == 0);
  REQUIRE(pthread_setattr_default_np(&small) == 0);
  std::size_t stack_bytes = 0;
  HelperThreads helpers(1, {0ns, 0ns}, [&](unsigned) {
    pthread_attr_t own;
    if (pthread_getattr_np(pthread_self(), &own) == 0) pthread_attr_getstacksize(&own, &stack_bytes);
    pthread_attr_destroy(&own);
  });
  helpers.start();
  helpers.finish();
  CHECK(pthread_setattr_default_np(&usual) == 0);
  CHECK(stack_bytes >= std::size_t{8} << 20);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&usual);
}

TEST_CASE("where the system has no threads for all helpers, those that started end, and the caller is told") {
  if (!support::limits_address_space) {
    MESSAGE("skipped: a sanitizer needs the address space");
    return;
  }
  const auto start_too_many = [] {
    try {
      HelperThreads helpers(1000, {0ns, 0ns}, [](unsigned) {});
      helpers.start();
      helpers.finish();
    } catch (const std::system_error&) {
      return 0;
    }
    return 1;
  };
  // Not -1, as by std::terminate; there is room for the stacks of few threads.
  CHECK(support::status_with_room_for(rlim_t{64} << 20, start_too_many) == 0);
}
