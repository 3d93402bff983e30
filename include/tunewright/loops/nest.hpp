// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/kinds.hpp"

/// The loop nest to which a schedule lowers: the input of code generators, featurizers, verifiers and printers, for
/// GPUs and CPUs. A statement keeps its operator's body and binds the operator's axes to expressions over loop
/// variables, so lowering does not rebuild bodies.
namespace tunewright::loops {

using program::IndexExpr;
using program::ScalarType;
using program::TensorId;
using program::Var;

using BufferId = std::uint32_t;

using schedule::LoopKind;
using schedule::name;
using schedule::Scope;

/// Inputs, constants and outputs are arguments of the kernel. A top-level temporary is workspace of the caller; one
/// that is allocated inside a loop belongs to the thread that runs the loop.
enum class BufferRole : std::uint8_t { Input, Constant, Output, Temporary };

/// One dimension of a packed buffer: `(local index of tensor dimension `dimension` div divisor) mod extent`; the
/// outermost piece of a dimension has no modulo. Pieces are listed outermost first and together determine the local
/// index.
struct PackedDimension {
  std::uint32_t dimension = 0;
  std::int64_t divisor = 1;
  std::int64_t extent = 1;
  bool operator==(const PackedDimension&) const = default;
};

/// A loop variable for each of whose values a buffer has a copy.
struct CopySelector {
  Var var = 0;
  std::int64_t extent = 1;  ///< of the variable
  bool operator==(const CopySelector&) const = default;
};

/// Bytes in a row of the 8 x 8 matrices of 16 bits that `ldmatrix` and warp groups read, in a swizzled row, which has
/// pieces of eight matrices, and in the eight swizzled rows whose pieces are exchanged; these begin at its multiples.
inline constexpr std::int64_t matrix_row_bytes = 16, swizzled_row_bytes = 8 * matrix_row_bytes,
                              swizzle_bytes = 8 * swizzled_row_bytes;

/// Elements between the starts of two rows of `row` elements of a CPU's temporary inside loops. Rows that are a
/// multiple of 512 bytes apart map to few cache sets and evict each other while a tile walks down a column; padding by
/// one cache line prevents that.
[[nodiscard]] constexpr std::int64_t distance_of_rows(std::int64_t row, std::int64_t element_bytes) noexcept {
  return row * element_bytes % 512 == 0 ? row + 64 / element_bytes : row;
}

/// Storage for a window of a tensor: `shape` elements in each dimension from `origin` on. Arguments hold the whole
/// tensor, so their origin is zero. If tiles do not divide, the window may extend beyond the tensor; elements there are
/// never used (in packed constants they are zero).
struct Buffer {
  std::string name;
  TensorId tensor = 0;
  ScalarType type = ScalarType::Float32;
  Scope scope = Scope::Global;
  BufferRole role = BufferRole::Temporary;
  std::vector<std::int64_t> shape;       ///< elements per tensor dimension
  std::vector<IndexExpr> origin;         ///< over the loop variables around the allocation
  std::vector<PackedDimension> packing;  ///< empty: row-major in `shape`
  /// Loops inside the allocation, outermost first, each of whose iterations has a copy; the copies come first in the
  /// physical shape.
  std::vector<CopySelector> private_to{};
  /// Number of iterations of the loop around the allocation whose contents are stored at a time: prefetched, by the
  /// device itself if `asynchronous`. They come before everything else in the physical shape.
  std::uint32_t stages = 1;
  bool asynchronous = false;
  /// Operand of warp groups in rows of 128 bytes: piece p of 16 bytes of row r is stored at p XOR (r mod 8) of the row.
  /// Offsets do not include that; code generators apply it to addresses.
  bool swizzled = false;
  IndexExpr stage{};  ///< over loop variables: the accessed stage; 0 before `to_device`
  /// If set, this is a view of an allocated buffer for another iteration, and is not allocated itself.
  std::optional<BufferId> view_of{};

