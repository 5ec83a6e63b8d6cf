#include "voice.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace weir::sim {

class Voice::WorldBus final : public EventBus {
 public:
  WorldBus(const Surroundings& surroundings, Clock& clock) : surroundings_(surroundings), clock_(clock) {}

  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    Error nothing{Errc::unavailable, "bus_unavailable", "nobody there"};
    if (Duration pause = surroundings_.blocked(); pause > Duration(0)) co_await clock_.wait(pause);
    // A publisher that has lost its patience has closed the connection.
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none) co_return nothing;
    for (const event::Event& event : events)
      if (surroundings_.looks_again && clock_.now() >= event.stamp->deadline)
        co_return Error{Errc::unavailable, "deadline_passed", "too late"};
    std::function<void(Done<std::vector<Confirmation>>)> begin = [this, &events](Done<std::vector<Confirmation>> done) {
      surroundings_.send(std::move(events), [done](std::vector<Confirmation> said) { done(std::move(said)); });
    };
    co_return co_await ask(std::move(begin));
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
      clock_(surroundings_.clock),
      bus_(std::make_unique<WorldBus>(surroundings_, clock_)),
      spool_(std::move(spool)),
      publisher_(io_, clock_, *bus_, *spool_, {}, {.draw = surroundings_.draw}) {
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
