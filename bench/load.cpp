#include "load.hpp"

#include <fmt/format.h>

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace weir::bench {

std::string Latencies::json() {
  std::ranges::sort(micros_);
  auto at = [&](double share) {
    if (micros_.empty()) return 0.0;
    auto place = static_cast<size_t>(share * static_cast<double>(micros_.size()));
    return micros_[std::min(place, micros_.size() - 1)] / 1000.0;
  };
  return fmt::format(R"({{"count":{},"p50_ms":{:.3f},"p90_ms":{:.3f},"p95_ms":{:.3f},"p99_ms":{:.3f},"max_ms":{:.3f}}})",
                     micros_.size(), at(0.5), at(0.9), at(0.95), at(0.99), at(1.0));
}

Load::Load(Answered answered) : answered_(std::move(answered)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
Load::~Load() { ::close(epoll_); }

size_t Load::connect(std::uint16_t port) {
  wires_.push_back(std::make_unique<Wire>(port));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = wires_.size() - 1;
  if (!wires_.back()->broken()) ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wires_.back()->fd(), &event);
  return wires_.size() - 1;
}

void Load::send(size_t n, std::string_view request) {
  ++waiting_;
  if (!wires_[n]->broken()) return wires_[n]->send(request);
  --waiting_;
  answered_(n, {0, "the connection is broken"});
}

void Load::turn(Moment until) {
  std::array<epoll_event, 256> events;
  auto left = std::max<std::int64_t>(0, std::chrono::duration_cast<Span>(until - moment()).count());
  timespec limit{left / 1'000'000'000, left % 1'000'000'000};
  int ready = ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &limit, nullptr);
  for (int i = 0; i < ready; ++i) {
    size_t n = events[static_cast<size_t>(i)].data.u64;
    Wire& from = *wires_[n];
    bool asked = from.waiting();
    auto answer = from.receive();
    if (from.broken()) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, from.fd(), nullptr);
    if (!answer || !asked) continue;
    --waiting_;
    answered_(n, *answer);
  }
}

}  // namespace weir::bench
