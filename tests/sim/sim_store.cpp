#include "sim_store.hpp"

#include "adapters/sqlite/streams.hpp"
#include "run.hpp"

#include <deque>

namespace weir::sim {

using lease::Answer;
using lease::Batch;
using lease::LeaseRow;
using lease::Operation;
using lease::Outcome;

namespace {

constexpr int kStreamsMax = 100;

class FakeSimStore final : public SimStore {
 public:
  FakeSimStore(std::function<WallTime()> clock, const SimStoreConfig& config)
      : planted_(config.planted), clock_(clock), store_(clock) {
    Site site{config.site, kTenant, "", {config.bucket_capacity, config.bucket_capacity, config.bucket_refill_per_min}};
    store_.rows().sites[config.site] = site;
    for (const CameraId& camera : config.cameras) store_.add_camera_now(camera, config.site);
  }

  std::vector<Answer> apply(const Batch& batch) override {
    tick();
    Batch mutated = batch;
    auto& leases = store_.rows().leases;
    std::map<CameraId, LeaseRow> before;
    for (auto& ask : mutated.asks) {
      auto known = leases.find(ask.subject);
      if (known == leases.end()) continue;  // a stream that nobody has asked for yet
      LeaseRow& row = known->second;
      before.emplace(ask.subject, row);
      if (planted_ == Planted::no_compare_and_set && batch.operation == Operation::renew && !row.released) {
        ask.version = row.version;
        row.owner = batch.owner;
      }
      if (planted_ == Planted::renew_after_release && batch.operation == Operation::renew && row.owner == batch.owner &&
          row.released && !row.revoked && ask.version) {
        row.released = false;
        row.version = *ask.version;
      }
    }
    auto answers = store_.apply_now(mutated).answers;
    if (planted_ == Planted::replay_does_not_renew)
      for (const Answer& answer : answers) {
        LeaseRow& row = leases.at(answer.subject);
        const LeaseRow& old = before[answer.subject];
        bool replay = (answer.outcome == Outcome::granted || answer.outcome == Outcome::rotated) && row.version == old.version;
        if (replay) row.expires = old.expires;
      }
    return answers;
  }

  void tick() override {
    lease::StoreState& state = store_.rows().state;
    Duration passed = clock_() - state.mark;
    if ((planted_ == Planted::time_runs_in_outage && passed > lease::kStepMax) ||
        (planted_ == Planted::store_clock_step && passed > lease::kGapMin)) {
      state.lease_now += passed;  // without the clamp, and without a hold
      state.mark = clock_();
      return;
    }
    store_.tick_now();
  }

  void release_all(const lease::Owner& owner) override { (void)store_.release_all_now(owner, "will"); }
  bool consume(const SiteId& site, const CameraId& camera, lease::Version grant) override {
    if (planted_ == Planted::bucket_refills_twice) store_.rows().sites.at(site).budget.tokens += 0.9;
    auto answer = store_.consume_now(site, {}, BudgetUse{camera, grant});
    return answer && answer->granted;
  }
  void revoke(const CameraId& camera) override { (void)store_.revoke_now(camera); }
  void register_boot(const lease::Owner& owner) override { store_.rows().boots[owner] = {"will", false}; }
  void heartbeat(const RunnerId& runner) override { store_.heartbeat_now(runner, 100); }
  LeaseRow row(const SubjectId& subject) override {
    auto known = store_.rows().leases.find(subject);
    return known == store_.rows().leases.end() ? LeaseRow{subject} : known->second;
  }
  const lease::StoreState& state() override { return store_.rows().state; }
  double tokens(const SiteId& site) override { return store_.rows().sites.at(site).budget.tokens; }
  Result<Nothing> tell(const StreamTold& told) override { return test::run(io_, store_.tell_stream(told)); }
  Result<StreamRecord> record(const SubjectId& id) override { return test::run(io_, store_.show_stream(id, {})); }
  std::vector<StreamRecord> records() override { return *test::run(io_, store_.list_streams({}, {}, kStreamsMax)); }

