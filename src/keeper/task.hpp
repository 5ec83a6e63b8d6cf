// Task: what a keeper is told by its arguments (weir/keeper/keeping.hpp). Plain value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::keeper {

using Micros = std::chrono::microseconds;  // a duration, or a point on CLOCK_BOOTTIME

struct Task {
  const char* folder = nullptr;  // where the exit record goes
  const char* nonce = nullptr;
  std::int64_t version = 0;
  Micros valid_until{};
  Micros stop_grace{};
  Micros backstop{};         // how long after `valid_until` the keeper kills
  char** command = nullptr;  // ends with a null pointer, as for exec; points into argv
};

// Nothing where an argument is missing or no such argument exists.
std::optional<Task> read_task(int argc, char** argv);

// A whole number of at most 18 digits, so that sums of two do not overflow.
std::optional<std::int64_t> read_number(std::string_view text);

}  // namespace weir::keeper
