// The rules in SQL against the rules in C++: thousands of random requests must get the same answers from both.
#include "stores.hpp"

#include "weir/sqlite/core.hpp"

#include <random>

namespace weir::test {

using lease::Answer;
using lease::Batch;
using lease::Operation;

namespace {

// A store whose time the test moves.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::vector<Answer> apply(const Batch& batch) = 0;
  virtual void advance(Duration by) = 0;
  virtual void configure(const CameraId& camera, const Catalog::CameraEdit& change) = 0;
  virtual std::vector<Confirmation> append(const std::vector<event::Event>& events, const EventSpeaker& speaker) = 0;
  virtual void revoke(const CameraId& camera) = 0;
  virtual void cordon(const RunnerId& runner, bool to) = 0;
  virtual std::vector<lease::LeaseRow> release_all(const lease::Owner& owner) = 0;
  virtual std::vector<lease::LeaseRow> take_expired() = 0;
};
constexpr int kAll = 100;

Catalog::CameraEdit enabling(bool to) {
  return [to](const CameraRecord& r) -> Result<camera::Config> {
    camera::Config next = r.config;
    next.enabled = to;
    return next;
  };
}
// To a cluster, or where none is named to runners.
Catalog::CameraEdit giving_to(const ClusterId& cluster) {
  return [cluster](const CameraRecord& r) -> Result<camera::Config> {
    camera::Config next = r.config;
    next.processing = cluster.empty() ? camera::Processing::lease : camera::Processing::cluster;
    if (!cluster.empty()) next.cluster = cluster;
    return next;
  };
}

class PortTarget : public Target {
 public:
  explicit PortTarget(Kind kind) : stores(kind) {}
  std::vector<Answer> apply(const Batch& batch) override {
    auto answers = stores.run(stores.leases->apply(batch));
    EXPECT_TRUE(answers) << (answers ? "" : answers.error().message);
    return answers ? *answers : std::vector<Answer>{};
  }
  void configure(const CameraId& camera, const Catalog::CameraEdit& change) override {
    EXPECT_TRUE(stores.run(stores.catalog->edit_camera(camera, {}, change)));
  }
  std::vector<Confirmation> append(const std::vector<event::Event>& events, const EventSpeaker& speaker) override {
    auto answers = stores.run(stores.events->append(events, speaker));
    EXPECT_TRUE(answers);
    return answers ? *answers : std::vector<Confirmation>{};
  }
  void revoke(const CameraId& camera) override { EXPECT_TRUE(stores.run(stores.leases->revoke(camera, {}))); }
  void cordon(const RunnerId& runner, bool to) override {
    EXPECT_TRUE(stores.run(stores.catalog->change_runner(runner, {}, {to})));
  }
  std::vector<lease::LeaseRow> release_all(const lease::Owner& owner) override {
    auto released = stores.run(stores.leases->release_all(owner, "will"));
    EXPECT_TRUE(released);
    return released ? *released : std::vector<lease::LeaseRow>{};
  }
  std::vector<lease::LeaseRow> take_expired() override {
    auto expired = stores.run(stores.leases->take_expired(kAll));
    EXPECT_TRUE(expired);
    return expired ? *expired : std::vector<lease::LeaseRow>{};
  }
  Stores stores;
};

class FakeTarget final : public PortTarget {
 public:
  FakeTarget() : PortTarget(Kind::fake) {}
  void advance(Duration by) override { stores.fake->rows().state.lease_now += by; }
  std::vector<Answer> apply(const Batch& batch) override { return stand_still(), PortTarget::apply(batch); }
  std::vector<lease::LeaseRow> take_expired() override { return stand_still(), PortTarget::take_expired(); }

 private:
  // The model's time is moved by the test alone, however slow the machine is.
  void stand_still() { stores.fake->rows().state.mark = wall_now(); }
};

class PostgresTarget final : public PortTarget {
 public:
  PostgresTarget() : PortTarget(Kind::postgres) {}
  void advance(Duration by) override {
    std::string name = stores.database.substr(stores.database.rfind('/') + 1);
    EXPECT_TRUE((*PostgresServer::shared())
                    ->sql(name, fmt::format("UPDATE store_state SET lease_now = lease_now + {}", by.count())));
  }
};

class SqliteTarget final : public Target {
 public:
  template <class F>
  auto in(F work) {
    core.begin();
    auto result = work();
    core.commit();
    return result;
  }
  SqliteTarget() : core(":memory:", {}, [this] { return clock; }) {
    core.tick();
    in([&] {
      EXPECT_TRUE(core.add_tenant({TenantId::trusted("t1"), ""}));
      EXPECT_TRUE(core.add_site({SiteId::trusted("s1"), TenantId::trusted("t1"), ""}));
      return 0;
    });
  }
  std::vector<Answer> apply(const Batch& batch) override {
    return in([&] { return core.apply(batch); });
  }
  void advance(Duration by) override {
    for (; by > Duration(0); by -= 250ms) {
      clock += std::min<Duration>(by, 250ms);
      core.tick();
    }
  }
  void configure(const CameraId& camera, const Catalog::CameraEdit& change) override {
    EXPECT_TRUE(in([&] { return core.edit_camera(camera, {}, change); }));
  }
  std::vector<Confirmation> append(const std::vector<event::Event>& events, const EventSpeaker& speaker) override {
    return in([&] { return core.append(events, speaker); });
  }
  void revoke(const CameraId& camera) override {
    EXPECT_TRUE(in([&] { return core.revoke(camera, {}); }));
  }
  void cordon(const RunnerId& runner, bool to) override {
    EXPECT_TRUE(in([&] { return core.change_runner(runner, {}, {to}); }));
  }
  std::vector<lease::LeaseRow> release_all(const lease::Owner& owner) override {
    auto released = in([&] { return core.release_all(owner, "will"); });
    EXPECT_TRUE(released);
    return released ? *released : std::vector<lease::LeaseRow>{};
  }
  std::vector<lease::LeaseRow> take_expired() override {
    return in([&] { return core.take_expired(kAll); });
  }

