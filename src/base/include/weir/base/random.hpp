// Randomness from the kernel. For ids, secrets and jitter in shells; never used in the domain.
#pragma once

#include <cstddef>
#include <string>

namespace weir {

std::string random_hex(size_t bytes);
double random_unit();  // uniform in [0, 1)

}  // namespace weir
