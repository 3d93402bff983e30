// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/steady_measuring.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"

using namespace tunewright;
using codegen::Kernel;
using measurers::KernelTimer;
using measurers::Protocol;
using measurers::SpeedWatch;
using measurers::SteadyMeasuring;

namespace {

Outcome taking(double seconds) {
  Timing timing;
  timing.repeats = {Seconds(seconds)};
  timing.median = Seconds(seconds);
  return {timing, Seconds(0), Seconds(1)};
}

Kernel named(std::string name) {
  Kernel kernel;
  kernel.symbol = std::move(name);
  return kernel;
}

/// A machine that is `slowness` times as slow as usual: a number for each measurement and each check, in order, then 1.
struct Machine {
  std::deque<double> slowness;
  std::vector<std::string> log;  ///< kernels in the order of measuring; "?" is a check

  double next() {
    if (slowness.empty()) return 1;
    const double now = slowness.front();
    slowness.pop_front();
    return now;
  }
  /// Kernels take as many milliseconds as their names say.
  KernelTimer timer() {
    return {[this](const Kernel& kernel, Seconds) {
              log.push_back(kernel.symbol);
              return taking(1e-3 * std::stod(kernel.symbol) * next());
            },
            [this](const Kernel& kernel) -> std::optional<Seconds> {
              log.push_back("?");
              return Seconds(1e-3 * std::stod(kernel.symbol) * next());
            }};
  }
};

/// What is reported of kernels that take as many milliseconds as their names say, if a check follows each of them.
struct Reports {
  std::vector<std::size_t> order;
  std::vector<double> milliseconds;