  [[nodiscard]] std::vector<std::int64_t> physical_shape() const;
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::int64_t bytes() const {
    return elements() * static_cast<std::int64_t>(program::size_in_bytes(type));
  }
};

/// Condition 0 <= value < extent; sides that always hold are not checked.
struct Guard {
  IndexExpr value;
  std::int64_t extent = 0;
  bool below = false;      ///< check 0 <= value
  bool above = true;       ///< check value < extent
  std::uint32_t axis = 0;  ///< the operator axis with this value, or `no_axis`

  /// Value of `axis` for guards against iterations of an inner split beyond its parent. They must hold even if a
  /// statement may overcompute, because another iteration computes the same point.
  static constexpr std::uint32_t no_axis = ~std::uint32_t{0};
  /// Value of `axis` for a guard whose failure makes a term of a reduction padding, which changes nothing: see
  /// `eliminate_padding`.
  static constexpr std::uint32_t padding = no_axis - 1;
};

/// One store.
///
///   Assign      target[axes] = body
///   Initialise  target[axes] = identity of the combiner         (`axis_values` of reduction axes are unused)
///   Update      target[axes] = combine(target[axes], body)
///
/// It is executed only if all guards hold. A statement that writes a temporary may also be executed if a guard of a
/// spatial axis fails (`may_overcompute`), as long as it accesses no memory outside its operands: the result is never
/// read.
struct Statement {
  enum class Kind : std::uint8_t { Assign, Initialise, Update };
  Kind kind = Kind::Assign;
  BufferId target = 0;
  std::shared_ptr<const program::Operator> op;
  std::vector<IndexExpr> axis_values;  ///< coordinates of every axis of `op`, over loop variables
  std::vector<Guard> guards;
  bool may_overcompute = false;
  /// The thread does not wait for its store, a copy, which is complete after a `WaitForCopies`.
  bool asynchronous = false;
};

struct Node;
using Body = std::vector<Node>;

struct Loop {
  Var var = 0;  ///< from 0 to its extent - 1
  LoopKind kind = LoopKind::Serial;
  bool reduction = false;  ///< over a reduction axis of the statements inside
  /// Serial loops inside with at most so many statement instances are unrolled.
  std::int64_t unroll_limit = 0;
  /// One tensor instruction computes this loop and those inside it. The loops are kept: their semantics does not depend
  /// on the instruction.
  const schedule::TensorIntrinsic* intrinsic = nullptr;
  Body body;
};

/// Storage for a buffer, valid for the nodes after it in the same body.
struct Allocate {
  BufferId buffer = 0;
};

/// `then` if all conditions hold, else `otherwise`: a guard hoisted out of inner loops.
struct Branch {
  std::vector<Guard> conditions;
  Body then;
  Body otherwise;
};

/// All threads of a block have arrived. Allowed only where either all or none of them arrive.
struct Barrier {};

/// Combines values that the threads of a block have computed separately:
///
///   target[axes] = combiner over the threads that differ in the indices `over` of their own partial[axes]
///
/// `partial` is a Local buffer; threads without a share hold the identity. All threads of the block arrive together, as
/// at a barrier, but it need not be one: it orders only accesses to `partial`. A Local target receives the result in
/// every thread. To a Shared or Global one, the threads whose `over` indices are all 0 store it if the guards hold;
/// other threads may read it after the next barrier.
struct CrossThreadReduction {
  BufferId partial = 0;
  BufferId target = 0;
  std::shared_ptr<const program::Operator> op;  ///< determines the combiner
  std::vector<IndexExpr> axis_values;           ///< tensor coordinates of the spatial axes, over loop variables
  std::vector<Guard> guards;                    ///< for the store
  std::array<bool, 3> over{};                   ///< ThreadX, ThreadY, ThreadZ
};

/// The asynchronous copies of a thread since the last one become a group, which may be empty.
struct CommitCopies {};

/// The thread waits for its groups of asynchronous copies, except for the `under_way` latest ones.
struct WaitForCopies {
  std::uint32_t under_way = 0;
};

/// The thread waits for the products of its warp group, except for those of the `under_way` latest loops of products. A
/// loop of products directly before one of these nodes does not wait by itself.
struct WaitForProducts {
  std::uint32_t under_way = 0;
};

struct Node {
  std::variant<Loop, Statement, Allocate, Branch, Barrier, CrossThreadReduction, CommitCopies, WaitForCopies,
               WaitForProducts>
      content;
  Node(Loop loop) : content(std::move(loop)) {}                            // NOLINT: a node is any of them
  Node(Statement statement) : content(std::move(statement)) {}             // NOLINT
  Node(Allocate allocate) : content(allocate) {}                           // NOLINT
  Node(Branch branch) : content(std::move(branch)) {}                      // NOLINT
  Node(Barrier barrier) : content(barrier) {}                              // NOLINT
  Node(CrossThreadReduction reduction) : content(std::move(reduction)) {}  // NOLINT
  Node(CommitCopies commit) : content(commit) {}                           // NOLINT
  Node(WaitForCopies wait) : content(wait) {}                              // NOLINT
  Node(WaitForProducts wait) : content(wait) {}                            // NOLINT
};

/// Calls `f` for each statement of `body`, in the order of the program.
template <class F>
void for_each_statement(const Body& body, const F& f) {
  for (const Node& node : body) {
    if (const auto* s = std::get_if<Statement>(&node.content)) f(*s);
    if (const auto* l = std::get_if<Loop>(&node.content)) for_each_statement(l->body, f);
    if (const auto* b = std::get_if<Branch>(&node.content)) {
      for_each_statement(b->then, f);
      for_each_statement(b->otherwise, f);
    }
  }
}

struct LoopVariable {
  std::string name;
  std::int64_t extent = 1;
};

/// A whole lowered program.
struct LoopNest {
  std::string name = "kernel";
  std::vector<LoopVariable> variables;  ///< by Var
  std::vector<Buffer> buffers;          ///< by BufferId
  std::vector<BufferId> buffer_of;      ///< by TensorId; `no_buffer` for inlined tensors
  std::vector<BufferId> arguments;      ///< inputs and constants in tensor order, then outputs
  Body body;

