// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/simt/threads.hpp"
#include "tunewright/loops/statement_program.hpp"

/// The memory of a GPU as its threads see it: private copies of buffers, data races, and asynchronous copies.
namespace tunewright::loops::detail {

/// The threads that accessed an element last, and when; time counts barriers, blocks and kernels.
struct LastTouch {
  static constexpr std::uint32_t many = ~std::uint32_t{0};
  std::uint32_t written_at = 0, writer = 0;
  std::uint32_t read_at = 0, reader = 0;  ///< thread, or `many`
};

/// The buffers of a nest in device form, accessed by the current thread.
class SimtMemory : public SimtThreads {
 public:
  /// Moves the values of `arguments`; `give_back` returns them.
  SimtMemory(const LoopNest& nest, std::vector<std::vector<double>>& arguments);

  // The interface for statements.

  [[nodiscard]] double read(const program::Operator& op, const Place& place, std::size_t offset);
  void write(const program::Operator& op, const Place& place, std::size_t offset, double value);

 protected:
  void give_back(std::vector<std::vector<double>>& arguments) {
    for (std::size_t a = 0; a < arguments.size(); ++a) arguments[a] = std::move(storage_[nest_.arguments[a]].values);
  }

  /// Allocates memory that kernels share.
  void allocate_workspace(BufferId id) { allocate(id, 1); }

  /// Sets the threads and allocations of the kernel.
  void begin(const DeviceKernel& kernel);
  void begin_block(std::int64_t block);
  /// Orders all earlier accesses before all later ones.
  void pass_barrier() noexcept { ++time_; }

  void commit_copies() { ++copies_[thread_].groups; }
  /// Completes the thread's copies, except for its latest `but` groups. They count as written by the thread only now.
  void wait_for_copies(std::uint32_t but);

  /// Makes an allocation unwritten. The first thread allocates shared memory for all.
  void forget(BufferId id);

  /// Whether each thread has its own copy.
  [[nodiscard]] bool is_of_threads(BufferId id) const { return storage_[memory_of(nest_, id)].of_threads; }
  bool by_warp_ = false;       // the whole warp executes the current step
  bool asynchronous_ = false;  // the current store is asynchronous
 private:
  struct Storage {
    std::vector<double> values;  ///< for a Local buffer: of all threads, one after the other
    std::vector<char> written;
    std::vector<LastTouch> touches;      ///< for memory that threads share and write
    std::vector<std::size_t> in_flight;  ///< for shared memory: number of the thread, from 1, that copies to it
    std::size_t elements = 0;            ///< per thread
    bool of_threads = false;
    bool of_warps = false;  ///< threads hold it together
    bool of_block = false;
  };

  /// Asynchronous copies of a thread that it has not waited for.
  struct Copies {
    struct Element {
      BufferId buffer = 0;
      std::size_t at = 0;
      double value = 0;
      std::size_t group = 0;
    };
    std::vector<Element> under_way;
    std::size_t groups = 0;  ///< number of committed groups
  };

  void allocate(BufferId id, std::size_t copies);

  void refuse_in_flight(const Storage& s, const program::Operator& op, const Place& place, std::size_t offset,
                        const char* verb) const;

  [[nodiscard]] Storage& storage_of(BufferId id) { return storage_[memory_of(nest_, id)]; }

  /// Position of an element in the storage of its buffer.
  std::size_t located(const program::Operator& op, const Place& place, std::size_t offset, const char* verb) const;
  /// The index of the current thread's copy of a buffer.
  [[nodiscard]] std::size_t owner(const Storage& s) const noexcept {
    return s.of_threads ? thread_ : s.of_warps ? thread_ / lanes() : 0;
  }
  /// Time and thread of an access to a buffer: barriers do not order threads of different blocks. Any thread of a warp
  /// may execute the work of the whole warp, so that counts as an access by none of them.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> moment(const Storage& s) const;

  [[noreturn]] void race(const program::Operator& op, const Place& place, std::size_t offset, const char* verb,
                         const char* other, std::uint32_t by) const;

  std::vector<Storage> storage_;  // by buffer
  std::vector<Copies> copies_;    // by thread
  std::uint32_t kernel_ = 0;
  std::uint32_t time_ = 0;
};

}  // namespace tunewright::loops::detail

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE SimtMemory::SimtMemory(const LoopNest& nest, std::vector<std::vector<double>>& arguments)
    : SimtThreads(nest), storage_(nest.buffers.size()) {
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

TUNEWRIGHT_INLINE double SimtMemory::read(const program::Operator& op, const Place& place, std::size_t offset) {
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
    if (touch.written_at == now && touch.writer != self) race(op, place, offset, "reads", "written", touch.writer);
    touch.reader = touch.read_at == now && touch.reader != self ? LastTouch::many : self;
    touch.read_at = now;
  }
  return s.values[at];
}

