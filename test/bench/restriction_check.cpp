// SPDX-License-Identifier: Apache-2.0
#include "../../bench/restriction_check.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <string>

using namespace tunewright;

namespace {

/// A library that is right and slow.
bench::Peer slow_library() {
  return {"slow",
          [](const bench::Product& p, void* const* buffers) {
            auto* c = static_cast<float*>(buffers[2]);
            for (std::int64_t i = 0; i < p.m * p.n; ++i) c[i] = static_cast<float>(p.k);
          },
          [] { return std::string("1"); }, [] { return std::string("KERNELS"); }};
}
std::string fault_of(const bench::Peer& peer, const Target& target) {
  return bench::check_restriction(peer, target).fault;
}

}  // namespace

TEST_CASE("libraries are left out for what they say, for what they use, for their speed, and when they fail") {
  const Target host = host_target().with_threads(1);
  bench::Peer peer = slow_library();
  peer.allows = bench::detail::one_of({"OTHERS"});
  CHECK(fault_of(peer, host) == "says that it runs kernels for 'KERNELS'");

  // It writes the result without multiplying, far faster than any instruction set could.
  peer = slow_library();
  const bench::RestrictionReport fast = bench::check_restriction(peer, host.with_isa(Isa::Sse42));
  CHECK(fast.version == "1");
  CHECK(fast.kernels == "KERNELS");
  CHECK(fast.share_of_peak > 1);
  CHECK(fast.fault.find("of the peak of sse4.2 and so does not keep to it") != std::string::npos);

  peer.product = [](const bench::Product&, void* const*) {};
  CHECK(fault_of(peer, host) == "its product is wrong");
  peer.product = [](const bench::Product&, void* const*) { std::raise(SIGKILL); };
  CHECK(fault_of(peer, host) == "was ended by signal 9 when it was tried");
  peer.product = [](const bench::Product&, void* const*) { std::_Exit(3); };
  CHECK(fault_of(peer, host) == "ended the process that tried it");
  peer.version = [] {
    const bench::SharedLibrary missing("no such library");
    return std::string();
  };
  CHECK(fault_of(peer, host).find("'no such library' cannot be loaded") == 0);

#if defined(__x86_64__)
  if (host.isa >= Isa::Avx512 && bench::VectorState::tells()) {
    peer = slow_library();
    peer.product = [quick = peer.product](const bench::Product& p, void* const* buffers) {
      quick(p, buffers);
      asm volatile("vpternlogd $255, %%zmm20, %%zmm20, %%zmm20\n\tvzeroupper" : : : "memory");
    };
    CHECK(fault_of(peer, host.with_isa(Isa::Avx2)) == "uses registers of AVX-512");
    CHECK(fault_of(peer, host) != "uses registers of AVX-512");
  }
#endif
}

TEST_CASE("a speed that two measurements can differ by is possible") {
  Target target;
  target.isa = Isa::Avx2;
  CHECK(bench::objection_to_speed(1.1, target) == "");
  CHECK(bench::objection_to_speed(1.9, target) == "runs at 1.90 of the peak of avx2 and so does not keep to it");
}
