#include "plane_watch.hpp"

#include "weir/base/log.hpp"

namespace weir::runner {

namespace {
constexpr Duration kLineEvery = 10s;
constexpr Duration kAskedAgain = 30s;  // what failed longer ago and did not fail since is not asked any more
}  // namespace

std::string_view what_it_does(const Error& why) {
  switch (why.code) {
    case Errc::unavailable: return "does not answer";
    case Errc::unauthorized:
    case Errc::forbidden:
    case Errc::not_found: return "refuses this runner";
    default: return "gives no answer of use";
  }
}

void PlaneWatch::failed(std::string_view question, const Error& why, Instant now) {
  if (failing_.empty()) since_ = now;
  failing_[std::string(question)] = now;
  if (said_.contains(why.reason) || (last_line_ && now - *last_line_ < kLineEvery)) return;
  said_.insert(why.reason);
  last_line_ = now;
  log::warn("plane.away", fmt::format("the control plane {}: {}", what_it_does(why), why.message))
      .with("question", question)
      .with("error_code", why.reason);
}

void PlaneWatch::answered(std::string_view question, Instant now) {
  std::erase_if(failing_, [&](const auto& each) { return each.first == question || now - each.second > kAskedAgain; });
  if (!failing_.empty() || said_.empty()) return;
  said_.clear();
  log::info("plane.back", "the control plane answers again").with("away_s", (now - since_) / 1s);
}

}  // namespace weir::runner
