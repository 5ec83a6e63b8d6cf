#include "holders.hpp"

#include "stall.hpp"

#include "weir/base/json.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <random>

namespace weir::test {

namespace asio = boost::asio;
using lease::Operation;
using lease::Outcome;

namespace {

std::string shown(const lease::Owner& owner) { return fmt::format("{}/{}", owner.runner, owner.boot); }

bool positive(Outcome outcome) {
  return outcome == Outcome::granted || outcome == Outcome::renewed || outcome == Outcome::rotated;
}

// ---- what a batch looks like on the wire ----

struct Before {
  BootId boot;
  std::int64_t grant = 0;
};
template <class V>
void fields(V& v, Before& b) {
  v.required("boot_id", b.boot);
  v.required("grant_version", b.grant);
}

struct Item {
  CameraId camera;
  Outcome result = Outcome::unknown;
  std::int64_t version = 0, grant = 0, ttl_ms = 0;
  std::optional<Before> previous;
  lease::Refusal reason = lease::Refusal::none;
  bool yours = false;
};
template <class V>
void fields(V& v, Item& i) {
  v.required("camera_uuid", i.camera);
  v.required("result", i.result);
  v.optional("version", i.version);
  v.optional("grant_version", i.grant);
  v.optional("ttl_ms", i.ttl_ms);
  v.optional("previous", i.previous);
  v.optional("reason", i.reason);
  v.optional("yours", i.yours);
}

struct Items {
  std::vector<Item> items;
};
template <class V>
void fields(V& v, Items& i) {
  v.required("items", i.items);
}

lease::Answer answer_of(const Item& item) {
  lease::Answer answer{item.camera, item.result, {item.version}, {item.grant}, std::chrono::milliseconds(item.ttl_ms)};
  if (item.previous) answer.previous = lease::Tenure{item.previous->boot, {item.previous->grant}};
  answer.why = item.reason;
  answer.yours = item.yours;
  return answer;
}

std::string target_of(Operation operation) {
  switch (operation) {
    case Operation::acquire: return "/v1/leases/camera/acquire-batch";
    case Operation::renew: return "/v1/leases/camera/renew-batch";
    case Operation::release: return "/v1/leases/camera/release-batch";
  }
  WEIR_ASSERT(false);
}

std::string body_of(const lease::Owner& owner, Duration ttl, const std::vector<lease::Question>& questions) {
  json::array items;
  for (const lease::Question& question : questions) {
    const lease::Ask& ask = question.ask;
    json::object item{{"camera_uuid", ask.subject.str()}};
    if (ask.version) item["version"] = ask.version->n;
    if (!ask.key.empty()) item["key"] = ask.key;
    if (ask.rotate) item["rotate"] = true;
    if (ask.avoid) item["avoid"] = true;
    items.push_back(std::move(item));
  }
  json::object body{{"runner_id", owner.runner.str()}, {"boot_id", owner.boot.str()}, {"ttl_seconds", seconds(ttl)}};
  body["items"] = std::move(items);
  return json::to_text(body);
}

}  // namespace

// ---- Witness ----

void Witness::complain(std::string what) {
  if (broken_.size() < 20) broken_.push_back(std::move(what));
}

void Witness::answered(const lease::Owner& owner, const lease::Answer& answer, lease::Version told) {
  if (answer.version == lease::Version{}) return;
  Camera& camera = cameras_[answer.subject];
  bool of_another = answer.outcome == Outcome::held && !answer.yours;
  if (answer.version < told && !(of_another && forgetting_))
    complain(fmt::format("{}: {} was answered version {}, although {} had been told before", answer.subject,
                         shown(owner), answer.version.n, told.n));
  camera.highest = std::max(camera.highest, answer.version);
  if (!positive(answer.outcome)) return;
  auto [given, first] = camera.given.emplace(answer.version, owner);
  if (!first && given->second != owner)
    complain(fmt::format("{}: version {} was given to {} and to {}", answer.subject, answer.version.n,
                         shown(given->second), shown(owner)));
}

void Witness::spoke(Yes yes) {
  Camera& camera = cameras_[yes.camera];
  for (const auto& [other, until] : camera.believes_until)
    if (other != yes.owner && until > yes.answered_at)
      complain(fmt::format("{}: {} may speak while {} still believes for {:.3f} s", yes.camera, shown(yes.owner),
                           shown(other), seconds(until - yes.answered_at)));
  camera.believes_until[yes.owner] = yes.valid_until;
  if (camera.owner != yes.owner && !camera.owner.runner.empty())
    takeovers_.push_back(fmt::format("{}: {} took it from {}, whose last yes had been asked for {:.3f} s before",
                                     yes.camera, shown(yes.owner), shown(camera.owner),
                                     seconds(yes.answered_at - camera.last_asked)));
  camera.owner = yes.owner;
  camera.last_asked = yes.asked_at;
  answers_.push_back(std::move(yes));
}

void Witness::stopped(const lease::Owner& owner, const CameraId& camera) {
  cameras_[camera].believes_until.erase(owner);
  ++cameras_[camera].losses;
}

lease::Version Witness::highest(const CameraId& camera) const {
  auto found = cameras_.find(camera);
  return found == cameras_.end() ? lease::Version{} : found->second.highest;
}

lease::Owner Witness::owner(const CameraId& camera) const {
  auto found = cameras_.find(camera);
  return found == cameras_.end() ? lease::Owner{} : found->second.owner;
}

int Witness::losses(const CameraId& camera) const {
  auto found = cameras_.find(camera);
  return found == cameras_.end() ? 0 : found->second.losses;
}

Instant Witness::last_asked(const CameraId& camera) const {
  auto found = cameras_.find(camera);
  return found == cameras_.end() ? Instant{} : found->second.last_asked;
}

std::vector<Yes> Witness::grants_of(const CameraId& camera) const {
  std::vector<Yes> out;
  for (const Yes& yes : answers_)
    if (yes.camera == camera && (out.empty() || out.back().grant != yes.grant)) out.push_back(yes);
  return out;
}

std::string Witness::takeovers_told() const { return fmt::format("{}", fmt::join(takeovers_, "\n")); }
std::string Witness::broken() const { return fmt::format("{}", fmt::join(broken_, "\n")); }

// ---- Runner ----

class Fleet::Runner {
 public:
  Runner(Fleet& fleet, const RunnerPlan& plan, Secret token)
      : fleet_(fleet),
        owner_{RunnerId::trusted(plan.name), BootId::trusted(random_hex(8))},
        policy_(plan.policy),
        token_(std::move(token)),
        at_(plan.first_plane),
        wake_(fleet.io_) {
    for (const WeirProcess* plane : fleet.planes_) {
      auto client = net::HttpClient::create(fleet.io_, plane->url());
      WEIR_ASSERT(client);
      planes_.push_back(std::move(*client));
    }
    for (const std::string& name : plan.cameras) want(CameraId::trusted(name));
    start(live());
  }

