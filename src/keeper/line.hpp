// What a line on a keeper's socket asks for (weir/keeper/keeping.hpp). Plain functions; no state.
#pragma once

#include "task.hpp"

namespace weir::keeper {

struct Ask {
  enum class What { nonsense, state, extend, stop, kill } what = What::nonsense;
  std::int64_t version = 0;
  Micros valid_until{};
};

// Reads one JSON object of whole numbers and texts without escapes; all else is nonsense. Other names are ignored, as
// on a forwarder's lease socket.
Ask read_ask(std::string_view line);

}  // namespace weir::keeper
