// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <boost/property_map/property_map.hpp>
#include <compare>
#include <cstddef>
#include <utility>
#include <vector>

#include "tunewright/program/graph.hpp"

/// A `ComputeGraph` as a graph of Boost.Graph: it models `VertexListGraph`, `BidirectionalGraph` and `AdjacencyGraph`,
/// so that Boost's searches, orders, components and dominators apply. A separate header, because Boost.Graph's headers
/// take a second to compile and tuning needs none of its algorithms.
namespace tunewright::program {

/// `reader` reads `tensor`.
struct GraphEdge {
  TensorId tensor = 0;
  TensorId reader = 0;
  auto operator<=>(const GraphEdge&) const = default;
};

namespace detail {
struct EdgeFrom {
  TensorId tensor = 0;
  GraphEdge operator()(TensorId reader) const noexcept { return {tensor, reader}; }
};
struct EdgeTo {
  TensorId reader = 0;
  GraphEdge operator()(TensorId tensor) const noexcept { return {tensor, reader}; }
};
using TensorIds = std::vector<TensorId>::const_iterator;
template <class MakeEdge>
auto edges_of(const std::vector<TensorId>& ends, MakeEdge make) {
  using Iterator = boost::transform_iterator<MakeEdge, TensorIds>;
  return std::pair{Iterator(ends.begin(), make), Iterator(ends.end(), make)};
}
}  // namespace detail

[[nodiscard]] inline TensorId source(const GraphEdge& edge, const ComputeGraph&) noexcept { return edge.tensor; }
[[nodiscard]] inline TensorId target(const GraphEdge& edge, const ComputeGraph&) noexcept { return edge.reader; }

[[nodiscard]] inline std::size_t num_vertices(const ComputeGraph& graph) noexcept { return graph.size(); }
[[nodiscard]] inline auto vertices(const ComputeGraph& graph) {
  using Iterator = boost::counting_iterator<TensorId>;
  return std::pair{Iterator(0), Iterator(static_cast<TensorId>(graph.size()))};
}
[[nodiscard]] inline auto out_edges(TensorId tensor, const ComputeGraph& graph) {
  return detail::edges_of(graph.consumers(tensor), detail::EdgeFrom{tensor});
}
[[nodiscard]] inline std::size_t out_degree(TensorId tensor, const ComputeGraph& graph) {
  return graph.consumers(tensor).size();
}
[[nodiscard]] inline auto in_edges(TensorId reader, const ComputeGraph& graph) {
  return detail::edges_of(graph.producers(reader), detail::EdgeTo{reader});
}
[[nodiscard]] inline std::size_t in_degree(TensorId reader, const ComputeGraph& graph) {
  return graph.producers(reader).size();
}
[[nodiscard]] inline std::size_t degree(TensorId tensor, const ComputeGraph& graph) {
  return in_degree(tensor, graph) + out_degree(tensor, graph);
}
[[nodiscard]] inline auto adjacent_vertices(TensorId tensor, const ComputeGraph& graph) {
  return std::pair{graph.consumers(tensor).begin(), graph.consumers(tensor).end()};
}

/// A vertex is its own number.
[[nodiscard]] inline auto get(boost::vertex_index_t, const ComputeGraph&) noexcept {
  return boost::typed_identity_property_map<TensorId>{};
}

}  // namespace tunewright::program

namespace boost {

template <>
struct graph_traits<tunewright::program::ComputeGraph> {
  using vertex_descriptor = tunewright::program::TensorId;
  using edge_descriptor = tunewright::program::GraphEdge;
  using directed_category = bidirectional_tag;
  using edge_parallel_category = disallow_parallel_edge_tag;
  struct traversal_category : vertex_list_graph_tag, bidirectional_graph_tag, adjacency_graph_tag {};
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
  using vertex_iterator = counting_iterator<vertex_descriptor>;
  using out_edge_iterator =
      transform_iterator<tunewright::program::detail::EdgeFrom, tunewright::program::detail::TensorIds>;
  using in_edge_iterator =
      transform_iterator<tunewright::program::detail::EdgeTo, tunewright::program::detail::TensorIds>;
  using adjacency_iterator = tunewright::program::detail::TensorIds;
  static vertex_descriptor null_vertex() { return static_cast<vertex_descriptor>(-1); }
};

template <>
struct property_map<tunewright::program::ComputeGraph, vertex_index_t> {
  using type = typed_identity_property_map<tunewright::program::TensorId>;
  using const_type = type;
};

}  // namespace boost
