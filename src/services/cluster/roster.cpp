#include "roster.hpp"

#include "topics.hpp"

#include "weir/base/log.hpp"

#include <algorithm>

namespace weir::cluster {

namespace asio = boost::asio;

namespace {
constexpr Duration kEvery = 1s;
constexpr Duration kLate = 15s;
}  // namespace

std::string Roster::slave_of(const std::string& worker) const {
  if (announced_under_ == 0 || announced_under_ != pen_.opened()) return "";
  auto at = routes_.find(worker);
  return at == routes_.end() ? "" : at->second;
}

std::vector<SlaveState> Roster::slaves() const {
  std::vector<SlaveState> out;
  for (const auto& [slave, known] : known_)
    if (auto record = read_slave_state(known.text)) out.push_back(*std::move(record));
  return out;
}

bool Roster::somebody_listens() const {
  return std::ranges::any_of(listeners_, [&](const auto& each) { return each.first != own_ && each.second > 0; });
}

void Roster::forget(const std::string& slave) {
  log::info("slave-removed", "a process of the cluster is gone").with(kTopic, kClusterTopic).with("slave", slave);
  known_.erase(slave);
  listeners_.erase(slave);
  listens_.tell("slave-removed", slave);
}

void Roster::compare(const SharedTable& table) {
  Instant now = clock_.now();
  for (const auto& [slave, text] : table) {
    auto [at, fresh] = known_.try_emplace(slave);
    if (at->second.text != text) {
      at->second = {text, now};
      auto record = read_slave_state(text);
      const json::value* listeners = record ? record->capabilities.if_contains("listeners") : nullptr;
      if (listeners != nullptr && listeners->is_int64()) listeners_[slave] = listeners->get_int64();
    }
    if (!fresh || !read_) continue;
    log::info("slave-registered", "a process of the cluster is there").with(kTopic, kClusterTopic).with("slave", slave);
    listens_.tell("slave-registered", slave);
  }
  bool emptied = !table.contains(own_);
  std::vector<std::string> gone;
  for (const auto& [slave, known] : known_)
    if (!emptied && !table.contains(slave)) gone.push_back(slave);
  for (const std::string& slave : gone) forget(slave);
  metrics_.gauge("weir_cluster_slaves", "Processes of the cluster that its master knows of.")
      .set(static_cast<double>(known_.size()));
}

asio::awaitable<void> Roster::remove_late_ones() {
  std::vector<std::string> late;
  for (const auto& [slave, known] : known_)
    if (slave != own_ && clock_.now() - known.changed >= kLate) late.push_back(slave);
  for (const std::string& slave : late) {
    if (!pen_.ready()) co_return;
    Status removed = co_await on_.remove_slave(slave);
    if (removed && known_.contains(slave)) forget(slave);
  }
}

asio::awaitable<void> Roster::announce() {
  std::set<std::string> slaves{own_};
  for (const auto& [slave, known] : known_) slaves.insert(slave);
  Routes next = route(workers_, slaves, routes_);
  std::uint64_t opened = pen_.opened();
  if (announced_under_ == opened && next == routes_) co_return;
  std::vector<TableChange> changes{{.table = ClusterTable::assignments, .empty_first = true}};
  changes.front().put = next;
  Saying news = AssignmentsUpdated{next};
  Status done = co_await pen_.write(std::move(changes));
  if (done) done = co_await pen_.publish(std::string(kAssignmentsChanged), std::move(news));
  if (!done) co_return;
  routes_ = std::move(next);
  announced_under_ = opened;
  log::info("cluster.routes", "workers' detections are routed anew").with(kTopic, kPlacementTopic)
      .with("slaves", slaves.size()).with("workers", routes_.size());
  listens_.announced();
}

asio::awaitable<void> Roster::run() {
  while (!stopping_) {
    if (pen_.ready()) {
      if (!read_)
        if (auto left = co_await on_.table(ClusterTable::assignments)) routes_ = *std::move(left);
      auto table = co_await on_.table(ClusterTable::slaves);
      if (stopping_) co_return;
      if (table) {
        compare(*table);
        read_ = true;
        co_await remove_late_ones();
        if (!stopping_) co_await announce();
      }
    }
    if (!stopping_) co_await alarm_.wait_until(clock_.now() + kEvery);
  }
}

}  // namespace weir::cluster
