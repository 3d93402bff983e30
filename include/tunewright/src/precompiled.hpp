// SPDX-License-Identifier: Apache-2.0
#pragma once

// Headers that nearly every source file includes, for `tunewright_precompile_headers` of the CMake package.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/tunewright.hpp"