  WallTime clock{std::chrono::hours(24 * 20000)};
  sqlite::Core core;
};

std::string text(const Answer& a) {
  // When it was acquired is each store's own time; whether it is said is not.
  return fmt::format("{} {}/{} {} version={:x} grant={:x} ttl={} why={} yours={} stolen={} replayed={} since={} "
                     "previous={}",
                     a.subject, a.tenant, a.site, std::string(json::write_value(a.outcome).as_string()), a.version.n,
                     a.grant.n, a.ttl.count(), static_cast<int>(a.why), a.yours, a.stolen, a.replayed,
                     a.acquired_at != WallTime{},
                     a.previous ? fmt::format("{}/{:x}", a.previous->boot, a.previous->grant.n) : "none");
}

// What was released or ran out, in no particular order.
std::string text(std::vector<lease::LeaseRow> rows) {
  std::ranges::sort(rows, {}, &lease::LeaseRow::subject);
  std::string out;
  for (const lease::LeaseRow& row : rows)
    out += fmt::format("{} of {}/{} version={:x} released={}; ", row.subject, row.owner.runner, row.owner.boot,
                       row.version.n, row.released);
  return out;
}

constexpr int kCameras = 4;

// Makes requests that are often nearly right: known versions, replayed keys, the wrong boot.
class RequestMaker {
 public:
  explicit RequestMaker(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  lease::Owner owner() { return test::owner("r" + std::to_string(below(3)), "b" + std::to_string(below(2))); }
  std::string key() { return below(4) == 0 ? "" : "k" + std::to_string(below(6)); }

  Batch batch() {
    Batch batch;
    batch.operation = static_cast<Operation>(below(3));
    batch.owner = owner();
    // With steps of 3 s no expiry ever falls close to a step, so the real time that passes does not matter.
    batch.ttl = below(2) == 0 ? 10500ms : 20500ms;
    if (int kind = below(6); kind < 3) {
      batch.kind = kind < 2 ? lease::Kind::stream : lease::Kind::cluster;
      batch.home = {TenantId::trusted(kind < 2 ? "t1" : ""), SiteId::trusted(kind < 2 ? "s1" : "")};
    }
    for (int n = 1; n <= kCameras; ++n) {
      if (below(2) == 0) continue;
      lease::Ask ask{subject(batch.kind, n)};
      ask.key = key();
      if (batch.operation == Operation::renew) ask.rotate = below(3) == 0;
      if (batch.operation == Operation::release) ask.avoid = below(3) == 0;
      if (below(5) > 0) ask.version = known_version(ask.subject);
      batch.asks.push_back(ask);
    }
    // Last in the order of ids, in which PostgreSQL draws versions; a stream is made of it.
    if (below(10) == 0) batch.asks.push_back({SubjectId::trusted("unknown"), lease::Version{5}});
    if (batch.asks.empty()) batch.asks.push_back({cam(1), known_version(cam(1)), false, "k1"});
    return batch;
  }
  // One of two clusters, or none.
  ClusterId cluster() {
    int n = below(3);
    return n == 0 ? ClusterId() : ClusterId::trusted("cluster-" + std::to_string(n));
  }
  // About one camera, under a version that it or a cluster was seen to have.
  event::Event event() {
    CameraId camera = cam(1 + below(kCameras));
    ClusterId of = cluster();
    std::string id = "e" + std::to_string(++events_);
    event::Event event{"detections.topic", "detections.t1.s1." + camera.str(), id,
                       fmt::format(R"({{"event_id":"{}"}})", id)};
    event.stamp = event::Stamp{camera, known_version(of.empty() ? camera : of)};
    return event;
  }
  void learn(const std::vector<Answer>& answers) {
    for (const Answer& answer : answers)
      if (answer.version.n != 0) seen_[answer.subject].push_back(answer.version);
  }

 private:
  // Now and then the id is one of another kind's.
  SubjectId subject(lease::Kind kind, int n) {
    if (below(15) == 0) kind = kind == lease::Kind::camera ? lease::Kind::stream : lease::Kind::camera;
    return kind == lease::Kind::camera ? cam(n)
                                       : SubjectId::trusted(fmt::format("{}-{}", lease::to_string(kind), n));
  }
  lease::Version known_version(const SubjectId& subject) {
    auto& seen = seen_[subject];
    if (seen.empty()) return {};
    if (below(200) == 0) return {seen.back().n + 5000};  // as after a failover that lost commits
    if (below(4) > 0) return seen.back();
    return seen[static_cast<size_t>(below(static_cast<int>(seen.size())))];
  }
  std::mt19937 random_;
  int events_ = 0;
  std::map<SubjectId, std::vector<lease::Version>> seen_;
};

void furnish(PortTarget& target) {
  target.stores.furnish(kCameras);
  for (int r = 0; r < 3; ++r)
    for (int b = 0; b < 2; ++b) {
      Runner runner;
      runner.id = owner("r" + std::to_string(r)).runner;
      runner.boot = BootId::trusted("b" + std::to_string(b));
      runner.capacity = 2;
      ASSERT_TRUE(target.stores.run(target.stores.catalog->register_runner(runner, "will")));
    }
}
void furnish(SqliteTarget& target) {
  target.in([&] {
    for (int n = 1; n <= kCameras; ++n) EXPECT_TRUE(target.core.add_camera(camera_config(cam(n))));
    for (int r = 0; r < 3; ++r)
      for (int b = 0; b < 2; ++b) {
        Runner runner;
        runner.id = owner("r" + std::to_string(r)).runner;
        runner.boot = BootId::trusted("b" + std::to_string(b));
        runner.capacity = 2;
        EXPECT_TRUE(target.core.register_runner(runner, "will"));
      }
    return 0;
  });
}

void compare(Target& model, Target& real, unsigned seed, int steps) {
  RequestMaker make(seed);
  for (int step = 0; step < steps; ++step) {
    std::string where = fmt::format("seed {} step {}", seed, step);
    switch (make.below(28)) {
      case 0: {
        // The two clocks may differ by half a second. No sum of these steps comes that close to a limit in the rules
        // (10, 10.5, 20.5, 30, 60, 120 s …), where the two would then rightly differ.
        Duration by = 3100ms * (1 + make.below(5));
        model.advance(by);
        real.advance(by);
        break;
      }
      case 1: {
        CameraId camera = cam(1 + make.below(kCameras));
        bool to = make.below(3) > 0;
        model.configure(camera, enabling(to));
        real.configure(camera, enabling(to));
        break;
      }
      case 2: {
        CameraId camera = cam(1 + make.below(kCameras));
        model.revoke(camera);
        real.revoke(camera);
        break;
      }
      case 3: {
        RunnerId runner = make.owner().runner;
        bool to = make.below(3) == 0;
        model.cordon(runner, to);
        real.cordon(runner, to);
        break;
      }
      case 4: {
        if (make.below(12) != 0) break;
        lease::Owner dead = make.owner();
        ASSERT_EQ(text(model.release_all(dead)), text(real.release_all(dead))) << where;
        break;
      }
      case 6: {
        CameraId camera = cam(1 + make.below(kCameras));
        ClusterId cluster = make.cluster();
        model.configure(camera, giving_to(cluster));
        real.configure(camera, giving_to(cluster));
        break;
      }
      case 7: case 8: {
        std::vector<event::Event> events = {make.event(), make.event(), make.event()};
        lease::Owner who = make.owner();
        EventSpeaker speaker{who.runner, make.below(2) == 0 ? BootId() : who.boot};
        ASSERT_EQ(model.append(events, speaker), real.append(events, speaker)) << where;
        break;
      }
      case 5: ASSERT_EQ(text(model.take_expired()), text(real.take_expired())) << where; break;
      default: {
        Batch batch = make.batch();
        auto expected = model.apply(batch);
        auto got = real.apply(batch);
        ASSERT_EQ(expected.size(), got.size()) << where;
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(text(expected[i]), text(got[i]))
              << where << " operation " << static_cast<int>(batch.operation) << " owner " << batch.owner.runner.str()
              << "/" << batch.owner.boot.str() << " key " << batch.asks[i].key;
        make.learn(got);
      }
    }
  }
}

}  // namespace

TEST(Differential, SqliteAnswersAsTheModel) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    FakeTarget model;
    SqliteTarget real;
    furnish(model);
    furnish(real);
    compare(model, real, seed, 400);
    if (HasFatalFailure()) return;
  }
}

TEST(Differential, PostgresAnswersAsTheModel) {
  auto server = PostgresServer::shared();
  SKIP_WITHOUT_POSTGRES(server);
  for (unsigned seed = 1; seed <= 12; ++seed) {
    FakeTarget model;
    PostgresTarget real;
    furnish(model);
    furnish(real);
    compare(model, real, seed, 250);
    if (HasFatalFailure()) return;
  }
}

}  // namespace weir::test
