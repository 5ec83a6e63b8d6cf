// Spelling: how far a word is from the one that was meant. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

// How many slips turn `a` into `b`: letters too many, too few or wrong, and neighbours that changed places.
size_t slips_between(std::string_view a, std::string_view b);

}  // namespace weir
