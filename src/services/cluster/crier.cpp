#include "crier.hpp"

namespace weir::cluster {

namespace {
constexpr size_t kWaitingMax = 1'000;
constexpr Duration kIdle = 1s;
}  // namespace

void Crier::tell(Saying what) {
  if (waiting_.size() >= kWaitingMax) waiting_.pop_front();
  waiting_.push_back(std::move(what));
  alarm_.ring();
}

boost::asio::awaitable<void> Crier::run() {
  while (!stopping_) {
    if (pen_.away())
      for (; !waiting_.empty(); waiting_.pop_front()) tell_here_(waiting_.front());
    if (waiting_.empty() || !pen_.ready()) {
      co_await alarm_.wait_until(clock_.now() + kIdle);
      continue;
    }
    Saying next = std::move(waiting_.front());
    waiting_.pop_front();
    Status told = co_await pen_.publish(std::string(kEvents), next);
    if (!told) waiting_.push_front(std::move(next));
  }
}

}  // namespace weir::cluster
