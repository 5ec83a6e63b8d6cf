// The media server in the simulated world, as MediaMTX is: it calls each hook once, its newest publisher of a path
// closes the earlier one with all its readers, and a list that it tells in pages may lack a path.
#include "streams.hpp"

namespace weir::sim {

// ---- as an orchestrator asks it ----

class StreamWorld::Media final : public MediaServer {
 public:
  Media(StreamWorld& world, const StreamHost& host, OrchestratorPtr o) : world_(world), host_(host), o_(std::move(o)) {}

  Async<std::vector<MediaPath>> list(std::function<bool(std::string_view)> wanted) override {
    return consult<std::vector<MediaPath>>([world = &world_, wanted = std::move(wanted)] {
      std::vector<MediaPath> out;
      for (MediaPath& path : world->paths())
        if (wanted(path.name) && !world->left_out()) out.push_back(std::move(path));
      return out;
    });
  }
  Async<std::optional<MediaPath>> find(std::string name) override {
    return consult<std::optional<MediaPath>>([world = &world_, name = std::move(name)]() -> std::optional<MediaPath> {
      for (MediaPath& path : world->paths())
        if (path.name == name) return path;
      return std::nullopt;
    });
  }
  Async<Nothing> kick(MediaClient) override {
    return ask<Nothing>([](const Done<Nothing>& done) { done(ok()); });
  }

 private:
  // The server looks also where the orchestrator that asked has died meanwhile.
  template <class T>
  Async<T> consult(std::function<T()> look) {
    return ask<T>([this, look = std::move(look)](Done<T> done) {
      world_.time_.in(world_.rng_.between(1ms, 30ms), [&world = world_, &host = host_, o = o_, look, done] {
        // Planted: nobody but the hooks tells of publishers.
        bool away = world.time_.now() < host.media_away_until || world.is_planted(Planted::hooks_alone);
        Result<T> answer = Error{Errc::unavailable, "away", "the media server does not answer"};
        if (!away) answer = look();
        world.think(o, [done, answer] { done(answer); });
      });
    });
  }
  StreamWorld& world_;
  const StreamHost& host_;
  const OrchestratorPtr o_;
};

std::unique_ptr<MediaServer> StreamWorld::media_for(const StreamHost& host, const OrchestratorPtr& o) {
  return std::make_unique<Media>(*this, host, o);
}

std::vector<MediaPath> StreamWorld::paths() const {
  std::vector<MediaPath> out;
  for (const Channel& channel : channels_) {
    if (!channel.source.empty())
      out.push_back({.name = stream::input_path(channel.id), .ready = true, .source_type = "rtspSession",
                     .source_id = channel.source});
    if (channel.out)
      out.push_back({.name = stream::output_path(channel.id), .ready = true, .source_type = "rtspSession",
                     .source_id = fmt::format("w{}", channel.out->process)});
  }
  return out;
}

// ---- workers and forwarders ----

Channel& StreamWorld::channel_of(const Child& c) {
  return *std::ranges::find_if(channels_, [&](const Channel& each) { return each.id.str() == c.stream.str(); });
}

void StreamWorld::connect(const ChildPtr& c) {
  time_.trace("child {} connects under version {:x}", c->process, c->told.n);
  checks_.opened(time_.now(), c->sender());
  c->open = true;
  if (!c->worker()) return;
  Channel& channel = channel_of(*c);
  if (ChildPtr earlier = channel.out) disconnect(earlier);
  channel.out = c;
}

void StreamWorld::disconnect(const ChildPtr& c) {
  if (!std::exchange(c->open, false)) return;
  checks_.closed(c->process);
  Channel& channel = channel_of(*c);
  if (!c->worker() || channel.out != c) return;
  channel.out.reset();
  end_readers(channel, stream::Role::forwarder);
}

// Of `in` workers are the readers, of `out` forwarders.
void StreamWorld::end_readers(const Channel& channel, stream::Role role) {
  for (auto& host : hosts_)
    for (const ChildPtr& c : std::vector(host->processes))
      if (c->role == role && c->stream.str() == channel.id.str()) disconnect(c);
}

// ---- publishers ----

void StreamWorld::publish(Channel& channel) {
  std::string before = std::exchange(channel.source, fmt::format("p{}", ++sources_));
  time_.trace("{}: {} publishes", channel.id, channel.source);
  end_readers(channel, stream::Role::worker);
  if (!before.empty()) call_hooks(channel, before, false);
  call_hooks(channel, channel.source, true);
}

void StreamWorld::unpublish(Channel& channel) {
  if (channel.source.empty()) return;
  time_.trace("{}: {} is gone", channel.id, channel.source);
  std::string before = std::exchange(channel.source, {});
  end_readers(channel, stream::Role::worker);
  call_hooks(channel, before, false);
}

// Nobody is told that a server's publishers are gone with it.
void StreamWorld::restart_media() {
  time_.trace("the media server is restarted");
  for (Channel& channel : channels_) {
    bool was_there = !std::exchange(channel.source, {}).empty();
    end_readers(channel, stream::Role::worker);
    if (!was_there) continue;
    time_.in(rng_.between(500ms, 5s), [this, &channel] {
      if (channel.source.empty()) publish(channel);
    });
  }
}

// Each orchestrator has its own: a fifth is lost, a fifth comes twice, and some overtake others.
void StreamWorld::call_hooks(const Channel& channel, const std::string& source, bool ready) {
  for (auto& host : hosts_) {
    double luck = rng_.unit();
    for (int copies = luck < 0.2 ? 0 : luck < 0.4 ? 2 : 1; copies > 0; --copies) {
      Duration delay = rng_.chance(0.3) ? rng_.between(50ms, 3s) : rng_.between(1ms, 40ms);
      time_.in(delay, [this, h = host.get(), hook = stream::Hook{channel.id, {"rtspSession", source, {}}}, ready] {
        if (h->down) return;
        think(h->orchestrator, [o = h->orchestrator, hook, ready] { o->mind->orchestrator.hear(hook, ready); });
      });
    }
  }
}

}  // namespace weir::sim