TUNEWRIGHT_INLINE void SimtMemory::write(const program::Operator& op, const Place& place, std::size_t offset,
                                         double value) {
  Storage& s = storage_of(place.buffer);
  const std::size_t at = located(op, place, offset, "writes");
  refuse_in_flight(s, op, place, offset, "writes");
  if (!s.touches.empty()) {
    LastTouch& touch = s.touches[at];
    const auto [now, self] = moment(s);
    if (touch.written_at == now && touch.writer != self) race(op, place, offset, "writes", "written", touch.writer);
    if (touch.read_at == now && touch.reader != self) race(op, place, offset, "writes", "read", touch.reader);
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

TUNEWRIGHT_INLINE void SimtMemory::begin(const DeviceKernel& kernel) {
  SimtThreads::begin(kernel);
  ++kernel_;
  for (const BufferId id : kernel.shared) {
    storage_.at(id).of_block = true;
    allocate(id, 1);
  }
  for (const BufferId id : kernel.local) {
    Storage& s = storage_.at(id);
    s.of_warps = nest_.buffers.at(id).scope == Scope::Accumulator;
    s.of_threads = !s.of_warps;
    allocate(id, s.of_threads ? threads_.size() : warps());
  }
}

TUNEWRIGHT_INLINE void SimtMemory::begin_block(std::int64_t block) {
  SimtThreads::begin_block(block);
  pass_barrier();
  copies_.assign(threads_.size(), {});
  for (const BufferId id : kernel_shape_->shared) storage_[id].in_flight.assign(storage_[id].elements, 0);
}

TUNEWRIGHT_INLINE void SimtMemory::wait_for_copies(std::uint32_t but) {
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

TUNEWRIGHT_INLINE void SimtMemory::forget(BufferId id) {
  Storage& s = storage_[id];
  if ((s.of_block && thread_ > 0) || (s.of_warps && thread_ % lanes() != 0)) return;
  const auto first = s.written.begin() + static_cast<std::ptrdiff_t>(owner(s) * s.elements);
  std::fill(first, first + static_cast<std::ptrdiff_t>(s.elements), 0);
}

TUNEWRIGHT_INLINE void SimtMemory::allocate(BufferId id, std::size_t copies) {
  const Buffer& buffer = nest_.buffers.at(id);
  Storage& s = storage_[id];
  s.elements = static_cast<std::size_t>(buffer.elements());
  s.values.assign(copies * s.elements, std::numeric_limits<double>::quiet_NaN());
  s.written.assign(copies * s.elements, 0);
  if (!s.of_threads && !s.of_warps) s.touches.assign(s.elements, {});
}

TUNEWRIGHT_INLINE void SimtMemory::refuse_in_flight(const Storage& s, const program::Operator& op, const Place& place,
                                                    std::size_t offset, const char* verb) const {
  if (s.in_flight.empty() || s.in_flight[offset] == 0) return;
  fail(AccessFault::Race, op,
       std::string(verb) + " element " + std::to_string(offset) + " of '" + nest_.buffers[place.buffer].name +
           "' to which thread " + std::to_string(s.in_flight[offset] - 1) + " is copying; wait for its copies first");
}

TUNEWRIGHT_INLINE std::size_t SimtMemory::located(const program::Operator& op, const Place& place, std::size_t offset,
                                                  const char* verb) const {
  const Storage& s = storage_[memory_of(nest_, place.buffer)];
  if (s.elements == 0)
    fail(AccessFault::Unwritten, op,
         std::string(verb) + " '" + nest_.buffers[place.buffer].name + "' before it is allocated");
  if (offset >= s.elements) {
    fail(AccessFault::Outside, op,
         std::string(verb) + " '" + nest_.buffers[place.buffer].name + "' at offset " + std::to_string(offset) +
             " of " + std::to_string(s.elements) + " elements");
  }
  return owner(s) * s.elements + offset;
}

TUNEWRIGHT_INLINE std::pair<std::uint32_t, std::uint32_t> SimtMemory::moment(const Storage& s) const {
  const auto thread = static_cast<std::uint32_t>(by_warp_ ? threads_.size() + thread_ / lanes() : thread_);
  if (s.of_block) return {time_, thread};
  return {kernel_, static_cast<std::uint32_t>(block_) * static_cast<std::uint32_t>(threads_.size() + warps()) + thread};
}

TUNEWRIGHT_INLINE void SimtMemory::race(const program::Operator& op, const Place& place, std::size_t offset,
                                        const char* verb, const char* other, std::uint32_t by) const {
  const Storage& s = storage_[memory_of(nest_, place.buffer)];
  const auto threads = static_cast<std::uint32_t>(threads_.size());
  const std::string held_by = kernel_shape_->instructions.by_warp_groups() ? "warp group " : "warp ";
  fail(AccessFault::Race, op,
       std::string(verb) + " element " + std::to_string(offset) + " of '" + nest_.buffers[place.buffer].name +
           "' which " +
           (by == LastTouch::many         ? "other threads have"
            : s.of_block && by >= threads ? held_by + std::to_string(by - threads) + " has"
                                          : "thread " + std::to_string(by) + " has") +
           " " + other + " since the last barrier");
}

}  // namespace tunewright::loops::detail

#endif
