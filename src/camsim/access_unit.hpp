// What must be known about coded pictures: which can be decoded alone, and where their parameter sets end.
// Plain functions; any thread.
#pragma once

#include "weir/camsim/profile.hpp"

namespace weir::camsim {

bool decodable_alone(Codec codec, std::string_view unit);
// The length of the parameter sets (SPS, PPS, VPS) at the beginning of a unit.
size_t parameter_sets_bytes(Codec codec, std::string_view unit);

}  // namespace weir::camsim
