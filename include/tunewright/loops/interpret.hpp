// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/statement_program.hpp"

/// Runs a loop nest statement by statement and checks every access: verifies lowering. Independent of code generators,
/// so that errors of lowering and of code generation can be distinguished.
namespace tunewright::loops {

namespace detail {

class Interpreter : public LoopState {
 public:
  Interpreter(const LoopNest& nest, std::vector<std::vector<double>>& arguments);

  void run();

  // The interface for statements.

  [[nodiscard]] double read(const program::Operator& op, const Place& place, std::size_t offset) const;
  void write(const program::Operator& op, const Place& place, std::size_t offset, double value);

 private:
  std::size_t stored(const program::Operator& op, const Place& place, std::size_t offset, const char* verb) const;

  void run(const Body& body);
  void run(const Statement& s);
  void run(const Loop& loop);
  void run(const Allocate& allocate);
  void run(const Branch& branch);
  void run(const Barrier&);
  void run(const CrossThreadReduction&);
  void run(const CommitCopies&) { refuse_copies(); }
  void run(const WaitForCopies&) { refuse_copies(); }
  void run(const WaitForProducts&) {}  // products are complete after they have run
  [[noreturn]] void refuse_copies() const;

  std::vector<std::vector<double>*> storage_;
  std::vector<std::vector<bool>> written_;
  std::unordered_map<BufferId, std::vector<double>> owned_;
  std::unordered_map<const Statement*, StatementProgram> prepared_;
  int thread_depth_ = 0;
};

}  // namespace detail

/// Runs `nest` on `arguments`, one vector per entry of `nest.arguments`, each in the physical order of its layout
/// (`codegen::pack` produces it for packed constants). Values are rounded to their type after every operation.
/// Statements run exactly where their guards hold. Outputs count as unwritten at the start, whatever their vectors
/// contain.
///
/// Throws `std::invalid_argument` for wrong arguments, and `InterpretError` for an access outside a window or a read of
/// an unwritten element. Cost: about a tenth of a microsecond per operation of a body; meant for small extents.
void interpret(const LoopNest& nest, std::vector<std::vector<double>>& arguments);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

namespace detail {

TUNEWRIGHT_INLINE Interpreter::Interpreter(const LoopNest& nest, std::vector<std::vector<double>>& arguments)
    : LoopState(nest), storage_(nest.buffers.size()), written_(nest.buffers.size()) {
  check_arguments(nest, arguments);
  for (std::size_t a = 0; a < arguments.size(); ++a) {
    const BufferId id = nest.arguments[a];
    storage_[id] = &arguments[a];
    written_[id].assign(arguments[a].size(), nest.buffers[id].role != BufferRole::Output);
  }
}

TUNEWRIGHT_INLINE void Interpreter::run() { run(nest_.body); }

TUNEWRIGHT_INLINE double Interpreter::read(const program::Operator& op, const Place& place, std::size_t offset) const {
  const std::size_t at = stored(op, place, offset, "reads");
  const BufferId id = memory_of(nest_, place.buffer);
  if (!written_[id][at]) {
    fail(AccessFault::Unwritten, op,
         "reads element " + std::to_string(at) + " of '" + nest_.buffers[place.buffer].name + "' before it is written");
  }
  return (*storage_[id])[at];
}

TUNEWRIGHT_INLINE void Interpreter::write(const program::Operator& op, const Place& place, std::size_t offset,
                                          double value) {
  const std::size_t at = stored(op, place, offset, "writes");
  const BufferId id = memory_of(nest_, place.buffer);
  (*storage_[id])[at] = value;
  written_[id][at] = true;
}

TUNEWRIGHT_INLINE std::size_t Interpreter::stored(const program::Operator& op, const Place& place, std::size_t offset,
                                                  const char* verb) const {
  const Buffer& buffer = nest_.buffers[place.buffer];
  const std::vector<double>* storage = storage_[memory_of(nest_, place.buffer)];
  if (storage == nullptr)
    fail(AccessFault::Unwritten, op, std::string(verb) + " '" + buffer.name + "' before it is allocated");
  if (offset >= storage->size()) {
    fail(AccessFault::Outside, op,
         std::string(verb) + " '" + buffer.name + "' at offset " + std::to_string(offset) + " of " +
             std::to_string(storage->size()) + " elements");
  }
  return offset;
}

TUNEWRIGHT_INLINE void Interpreter::run(const Body& body) {
  for (const Node& node : body) std::visit([&](const auto& content) { run(content); }, node.content);
}

TUNEWRIGHT_INLINE void Interpreter::run(const Statement& s) {
  prepared_.try_emplace(&s, nest_, s).first->second.run(*this);
}

TUNEWRIGHT_INLINE void Interpreter::run(const Branch& branch) {
  run(holds(branch.conditions) ? branch.then : branch.otherwise);
}

TUNEWRIGHT_INLINE void Interpreter::run(const Loop& loop) {
  active_.push_back(loop.var);
  const bool threads = schedule::is_thread_index(loop.kind);
  thread_depth_ += threads;
  for (values_[loop.var] = 0; values_[loop.var] < nest_.variables[loop.var].extent; ++values_[loop.var]) run(loop.body);
  thread_depth_ -= threads;
  active_.pop_back();
}

TUNEWRIGHT_INLINE void Interpreter::run(const Allocate& allocate) {
  const auto elements = static_cast<std::size_t>(nest_.buffers[allocate.buffer].elements());
  owned_[allocate.buffer].assign(elements, std::numeric_limits<double>::quiet_NaN());
  storage_[allocate.buffer] = &owned_[allocate.buffer];
  written_[allocate.buffer].assign(elements, false);
}

TUNEWRIGHT_INLINE void Interpreter::run(const Barrier&) {
  if (thread_depth_ > 0)
    throw InterpretError(AccessFault::NotRunnable,
                         "loop nest '" + nest_.name + "' has a barrier between threads that run one after the other");
}

TUNEWRIGHT_INLINE void Interpreter::run(const CrossThreadReduction&) {
  throw InterpretError(
      AccessFault::NotRunnable,
      "loop nest '" + nest_.name + "' combines what threads hold; they cannot run one after the other");
}

TUNEWRIGHT_INLINE void Interpreter::refuse_copies() const {
  throw InterpretError(AccessFault::NotRunnable,
                       "loop nest '" + nest_.name + "' copies asynchronously; run_simt knows what that means");
}

}  // namespace detail

TUNEWRIGHT_INLINE void interpret(const LoopNest& nest, std::vector<std::vector<double>>& arguments) {
  detail::Interpreter(nest, arguments).run();
}

}  // namespace tunewright::loops

#endif
