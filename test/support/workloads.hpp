// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/pool.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/operators/transposed_conv2d.hpp"

namespace tunewright::test {

/// Makes a random small instance of one operator; odd and prime extents are as likely as others.
struct Workload {
  std::string name;
  std::function<std::shared_ptr<const program::ComputeGraph>(Rng&)> make;
};

/// Every operator of the library, some with elementwise operators before or after them.
inline std::vector<Workload> workloads() {
  namespace ops = program::operators;
  using program::ComputeGraph;
  using program::Tensor;
  const auto dim = [](Rng& rng, std::int64_t most) {
    return 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most)));
  };
  const auto coin = [](Rng& rng) { return rng.below(2) == 0; };
  const auto epilogue = [coin](ComputeGraph& g, Tensor t, Rng& rng) {
    if (coin(rng)) t = ops::bias_add(g, t, g.constant("bias", {t.shape.back()}));
    if (coin(rng)) t = ops::relu(g, t);
    return t;
  };
  const auto graph = [](const auto& fill) {
    return [fill](Rng& rng) {
      auto g = std::make_shared<ComputeGraph>();
      fill(*g, rng);
      return std::shared_ptr<const ComputeGraph>(std::move(g));
    };
  };
  std::vector<Workload> all;
  all.push_back({"matmul", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 40), n = dim(rng, 70), k = dim(rng, 40);
                   const ops::MatmulOptions o{.transpose_a = coin(rng), .transpose_b = coin(rng)};
                   using Shape = std::vector<std::int64_t>;
                   const Tensor a = g.input("A", o.transpose_a ? Shape{k, m} : Shape{m, k});
                   const Shape b_shape = o.transpose_b ? Shape{n, k} : Shape{k, n};
                   const Tensor b = coin(rng) ? g.constant("B", b_shape) : g.input("B", b_shape);
                   epilogue(g, ops::matmul(g, a, b, o), rng);
                 })});
  all.push_back({"matmul_few_columns", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 24), n = dim(rng, 18), k = 32 + dim(rng, 90);
                   const bool transposed = coin(rng), constant = coin(rng);
                   const std::vector<std::int64_t> shape = transposed ? std::vector{n, k} : std::vector{k, n};
                   const Tensor b = constant ? g.constant("B", shape) : g.input("B", shape);
                   epilogue(g, ops::matmul(g, g.input("A", {m, k}), b, {.transpose_b = transposed}), rng);
                 })});
  all.push_back({"matmul_of_many_terms", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 4), n = dim(rng, 9), k = 40 + dim(rng, 90);
                   epilogue(g, ops::matmul(g, g.input("A", {m, k}), g.input("B", {k, n})), rng);
                 })});
  all.push_back({"scaled_matmul", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 20), n = dim(rng, 40), k = dim(rng, 20);
                   const Tensor factor = g.input("factor", {}), a = g.input("A", {m, k}), b = g.input("B", {k, n});
                   g.reduce("scaled", {{"i", m}, {"j", n}}, {{"k", k}}, program::Combiner::Sum,
                            [&](auto i, auto r) { return factor() * a(i[0], r[0]) * b(r[0], i[1]); });
                 })});
  all.push_back({"batch_matmul", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t b = dim(rng, 4), m = dim(rng, 24), n = dim(rng, 40), k = dim(rng, 72);
                   const ops::BatchMatmulOptions o{.transpose_a = coin(rng), .transpose_b = coin(rng)};
                   using Shape = std::vector<std::int64_t>;
                   const Tensor x = g.input("A", o.transpose_a ? Shape{b, k, m} : Shape{b, m, k});
                   const Tensor y = g.input("B", o.transpose_b ? Shape{b, n, k} : Shape{b, k, n});
                   epilogue(g, ops::batch_matmul(g, x, y, o), rng);
                 })});
  all.push_back({"dense", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 24), n = dim(rng, 40), k = dim(rng, 40);
                   ops::relu(g, ops::dense(g, g.input("x", {m, k}), g.constant("w", {k, n}), g.constant("b", {n})));
                 })});
  const auto conv2d = [=](ops::Layout layout, bool grouped) {
    return graph([=](ComputeGraph& g, Rng& rng) {
      const std::int64_t groups = grouped ? 2 : 1;
      const std::int64_t ci = groups * dim(rng, 6), co = groups * dim(rng, 12), kernel = dim(rng, 3);
      const std::int64_t h = kernel * 2 + dim(rng, 8), w = kernel * 2 + dim(rng, 8), n = dim(rng, 2);
      const bool last = layout == ops::Layout::ChannelsLast;
      using Shape = std::vector<std::int64_t>;
      const Tensor x = g.input("x", last ? Shape{n, h, w, ci} : Shape{n, ci, h, w});
      const Tensor k =
          g.constant("k", last ? Shape{kernel, kernel, ci / groups, co} : Shape{co, ci / groups, kernel, kernel});
      const Tensor y = ops::conv2d(g, x, k,
                                   {.stride = dim(rng, 2),
                                    .padding = dim(rng, 3) - 1,
                                    .dilation = dim(rng, 2),
                                    .groups = groups,
                                    .layout = layout});
      if (coin(rng)) ops::relu(g, y);
    });
  };
  all.push_back({"conv2d_nhwc", conv2d(ops::Layout::ChannelsLast, false)});
  all.push_back({"conv2d_nchw", conv2d(ops::Layout::ChannelsFirst, false)});
  all.push_back({"conv2d_grouped", conv2d(ops::Layout::ChannelsLast, true)});
  all.push_back({"conv2d_few_channels", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t ci = 32 + dim(rng, 50), co = dim(rng, 6);
                   const Tensor x = g.input("x", {1, 3 + dim(rng, 3), 3 + dim(rng, 3), ci});
                   epilogue(g, ops::conv2d(g, x, g.constant("k", {3, 3, ci, co}), {.padding = dim(rng, 2) - 1}), rng);
                 })});
  all.push_back({"conv1d", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t c = dim(rng, 8), o = dim(rng, 20);
                   ops::conv1d(g, g.input("x", {1, 6 + dim(rng, 20), c}), g.constant("k", {3, c, o}), {.padding = 1});
                 })});
  all.push_back({"conv3d", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t c = dim(rng, 4), o = dim(rng, 17);
                   ops::conv3d(g, g.input("x", {1, 4, 5, 3 + dim(rng, 4), c}), g.constant("k", {2, 3, 3, c, o}),
                               {.padding = 1});
                 })});
  all.push_back({"depthwise", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t c = dim(rng, 40);
                   epilogue(g,
                            ops::depthwise_conv2d(g, g.input("x", {1, 4 + dim(rng, 9), 4 + dim(rng, 9), c}),
                                                  g.constant("k", {3, 3, c}), {.padding = 1}),
                            rng);
                 })});
  all.push_back({"transposed_conv2d", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t c = dim(rng, 6), o = dim(rng, 12);
                   ops::transposed_conv2d(g, g.input("x", {1, 2 + dim(rng, 4), 2 + dim(rng, 4), c}),
                                          g.constant("k", {3, 3, c, o}), {.stride = dim(rng, 2), .padding = 1});
                 })});
  all.push_back({"max_pool", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::max_pool2d(g, g.input("x", {1, 5 + dim(rng, 9), 5 + dim(rng, 9), dim(rng, 40)}),
                                   {.kernel = 3, .stride = 2, .padding = 1});
                 })});
  all.push_back(
      {"pool_nchw", graph([=](ComputeGraph& g, Rng& rng) {
         const Tensor x = g.input("x", {1, dim(rng, 5), 5 + dim(rng, 20), 5 + dim(rng, 60)});
         const ops::Pool2dOptions windows{
             .kernel = 3, .stride = dim(rng, 3), .padding = dim(rng, 2) - 1, .layout = ops::Layout::ChannelsFirst};
         coin(rng) ? ops::max_pool2d(g, x, windows) : ops::avg_pool2d(g, x, windows);
       })});
  all.push_back({"sum_of_outer_and_inner", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::sum(g, g.input("x", {dim(rng, 9), dim(rng, 5), dim(rng, 90)}), {0, 2});
                 })});
  all.push_back({"avg_pool", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::avg_pool2d(g, g.input("x", {1, 5 + dim(rng, 9), 5 + dim(rng, 9), dim(rng, 40)}),
                                   {.kernel = 3, .stride = 2, .padding = 1});
                 })});
  all.push_back({"global_avg_pool", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::global_avg_pool2d(g, g.input("x", {2, dim(rng, 9), dim(rng, 9), dim(rng, 40)}));
                 })});
  all.push_back({"softmax", graph([=](ComputeGraph& g, Rng& rng) {
                   epilogue(g, ops::softmax(g, g.input("x", {dim(rng, 12), dim(rng, 90)})), rng);
                 })});
  all.push_back({"layer_norm", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t n = dim(rng, 70);
                   const Tensor x = g.input("x", {dim(rng, 9), n});
                   epilogue(g, ops::layer_norm(g, x, g.constant("gamma", {n}), g.constant("beta", {n})), rng);
                 })});
  all.push_back({"batch_norm", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t c = dim(rng, 40);
                   const Tensor x = g.input("x", {1, dim(rng, 7), dim(rng, 7), c});
                   epilogue(g,
                            ops::batch_norm(g, x,
                                            {g.constant("gamma", {c}), g.constant("beta", {c}), g.constant("mean", {c}),
                                             g.constant("variance", {c})}),
                            rng);
                 })});
  all.push_back({"sum", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::sum(g, g.input("x", {dim(rng, 9), dim(rng, 300)}), {coin(rng) ? 0 : 1});
                 })});
  all.push_back(
      {"norm", graph([=](ComputeGraph& g, Rng& rng) { ops::norm(g, g.input("x", {dim(rng, 40), dim(rng, 40)})); })});
  all.push_back({"max", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::max(g, g.input("x", {dim(rng, 9), dim(rng, 9), dim(rng, 40)}), {1, 2});
                 })});
  all.push_back({"elementwise", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 20), n = dim(rng, 50);
                   const Tensor t = ops::add(g, g.input("x", {m, n}), g.input("y", {m, n}));
                   ops::gelu(g, ops::bias_add(g, ops::tanh(g, t), g.constant("b", {n})));
                 })});
  all.push_back({"transpose", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::relu(g, ops::transpose(g, g.input("x", {dim(rng, 6), dim(rng, 20), dim(rng, 20)}), {0, 2, 1}));
                 })});
  all.push_back({"reshape", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t a = dim(rng, 6), b = dim(rng, 12), c = dim(rng, 10);
                   ops::reshape(g, ops::scale(g, g.input("x", {a, b, c}), 2.0), {b, a * c});
                 })});
  all.push_back({"concat", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t a = dim(rng, 9);
                   ops::concat(g, {g.input("x", {a, dim(rng, 20)}), g.input("y", {a, dim(rng, 20)})}, 1);
                 })});
  all.push_back({"pad", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::pad(g, g.input("x", {dim(rng, 9), dim(rng, 30)}), {.before = {1, 2}, .after = {0, 3}});
                 })});
  all.push_back({"two_matmuls", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 20), k = dim(rng, 20), n = dim(rng, 20), p = dim(rng, 20);
                   const Tensor h = ops::relu(g, ops::matmul(g, g.input("A", {m, k}), g.constant("B", {k, n})));
                   ops::relu(g, ops::matmul(g, h, g.constant("C", {n, p})));
                 })});
  // Element types of 8 and 16 bits, with accumulators and casts.
  using program::ScalarType;
  const auto narrow = [](Rng& rng) {
    return std::array{ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8, ScalarType::UInt8}[rng.below(4)];
  };
  all.push_back({"matmul_narrow", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 24), n = dim(rng, 50), k = dim(rng, 40);
                   const ScalarType type = narrow(rng);
                   const Tensor a = g.input("A", {m, k}, type);
                   const Tensor b = g.constant("B", {k, n}, type == ScalarType::UInt8 ? ScalarType::Int8 : type);
                   const Tensor sum = ops::matmul(g, a, b);
                   if (coin(rng)) ops::cast(g, ops::relu(g, sum), type);
                 })});
  all.push_back({"conv2d_narrow", graph([=](ComputeGraph& g, Rng& rng) {
                   const ScalarType type = narrow(rng);
                   const std::int64_t ci = dim(rng, 6), co = dim(rng, 20);
                   const Tensor x = g.input("x", {1, 3 + dim(rng, 6), 3 + dim(rng, 6), ci}, type);
                   ops::conv2d(g, x, g.constant("k", {3, 3, ci, co}, type), {.stride = dim(rng, 2), .padding = 1});
                 })});
  all.push_back({"elementwise_narrow", graph([=](ComputeGraph& g, Rng& rng) {
                   const std::int64_t m = dim(rng, 20), n = dim(rng, 50);
                   const ScalarType type = narrow(rng);
                   const Tensor x = g.input("x", {m, n}, type);
                   const Tensor t = ops::multiply(g, ops::add(g, x, g.input("y", {m, n}, type)), x);
                   const Tensor wide = ops::scale(g, ops::cast(g, t, ScalarType::Float32), 0.25);
                   if (coin(rng)) ops::cast(g, ops::relu(g, wide), narrow(rng));
                 })});
  all.push_back({"sum_narrow", graph([=](ComputeGraph& g, Rng& rng) {
                   ops::sum(g, g.input("x", {dim(rng, 9), dim(rng, 90)}, narrow(rng)), {coin(rng) ? 0 : 1});
                 })});
  return all;
}

}  // namespace tunewright::test
