// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/statement_program.hpp"

/// Runs the kernels of a nest in device form on the CPU: threads become loops, split at barriers.
namespace tunewright::loops {

namespace detail {

/// Which threads touched an element last, and when; time counts barriers, blocks and kernels.
struct LastTouch {
  static constexpr std::uint32_t many = ~std::uint32_t{0};
  std::uint32_t written_at = 0, writer = 0;
  std::uint32_t read_at = 0, reader = 0;  ///< or `many`
};

class Simt : public LoopState {
 public:
  Simt(const LoopNest& nest, std::vector<std::vector<double>>& arguments)
      : LoopState(nest), storage_(nest.buffers.size()) {
    check_arguments(nest, arguments);
    for (std::size_t a = 0; a < arguments.size(); ++a) {
      Storage& s = storage_[nest.arguments[a]];
      const bool is_output = nest.buffers[nest.arguments[a]].role == BufferRole::Output;
      s.values = std::move(arguments[a]);
      s.elements = s.values.size();
      s.written.assign(s.elements, is_output ? 0 : 1);
      if (is_output) s.touches.assign(s.elements, {});
    }
  }

  void run(std::vector<std::vector<double>>& arguments) {
    const std::vector<DeviceKernel> kernels = device_kernels(nest_);
    std::size_t next = 0;
    for (const Node& node : nest_.body) {
      if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        this->allocate(allocate->buffer, 1);
      } else {
        run(kernels[next++]);
      }
    }
    for (std::size_t a = 0; a < arguments.size(); ++a)
      arguments[a] = std::move(storage_[nest_.arguments[a]].values);
  }

  // What statements ask for.

  [[nodiscard]] double read(const program::Operator& op, const Place& place, std::size_t offset) {
    Storage& s = storage_of(place.buffer);
    const std::size_t at = located(op, place, offset, "reads");
    refuse_in_flight(s, op, place, offset, "reads");
    if (s.written[at] == 0) {
      fail(AccessFault::Unwritten, op,
           "reads element " + std::to_string(offset) + " of '" + nest_.buffers[place.buffer].name +
               "' before it is written");
    }
    if (!s.touches.empty()) {
      LastTouch& touch = s.touches[at];
      const auto [now, self] = moment(s);
      if (touch.written_at == now && touch.writer != self)
        race(op, place, offset, "reads", "written", touch.writer);
      touch.reader = touch.read_at == now && touch.reader != self ? LastTouch::many : self;
      touch.read_at = now;
    }
    return s.values[at];
  }
  void write(const program::Operator& op, const Place& place, std::size_t offset, double value) {
    Storage& s = storage_of(place.buffer);
    const std::size_t at = located(op, place, offset, "writes");
    refuse_in_flight(s, op, place, offset, "writes");
    if (!s.touches.empty()) {
      LastTouch& touch = s.touches[at];
      const auto [now, self] = moment(s);
      if (touch.written_at == now && touch.writer != self)
        race(op, place, offset, "writes", "written", touch.writer);
      if (touch.read_at == now && touch.reader != self)
        race(op, place, offset, "writes", "read", touch.reader);
      touch.written_at = now;
      touch.writer = self;
    }
    if (asynchronous_ && s.of_block) {
      s.in_flight[at] = thread_ + 1;
      copies_[thread_].under_way.push_back({place.buffer, at, value, copies_[thread_].groups});
      return;
    }
    s.values[at] = value;
    s.written[at] = 1;
  }

 private:
  struct Storage {
    std::vector<double> values;  ///< of a Local buffer: of one thread after the other
    std::vector<char> written;
    std::vector<LastTouch> touches;  ///< of memory that threads share and write
    std::vector<std::size_t>
        in_flight;             ///< of shared memory: number of the thread, from 1, that copies to it
    std::size_t elements = 0;  ///< a thread
    bool of_threads = false;
    bool of_warps = false;  ///< its threads hold it together
    bool of_block = false;
  };

  /// What a thread has asked the device to copy and has not waited for.
  struct Copies {
    struct Element {
      BufferId buffer = 0;
      std::size_t at = 0;
      double value = 0;
      std::size_t group = 0;
    };
    std::vector<Element> under_way;
    std::size_t groups = 0;  ///< committed so far
  };

  /// A node prepared to be run.
  struct Step {
    enum class Kind : std::uint8_t { Loop, Branch, Statement, Allocate, Barrier, Combine, Commit, Wait };
    Kind kind = Kind::Barrier;
    bool together = false;  ///< contains something that all threads come to together
    bool asynchronous = false;
    std::uint32_t under_way = 0;
    bool by_warp = false;  ///< a warp does it as a whole
    Var var = 0;
    std::int64_t extent = 1;
    BufferId buffer = 0;
    std::size_t program = 0;
    const Branch* branch = nullptr;
    const CrossThreadReduction* combine = nullptr;
    std::vector<Step> body;
    std::vector<Step> otherwise;
  };