  static constexpr BufferId no_buffer = ~BufferId{0};

  [[nodiscard]] program::Range range_of(Var var) const { return {0, variables[var].extent - 1}; }
};

/// What is wrong with a nest that has no buffer for a tensor which the operator, or loop nest, of that name reads.
[[nodiscard]] std::string no_buffer_text(std::string_view reader, std::string_view name, TensorId read);

/// Iterations of a loop. Throws `std::invalid_argument` if the nest does not declare its variable with an extent.
[[nodiscard]] std::int64_t checked_extent(const LoopNest& nest, const Loop& loop);

/// The buffer whose memory `id` uses: itself, unless it is a view.
[[nodiscard]] inline BufferId memory_of(const LoopNest& nest, BufferId id) {
  return nest.buffers[id].view_of.value_or(id);
}

/// Converts an index expression over a statement's axes to one over loop variables.
[[nodiscard]] IndexExpr over_loops(const LoopNest& nest, const Statement& statement, const IndexExpr& over_axes);

/// Physical indices (see `Buffer::physical_shape`) of the element of `buffer` at tensor coordinates
/// `coordinates`, which are expressions over loop variables.
[[nodiscard]] std::vector<IndexExpr> physical_indices(const LoopNest& nest, const Buffer& buffer,
                                                      std::vector<IndexExpr> coordinates);

/// Row-major offset in elements of physical indices.
[[nodiscard]] IndexExpr flatten(const Buffer& buffer, const std::vector<IndexExpr>& physical);

/// Offset in elements, over loop variables, of the element that a `Load` in the body of `statement` reads.
[[nodiscard]] IndexExpr load_offset(const LoopNest& nest, const Statement& statement, const program::ExprNode& load);

/// Offset in elements of `buffer`, over loop variables, at the spatial values among `axis_values`.
[[nodiscard]] IndexExpr element_offset(const LoopNest& nest, const Buffer& buffer,
                                       const std::vector<IndexExpr>& axis_values);

/// Offset in elements, over loop variables, of the element that `statement` writes.
[[nodiscard]] inline IndexExpr store_offset(const LoopNest& nest, const Statement& statement) {
  return element_offset(nest, nest.buffers[statement.target], statement.axis_values);
}

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE std::vector<std::int64_t> Buffer::physical_shape() const {
  if (packing.empty() && private_to.empty() && stages == 1) return shape;
  std::vector<std::int64_t> extents;
  if (stages > 1) extents.push_back(stages);
  for (const CopySelector& copies : private_to) extents.push_back(copies.extent);
  for (const PackedDimension& piece : packing) extents.push_back(piece.extent);
  if (packing.empty()) extents.insert(extents.end(), shape.begin(), shape.end());
  return extents;
}

TUNEWRIGHT_INLINE std::int64_t Buffer::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : physical_shape()) count *= extent;
  return count;
}

