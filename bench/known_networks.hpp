// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/graph.hpp"

/// The networks that programs are told by name.
namespace tunewright::bench {

struct KnownNetwork {
  const char* name;
  std::function<networks::Network()> build;  ///< with batch 1 and the size of its publication
};

/// The networks of `networks/`; the first ones are what `bench_end_to_end` is about.
inline std::vector<KnownNetwork> known_networks() {
  return {{"resnet50", [] { return networks::resnet50(); }},
          {"mobilenet_v2", [] { return networks::mobilenet_v2(); }},
          {"bert_base", [] { return networks::bert_base(); }},
          {"gpt2_decode", [] { return networks::gpt2_decode(); }},
          {"resnet18", [] { return networks::resnet18(); }},
          {"squeezenet1_1", [] { return networks::squeezenet1_1(); }},
          {"vision_transformer", [] { return networks::vision_transformer(); }},
          {"bert_tiny", [] { return networks::bert_tiny(); }},
          {"gpt2_prefill", [] { return networks::gpt2_prefill(); }},
          {"vgg16", [] { return networks::vgg16(); }},
          {"wide_resnet50_2", [] { return networks::wide_resnet50_2(); }},
          {"inception_v3", [] { return networks::inception_v3(); }},
          {"densenet121", [] { return networks::densenet121(); }}};
}

/// Throws `std::invalid_argument` for a name that is none.
inline networks::Network known_network(std::string_view name) {
  std::string all;
  for (const KnownNetwork& known : known_networks()) {
    if (name == known.name) return known.build();
    all += (all.empty() ? "" : ", ") + std::string(known.name);
  }
  throw std::invalid_argument("there is no network '" + std::string(name) + "'; give one of " + all);
}

}  // namespace tunewright::bench
