#include "membership.hpp"

#include "weir/cluster/records.hpp"

#include <algorithm>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {
constexpr Duration kEvery = 5s;
constexpr Duration kAgain = 1s;
}  // namespace

Membership::Membership(asio::io_context& io, Coordination& on, Clock& clock, EpochJudge& judge, std::string process,
                       std::function<std::int64_t()> listeners)
    : on_(on), clock_(clock), judge_(judge), process_(std::move(process)), listeners_(std::move(listeners)),
      alarm_(io, clock) {}

void Membership::heard(const Heard& heard) {
  if (heard.begun) {
    routes_unread_ = true;
    return soon();
  }
  auto said = read_announcement(heard.text);
  if (!said || !judge_.admit(said->epoch)) return;
  if (const auto* updated = std::get_if<AssignmentsUpdated>(&said->what)) count(updated->slave_of);
}

void Membership::count(const std::map<std::string, std::string>& slave_of) {
  auto mine = std::ranges::count_if(slave_of, [&](const auto& each) { return each.second == process_; });
  if (std::exchange(workload_, mine) != mine) soon();
}

asio::awaitable<void> Membership::read_routes() {
  routes_unread_ = false;
  auto routes = co_await on_.table(ClusterTable::assignments);
  if (routes) count(*routes);
  else routes_unread_ = true;
}

asio::awaitable<bool> Membership::be_there() {
  SlaveState record{.slave = process_, .process = process_, .workload = workload_, .last_seen = clock_.wall()};
  std::int64_t listeners = listeners_();
  record.capabilities["listeners"] = listeners;
  Status put = co_await on_.put_slave(process_, write_record(record));
  if (!put || stopping_) co_return bool(put);
  Announcement heartbeat{.epoch = judge_.highest(), .timestamp = clock_.wall(), .what = Heartbeat{process_, listeners}};
  Status told = co_await on_.tell(std::string(kUpstream), write_announcement(heartbeat));
  co_return bool(told);
}

asio::awaitable<void> Membership::run() {
  std::vector<std::string> channels{std::string(kAssignmentsChanged)};
  listening_ = on_.listen(std::move(channels), [this](const Heard& each) { heard(each); });
  while (!stopping_) {
    if (routes_unread_) co_await read_routes();
    if (!stopping_ && clock_.now() >= due_) {
      due_ = clock_.now() + kEvery;
      bool there = co_await be_there();
      if (!there) due_ = std::min(due_, clock_.now() + kAgain);
    }
    if (!stopping_) co_await alarm_.wait_until(due_);
  }
  listening_.reset();
  (void)co_await on_.remove_slave(process_);
}

}  // namespace weir::cluster
