#include "dials.hpp"

#include "weir/base/clock.hpp"

namespace weir::camsim {

namespace {
constexpr size_t kDialsMax = 100'000;
}

std::shared_ptr<Dial> Dials::add(const std::string& recorder, const std::string& peer) {
  if (dials_.size() == kDialsMax) {
    dials_.pop_front();
    ++forgotten_;
  }
  auto dial = std::make_shared<Dial>(Dial{.at = wall_now(), .recorder = recorder, .peer = peer});
  dials_.push_back(dial);
  Concurrency& connects = connects_[recorder];
  connects.peak = std::max(connects.peak, ++connects.now);
  return dial;
}

void Dials::name_camera(Dial& dial, const std::string& camera) {
  if (dial.camera == camera) return;
  dial.camera = camera;
  dial.first = seen_.insert(camera).second;
}

void Dials::end_connecting(Dial& dial) {
  if (std::exchange(dial.connecting, false)) --connects_[dial.recorder].now;
}

void Dials::reset() {
  dials_.clear();
  seen_.clear();
  forgotten_ = 0;
  for (auto& [recorder, connects] : connects_) connects.peak = connects.now;
}

json::object Dials::to_json() const {
  json::array all;
  for (const auto& dial : dials_) {
    json::object one{{"at", to_iso(dial->at)},     {"at_us", dial->at.time_since_epoch().count()},
                     {"recorder", dial->recorder}, {"camera", dial->camera},
                     {"peer", dial->peer},         {"outcome", dial->outcome},
                     {"first", dial->first}};
    if (dial->until_play) one["until_play_ms"] = static_cast<double>(dial->until_play->count()) / 1000;
    all.push_back(std::move(one));
  }
  json::object peaks, now;
  for (const auto& [recorder, connects] : connects_) {
    peaks[recorder] = connects.peak;
    now[recorder] = connects.now;
  }
  return {{"dials", std::move(all)},
          {"forgotten", forgotten_},
          {"concurrent_connects", std::move(now)},
          {"peak_concurrent_connects", std::move(peaks)}};
}

}  // namespace weir::camsim
