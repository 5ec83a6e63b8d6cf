#include "pen.hpp"

#include "topics.hpp"

#include "weir/base/log.hpp"

namespace weir::cluster {

namespace asio = boost::asio;

namespace {

constexpr Duration kLook = 250ms;        // at whether Redis is back
constexpr Duration kIdle = 1s;
constexpr Duration kDoubtEvery = 1s;     // the control plane is asked besides the usual renewals
constexpr const char* kAwayHelp = "1 while this master's last word to Redis was not answered";

Error not_ready() {
  return {Errc::unavailable, "pen_not_ready", "this process may not write for the cluster now", {}};
}

}  // namespace

Pen::Pen(asio::io_context& io, Coordination& on, LeaseKeeper& lease, Clock& clock, net::Metrics& metrics,
         std::function<bool()> may_act, std::function<void()> changed)
    : on_(on), lease_(lease), clock_(clock), metrics_(metrics), may_act_(std::move(may_act)),
      changed_(std::move(changed)), alarm_(io, clock), after_(lease.asked()) {}

std::string Pen::stamped(Announcement& announcement) const {
  announcement.epoch = epoch_;
  announcement.timestamp = clock_.wall();
  return write_announcement(announcement);
}

Async<Nothing> Pen::write(std::vector<TableChange> changes) {
  if (!ready()) co_return not_ready();
  std::int64_t under = epoch_;
  Status said = co_await on_.write(under, std::move(changes));
  heard(said ? nullptr : &said.error(), under);
  co_return said;
}

Async<Nothing> Pen::publish(std::string channel, Saying what) {
  if (!ready()) co_return not_ready();
  std::int64_t under = epoch_;
  Announcement announcement{.what = std::move(what)};
  Status said = co_await on_.publish(under, std::move(channel), stamped(announcement));
  heard(said ? nullptr : &said.error(), under);
  co_return said;
}

Async<std::string> Pen::deliver(std::string channel, std::string text) {
  if (!ready()) co_return not_ready();
  std::int64_t under = epoch_;
  Result<std::string> said = co_await on_.deliver(under, std::move(channel), std::move(text));
  heard(said ? nullptr : &said.error(), under);
  co_return said;
}

// What was refused or not answered under an earlier epoch says nothing about this one.
void Pen::heard(const Error* error, std::int64_t under) {
  if (error == nullptr || under != epoch_) return;
  bool refused = error->reason == "no_epoch" || error->reason == "stale_epoch";
  if (!refused && error->code != Errc::unavailable) return;
  metrics_.counter("weir_cluster_writes_failed_total", "Words of this master that Redis refused or did not answer.",
                   {{"why", refused ? error->reason : "away"}}).add();
  if (!refused) {
    if (std::exchange(away_, true)) return;
    metrics_.gauge("weir_cluster_redis_away", kAwayHelp).set(1);
    log::warn("cluster.redis_away", error->message).with(kTopic, kClusterTopic);
    changed_();
    alarm_.ring();
    return;
  }
  if (auto left_out = refusals_.due(clock_.now()))
    log::warn("cluster.write_refused", error->message).with(kTopic, kClusterTopic).with("why", error->reason)
        .with("epoch", under).with("left_out", *left_out);
  if (open_) close();
}

void Pen::close() {
  open_ = false;
  after_ = lease_.asked();
  if (clock_.now() - looked_ >= kDoubtEvery) {
    looked_ = clock_.now();
    lease_.look();
  }
  changed_();
  alarm_.ring();
}

asio::awaitable<void> Pen::keep_open() {
  lease_.look();
  while (!stopping_) {
    std::int64_t version = lease_.version().n;
    if (version != 0 && version != epoch_) {
      epoch_ = version;
      open_ = false;
      changed_();
    }
    if (version != 0 && may_act_()) {
      if (away_) co_await see_whether_it_is_back();
      else if (!open_ && lease_.renewed() > after_) co_await open();
    }
    if (stopping_) co_return;
    bool now = !away_ && !open_ && version != 0 && may_act_() && lease_.renewed() > after_;
    if (!now) co_await alarm_.wait_until(clock_.now() + (away_ ? kLook : kIdle));
  }
}

asio::awaitable<void> Pen::open() {
  std::int64_t under = epoch_;
  after_ = lease_.asked();
  Status said = co_await on_.open_epoch(under);
  if (!said) {
    heard(&said.error(), under);
    co_return;
  }
  open_ = true;
  ++opened_;
  log::info("cluster.epoch_opened", "writes under this epoch are taken from now on").with(kTopic, kClusterTopic)
      .with("epoch", under);
  changed_();
}

// A Redis that answers again may have been emptied, or another master may have stored a higher epoch in it.
asio::awaitable<void> Pen::see_whether_it_is_back() {
  Result<std::optional<std::int64_t>> stored = co_await on_.epoch();
  if (!stored || stopping_) co_return;
  away_ = false;
  metrics_.gauge("weir_cluster_redis_away", kAwayHelp).set(0);
  log::info("cluster.redis_back", "Redis answers again").with(kTopic, kClusterTopic);
  if (open_ && *stored == epoch_) ++opened_;
  else if (open_) close();
  changed_();
}

}  // namespace weir::cluster
