// Setting the streams' part of the world up, breaking it, and judging its rest.
#include "streams.hpp"

#include <array>
#include <filesystem>

namespace weir::sim {

namespace {

constexpr std::uint64_t kOwnDraws = 0x57EA;  // so that a seed's runners do not depend on its streams
constexpr double kShare = 0.125;             // of the seeds have streams

bool about_streams(Planted fault) {
  return std::ranges::find(kPlantedInStreams, fault) != kPlantedInStreams.end();
}

}  // namespace

bool StreamWorld::exists(const Options& options) {
  if (options.planted != Planted::none) return about_streams(options.planted);
  if (options.streams) return true;
  return Rng(options.seed ^ (kOwnDraws << 32)).chance(kShare);
}

StreamWorld::StreamWorld(const Options& options, Surroundings around)
    : options_(options), time_(around.time), store_(around.store), all_checks_(around.checks),
      troubles_(around.troubles), rng_(options.seed ^ (kOwnDraws << 40)), faults_(rng_),
      network_(time_, rng_, faults_, troubles_, std::move(around.served)), checks_(all_checks_, store_) {
  if (is_planted(Planted::two_continue_a_boot)) faults_.copies = true;
  if (is_planted(Planted::extended_from_memory)) faults_.kills = true;
  lease_.ttl = std::array{6s, 6s, 12s, 30s}[static_cast<size_t>(rng_.below(4))];
  policy_.disconnect_grace = rng_.between(1s, 6s);
  for (restart::WindowPolicy* window : {&policy_.worker, &policy_.forwarder}) {
    window->backoff = {.first = 200ms, .cap = 5s};
    window->restarts_max = 1000;  // the world ends children far more often than a window allows
  }
  foreign_worker_ = rng_.chance(0.3);
  for (int n = 1 + rng_.below(3); n > 0; --n)
    channels_.push_back({.id = stream::StreamId::trusted(fmt::format("s{}", n)), .forwarded = rng_.chance(0.4)});
  for (int n = is_planted(Planted::two_continue_a_boot) ? 2 : 1 + rng_.below(3); n > 0; --n) {
    auto host = std::make_unique<StreamHost>();
    host->index = static_cast<int>(hosts_.size());
    host->id = RunnerId::trusted(fmt::format("o{}", host->index));
    if (faults_.clock_rates) host->rate = 0.95 + 0.1 * rng_.unit();
    host->offset = Duration(rng_.below(1'000'000'000));
    hosts_.push_back(std::move(host));
  }
}

StreamWorld::~StreamWorld() {
  for (auto& host : hosts_)
    if (host->orchestrator) die(*host->orchestrator);
}

void StreamWorld::begin() {
  for (auto& host : hosts_) start_later(*host, rng_.between(0ms, 500ms));
  for (TrueTime t = kSecond; t < troubles_.faults_end; t += rng_.between(400ms, 4s).count())
    time_.at(t, [this] { fault(); });
  for (Channel& channel : channels_)
    for (TrueTime t = rng_.below(2'000'000); t < troubles_.faults_end; t += rng_.between(1s, 20s).count())
      time_.at(t, [this, &channel] {
        if (rng_.chance(0.75)) publish(channel);
        else unpublish(channel);
      });
  time_.at(troubles_.faults_end, [this] { heal(); });
}

// ---- faults ----

void StreamWorld::kill(StreamHost& host, Duration until_restart) {
  if (host.down) return;
  time_.trace("host {}: its orchestrator is killed", host.index);
  die(*host.orchestrator);
  host.down = true;
  start_later(host, until_restart);
}

void StreamWorld::reboot(StreamHost& host) {
  time_.trace("host {} is restarted", host.index);
  kill(host, rng_.between(1s, 8s));
  ++host.kernel;
  for (const ChildPtr& c : std::vector(host.processes)) end_child(host, c, std::nullopt);
}

// Whose host gets a copy of another's state folder, with its name in the settings, loses its own children's records.
void StreamWorld::copy_folder(const StreamHost& from, StreamHost& to) {
  if (&from == &to || from.down) return;
  time_.trace("host {} gets a copy of the state folder of host {}", to.index, from.index);
  kill(to, rng_.between(500ms, 6s));
  std::filesystem::copy_file(from.disk.folder() + "/boot", to.disk.folder() + "/boot",
                             std::filesystem::copy_options::overwrite_existing);
  to.id = from.id;
  to.copied = from.orchestrator->owner.boot;
  to.records.clear();
}

void StreamWorld::freeze(StreamHost& host, bool children_too, Duration how_long) {
  time_.trace("host {}: its orchestrator {} for {} ms", host.index,
              children_too ? "and its children stand still" : "stands still", how_long / 1ms);
  if (!host.down) time_.pause(host.orchestrator, how_long);
  if (!children_too) return;
  for (const ChildPtr& c : host.processes) time_.pause(c, how_long);
}

void StreamWorld::fault() {
  StreamHost& host = any_host();
  Channel& channel = channels_[static_cast<size_t>(rng_.below(static_cast<int>(channels_.size())))];
  int which = rng_.below(15);
  if (which < 11) break_host(host, which);
  else break_stream(channel, which);
}

void StreamWorld::break_host(StreamHost& host, int which) {
  TrueTime now = time_.now();
  switch (which) {
    case 0:
    case 1:
    case 10:  // it is back soon, so that its children live, or late
      if (faults_.kills) kill(host, rng_.chance(0.6) ? rng_.between(100ms, 3s) : rng_.between(3s, 45s));
      break;
    case 2:
      if (faults_.pauses) freeze(host, rng_.chance(0.4), rng_.between(100ms, 40s));
      break;
    case 3: {
      Duration d = rng_.between(1s, 20s);
      if (!faults_.cuts) break;
      if (rng_.chance(0.7)) host.cut_out_until = now + d.count();
      if (rng_.chance(0.7)) host.cut_in_until = now + d.count();
      time_.trace("host {} is cut off for {} ms", host.index, d / 1ms);
      break;
    }
    case 4:
      if (faults_.unauthorized) host.unauthorized_until = now + rng_.between(500ms, 10s).count();
      break;
    case 5:
      if (faults_.reboots) reboot(host);
      break;
    case 6:
      if (faults_.copies) copy_folder(any_host(), host);
      break;
    case 7:
      if (faults_.media_outages) host.media_away_until = now + rng_.between(500ms, 20s).count();
      break;
    case 8:
      if (faults_.kills && !host.down) start(host);
      break;
    case 9:
      if (faults_.crashes && !host.processes.empty()) {
        auto victim = host.processes[static_cast<size_t>(rng_.below(static_cast<int>(host.processes.size())))];
        end_child(host, victim, rng_.chance(0.5) ? 139 : 50);
      }
      break;
    default: break;
  }
}

void StreamWorld::break_stream(Channel& channel, int which) {
  auto subject = SubjectId::trusted(channel.id.str());
  switch (which) {
    case 11:
      if (faults_.media_restarts) restart_media();
      break;
    case 12:
      if (faults_.revocations && troubles_.store_answers(time_.now())) {
        time_.trace("{} is revoked", channel.id);
        store_.revoke(subject);
        checks_.revoked(subject, store_.row(subject).version);
      }
      break;
    case 13:
      if (!faults_.orders) break;
      for (auto& host : hosts_)
        if (auto o = host->orchestrator; !host->down && o->orders)
          think(o, [o, subject] { o->orders({.id = subject, .what = "restart"}); });
      break;
    case 14:
      if (faults_.blips) {
        unpublish(channel);
        time_.in(rng_.between(50ms, 8s), [this, &channel] {
          if (network_.faulty() && channel.source.empty()) publish(channel);
        });
      }
      break;
    default: break;
  }
}

void StreamWorld::heal() {
  for (auto& host : hosts_) {
    host->cut_in_until = host->cut_out_until = host->unauthorized_until = 0;
    host->media_away_until = 0;
  }
  for (Channel& channel : channels_) {
    if (rng_.chance(0.7)) publish(channel);
    else unpublish(channel);
  }
}

// ---- the rest ----

Duration StreamWorld::rest_within() const {
  // An orchestrator that is down or stands still when the faults stop, a lease that runs out and is held back for a
  // while, a child that nobody knows and that its keeper ends 35 s after its deadline, and the delays of restarts.
  return 45s + 2 * lease_.ttl + 60s;
}

bool StreamWorld::at_rest() const {
  return std::ranges::all_of(channels_, [&](const Channel& channel) {
    int workers = 0, forwarders = 0, sending = 0;
    for (const auto& host : hosts_)
      for (const ChildPtr& c : host->processes) {
        if (c->stream.str() != channel.id.str()) continue;
        ++(c->worker() ? workers : forwarders);
        sending += c->open ? 1 : 0;
      }
    int worker_wanted = channel.source.empty() ? 0 : 1, forwarder_wanted = channel.forwarded ? worker_wanted : 0;
    lease::LeaseRow row = store_.row(SubjectId::trusted(channel.id.str()));
    if (worker_wanted == 0 && !row.released && row.expires > store_.state().lease_now) return false;
    return workers == worker_wanted && forwarders == forwarder_wanted && sending == worker_wanted + forwarder_wanted;
  });
}

void StreamWorld::describe() {
  for (const Channel& channel : channels_)
    time_.trace("{}: published by {}, {}", channel.id, channel.source.empty() ? "nobody" : channel.source,
                channel.forwarded ? "to be forwarded" : "not to be forwarded");
  for (const auto& host : hosts_) {
    for (const ChildPtr& c : host->processes)
      time_.trace("host {} child {} of {} {}{}", host->index, c->process, c->spec.name, c->open ? "sends" : "is silent",
                  c->paused ? " and stands still" : "");
    if (host->down || host->orchestrator->paused) continue;
    for (const auto& view : host->orchestrator->mind->orchestrator.views())
      time_.trace("host {} {}", host->index, boost::json::serialize(view));
  }
}

}  // namespace weir::sim
