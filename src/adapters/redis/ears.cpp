#include "ears.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>

namespace weir::redis {

struct Ears::Ear {
  // Constant after construction.
  std::set<std::string> channels;
  std::function<void(const Heard&)> each;
  // Loop thread only.
  bool closed = false;
  // The client's thread only.
  bool begun = false;
  // Both, under the lock.
  std::mutex mutex = {};
  std::deque<Heard> waiting = {};
  bool posted = false;
};

// The loop's side of an ear. The listener's function is destroyed on the loop, for the client's thread may be the last
// that knows the ear; and only after it has returned, for it may end the listening itself.
class Ears::Open final : public Listening {
 public:
  Open(std::shared_ptr<Ear> ear, boost::asio::any_io_executor loop) : ear_(std::move(ear)), loop_(std::move(loop)) {}
  ~Open() override {
    ear_->closed = true;
    boost::asio::post(loop_, [ear = ear_] { ear->each = nullptr; });
  }

 private:
  const std::shared_ptr<Ear> ear_;
  const boost::asio::any_io_executor loop_;
};

std::unique_ptr<Listening> Ears::listen(std::vector<std::string> channels, std::function<void(const Heard&)> each) {
  auto ear = std::make_shared<Ear>();
  ear->channels = {channels.begin(), channels.end()};
  ear->each = std::move(each);
  std::lock_guard guard(mutex_);
  ears_.push_back(ear);
  return std::make_unique<Open>(std::move(ear), loop_);
}

std::vector<std::shared_ptr<Ears::Ear>> Ears::open_ones() const {
  std::lock_guard guard(mutex_);
  std::erase_if(ears_, [](const auto& ear) { return ear.expired(); });
  std::vector<std::shared_ptr<Ear>> out;
  for (const std::weak_ptr<Ear>& each : ears_)
    if (auto ear = each.lock()) out.push_back(std::move(ear));
  return out;
}

std::set<std::string> Ears::channels() const {
  std::set<std::string> out;
  for (const auto& ear : open_ones()) out.insert(ear->channels.begin(), ear->channels.end());
  return out;
}

void Ears::heard(const std::string& channel, const std::string& text) {
  for (const auto& ear : open_ones())
    if (ear->begun && ear->channels.contains(channel)) hand_over(ear, {false, channel, text});
}

void Ears::begin(const std::set<std::string>& subscribed) {
  for (const auto& ear : open_ones()) {
    if (ear->begun || !std::ranges::includes(subscribed, ear->channels)) continue;
    ear->begun = true;
    hand_over(ear, {.begun = true});
  }
}

void Ears::interrupt() {
  for (const auto& ear : open_ones()) ear->begun = false;
}

void Ears::hand_over(const std::shared_ptr<Ear>& ear, Heard heard) {
  {
    std::lock_guard guard(ear->mutex);
    if (ear->waiting.size() >= heard_max_) {
      ear->waiting.clear();
      heard = {.begun = true};
    }
    ear->waiting.push_back(std::move(heard));
    if (std::exchange(ear->posted, true)) return;
  }
  boost::asio::post(loop_, [ear] {
    std::deque<Heard> now;
    {
      std::lock_guard guard(ear->mutex);
      ear->posted = false;
      now.swap(ear->waiting);
    }
    for (; !now.empty() && !ear->closed; now.pop_front()) ear->each(now.front());
  });
}

}  // namespace weir::redis
