#include "runner_watch.hpp"

#include "weir/base/json.hpp"

namespace weir::control_plane {

namespace {
constexpr Duration kPauseMax = 1s;  // between two reads of a feed that counts as read
constexpr Duration kForgotten = 1h;
}  // namespace

void RunnerWatch::note(const StoredEvent& event, Instant now) {
  if (event.topic != event::kStatusTopic || !event.routing_key.starts_with("runner.heartbeat.")) return;
  auto payload = json::parse_text(event.payload);
  if (!payload || !payload->is_object()) return;
  auto word = [&](std::string_view name) {
    const json::value* found = payload->get_object().if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
  };
  std::string runner = word("runner_id");
  if (!id_problem(runner).empty()) return;
  if (heard_.size() >= kMax) heard_.clear(), silent_ = 0;
  Heard& heard = heard_[RunnerId::trusted(runner)];
  silent_ -= heard.silent;
  heard = {now, event.tenant, event.sequence, word("ts"), false};
}

void RunnerWatch::read(Instant now) {
  if (missed_ || now - read_at_ > kPauseMax)
    for (auto& [runner, heard] : heard_)
      if (!heard.silent) heard.at = now;
  missed_ = false;
  read_at_ = now;
}

std::vector<RunnerWatch::Silence> RunnerWatch::newly_silent(Instant now) {
  std::vector<Silence> found;
  if (now - read_at_ > kPauseMax) return found;
  for (auto& [runner, heard] : heard_) {
    if (heard.silent || now - heard.at <= kSilentAfter) continue;
    heard.silent = true;
    ++silent_;
    found.push_back({runner, heard.tenant, heard.sequence, heard.ts});
  }
  std::erase_if(heard_, [&](const auto& each) {
    bool old = now - each.second.at > kForgotten;
    silent_ -= old && each.second.silent;
    return old;
  });
  return found;
}

}  // namespace weir::control_plane