  Reports(const KernelTimer& timer, const std::vector<std::string>& kernels, const Protocol& protocol = {}) {
    milliseconds.resize(kernels.size());
    SpeedWatch watch(Seconds(0), 0);
    Seconds best{0};
    SteadyMeasuring steady(timer, protocol, watch, best, [&](std::size_t i, const Outcome& outcome) {
      order.push_back(i);
      milliseconds[i] = 1e3 * cost_s(outcome);
    });
    for (std::size_t i = 0; i < kernels.size(); ++i) steady.measure(i, named(kernels[i]), Seconds(0));
    steady.finish();
  }
};

using Order = std::vector<std::size_t>;
using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("on a steady machine each kernel is measured once") {
  Machine machine;
  const Reports reports(machine.timer(), {"2", "3", "2.5"});
  CHECK(reports.order == Order{0, 1, 2});
  CHECK(reports.milliseconds[1] == doctest::Approx(3));
  CHECK(machine.log == Log{"2", "?", "3", "?", "2.5", "?"});
}

TEST_CASE("a kernel that met a disturbance is measured again, and the lower latency counts") {
  Machine machine{{1, 1, /* the second kernel */ 2.5, /* its check */ 2.5, /* the next check */ 1}, {}};
  const Reports reports(machine.timer(), {"2", "3", "2.5"});
  CHECK(machine.log == Log{"2", "?", "3", "?", "?", "3", "2.5", "?"});
  CHECK(reports.order == Order{0, 1, 2});
  CHECK(reports.milliseconds[1] == doctest::Approx(3));
  CHECK(reports.milliseconds[2] == doctest::Approx(2.5));
}

TEST_CASE("the kernel after a check on a slow machine is doubtful too") {
  // The check of the second kernel, four pauses, the third kernel and its check.
  Machine machine{{1, 1, 2, 2, 2, 2, 2, 2, 2, 1}, {}};
  const Reports reports(machine.timer(), {"2", "3", "2.5"});
  CHECK(reports.order == Order{0, 1, 2});
  CHECK(reports.milliseconds[1] == doctest::Approx(3));
  CHECK(reports.milliseconds[2] == doctest::Approx(2.5));
  CHECK(machine.log == Log{"2", "?", "3", "?", "?", "?", "?", "?", "2.5", "?", "3", "2.5"});
}

TEST_CASE("kernels do not wait for a machine that stays slow") {
  Machine machine;
  machine.slowness = {1, 1};
  machine.slowness.insert(machine.slowness.end(), 100, 1.5);
  const std::vector<std::string> kernels(3 * SteadyMeasuring::most_waiting, "2");
  const Reports reports(machine.timer(), kernels);
  CHECK(reports.order.size() == kernels.size());
  std::size_t measured = 0;
  for (const std::string& entry : machine.log) measured += entry != "?" ? 1 : 0;
  CHECK(measured <= 2 * kernels.size());
}

TEST_CASE("what stays slow for long is usual") {
  SpeedWatch watch(Seconds(0), 0);
  Machine machine;
  watch.note(named("1"), Seconds(1e-3));
  const KernelTimer timer = machine.timer();
  CHECK(watch.is_steady(timer, 1.1));
  machine.slowness.assign(4 * SpeedWatch::remembered, 1.5);
  CHECK_FALSE(watch.is_steady(timer, 1.1));
  for (std::size_t i = 0; i < SpeedWatch::remembered; ++i) static_cast<void>(watch.is_steady(timer, 1.1));
  CHECK(watch.is_steady(timer, 1.1));
}

TEST_CASE("a kernel that is much faster is timed instead") {
  SpeedWatch watch(Seconds(0), 0);
  Machine machine;
  const KernelTimer timer = machine.timer();
  CHECK_FALSE(watch.is_due());
  CHECK(watch.is_steady(timer, 1.1));
  CHECK(machine.log.empty());
  watch.note(named("10"), Seconds(10e-3));
  CHECK(watch.is_due());
  CHECK(watch.is_steady(timer, 1.1));
  watch.note(named("9"), Seconds(9e-3));
  watch.note(named("5"), Seconds(5e-3));
  // Ten milliseconds were usual for the other kernel.
  machine.slowness = {1, 1.5};
  CHECK(watch.is_steady(timer, 1.1));
  CHECK_FALSE(watch.is_steady(timer, 1.1));
}

TEST_CASE("checks of a long kernel are rare") {
  SpeedWatch watch(Seconds(1e-3));
  const KernelTimer timer{{}, [](const Kernel&) -> std::optional<Seconds> {
                            const auto start = std::chrono::steady_clock::now();
                            while (std::chrono::steady_clock::now() - start < Seconds(0.01)) {
                            }
                            return Seconds(0.01);
                          }};
  watch.note(named("10"), Seconds(0.01));
  CHECK(watch.is_steady(timer, 1.1));
  const auto start = std::chrono::steady_clock::now();
  while (!watch.is_due()) {
  }
  CHECK(std::chrono::steady_clock::now() - start > Seconds(0.1));
}

TEST_CASE("kernels that are far slower than the best are not measured again") {
  Machine machine{{1, 1, 1, 2, 1}, {}};
  const Reports reports(machine.timer(), {"2", "9"});
  CHECK(machine.log == Log{"2", "?", "9", "?", "?"});
  CHECK(reports.milliseconds[1] == doctest::Approx(9));
}

TEST_CASE("an infinite factor measures nothing again and checks nothing") {
  Machine machine{{1, 3, 1}, {}};
  const Reports reports(machine.timer(), {"2", "3"}, {.disturbed_factor = std::numeric_limits<double>::infinity()});
  CHECK(machine.log == Log{"2", "3"});
  CHECK(reports.milliseconds[1] == doctest::Approx(9));
}

TEST_CASE("failures are final: the first, and one when measured again") {
  unsigned measured = 0, checked = 0;
  const KernelTimer timer{
      [&](const Kernel& kernel, Seconds) -> Outcome {
        if (kernel.symbol == "wrong") return {Failure{Fault::WrongResult, "first"}, {}, {}};
        // The other kernel fails the second time.
        return measured++ == 1 ? Outcome{Failure{Fault::RunError, "again"}, {}, {}} : taking(1e-3);
      },
      [&](const Kernel&) -> std::optional<Seconds> { return Seconds(checked++ == 1 ? 9e-3 : 1e-3); }};
  std::vector<Fault> faults;
  SpeedWatch watch(Seconds(0), 0);
  watch.note(named("before"), Seconds(1e-3));
  CHECK(watch.is_steady(timer, 1.1));
  Seconds best{1e-3};
  SteadyMeasuring steady(timer, {}, watch, best,
                         [&](std::size_t, const Outcome& o) { faults.push_back(o.failure()->fault); });
  steady.measure(0, named("flaky"), Seconds(0));
  steady.measure(1, named("wrong"), Seconds(0));
  steady.finish();
  CHECK(faults == std::vector<Fault>{Fault::RunError, Fault::WrongResult});
}

TEST_CASE("a check that fails says nothing") {
  SpeedWatch watch(Seconds(0), 0);
  watch.note(named("1"), Seconds(1e-3));
  CHECK(watch.is_steady({{}, [](const Kernel&) -> std::optional<Seconds> { return std::nullopt; }}, 1.1));
}
