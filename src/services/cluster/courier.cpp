#include "courier.hpp"

namespace weir::cluster {

namespace {
constexpr size_t kWaitingMax = 10'000;
constexpr size_t kUnderWayMax = 1'000;
}  // namespace

Courier::Courier(Crew& crew, Pen& pen, net::Metrics& metrics, std::function<std::string(const std::string&)> slave_of,
                 std::function<void(const DetectionRouted&)> tell_here)
    : crew_(crew), pen_(pen), metrics_(metrics), slave_of_(std::move(slave_of)), tell_here_(std::move(tell_here)) {}

void Courier::take(const std::string& worker, const ImageDetection& detection) {
  if (waiting_.size() >= kWaitingMax) leave_out_oldest();
  Announcement& item = waiting_[++newest_];
  item.what = DetectionRouted{worker, detection};
  if (!pen_.away()) return go_on();
  tell_here_(std::get<DetectionRouted>(item.what));
  told_ = newest_ + 1;
}

// It is lost to the listeners of other processes only.
void Courier::leave_out_oldest() {
  auto oldest = waiting_.begin();
  if (oldest->first >= told_) {
    told_ = oldest->first + 1;
    tell_here_(std::get<DetectionRouted>(oldest->second.what));
  }
  waiting_.erase(oldest);
  metrics_.counter("weir_cluster_results_lost_total", "Results of workers that were not published.",
                   {{"why", "redis_queue_full"}}).add();
}

void Courier::go_on() {
  if (pen_.away()) return tell_here_what_waits();
  if (sending_) return;  // an answer may come at once: the loop below goes on then
  sending_ = true;
  send();
  sending_ = false;
}

void Courier::send() {
  for (;;) {
    if (again_ && under_way_ == 0) {
      again_ = false;
      next_ = 0;
    }
    auto at = waiting_.lower_bound(next_);
    if (again_ || !pen_.ready() || at == waiting_.end() || under_way_ >= kUnderWayMax) return;
    std::string slave = slave_of_(std::get<DetectionRouted>(at->second.what).worker);
    if (slave.empty()) return;
    next_ = at->first + 1;
    ++under_way_;
    crew_.spawn(bring(at->first, slave_channel(slave), pen_.stamped(at->second)), "a detection on its way to Redis");
  }
}

boost::asio::awaitable<void> Courier::bring(std::uint64_t number, std::string channel, std::string text) {
  auto kept = co_await pen_.deliver(std::move(channel), std::move(text));
  --under_way_;
  if (kept) waiting_.erase(number);
  else again_ = true;
  go_on();
}

// Those that were under way when Redis went: perhaps they were published, perhaps not.
void Courier::tell_here_what_waits() {
  for (auto at = waiting_.lower_bound(told_); at != waiting_.end(); ++at)
    tell_here_(std::get<DetectionRouted>(at->second.what));
  told_ = newest_ + 1;
}

}  // namespace weir::cluster
