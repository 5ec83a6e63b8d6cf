#include "weir/base/log_once.hpp"

#include "weir/base/log.hpp"

#include <mutex>
#include <set>
#include <utility>

namespace weir::log {

void error_once(std::string_view event, const std::string& message, std::string_view field, std::string_view value) {
  constexpr size_t kMost = 10'000;
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::string>> told;
  std::lock_guard guard(mutex);
  if (told.size() < kMost && told.emplace(event, value).second) error(event, message).with(field, value);
}

}  // namespace weir::log
