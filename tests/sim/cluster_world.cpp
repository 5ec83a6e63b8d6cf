// Setting the cluster's part of the world up, breaking it, and judging its rest.
#include "clusters.hpp"

#include <array>

namespace weir::sim {

namespace {

constexpr std::uint64_t kOwnDraws = 0xC105;  // so that a seed's runners do not depend on its cluster
constexpr double kShare = 0.0625;            // of the seeds have a cluster
constexpr Duration kLookEvery = 200ms;       // at what two workers run
constexpr TrueTime kLately = 4 * kSecond;
constexpr Duration kCircuitMax = 20s;

bool about_clusters(Planted fault) {
  return std::ranges::find(kPlantedInClusters, fault) != kPlantedInClusters.end();
}

}  // namespace

bool ClusterWorld::exists(const Options& options) {
  if (options.planted != Planted::none) return about_clusters(options.planted);
  if (options.clusters) return true;
  return Rng(options.seed ^ (kOwnDraws << 32)).chance(kShare);
}

ClusterWorld::ClusterWorld(const Options& options, Surroundings around)
    : options_(options), time_(around.time), store_(around.store), all_checks_(around.checks),
      troubles_(around.troubles), rng_(options.seed ^ (kOwnDraws << 40)), faults_(rng_),
      network_(time_, rng_, faults_, troubles_, std::move(around.served)),
      checks_(all_checks_, store_, SubjectId::trusted("default")), redis_(time_, network_, checks_, options.planted) {
  Detectors::Surroundings with{time_, network_, rng_, checks_, options.planted};
  workers_ = std::make_unique<Detectors>(with, 2 + rng_.below(3));
  settings_.cluster = ClusterId::trusted("default");
  settings_.lease.ttl = std::array{6s, 6s, 9s, 12s}[static_cast<size_t>(rng_.below(4))];
  settings_.master.workers = workers_->addresses();
  settings_.master.capacity = rng_.chance(0.3) ? 3 : 100;
  settings_.master.plan_every = rng_.between(5s, 30s);
  placement::Policy& policy = settings_.master.placement;
  policy.cooldown = rng_.between(3s, 30s);
  policy.stable_after = 10s;
  policy.attempts_max = 1000;  // the world breaks workers far more often than they may fail
  policy.circuit.pause = {.first = 2s, .cap = kCircuitMax, .factor = 2.0, .jitter = 0.0};
  for (int n = 2 + rng_.below(2); n > 0; --n) {
    auto host = std::make_unique<ClusterHost>();
    host->index = static_cast<int>(hosts_.size());
    host->id = RunnerId::trusted(fmt::format("k{}", host->index));
    if (faults_.clock_rates) host->rate = 0.95 + 0.1 * rng_.unit();
    host->offset = Duration(rng_.below(1'000'000'000));
    hosts_.push_back(std::move(host));
  }
  for (int n = 1 + rng_.below(3); n > 0; --n) products_.push_back({.number = n});
}

ClusterWorld::~ClusterWorld() {
  for (auto& host : hosts_)
    if (host->process) die(*host->process);
}

void ClusterWorld::begin() {
  for (auto& host : hosts_) start_later(*host, rng_.between(0ms, 500ms));
  workers_->begin();
  change_rows();
  for (Product& product : products_) time_.in(rng_.between(1s, 15s), [this, &product] { listen(product); });
  for (TrueTime t = kSecond; t < troubles_.faults_end; t += rng_.between(400ms, 4s).count())
    time_.at(t, [this] { fault(); });
  for (TrueTime t = rng_.below(5'000'000); t < troubles_.faults_end; t += rng_.between(500ms, 12s).count())
    time_.at(t, [this] { change_rows(); });
  time_.at(troubles_.faults_end, [this] { heal(); });
  look_at_overlaps();
}

// ---- what is desired ----

void ClusterWorld::put_row(const std::string& id) {
  ClusterWish& wish = rows_[id];
  wish.site = SiteId::trusted("s");
  cluster::DesiredSubscription& wanted = wish.subscription;
  wanted.id = *cluster::Identifier::parse(id);
  wanted.tenant = kTenant;
  wanted.rtsp_url = Secret("rtsp://camera.example/" + wanted.id.camera);
  wanted.model_id = 1 + rng_.below(3);
  wanted.model_name = fmt::format("m{}", wanted.model_id);
  if (rng_.chance(0.3)) wanted.crop = cluster::Crop{0, 0, 100 + rng_.below(2), 100};
  // Runners had the camera meanwhile.
  if (rng_.chance(0.2)) wish.above = lease::Version::make(store_.state().epoch, store_.state().counter);
}

void ClusterWorld::change_rows() {
  for (int n = 1 + rng_.below(3); n > 0; --n) {
    std::string id = fmt::format("d{};q{}", rng_.below(2), rng_.below(3));
    if (rows_.size() > 1 && rng_.chance(0.4)) rows_.erase(id);
    else if (rows_.size() < 5 || rows_.contains(id)) put_row(id);
  }
  time_.trace("{} subscriptions are desired", rows_.size());
  announce_rows();
}

// ---- faults ----

void ClusterWorld::fault() {
  int which = rng_.below(20);
  ClusterHost& host = any_host();
  if (which < 8) break_process(host, which);
  else if (which < 12) break_redis(host, which);
  else if (which < 18) break_worker(which);
  else move_on(products_[static_cast<size_t>(rng_.below(static_cast<int>(products_.size())))]);
}

void ClusterWorld::break_process(ClusterHost& host, int which) {
  TrueTime now = time_.now();
  switch (which) {
    case 0:
    case 1:
      if (faults_.kills && !host.down) end(host, host.process);
      break;
    case 2:
      if (faults_.stops) stop(host);
      break;
    case 3:
      if (faults_.pauses && !host.down) {
        Duration d = rng_.between(100ms, 30s);
        time_.trace("backend {} stands still for {} ms", host.process->number, d / 1ms);
        time_.pause(host.process, d);
      }
      break;
    case 4: {
      Duration d = rng_.between(1s, 20s);
      if (!faults_.cuts) break;
      if (rng_.chance(0.7)) host.cut_out_until = now + d.count();
      if (rng_.chance(0.7)) host.cut_in_until = now + d.count();
      time_.trace("host {} is cut off from the control plane for {} ms", host.index, d / 1ms);
      break;
    }
    case 5:
      if (faults_.unauthorized) host.unauthorized_until = now + rng_.between(500ms, 10s).count();
      break;
    case 6:
      if (faults_.worker_cuts) {
        Duration d = rng_.between(500ms, 20s);
        time_.trace("host {} is cut off from the workers for {} ms", host.index, d / 1ms);
        host.workers_cut_until = now + d.count();
      }
      break;
    case 7:
      if (faults_.revocations && troubles_.store_answers(now)) {
        time_.trace("the cluster's lease is revoked");
        store_.revoke(settings_.cluster);
        checks_.revoked();
      }
      break;
    default: break;
  }
}

void ClusterWorld::break_redis(ClusterHost& host, int which) {
  TrueTime now = time_.now();
  switch (which) {
    case 8:
      if (faults_.redis_away) {
        Duration d = rng_.between(100ms, 15s);
        time_.trace("redis is away for {} ms", d / 1ms);
        redis_.away_until(now + d.count());
      }
      break;
    case 9:
      if (faults_.redis_cuts) {
        Duration d = rng_.between(500ms, 20s);
        time_.trace("host {} is cut off from redis for {} ms", host.index, d / 1ms);
        host.redis_cut_until = now + d.count();
      }
      break;
    case 10:
      if (faults_.redis_breaks) {
        time_.trace("the connections of host {} with redis break", host.index);
        redis_.break_connections(host);
      }
      break;
    case 11:
      if (faults_.redis_emptied) {
        bool restarted = rng_.chance(0.5);
        time_.trace("redis {} and has forgotten everything", restarted ? "is restarted" : "is emptied");
        redis_.empty(restarted);
      }
      break;
    default: break;
  }
}

void ClusterWorld::break_worker(int which) {
  int worker = rng_.below(workers_->count());
  switch (which) {
    case 12:
      if (faults_.worker_crashes) workers_->crash(worker, rng_.between(200ms, 10s));
      break;
    case 13:
      if (faults_.worker_pauses) workers_->freeze(worker, rng_.between(100ms, 30s));
      break;
    case 14:
      if (faults_.worker_cuts) workers_->cut(worker, rng_.between(500ms, 20s));
      break;
    case 15:
      if (faults_.half_open) workers_->break_a_connection(worker);
      break;
    case 16:
      if (faults_.deaf) workers_->deafen(worker, rng_.between(1s, 20s));
      break;
    case 17:
      if (faults_.loads) workers_->load(worker, 100 * rng_.unit());
      break;
    default: break;
  }
}

void ClusterWorld::heal() {
  for (auto& host : hosts_) {
    host->cut_in_until = host->cut_out_until = host->unauthorized_until = 0;
    host->redis_cut_until = host->workers_cut_until = 0;
  }
  redis_.heal();
  workers_->heal();
  change_rows();
}

// ---- what workers run at the same time ----

// A master that is connected to both, with a right, neither standing still, and nothing late between it and either.
bool ClusterWorld::one_could_tell(int one, int other) const {
  return std::ranges::any_of(hosts_, [&](const auto& host) {
    const ClusterProcessPtr& p = host->process;
    return !host->down && !p->paused && p->mind->backend->is_master() && checks_.may_act(time_.now(), p->number) &&
           workers_->hears(one, p) && workers_->hears(other, p);
  });
}

void ClusterWorld::look_at_overlaps() {
  for (int one = 0; one < workers_->count(); ++one)
    for (const auto& [id, run] : workers_->runs(one))
      for (int other = one + 1; other < workers_->count(); ++other)
        if (workers_->runs(other).contains(id))
          checks_.both_run(time_.now(), id, one, other, one_could_tell(one, other));
  checks_.overlaps_looked_at(time_.now());
  time_.in(kLookEvery, [this] { look_at_overlaps(); });
}

// ---- the rest ----

Duration ClusterWorld::rest_within() const {
  // A process that is down or stands still when the faults stop, a lease that runs out and is held back for a while, a
  // failover after which nothing changes hands for a minute, and workers that were not trusted for a while.
  return 45s + 2 * settings_.lease.ttl + 60s + kCircuitMax + 20s;
}

bool ClusterWorld::at_rest() const {
  size_t runs = 0;
  for (int worker = 0; worker < workers_->count(); ++worker) {
    runs += workers_->runs(worker).size();
    for (const auto& [id, run] : workers_->runs(worker)) {
      auto row = rows_.find(id);
      if (row == rows_.end() || row->second.subscription.model_id != run.model_id) return false;
      if (row->second.subscription.crop != run.crop || checks_.last_accepted(id) < time_.now() - kLately) return false;
    }
  }
  // Each once: as many as there are rows, all of different rows.
  std::set<std::string> different;
  for (int worker = 0; worker < workers_->count(); ++worker)
    for (const auto& [id, run] : workers_->runs(worker)) different.insert(id);
  if (runs != rows_.size() || different.size() != runs) return false;
  return std::ranges::all_of(products_, [&](const Product& product) {
    return product.hearing && checks_.last_told(product.number) > time_.now() - kLately;
  });
}

void ClusterWorld::describe() {
  for (const auto& [id, wish] : rows_)
    time_.trace("{} with model {} is desired; last accepted {:.1f}", id, wish.subscription.model_id,
                static_cast<double>(checks_.last_accepted(id)) / kSecond);
  for (int worker = 0; worker < workers_->count(); ++worker)
    for (const auto& [id, run] : workers_->runs(worker))
      time_.trace("worker {} runs {} with model {}", worker, id, run.model_id);
  for (const Product& product : products_)
    time_.trace("product {} {}, was told {} last, at {:.1f}", product.number, product.hearing ? "listens" : "is away",
                product.place, static_cast<double>(checks_.last_told(product.number)) / kSecond);
  for (const auto& host : hosts_) {
    if (host->down || host->process->paused) continue;
    auto& backend = *host->process->mind->backend;
    time_.trace("host {} backend {}{}", host->index, host->process->number, backend.is_master() ? ", the master" : "");
  }
}

}  // namespace weir::sim
