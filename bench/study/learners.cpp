// SPDX-License-Identifier: Apache-2.0
// Our side of learners_beside_libraries.py: fits and times models as it is told, on rows that the other side reads too.
//
// Every line of the standard input is a JSON object that names what to `do`; every line of the output is the answer.
// Files are written to DIR:
//   data       makes rows and labels: synthetic, or those recorded in the folder `root`. data.npz has features_train,
//              offsets_train, labels_train, groups_train, and the same of held_out
//   gbdt       fits models::Gbdt with the options given; answers the times of fit and predict. scores.f32 has the
//              scores of held_out
//   start      draws the first weights of `network`. start.safetensors has them; order.u32, (epochs, programs), in
//              which order programs are learned from
//   train      trains the network from there for `epochs`; answers the times of train and predict. scores.f32 as above
// A time is answered as wall time, <what>_s, and as time of all processors, <what>_cpu_s; that of prediction is the
// least of five. A request that fails is answered by `error`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../synthetic_programs.hpp"
#include "../usage.hpp"
#include "recorded_programs.hpp"
#include "seconds_of.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/npz.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"

namespace {

using namespace tunewright;
using Json = nlohmann::json;

constexpr const char* usage = R"(usage: learners DIR

Fits and times models as the standard input says, with files in the folder DIR; learners_beside_libraries.py starts it.
)";

struct Times {
  double wall_s = std::numeric_limits<double>::infinity(), cpu_s = wall_s;

  template <class F>
  static Times of(F&& work) {
    const std::clock_t before = std::clock();
    Times times;
    times.wall_s = study::seconds_of(work);
    times.cpu_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    return times;
  }
  void tell(Json& answer, const std::string& what) const {
    answer[what + "_s"] = wall_s;
    answer[what + "_cpu_s"] = cpu_s;
  }
};

struct Programs {
  FeatureBatch x;
  std::vector<float> y;
  std::vector<std::uint32_t> group;
};

// ---- rows as the networks want them, made of those of made up statements ----

constexpr std::size_t dataflow_columns = 23, primitive_columns = 22, most_primitives = 25;

// A row cut into pieces of `width`, the last one filled up with zeros.
template <class Use>
void cut(std::span<const float> row, std::size_t width, Use&& use) {
  for (std::size_t first = 0; first < row.size(); first += width)
    use(row.subspan(first, std::min(width, row.size() - first)));
}

// Statements, and the first of them cut into eight rows in the place of data movements.
FeatureBatch with_movements(const FeatureBatch& x) {
  FeatureBatch out(1 + x.columns() + dataflow_columns);
  for (std::size_t p = 0; p < x.programs(); ++p) {
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r)
      std::copy_n(x.row(r).begin(), x.columns(), out.append_row().begin() + 1);
    cut(x.row(x.offsets()[p]), dataflow_columns, [&](std::span<const float> piece) {
      const auto row = out.append_row();
      row[0] = 1;
      std::copy(piece.begin(), piece.end(), row.end() - dataflow_columns);
    });
    out.close_program();
  }
  return out;
}

// Statements cut into 16 to 25 rows, as many as a program has schedule primitives.
FeatureBatch as_primitives(const FeatureBatch& x) {
  FeatureBatch out(primitive_columns);
  for (std::size_t p = 0; p < x.programs(); ++p) {
    std::size_t rows = 0;
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) {
      cut(x.row(r), primitive_columns, [&](std::span<const float> piece) {
        if (rows++ < most_primitives) std::copy(piece.begin(), piece.end(), out.append_row().begin());
      });
    }
    out.close_program();
  }
  return out;
}

// Recorded statements have no data movements beside them: the rows are of the first kind.
FeatureBatch without_movements(const FeatureBatch& x) {
  FeatureBatch out(1 + x.columns() + dataflow_columns);
  for (std::size_t p = 0; p < x.programs(); ++p) {
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r)
      std::copy_n(x.row(r).begin(), x.columns(), out.append_row().begin() + 1);
    out.close_program();
  }
  return out;
}

