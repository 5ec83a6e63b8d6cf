// The publisher under random faults, many seeds: order, nothing twice, nothing lost that was not counted.
#include "publisher_testing.hpp"

#include "weir/base/log.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::worker {

namespace {

// One world: a bus that fails, leases that run out, move on and are taken, and cameras that talk all the time.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    bus_.decide = [this] { return healed_ ? Fate::answer : fate(); };
    for (int c = 0; c < 3; ++c) cameras_.push_back({CameraId::trusted(fmt::format("cam-{}", c))});
    start();
  }
  World(const World&) = delete;

  void run() {
    for (int step = 0; step < 400; ++step) {
      act();
      int roll = draw(10);
      clock_.run(clock_.now() + Duration(roll < 4 ? 0 : roll < 8 ? draw(50'000) : draw(2'000'000)));
    }
    heal();
    check();
  }

 private:
  struct Camera {
    CameraId id;
    lease::Version version{}, grant{};
    int said = 0;
    std::set<std::string> lost_with_tenure = {};  // said under a tenure that ended: may be dropped
    std::vector<std::string> all = {};
  };

  int draw(int below) { return std::uniform_int_distribution(0, below - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution(0.0, 1.0)(random_) < p; }
  Fate fate() {
    bus_.blocks = chance(0.2) ? Duration(draw(3'000'000)) : Duration(draw(5'000));
    bus_.answers_after = chance(0.3) ? Duration(draw(2'000'000)) : Duration(draw(20'000));
    int roll = draw(20);
    if (roll < 3) return Fate::refuse_connection;
    if (roll < 5) return Fate::lose_reply;
    return roll == 5 ? Fate::hang : roll == 6 ? Fate::hang_after : Fate::answer;
  }
  lease::Tenure tenure(const Camera& camera) const { return {BootId::trusted("boot"), camera.grant}; }

  void start() {
    spool_ = std::make_unique<FakeSpool>(disk_);
    publisher_ = std::make_unique<Publisher>(io_, clock_, bus_, *spool_);
    asio::co_spawn(io_, publisher_->run(), asio::detached);
  }
  // A clean end and a new process; the manager gives it versions that nobody was given.
  void restart() {
    asio::co_spawn(io_, publisher_->flush_and_stop(clock_.now() + Duration(draw(3'000'000))), asio::detached);
    clock_.run(clock_.now() + 20s);
    count_dropped();
    start();
    for (Camera& camera : cameras_) rotate(camera);
  }
  void count_dropped() {
    PublisherCounters counters = publisher_->counters();
    for (std::uint64_t each : counters.dropped) dropped_ += each;
  }

  void act() {
    Camera& camera = cameras_[static_cast<size_t>(draw(3))];
    switch (draw(13)) {
      case 6: disk_.full = chance(0.3); return;
      case 0: return rotate(camera);
      case 1: return grant(camera, chance(0.5));
      case 2: return chance(0.2) && !disk_.full ? restart() : void();
      case 3:
        // The row moves on first; this process hears of it later, by another step.
        bus_.row[camera.id] = {++versions_};
        return;
      case 4:
      case 5: return renew(camera);
      default: return talk(camera);
    }
  }
  void talk(Camera& camera) {
    for (int n = draw(4); n >= 0; --n) {
      std::string id = fmt::format("{}/{}", camera.id, camera.said);
      event::Event event{.topic = "t", .routing_key = "k", .event_id = id, .payload = "{}"};
      event.captured = WallTime(Duration(camera.said++));
      camera.all.push_back(id);
      publisher_->publish(camera.id, std::move(event));
    }
  }
  void renew(Camera& camera) {
    if (camera.version.n == 0) return;
    extend(camera, Duration(1'000'000 + draw(5'000'000)));
  }
  void extend(Camera& camera, Duration lasts) {
    publisher_->set_lease(camera.id, camera.version, tenure(camera), clock_.now() + lasts, {}, {}, true);
  }
  void rotate(Camera& camera) {
    if (camera.version.n == 0) return;
    hand_over(camera, {});
  }
  void grant(Camera& camera, bool adopt) {
    lease::Tenure before = tenure(camera);
    bool first = camera.grant.n == 0;
    camera.grant = {versions_ + 1};
    if (!adopt || first) camera.lost_with_tenure.insert(camera.all.begin(), camera.all.end());
    hand_over(camera, adopt && !first ? std::optional(before) : std::nullopt);
  }
  void hand_over(Camera& camera, std::optional<lease::Tenure> adopt) {
    camera.version = {++versions_};
    bus_.row[camera.id] = camera.version;
    publisher_->set_lease(camera.id, camera.version, tenure(camera), clock_.now() + Duration(draw(6'000'000)), adopt);
  }

  // The faults stop, everybody gets a lease of the tenure they have: what was not dropped must arrive.
  void heal() {
    healed_ = true;
    disk_.full = false;
    bus_.blocks = bus_.answers_after = 0s;
    for (Camera& camera : cameras_)
      if (camera.version.n == 0) grant(camera, false);
      else rotate(camera);
    for (Camera& camera : cameras_) extend(camera, 1h);
    clock_.run(clock_.now() + 1min);
    for (Camera& camera : cameras_) talk(camera);
    clock_.run(clock_.now() + 1min);
    count_dropped();
  }

  void check() {
    size_t missing = 0;
    for (const Camera& camera : cameras_) {
      std::vector<std::string> heard = bus_.ids(camera.id);
      std::map<std::string, size_t> place;
      for (size_t n = 0; n < camera.all.size(); ++n) place[camera.all[n]] = n;
      lease::Version highest{};
      for (size_t n = 1; n < heard.size(); ++n) ASSERT_LT(place.at(heard[n - 1]), place.at(heard[n])) << heard[n];
      for (const event::Event& event : bus_.accepted) {
        if (event.stamp->camera != camera.id) continue;
        ASSERT_LE(highest, event.stamp->version);
        highest = event.stamp->version;
      }
      std::set<std::string> arrived(heard.begin(), heard.end());
      ASSERT_EQ(arrived.size(), heard.size());
      for (const std::string& id : camera.all) {
        if (arrived.contains(id)) continue;
        ++missing;
        ASSERT_TRUE(camera.lost_with_tenure.contains(id)) << id << " is lost although its tenure stayed";
      }
      ASSERT_EQ(heard.back(), camera.all.back());
    }
    ASSERT_LE(missing, dropped_);
    ASSERT_EQ(bus_.at_once, 1);
    ASSERT_EQ(bus_.late, 0);
    ASSERT_TRUE(disk_.logs.empty()) << "no spool is left";
  }

  std::mt19937 random_;
  asio::io_context io_;
  VirtualClock clock_{io_};
  FakeBus bus_{clock_};
  FakeDisk disk_;
  std::unique_ptr<FakeSpool> spool_;
  std::unique_ptr<Publisher> publisher_;
  std::vector<Camera> cameras_;
  std::int64_t versions_ = 0;
  std::uint64_t dropped_ = 0;
  bool healed_ = false;
};

}  // namespace

TEST(PublisherProperty, AnyFaults_OrderIsKept_NothingIsDoubledOrLostUncounted) {
  log::set_level(log::Level::off);
  for (unsigned seed = 1; seed <= 200 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);
    world.run();
  }
  log::set_level(log::Level::info);
}

}  // namespace weir::worker