  std::vector<Step> prepared(std::span<const Node> body) {
    std::vector<Step> steps;
    for (const Node& node : body) {
      if (std::holds_alternative<WaitForProducts>(node.content))
        continue;  // they are done when they have run
      Step& step = steps.emplace_back();
      if (const auto* loop = std::get_if<Loop>(&node.content)) {
        step.kind = Step::Kind::Loop;
        step.var = loop->var;
        step.extent = checked_extent(nest_, *loop);
        step.by_warp = loop->intrinsic != nullptr;
        step.body = prepared(loop->body);
      } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
        step.kind = Step::Kind::Branch;
        step.branch = branch;
        step.body = prepared(branch->then);
        step.otherwise = prepared(branch->otherwise);
      } else if (const auto* statement = std::get_if<Statement>(&node.content)) {
        step.kind = Step::Kind::Statement;
        step.program = programs_.size();
        step.asynchronous = statement->asynchronous;
        programs_.emplace_back(nest_, *statement);
      } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        step.kind = Step::Kind::Allocate;
        step.buffer = allocate->buffer;
        Storage& s = storage_.at(allocate->buffer);
        s.of_block = nest_.buffers[allocate->buffer].scope == Scope::Shared;
        s.of_warps = nest_.buffers[allocate->buffer].scope == Scope::Accumulator;
        s.of_threads = !s.of_block && !s.of_warps;
        this->allocate(allocate->buffer, s.of_threads ? threads_.size() : s.of_warps ? warps() : 1);
        s.in_flight.assign(s.of_block ? s.elements : 0, 0);
      } else if (std::holds_alternative<CommitCopies>(node.content)) {
        step.kind = Step::Kind::Commit;
      } else if (const auto* wait = std::get_if<WaitForCopies>(&node.content)) {
        step.kind = Step::Kind::Wait;
        step.under_way = wait->under_way;
      } else {
        step.together = true;
        step.combine = std::get_if<CrossThreadReduction>(&node.content);
        if (step.combine != nullptr) step.kind = Step::Kind::Combine;
      }
      for (const Step& inner : step.body) step.together = step.together || inner.together;
      for (const Step& inner : step.otherwise) step.together = step.together || inner.together;
    }
    return steps;
  }

  void allocate(BufferId id, std::size_t copies) {
    const Buffer& buffer = nest_.buffers.at(id);
    Storage& s = storage_[id];
    s.elements = static_cast<std::size_t>(buffer.elements());
    s.values.assign(copies * s.elements, std::numeric_limits<double>::quiet_NaN());
    s.written.assign(copies * s.elements, 0);
    if (!s.of_threads && !s.of_warps) s.touches.assign(s.elements, {});
  }

  void run(const DeviceKernel& kernel) {
    ++kernel_;
    thread_ = 0;
    threads_.assign(static_cast<std::size_t>(kernel.threads()), {});
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      auto rest = static_cast<std::int64_t>(t);
      for (std::size_t i = 0; i < 3; ++i) {
        threads_[t][i] = rest % kernel.block[i];
        rest /= kernel.block[i];
      }
    }
    kernel_shape_ = &kernel;
    programs_.clear();
    const std::vector<Step> steps = prepared(kernel.body);
    active_.clear();
    for (const Loop* loop : kernel.bound) active_.push_back(loop->var);
    for (block_ = 0; block_ < kernel.blocks(); ++block_) {
      ++time_;
      copies_.assign(threads_.size(), {});
      for (const BufferId id : kernel.shared) storage_[id].in_flight.assign(storage_[id].elements, 0);
      std::int64_t rest = block_;
      for (std::size_t i = 0; i < 3; ++i) {
        if (kernel.block_index[i]) values_[*kernel.block_index[i]] = rest % kernel.grid[i];
        rest /= kernel.grid[i];
      }
      run_together(steps);
    }
  }

  void become(std::size_t thread) {
    thread_ = thread;
    for (std::size_t i = 0; i < 3; ++i) {
      if (kernel_shape_->thread_index[i]) values_[*kernel_shape_->thread_index[i]] = threads_[thread][i];
    }
  }

  /// All threads of a block, in step from barrier to barrier.
  void run_together(std::span<const Step> steps) {
    for (std::size_t n = 0; n < steps.size();) {
      if (steps[n].together) {
        run_together(steps[n++]);
        continue;
      }
      const std::size_t first = n;
      while (n < steps.size() && !steps[n].together) ++n;
      for (std::size_t t = 0; t < threads_.size(); ++t) {
        become(t);
        run_alone(steps.subspan(first, n - first));
      }
    }
  }
  void run_together(const Step& step) {
    switch (step.kind) {
      case Step::Kind::Loop:
        active_.push_back(step.var);
        for (std::int64_t i = 0; i < step.extent; ++i) {
          values_[step.var] = i;  // anew: the body may run the same loop again
          run_together(step.body);
        }
        active_.pop_back();
        break;
      case Step::Kind::Branch: run_together(agreed(*step.branch) ? step.body : step.otherwise); break;
      case Step::Kind::Combine: combine(*step.combine); break;
      default: ++time_; break;
    }
  }

  /// What all threads find of the conditions.
  bool agreed(const Branch& branch) {
    become(0);
    const bool first = holds(branch.conditions);
    for (std::size_t t = 1; t < threads_.size(); ++t) {
      become(t);
      if (holds(branch.conditions) != first)
        throw InterpretError(
            AccessFault::NotRunnable,
            "loop nest '" + nest_.name + "' has a barrier where only some threads of a block run");
    }
    return first;
  }

  void run_alone(std::span<const Step> steps) {
    for (const Step& step : steps) {
      switch (step.kind) {
        case Step::Kind::Loop:
          if (step.by_warp && thread_ % lanes() != 0) break;  // the first thread stands for its warp
          by_warp_ = by_warp_ || step.by_warp;
          active_.push_back(step.var);
          for (std::int64_t i = 0; i < step.extent; ++i) {
            values_[step.var] = i;
            run_alone(step.body);
          }
          active_.pop_back();
          if (step.by_warp) by_warp_ = false;
          break;
        case Step::Kind::Branch:
          run_alone(holds(step.branch->conditions) ? step.body : step.otherwise);
          break;
        case Step::Kind::Statement:
          asynchronous_ = step.asynchronous;
          programs_[step.program].run(*this);
          asynchronous_ = false;
          break;
        case Step::Kind::Commit: ++copies_[thread_].groups; break;
        case Step::Kind::Wait: wait_for_copies(step.under_way); break;
        default: forget(step.buffer); break;
      }
    }
  }

  /// What the thread has copied arrives, but for its latest groups. Only now does it count as written, by it.
  void wait_for_copies(std::uint32_t but) {
    Copies& copies = copies_[thread_];
    const auto arrives = [&](const Copies::Element& e) { return e.group + but < copies.groups; };
    for (const Copies::Element& e : copies.under_way) {
      if (!arrives(e)) continue;
      Storage& s = storage_of(e.buffer);
      s.in_flight[e.at] = 0;
      s.values[e.at] = e.value;
      s.written[e.at] = 1;
      const auto [now, self] = moment(s);
      s.touches[e.at].written_at = now;
      s.touches[e.at].writer = self;
    }
    std::erase_if(copies.under_way, arrives);
  }

  void refuse_in_flight(const Storage& s, const program::Operator& op, const Place& place, std::size_t offset,
                        const char* verb) const {
    if (s.in_flight.empty() || s.in_flight[offset] == 0) return;
    fail(AccessFault::Race, op,
         std::string(verb) + " element " + std::to_string(offset) + " of '" +
             nest_.buffers[place.buffer].name + "' to which thread " +
             std::to_string(s.in_flight[offset] - 1) + " is copying; wait for its copies first");
  }

  /// An allocation: nothing in it has been written. Shared memory is allocated by the first thread for all.
  void forget(BufferId id) {
    Storage& s = storage_[id];
    if ((s.of_block && thread_ > 0) || (s.of_warps && thread_ % lanes() != 0)) return;
    const auto first = s.written.begin() + static_cast<std::ptrdiff_t>(owner(s) * s.elements);
    std::fill(first, first + static_cast<std::ptrdiff_t>(s.elements), 0);
  }

  void combine(const CrossThreadReduction& r) {
    const auto local = [&](BufferId id) { return place_of(nest_, id, r.axis_values); };
    const Place from = local(r.partial), to = local(r.target);
    const ScalarType type = nest_.buffers[r.target].type;
    const bool everyone = storage_of(r.target).of_threads;
    std::vector<double> result(threads_.size(), program::identity(r.op->combiner, type));
    const auto leader = [&](std::size_t t) {
      std::size_t number = 0, stride = 1;
      for (std::size_t i = 0; i < 3; ++i) {
        if (!r.over[i]) number += stride * static_cast<std::size_t>(threads_[t][i]);
        stride *= static_cast<std::size_t>(kernel_shape_->block[i]);
      }
      return number;
    };
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      become(t);
      double& sum = result[leader(t)];
      sum = program::rounded(
          combined(r.op->combiner, type, sum, read(*r.op, from, element(*r.op, from, "reads"))), type);
    }
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      become(t);
      if (holds(r.guards) && (everyone || leader(t) == t))
        write(*r.op, to, element(*r.op, to, "writes"), result[leader(t)]);
    }
  }

  [[nodiscard]] Storage& storage_of(BufferId id) { return storage_[memory_of(nest_, id)]; }

  /// Place of an element in the storage of its buffer.
  std::size_t located(const program::Operator& op, const Place& place, std::size_t offset,
                      const char* verb) const {
    const Storage& s = storage_[memory_of(nest_, place.buffer)];
    if (s.elements == 0)
      fail(AccessFault::Unwritten, op,
           std::string(verb) + " '" + nest_.buffers[place.buffer].name + "' before it is allocated");
    if (offset >= s.elements) {
      fail(AccessFault::Outside, op,
           std::string(verb) + " '" + nest_.buffers[place.buffer].name + "' at offset " +
               std::to_string(offset) + " of " + std::to_string(s.elements) + " elements");
    }
    return owner(s) * s.elements + offset;
  }
  /// Which of the copies of a buffer the current thread has.
  [[nodiscard]] std::size_t owner(const Storage& s) const noexcept {
    return s.of_threads ? thread_ : s.of_warps ? thread_ / lanes() : 0;
  }
  /// Threads that hold fragments together, and how many times there are so many; of a kernel that has fragments.
  [[nodiscard]] std::size_t lanes() const noexcept {
    return static_cast<std::size_t>(kernel_shape_->block[0]);
  }
  [[nodiscard]] std::size_t warps() const noexcept { return threads_.size() / lanes(); }

  /// Time and thread as they count for a buffer: no barrier orders the threads of different blocks. What a warp does
  /// as a whole may be done by any of its threads, so it counts as done by one that is none of them.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> moment(const Storage& s) const {
    const auto thread = static_cast<std::uint32_t>(by_warp_ ? threads_.size() + thread_ / lanes() : thread_);
    if (s.of_block) return {time_, thread};
    return {
        kernel_,
        static_cast<std::uint32_t>(block_) * static_cast<std::uint32_t>(threads_.size() + warps()) + thread};
  }

  [[noreturn]] void race(const program::Operator& op, const Place& place, std::size_t offset,
                         const char* verb, const char* other, std::uint32_t by) const {
    const Storage& s = storage_[memory_of(nest_, place.buffer)];
    const auto threads = static_cast<std::uint32_t>(threads_.size());
    const std::string held_by = kernel_shape_->block[0] > device::warp_size ? "warp group " : "warp ";
    fail(AccessFault::Race, op,
         std::string(verb) + " element " + std::to_string(offset) + " of '" +
             nest_.buffers[place.buffer].name + "' which " +
             (by == LastTouch::many         ? "other threads have"
              : s.of_block && by >= threads ? held_by + std::to_string(by - threads) + " has"
                                            : "thread " + std::to_string(by) + " has") +
             " " + other + " since the last barrier");
  }

  std::vector<Storage> storage_;  // by buffer
  std::vector<StatementProgram> programs_;
  std::vector<Copies> copies_;                        // by thread
  bool asynchronous_ = false;                         // whether the statement that runs is
  std::vector<std::array<std::int64_t, 3>> threads_;  // of a block: their indices
  const DeviceKernel* kernel_shape_ = nullptr;
  std::size_t thread_ = 0;
  bool by_warp_ = false;
  std::int64_t block_ = 0;
  std::uint32_t kernel_ = 0;
  std::uint32_t time_ = 0;
};

}  // namespace detail

/// Runs the kernels of `nest`, which must be in device form (`to_device`), on `arguments` as `interpret` takes
/// them. Blocks run one after the other, threads of a block in step from barrier to barrier, so that results
/// depend on no order that a device does not promise.
///
/// Throws what `interpret` does, for the same reasons, and `InterpretError` for data races: an element that two
/// threads of a block touch, one of them writing, without a barrier in between, or threads of different blocks
/// within one kernel, an element that an asynchronous copy has not been waited for; also for barriers that only
/// some threads come to. Such a copy arrives at the wait, neither earlier nor by itself. `DeviceFormError` for another form.
/// Cost: about a tenth of a microsecond for each operation of a body; memory for the locals of one block.
inline void run_simt(const LoopNest& nest, std::vector<std::vector<double>>& arguments) {
  detail::Simt(nest, arguments).run(arguments);
}

}  // namespace tunewright::loops