  void want(const CameraId& camera) {
    cameras_[camera].subject = camera;
    feed(camera, lease::Wanted{}, boot_now());
    wake_.cancel();
  }
  void rotate(const CameraId& camera) {
    feed(camera, lease::FreshVersionNeeded{}, boot_now());
    wake_.cancel();
  }
  void end() {
    dead_ = true;
    wake_.cancel();
  }

  const lease::Owner& owner() const { return owner_; }
  int open() const { return open_; }
  bool believes(const CameraId& camera) const {
    auto found = cameras_.find(camera);
    return found != cameras_.end() && found->second.phase == lease::Phase::holding &&
           boot_now() < found->second.valid_until && !dead_;
  }
  bool believes_all() const {
    return std::ranges::all_of(cameras_, [&](const auto& each) { return believes(each.first); });
  }

 private:
  void start(asio::awaitable<void> work) {
    ++fleet_.living_;
    asio::co_spawn(fleet_.io_, std::move(work), [&fleet = fleet_](const std::exception_ptr& failed) {
      --fleet.living_;
      EXPECT_FALSE(failed) << "a holder's coroutine threw";
    });
  }

  // Asks what is due, then waits for the next moment at which something will be.
  asio::awaitable<void> live() {
    while (!dead_) {
      Instant now = boot_now();
      std::optional<Instant> next;
      for (auto& [camera, state] : cameras_) {
        auto at = lease::wake_at(state, policy_);
        if (at && *at <= now) feed(camera, lease::TimePassed{}, now);
        at = lease::wake_at(state, policy_);
        if (at && (!next || *at < *next)) next = at;
      }
      flush();
      wake_.expires_after(next ? std::max<Duration>(*next - boot_now(), 1ms) : Duration(1h));
      boost::system::error_code woken;
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
  }

  void feed(const CameraId& camera, const lease::HolderEvent& event, Instant now) {
    lease::HolderState& state = cameras_.at(camera);
    lease::HolderStep step = lease::step(state, event, now, policy_, owner_.boot);
    const auto* answered = std::get_if<lease::Answered>(&event);
    for (const lease::HolderAction& action : step.actions) {
      if (const auto* send = std::get_if<lease::SendQuestion>(&action)) due_.push_back(send->question);
      if (std::holds_alternative<lease::StopCamera>(action)) fleet_.witness_.stopped(owner_, camera);
      if (const auto* speak = std::get_if<lease::Speak>(&action)) {
        Instant asked_at = state.open ? state.open->asked_at : now;
        Outcome outcome = answered != nullptr ? answered->answer.outcome : Outcome::unknown;
        fleet_.witness_.spoke(
            {camera, owner_, outcome, speak->version, speak->grant, asked_at, now, speak->valid_until});
      }
    }
    state = std::move(step.next);
  }

  // One batch for each kind of question.
  void flush() {
    for (Operation operation : {Operation::acquire, Operation::renew, Operation::release}) {
      std::vector<lease::Question> questions;
      for (lease::Question& question : due_)
        if (question.operation == operation) questions.push_back(question);
      if (!questions.empty()) start(ask(operation, std::move(questions)));
    }
    due_.clear();
  }

  asio::awaitable<void> ask(Operation operation, std::vector<lease::Question> questions) {
    std::vector<lease::Version> told;
    for (const lease::Question& question : questions) told.push_back(fleet_.witness_.highest(question.ask.subject));
    net::ClientRequest request;
    request.method = net::Method::post;
    request.target = target_of(operation);
    request.body = body_of(owner_, policy_.ttl, questions);
    request.bearer = token_;
    request.timeout = policy_.attempt_timeout;
    request.replayable = true;
    size_t asked = at_;
    ++open_;
    auto response = co_await planes_[asked].send(std::move(request));
    --open_;
    if (dead_) co_return;

    Items items = read(response);
    if (items.items.empty() && at_ == asked) {
      planes_[asked].close_idle();
      at_ = (asked + 1) % planes_.size();
    }
    Instant now = boot_now();
    for (size_t i = 0; i < questions.size(); ++i) {
      const lease::Question& question = questions[i];
      auto item = std::ranges::find(items.items, question.ask.subject, &Item::camera);
      if (item == items.items.end()) {
        feed(question.ask.subject, lease::Unanswered{question.id}, now);
        continue;
      }
      lease::Answer answer = answer_of(*item);
      fleet_.witness_.answered(owner_, answer, told[i]);
      feed(question.ask.subject, lease::Answered{question.id, std::move(answer)}, now);
    }
    flush();
    wake_.cancel();
  }

  // Empty: unknown.
  Items read(const Result<net::ClientResponse>& response) {
    if (!response) {
      ++fleet_.unreachable_;
      return {};
    }
    if (response->status != 200) {
      ++fleet_.refused_;
      return {};
    }
    auto items = json::read_text<Items>(response->body);
    EXPECT_TRUE(items) << response->body;
    return items ? std::move(*items) : Items{};
  }

  Fleet& fleet_;
  const lease::Owner owner_;
  const lease::HolderPolicy policy_;
  const Secret token_;
  std::vector<net::HttpClient> planes_;
  size_t at_;
  asio::steady_timer wake_;
  std::map<CameraId, lease::HolderState> cameras_;
  std::vector<lease::Question> due_;
  int open_ = 0;
  bool dead_ = false;
};

// ---- Fleet ----

Fleet::Fleet(std::vector<const WeirProcess*> planes) : planes_(std::move(planes)) {}

Fleet::~Fleet() {
  for (auto& runner : runners_) runner->end();
  eventually(10s, [&] {
    turn();
    return living_ == 0;
  });
  EXPECT_EQ(living_, 0);
}

size_t Fleet::add(RunnerPlan plan) {
  runners_.push_back(std::make_unique<Runner>(*this, plan, planes_.front()->token("runner", plan.name)));
  return runners_.size() - 1;
}

void Fleet::kill(size_t runner) { runners_[runner]->end(); }
void Fleet::want(size_t runner, const std::string& camera) { runners_[runner]->want(CameraId::trusted(camera)); }
void Fleet::rotate(size_t runner, const std::string& camera) { runners_[runner]->rotate(CameraId::trusted(camera)); }

void Fleet::turn() {
  io_.restart();
  io_.run_for(std::chrono::milliseconds(10));
}

bool Fleet::until(Duration limit, const std::function<bool()>& condition) {
  return eventually(limit, [&] {
    turn();
    return condition();
  });
}

void Fleet::run_until(Instant moment) {
  while (boot_now() < moment) turn();
}

void Fleet::during(const std::function<void()>& action) {
  auto done = std::async(std::launch::async, action);
  while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) turn();
  done.get();
}

lease::Owner Fleet::owner(size_t runner) const { return runners_[runner]->owner(); }
bool Fleet::believes(size_t runner, const std::string& camera) const {
  return runners_[runner]->believes(CameraId::trusted(camera));
}
bool Fleet::believes_all(size_t runner) const { return runners_[runner]->believes_all(); }
int Fleet::open_questions() const {
  int open = 0;
  for (const auto& runner : runners_) open += runner->open();
  return open;
}

// ---- pieces of scenes ----

std::vector<std::string> camera_names(int from, int to) {
  std::vector<std::string> names;
  for (int n = from; n <= to; ++n) names.push_back(fmt::format("cam-{}", n));
  return names;
}

void add_holders(Fleet& fleet, int runners, int each, size_t planes, const lease::HolderPolicy& policy) {
  for (int r = 0; r < runners; ++r)
    fleet.add({fmt::format("runner-{}", r + 1), camera_names(r * each + 1, (r + 1) * each),
               static_cast<size_t>(r) % planes, policy});
}

size_t add_rival(Fleet& fleet, const std::string& name, std::vector<std::string> cameras, size_t first_plane) {
  lease::HolderPolicy hungry;
  hungry.retry_acquire = 250ms;
  return fleet.add({name, std::move(cameras), first_plane, hungry});
}

bool all_held(Fleet& fleet, int runners, Duration limit) {
  return fleet.until(limit, [&] {
    for (int r = 0; r < runners; ++r)
      if (!fleet.believes_all(static_cast<size_t>(r))) return false;
    return true;
  });
}

bool all_asked_since(const Fleet& fleet, int cameras, Instant since) {
  for (const std::string& name : camera_names(1, cameras))
    if (fleet.seen().last_asked(CameraId::trusted(name)) < since) return false;
  return true;
}

bool all_renewed(Fleet& fleet, int runners, int each, Duration limit) {
  for (int time = 0; time < 2; ++time) {
    Instant since = boot_now();
    if (!fleet.until(limit, [&] { return all_asked_since(fleet, runners * each, since); })) return false;
  }
  return true;
}

std::map<std::string, std::string> holdings(const WeirProcess& plane) {
  Reply reply = plane.get("/v1/leases?limit=1000");
  EXPECT_EQ(reply.status, 200) << reply.text;
  std::map<std::string, std::string> out;
  if (reply.status != 200) return out;
  for (const json::value& each : reply.body.at("items").as_array()) {
    const json::object& lease = each.as_object();
    out[std::string(lease.at("camera_uuid").as_string())] =
        fmt::format("{} {} {}", std::string_view(lease.at("runner_id").as_string()),
                    std::string_view(lease.at("boot_id").as_string()), lease.at("version").as_int64());
  }
  return out;
}

unsigned test_seed() {
  const char* given = std::getenv("WEIR_TEST_SEED");
  unsigned seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  std::printf("seed %u (WEIR_TEST_SEED=%u repeats it)\n", seed, seed);
  return seed;
}

}  // namespace weir::test