// ---- models ----

models::Gbdt gbdt_of(const Json& request) {
  models::Gbdt model;
  model.rounds = request.at("rounds");
  model.max_depth = request.at("max_depth");
  model.max_bins = request.at("max_bins");
  model.learning_rate = request.at("learning_rate");
  model.min_child_weight = request.at("min_child_weight");
  model.gamma = request.at("gamma");
  model.lambda = request.at("lambda");
  model.threads = request.at("threads");
  model.objective =
      request.at("squared") ? models::gbdt::Objective::Squared : models::gbdt::Objective::SummedOverStatements;
  return model;
}

using Network = std::variant<models::Mlp, models::BiLstmAttention, models::PrimitiveAttention, models::PatternAware>;

Network network_called(const std::string& name) {
  if (name == "mlp") return models::Mlp{};
  if (name == "bilstm_attention") return models::BiLstmAttention{};
  if (name == "primitive_attention") return models::PrimitiveAttention{.training = {.batch_programs = 128}};
  if (name == "pattern_aware") return models::PatternAware{};
  throw std::invalid_argument("there is no network '" + name +
                              "'; choose mlp, bilstm_attention, primitive_attention or pattern_aware");
}

models::Mlp::Network shape_of(const models::Mlp& model, std::size_t columns) { return {columns, model.hidden, 1}; }
models::BiLstmAttention::Network shape_of(const models::BiLstmAttention& model, std::size_t columns) {
  return {columns, {model.width, model.layers, model.attention_heads, model.steps}, 1};
}
models::PrimitiveAttention::Network shape_of(const models::PrimitiveAttention& model, std::size_t columns) {
  return {columns, model.width, model.attention_heads, 1};
}
models::PatternAware::Network shape_of(const models::PatternAware& model, std::size_t columns) {
  return {columns, model.dataflow_columns, model.hidden, 1};
}

// ---- requests ----

