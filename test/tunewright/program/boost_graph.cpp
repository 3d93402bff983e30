// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/boost_graph.hpp"

#include <doctest/doctest.h>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>
#include <utility>
#include <vector>

namespace {

using namespace tunewright::program;
using Ids = std::vector<TensorId>;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<ComputeGraph>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<ComputeGraph>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<ComputeGraph>));

/// 0 -> 2 -> 3 -> 5 and 1 -> 4 -> 5: two inputs, a chain on each, and a sum.
ComputeGraph two_chains() {
  ComputeGraph graph;
  const Tensor a = graph.input("a", {4});
  const Tensor b = graph.input("b", {4});
  const Tensor c = graph.compute("c", {{"i", 4}}, [&](auto i) { return exp(a(i[0])); });
  const Tensor d = graph.compute("d", {{"i", 4}}, [&](auto i) { return sqrt(c(i[0])); });
  const Tensor e = graph.compute("e", {{"i", 4}}, [&](auto i) { return abs(b(i[0])); });
  graph.compute("f", {{"i", 4}}, [&](auto i) { return d(i[0]) + e(i[0]); });
  return graph;
}

template <class Graph>
Ids reached_from(TensorId start, const Graph& graph) {
  Ids found;
  struct Visitor : boost::default_bfs_visitor {
    Ids* found;
    void discover_vertex(TensorId id, const Graph&) const { found->push_back(id); }
  } visitor;
  visitor.found = &found;
  boost::breadth_first_search(graph, start, boost::visitor(visitor));
  return found;
}

TEST_CASE("edges lead from a tensor to its readers, and back") {
  const ComputeGraph graph = two_chains();
  CHECK(num_vertices(graph) == 6);
  const auto [first, last] = out_edges(2, graph);
  REQUIRE(std::distance(first, last) == 1);
  CHECK(source(*first, graph) == 2);
  CHECK(target(*first, graph) == 3);
  Ids read;
  for (auto [edge, end] = in_edges(5, graph); edge != end; ++edge) read.push_back(source(*edge, graph));
  CHECK(read == Ids{3, 4});
  CHECK(degree(3, graph) == 2);
  CHECK(*adjacent_vertices(4, graph).first == 5);
}

TEST_CASE("algorithms of Boost.Graph take a program") {
  const ComputeGraph graph = two_chains();
  Ids last_first;
  boost::topological_sort(graph, std::back_inserter(last_first));
  REQUIRE(last_first.size() == 6);
  std::vector<std::size_t> place(6);
  for (std::size_t i = 0; i < 6; ++i) place[last_first[i]] = i;
  for (const auto& [tensor, reader] : {std::pair{0, 2}, {2, 3}, {3, 5}, {1, 4}, {4, 5}})
    CHECK(place[static_cast<std::size_t>(tensor)] > place[static_cast<std::size_t>(reader)]);

  CHECK(reached_from(2, graph) == Ids{2, 3, 5});
  CHECK(reached_from(3, boost::make_reverse_graph(graph)) == Ids{3, 2, 0});
}

}  // namespace
