// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::measurers {

/// A compiled candidate, or the reason why it could not be compiled.
struct Compiled {
  std::variant<codegen::Kernel, Failure> result;
  Seconds time{0};
};

/// Compiles nests on its own threads; `wait` returns them in order, each as soon as it is compiled. A compilation
/// cannot be interrupted within a process. Its time is bounded because the code generator keeps loops beyond a fixed
/// number of statements as loops; a compilation that took its thread more processor time than allowed is reported as
/// `CompileTimeout`. Waiting, as of a program that Ctrl-Z stopped or of one among many, does not count.
///
/// `compiler.compile(nest)` returns a `codegen::Kernel`, or a variant of that and `Failure`; its exceptions become a
/// `CompileError`.
template <class Compiler>
class CompileTeam {
 public:
  using Compilers = std::vector<std::unique_ptr<Compiler>>;

  /// Starts one thread per compiler, on `processors` unless that is empty, or as many as the system has. If it has
  /// none, the caller's thread compiles all at once.
  CompileTeam(std::span<const loops::LoopNest> nests, const Compilers& compilers, std::size_t count,
              double timeout_seconds, std::span<const int> processors)
      : nests_(nests), timeout_(timeout_seconds), slots_(nests.size()) {
    for (std::size_t t = 0; t < std::min(count, nests.size()); ++t) {
      try {
        threads_.emplace_back(
            [this, compiler = compilers[t].get(), allowed = std::vector<int>(processors.begin(), processors.end())] {
              host::keep_to(allowed);  // on others it would disturb measuring
              work(*compiler);
            });
      } catch (const std::system_error&) {
        if (threads_.empty()) work(*compilers[t]);
        break;
      }
    }
  }
  ~CompileTeam() { next_ = nests_.size(); }  // each thread ends after its current nest

  [[nodiscard]] Compiled wait(std::size_t position) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return slots_[position].has_value() || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    return std::move(*slots_[position]);
  }
  void wait_for_all() { threads_.clear(); }

 private:
  void work(Compiler& compiler) {
    for (std::size_t i = next_++; i < nests_.size(); i = next_++) {
      std::optional<Compiled> compiled;
      try {
        compiled = compile(compiler, nests_[i]);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        ready_.notify_all();
        return;
      }
      const std::lock_guard lock(mutex_);
      slots_[i] = std::move(compiled);
      ready_.notify_all();
    }
  }

  [[nodiscard]] Compiled compile(Compiler& compiler, const loops::LoopNest& nest) const {
    const auto start = std::chrono::steady_clock::now();
    const Seconds start_of_work = thread_seconds();
    Compiled compiled;
    try {
      compiled.result = compiler.compile(nest);
    } catch (const std::bad_alloc&) {
      throw;  // not a property of the candidate
    } catch (const std::exception& error) {
      compiled.result = Failure{Fault::CompileError, error.what()};
    }
    compiled.time = std::chrono::steady_clock::now() - start;
    if (const Seconds work = thread_seconds() - start_of_work; work > timeout_) {
      compiled.result =
          Failure{Fault::CompileTimeout, "compiled for " + std::to_string(work.count()) + " s of a processor's time"};
    }
    return compiled;
  }

  /// Processor time of the calling thread.
  [[nodiscard]] static Seconds thread_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  std::span<const loops::LoopNest> nests_;
  Seconds timeout_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<std::optional<Compiled>> slots_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;  // last, so that they are joined before the other members are destroyed
};

/// Measures the `count` programs that `team` compiles: `measure(kernels)` gets those that compiled together and returns
/// one outcome per kernel.
template <class Compiler, class Measure>
[[nodiscard]] std::vector<Outcome> measure_together(CompileTeam<Compiler>& team, std::size_t count,
                                                    const Measure& measure) {
  std::vector<Outcome> outcomes(count);
  std::vector<codegen::Kernel> kernels;
  std::vector<std::size_t> origin;
  for (std::size_t i = 0; i < count; ++i) {
    Compiled compiled = team.wait(i);
    outcomes[i].compile_time = compiled.time;
    if (auto* failure = std::get_if<Failure>(&compiled.result)) {
      outcomes[i].result = std::move(*failure);
    } else {
      kernels.push_back(std::move(std::get<codegen::Kernel>(compiled.result)));
      origin.push_back(i);
    }
  }
  const std::vector<Outcome> runs = measure(kernels);
  for (std::size_t k = 0; k < runs.size(); ++k) {
    outcomes[origin[k]].result = runs[k].result;
    outcomes[origin[k]].run_time = runs[k].run_time;
  }
  return outcomes;
}

}  // namespace tunewright::measurers