class Side {
 public:
  explicit Side(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "data") return make_data(request);
    if (what == "gbdt") return fit_gbdt(request);
    if (what == "start") return start(request);
    if (what == "train") return train(request);
    throw std::invalid_argument("nothing is called '" + what + "'; choose data, gbdt, start or train");
  }

 private:
  Json make_data(const Json& request) {
    const std::string rows = request.at("rows");  // statements, movements, primitives
    if (request.contains("root")) {
      using Rows = study::Selection::Rows;
      const study::Selection selection{.records = request.at("records"),
                                       .rows = rows == "primitives" ? Rows::Steps : Rows::Statements};
      const std::string root = request.at("root"), pool = request.at("pool"), split = request.at("split");
      const study::Case& data = study::recorded_case(root, pool, selection, split, request.at("seed"));
      train_ = {data.train.x, data.train.y, data.train.group};
      held_out_ = {data.test.x, data.test.y, data.test.group};
    } else {
      const std::size_t programs = request.at("programs"), held_out = request.at("held_out");
      const auto all = bench::make_synthetic(programs + held_out, request.at("tasks"), request.at("seed"),
                                             request.at("single_statement"));
      train_ = held_out_ = {FeatureBatch(all.x.columns()), {}, {}};
      for (std::size_t p = 0; p < programs + held_out; ++p) {
        Programs& to = p < programs ? train_ : held_out_;
        to.x.append_program(all.x.program(p));
        to.y.push_back(all.y[p]);
        to.group.push_back(all.group[p]);
      }
    }
    for (Programs* part : {&train_, &held_out_}) {
      if (rows == "movements")
        part->x = request.contains("root") ? without_movements(part->x) : with_movements(part->x);
      else if (rows == "primitives" && !request.contains("root"))
        part->x = as_primitives(part->x);
    }
    std::ofstream out(folder_ / "data.npz", std::ios::binary);
    data::NpzWriter file(out);
    for (const auto& [name, part] : {std::pair{"_train", &train_}, std::pair{"_held_out", &held_out_}}) {
      using std::string;
      file.add(string("features") + name, part->x.values(), {part->x.rows(), part->x.columns()});
      file.add(string("offsets") + name, part->x.offsets());
      file.add(string("labels") + name, std::span<const float>(part->y));
      file.add(string("groups") + name, std::span<const std::uint32_t>(part->group));
    }
    file.finish();
    return {{"programs", train_.y.size()}, {"rows", train_.x.rows()}, {"columns", train_.x.columns()}};
  }

  Json fit_gbdt(const Json& request) {
    models::Gbdt model = gbdt_of(request);
    Json answer;
    Times::of([&] { model.fit(train_.x, train_.y, train_.group); }).tell(answer, "fit");
    predict(model).tell(answer, "predict");
    return answer;
  }

  Json start(const Json& request) {
    start_ = network_called(request.at("network"));
    const unsigned epochs = request.at("epochs");
    std::visit(
        [&](auto& model) {
          auto network = shape_of(model, train_.x.columns());
          auto weights = network.initial(Rng(request.at("seed").get<std::uint64_t>()));
          model.learned.restore(std::move(network), nn::InputScale::fit(train_.x), std::move(weights));
          std::ofstream file(folder_ / "start.safetensors", std::ios::binary);
          model.save(file, 0);
          write_order(model.seed, epochs);
        },
        start_);
    return std::visit(
        [](const auto& model) -> Json {
          const nn::Training& how = model.training;
          return {{"batch_programs", how.batch_programs},
                  {"learning_rate", how.learning_rate},
                  {"weight_decay", how.weight_decay},
                  {"clip_norm", how.clip_norm},
                  {"loss", how.loss == nn::Loss::LambdaRank ? "lambda_rank" : "mean_squared"}};
        },
        start_);
  }

  Json train(const Json& request) {
    return std::visit(
        [&](auto model) -> Json {
          model.threads = request.at("threads");
          nn::Training how = model.training;
          how.epochs = request.at("epochs");
          how.least_steps = 0;
          Json answer;
          Times::of([&] { model.train_from_current(train_.x, train_.y, train_.group, how); }).tell(answer, "train");
          predict(model).tell(answer, "predict");
          return answer;
        },
        start_);
  }

  // The order in which nn::Trainer goes through the programs.
  void write_order(std::uint64_t seed, unsigned epochs) {
    std::vector<std::uint32_t> order(train_.y.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ofstream file(folder_ / "order.u32", std::ios::binary);
    for (unsigned epoch = 0; epoch < epochs; ++epoch) {
      Rng(seed).split(2 * std::uint64_t{epoch}).shuffle(std::span(order));
      file.write(reinterpret_cast<const char*>(order.data()),
                 static_cast<std::streamsize>(order.size() * sizeof(order[0])));
    }
  }

  template <class Model>
  Times predict(const Model& model) {
    std::vector<float> score(held_out_.y.size());
    Times least;
    for (int i = 0; i < 5; ++i) {
      const Times times = Times::of([&] { model.predict(held_out_.x, score); });
      least = {std::min(least.wall_s, times.wall_s), std::min(least.cpu_s, times.cpu_s)};
    }
    std::ofstream file(folder_ / "scores.f32", std::ios::binary);
    file.write(reinterpret_cast<const char*>(score.data()), static_cast<std::streamsize>(score.size() * sizeof(float)));
    return least;
  }

  std::filesystem::path folder_;
  Programs train_, held_out_;
  Network start_;
};

}  // namespace

int main(int argc, char** argv) {
  if (bench::printed_usage(argc, argv, usage)) return 0;
  if (argc == 2 && std::string_view(argv[1]).starts_with("--")) {
    std::cerr << "learners: unknown option '" << argv[1] << "'; see --help\n";
    return 2;
  }
  if (argc != 2) {
    std::cerr << usage;
    return 2;
  }
  Side side(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      answer = side.answer(Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
