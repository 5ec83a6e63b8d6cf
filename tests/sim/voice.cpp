#include "voice.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::sim {

namespace asio = boost::asio;

namespace {

// A timer that never fires by itself.
std::shared_ptr<asio::steady_timer> make_bell(const asio::any_io_executor& on) {
  return std::make_shared<asio::steady_timer>(on, asio::steady_timer::time_point::max());
}
asio::awaitable<void> wait_for(std::shared_ptr<asio::steady_timer> bell) {
  boost::system::error_code rung;
  co_await bell->async_wait(asio::redirect_error(asio::use_awaitable, rung));
}
std::function<void()> ringer(const std::shared_ptr<asio::steady_timer>& bell) {
  return [weak = std::weak_ptr(bell)] {
    if (auto there = weak.lock()) there->cancel();
  };
}

}  // namespace

class Voice::WorldClock final : public Clock {
 public:
  explicit WorldClock(const Surroundings& surroundings) : surroundings_(surroundings) {}
  Instant now() const override { return surroundings_.now(); }
  WallTime wall() const override { return surroundings_.wall(); }
  asio::awaitable<void> wait_until(Instant deadline) override {
    if (deadline <= now()) co_return;
    auto bell = make_bell(co_await asio::this_coro::executor);
    if (deadline < now() + std::chrono::hours(24)) surroundings_.at(deadline, ringer(bell));
    co_await wait_for(bell);
  }

 private:
  const Surroundings& surroundings_;
};

class Voice::WorldBus final : public EventBus {
 public:
  WorldBus(const Surroundings& surroundings, Clock& clock) : surroundings_(surroundings), clock_(clock) {}

  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<OutgoingEvent> events) override {
    Error nothing{Errc::unavailable, "bus_unavailable", "nobody there"};
    if (Duration pause = surroundings_.blocked(); pause > Duration(0)) co_await clock_.wait(pause);
    // A publisher that has lost its patience has closed the connection.
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none) co_return nothing;
    for (const OutgoingEvent& event : events)
      if (surroundings_.looks_again && clock_.now() >= event.stamp->deadline)
        co_return Error{Errc::unavailable, "deadline_passed", "too late"};
    auto answers = std::make_shared<std::optional<std::vector<Confirmation>>>();
    auto bell = make_bell(co_await asio::this_coro::executor);
    surroundings_.send(std::move(events), [answers, ring = ringer(bell)](std::vector<Confirmation> said) {
      *answers = std::move(said);
      ring();
    });
    co_await wait_for(bell);
    if (!*answers) co_return nothing;
    co_return **answers;
  }
  asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
    co_return Error{Errc::unsupported, "no_subscription", "not here"};
  }

 private:
  const Surroundings& surroundings_;
  Clock& clock_;
};

Voice::Voice(Surroundings surroundings, std::unique_ptr<Spool> spool)
    : surroundings_(std::move(surroundings)),
      clock_(std::make_unique<WorldClock>(surroundings_)),
      bus_(std::make_unique<WorldBus>(surroundings_, *clock_)),
      spool_(std::move(spool)),
      publisher_(io_, *clock_, *bus_, *spool_, {}, {.draw = surroundings_.draw}) {
  asio::co_spawn(io_, publisher_.run(), asio::detached);
}

Voice::~Voice() = default;

void Voice::silence(const CameraId& camera, std::function<void(std::optional<WallTime>)> done) {
  asio::co_spawn(io_, publisher_.silence(camera),
                 [done = std::move(done)](const std::exception_ptr&, std::optional<WallTime> last) { done(last); });
}

void Voice::stop(Instant deadline, std::function<void()> done) {
  asio::co_spawn(io_, publisher_.flush_and_stop(deadline), [done = std::move(done)](const std::exception_ptr&) { done(); });
}

std::uint64_t Voice::dropped() const {
  worker::PublisherCounters counts = publisher_.counters();
  std::uint64_t all = 0;
  for (std::uint64_t each : counts.dropped) all += each;
  return all - counts.dropped_for(worker::Drop::no_lease) - counts.dropped_for(worker::Drop::silent);
}

void Voice::go_on() {
  io_.restart();
  while (io_.poll() > 0) continue;
}

}  // namespace weir::sim