  bool can_fail_over() const override { return true; }
  void remember(TrueTime now) override {
    history_.emplace_back(now, store_.rows());
    while (history_.front().first < now - 2'000'000) history_.pop_front();
  }
  // The oldest remembered state becomes the present. The new primary's timeline differs, so before anything is drawn
  // the epoch rises.
  void fail_over(TrueTime) override {
    if (history_.empty()) return;
    store_.rows() = history_.front().second;
    history_.clear();
    if (planted_ != Planted::version_reuse) store_.open_epoch_now();
  }

 private:
  const Planted planted_;
  const std::function<WallTime()> clock_;
  test::FakeStore store_;
  boost::asio::io_context io_{1};  // on which the store's own coroutines run, each to its end
  std::deque<std::pair<TrueTime, test::FakeRows>> history_;
};

class SqliteSimStore final : public SimStore {
 public:
  SqliteSimStore(std::function<WallTime()> clock, const SimStoreConfig& config)
      : clock_(clock), core_(":memory:", {}, std::move(clock)) {
    in([&] {
      (void)core_.add_tenant({kTenant, ""});
      (void)core_.add_site({config.site, kTenant, "",
                            {config.bucket_capacity, config.bucket_capacity, config.bucket_refill_per_min}});
      for (const CameraId& id : config.cameras) {
        camera::Config camera;
        camera.camera = id;
        camera.tenant = kTenant;
        camera.site = config.site;
        camera.rtsp_url = Secret("rtsp://camera.example/1");
        WEIR_ASSERT(core_.add_camera(camera));
      }
    });
  }
  std::vector<Answer> apply(const Batch& batch) override {
    std::vector<Answer> answers;
    in([&] { answers = core_.apply(batch); });
    return answers;
  }
  void tick() override { core_.tick(); }
  void release_all(const lease::Owner& owner) override {
    in([&] { (void)core_.release_all(owner, "will"); });
  }
  bool consume(const SiteId& site, const CameraId& camera, lease::Version grant) override {
    bool granted = false;
    in([&] {
      auto answer = core_.consume(site, {}, BudgetUse{camera, grant});
      granted = answer && answer->granted;
    });
    return granted;
  }
  void revoke(const CameraId& camera) override {
    in([&] { (void)core_.revoke(camera, {}); });
  }
  void register_boot(const lease::Owner& owner) override {
    Runner runner;
    runner.id = owner.runner;
    runner.boot = owner.boot;
    runner.capacity = 100;
    in([&] { (void)core_.register_runner(runner, "will"); });
  }
  void heartbeat(const RunnerId& runner) override {
    in([&] { (void)core_.heartbeat(runner, {}, {}, 0); });
  }
  LeaseRow row(const SubjectId& subject) override {
    auto known = core_.reader().show(subject, {}, {}, {});
    return known ? known->row : LeaseRow{subject};
  }
  const lease::StoreState& state() override { return core_.state(); }
  double tokens(const SiteId& site) override {
    return core_.reader().show_site(site, {}, core_.state().lease_now)->budget.tokens;
  }
  Result<Nothing> tell(const StreamTold& told) override {
    std::optional<Result<Nothing>> answer;
    in([&] { answer = sqlite::tell_stream(core_.db(), clock_(), core_.state().epoch, told); });
    return *answer;
  }
  Result<StreamRecord> record(const SubjectId& id) override { return core_.reader().show_stream(id, {}, core_.now()); }
  std::vector<StreamRecord> records() override {
    return core_.reader().list_streams({}, {}, kStreamsMax, core_.now());
  }

 private:
  template <class F>
  void in(F work) {
    core_.begin();
    work();
    core_.commit();
  }
  const std::function<WallTime()> clock_;
  sqlite::Core core_;
};

}  // namespace

std::unique_ptr<SimStore> make_fake_store(std::function<WallTime()> clock, const SimStoreConfig& config) {
  return std::make_unique<FakeSimStore>(std::move(clock), config);
}
std::unique_ptr<SimStore> make_sqlite_store(std::function<WallTime()> clock, const SimStoreConfig& config) {
  return std::make_unique<SqliteSimStore>(std::move(clock), config);
}

}  // namespace weir::sim