TUNEWRIGHT_INLINE std::string no_buffer_text(std::string_view reader, std::string_view name, TensorId read) {
  return std::string(reader) + " '" + std::string(name) + "' reads tensor " + std::to_string(read) +
         " which has no buffer; add it to buffer_of";
}

TUNEWRIGHT_INLINE std::int64_t checked_extent(const LoopNest& nest, const Loop& loop) {
  if (loop.var < nest.variables.size() && nest.variables[loop.var].extent >= 1) return nest.variables[loop.var].extent;
  throw std::invalid_argument("loop variable " + std::to_string(loop.var) + " of '" + nest.name +
                              "' is not declared with an extent of at least 1");
}

TUNEWRIGHT_INLINE IndexExpr over_loops(const LoopNest& nest, const Statement& statement, const IndexExpr& over_axes) {
  return over_axes.substitute([&](Var axis) -> const IndexExpr& { return statement.axis_values[axis]; },
                              [&](Var var) { return nest.range_of(var); });
}

TUNEWRIGHT_INLINE std::vector<IndexExpr> physical_indices(const LoopNest& nest, const Buffer& buffer,
                                                          std::vector<IndexExpr> coordinates) {
  for (std::size_t d = 0; d < coordinates.size(); ++d) coordinates[d] -= buffer.origin[d];
  if (buffer.packing.empty() && buffer.private_to.empty() && buffer.stages == 1) return coordinates;
  const auto range_of = [&](Var var) { return nest.range_of(var); };
  std::vector<IndexExpr> physical;
  if (buffer.stages > 1) physical.push_back(buffer.stage);
  for (const CopySelector& copies : buffer.private_to) physical.push_back(IndexExpr::variable(copies.var));
  if (buffer.packing.empty()) physical.insert(physical.end(), coordinates.begin(), coordinates.end());
  for (std::size_t p = 0; p < buffer.packing.size(); ++p) {
    const PackedDimension& piece = buffer.packing[p];
    IndexExpr index = IndexExpr::quotient(coordinates[piece.dimension], piece.divisor, range_of);
    bool outermost = true;
    for (const PackedDimension& other : buffer.packing) {
      outermost = outermost && (other.dimension != piece.dimension || other.divisor <= piece.divisor);
    }
    physical.push_back(outermost ? std::move(index) : IndexExpr::remainder(index, piece.extent, range_of));
  }
  return physical;
}

TUNEWRIGHT_INLINE IndexExpr flatten(const Buffer& buffer, const std::vector<IndexExpr>& physical) {
  IndexExpr offset;
  const std::vector<std::int64_t> extents = buffer.physical_shape();
  for (std::size_t d = 0; d < physical.size(); ++d) {
    offset *= extents[d];
    offset += physical[d];
  }
  return offset;
}

TUNEWRIGHT_INLINE IndexExpr load_offset(const LoopNest& nest, const Statement& statement,
                                        const program::ExprNode& load) {
  const Buffer& buffer = nest.buffers[nest.buffer_of[load.tensor]];
  std::vector<IndexExpr> coordinates;
  coordinates.reserve(load.indices.size());
  for (const IndexExpr& index : load.indices) coordinates.push_back(over_loops(nest, statement, index));
  return flatten(buffer, physical_indices(nest, buffer, std::move(coordinates)));
}

TUNEWRIGHT_INLINE IndexExpr element_offset(const LoopNest& nest, const Buffer& buffer,
                                           const std::vector<IndexExpr>& axis_values) {
  const auto rank = static_cast<std::ptrdiff_t>(buffer.shape.size());
  return flatten(buffer, physical_indices(nest, buffer, {axis_values.begin(), axis_values.begin() + rank}));
}

}  // namespace tunewright::loops

#endif
