#include "request_line.hpp"

namespace weir::cluster {

namespace {

constexpr Duration kBeginWithin = 2s;
constexpr Duration kAnswerWithin = 3s;
constexpr size_t kOpenMax = 256;

Error no_master() {
  return {Errc::unavailable, "no_master", "no master of the cluster answered; ask again in a moment", {}};
}

// Of the reasons that the master refuses a request for.
Errc class_of(std::string_view reason) {
  if (reason == "no_subscription") return Errc::not_found;
  return reason == "patch_over" ? Errc::conflict : Errc::unavailable;
}

// Who asks, and its number, stand in every request alike.
void sign(Saying& what, const std::string& process, std::int64_t number) {
  auto put = [&](auto* request) {
    if (request != nullptr) request->slave = process, request->request = number;
  };
  put(std::get_if<SessionSet>(&what));
  put(std::get_if<PatchAnswered>(&what));
  put(std::get_if<CameraResubscribed>(&what));
}

}  // namespace

void RequestLine::hear() {
  if (listening_) return;
  begun_ = false;
  std::vector<std::string> channels{slave_channel(process_)};
  listening_ = on_.listen(std::move(channels), [this](const Heard& each) { heard(each); });
}

void RequestLine::heard(const Heard& heard) {
  if (heard.begun) {
    begun_ = true;
    for (const auto& [number, open] : open_) open->alarm.ring();
    return;
  }
  if (heard.text.starts_with("{\"streamId\"")) return;  // a detection
  auto said = read_announcement(heard.text);
  if (!said || !judge_.admit(said->epoch)) return;
  const auto* response = std::get_if<CommandResponse>(&said->what);
  if (response == nullptr || response->slave != process_) return;
  auto at = open_.find(response->request);
  if (at == open_.end()) return;
  if (response->success) at->second->answer = ok();
  else at->second->answer = Error{class_of(response->reason), response->reason, response->message, {}};
  at->second->alarm.ring();
}

Async<Nothing> RequestLine::ask(Saying what) {
  if (open_.size() >= kOpenMax)
    co_return Error{Errc::too_many, "too_many_requests", "too many requests to the cluster's master are open", {}};
  std::int64_t number = ++newest_;
  auto open = std::make_shared<Open>(io_, clock_);
  open_.emplace(number, open);
  hear();
  for (Instant until = clock_.now() + kBeginWithin; !begun_ && clock_.now() < until;)
    co_await open->alarm.wait_until(until);
  Announcement request{.epoch = judge_.highest(), .timestamp = clock_.wall(), .what = std::move(what)};
  sign(request.what, process_, number);
  Status told = no_master();
  if (begun_) told = co_await on_.tell(std::string(kUpstream), write_announcement(request));
  if (told)
    for (Instant until = clock_.now() + kAnswerWithin; !open->answer && clock_.now() < until;)
      co_await open->alarm.wait_until(until);
  open_.erase(number);
  if (open_.empty()) listening_.reset();
  if (!told) co_return told;
  co_return open->answer.value_or(no_master());
}

}  // namespace weir::cluster
