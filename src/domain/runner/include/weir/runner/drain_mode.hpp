// DrainMode: what an operator orders a runner to do with the cameras that it has: keep them (none), hand them to other
// runners batch by batch (soft), or let go of all of them at once (hard). Plain value; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <array>

namespace weir {

enum class DrainMode { none, soft, hard };
inline constexpr std::array<json::EnumName<DrainMode>, 3> kDrainModeNames = {
    {{DrainMode::none, "none"}, {DrainMode::soft, "soft"}, {DrainMode::hard, "hard"}}};
constexpr auto& enum_names(DrainMode) { return kDrainModeNames; }

}  // namespace weir
