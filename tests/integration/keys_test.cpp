// API keys from the first `weir key add` to the last refused token, with the real process.
#include "api_store.hpp"
#include "api_talk.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/net/token.hpp"

#include <sys/wait.h>

#include <filesystem>

namespace weir::test {
namespace {

using net::Method;

class ApiKeys : public OverBothStores {
 protected:
  Reply add(json::object body) { return process().post("/v1/api-keys", body); }
  std::string key(const std::string& role, const std::string& sub, const std::string& tenant = "") {
    json::object body{{"role", role}, {"sub", sub}};
    if (!tenant.empty()) body["tenant_id"] = tenant;
    Reply reply = add(std::move(body));
    EXPECT_EQ(reply.status, 201) << reply.text;
    return reply.field("api_key");
  }
  Reply buy(const std::string& credential, const json::object& body = {}) {
    return Talk(process(), Secret(credential)).post("/v1/auth/token", body);
  }
  Talk talk(const std::string& credential, const json::object& body = {}) {
    Reply bought = buy(credential, body);
    EXPECT_EQ(bought.status, 200) << bought.text;
    return Talk(process(), Secret(bought.field("token")));
  }
};
INSTANTIATE_OVER_BOTH_STORES(ApiKeys);

TEST_P(ApiKeys, RunnerWithAKey_WorksAndEquipsItsWorkers_UntilItIsRevoked) {
  START_OR_SKIP();
  process().furnish(1);
  Reply added = add({{"role", "runner"}, {"sub", "runner-1"}, {"name", "the first"}});
  ASSERT_EQ(added.status, 201) << added.text;
  std::string key = added.field("api_key");
  Talk runner = talk(key);
  ASSERT_EQ(runner.post("/v1/runners/register", {{"runner_id", "runner-1"}, {"boot_id", "b1"}}).status, 200);
  EXPECT_EQ(runner.post("/v1/runners/register", {{"runner_id", "runner-2"}}).code(), "not_yours");
  const json::object lease{{"runner_id", "runner-1"}, {"boot_id", "b1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 60}};
  Reply granted = runner.post("/v1/leases/camera/acquire", lease);
  ASSERT_EQ(granted.status, 200) << granted.text;

  // A worker's token speaks for the boot it was made for, and for no other.
  auto publish = [&](const std::string& boot) {
    json::object event{{"topic", "detections.topic"},
                       {"routing_key", "detections.t1.s1.cam-1"},
                       {"event_id", "event-of-" + boot},
                       {"camera_uuid", "cam-1"},
                       {"lease_version", granted.body.at("version")},
                       {"payload",
                        {{"camera_uuid", "cam-1"},
                         {"event_id", "event-of-" + boot},
                         {"lease_version", granted.body.at("version")},
                         {"runner_id", "runner-1"}}}};
    Talk worker = talk(key, {{"role", "worker"}, {"boot_id", boot}});
    Reply reply = worker.post("/v1/events/batch", {{"items", json::array{event}}});
    EXPECT_EQ(reply.status, 200) << reply.text;
    return items_of(reply).empty() ? "" : std::string(items_of(reply)[0].at("result").as_string());
  };
  EXPECT_EQ(publish("b1"), "accepted");
  EXPECT_EQ(publish("b2"), "stale");

  process().kill_hard();
  process().start();
  EXPECT_EQ(buy(key).status, 200) << "keys survive a restart";
  Reply list = process().get("/v1/api-keys");
  ASSERT_EQ(items_of(list).size(), 1u);
  EXPECT_EQ(items_of(list)[0].at("name").as_string(), "the first");
  EXPECT_TRUE(items_of(list)[0].at("last_used_at").is_string());

  Talk admin(process(), process().token("admin"));
  EXPECT_EQ(admin.del("/v1/api-keys/" + added.field("key_id")).status, 200);
  Reply revoked = buy(key), unknown = buy("wk_0000000000000000_" + std::string(64, '0'));
  EXPECT_EQ(revoked.status, 401);
  EXPECT_EQ(revoked.text, unknown.text) << "nothing tells a revoked key from an unknown one";
}

TEST_P(ApiKeys, BuyOnlyWhatTheirRoleMay_InTheirTenant) {
  START_OR_SKIP();
  process().furnish(1);
  Talk admin(process(), process().token("admin"));
  ASSERT_EQ(admin.post("/v1/tenants", {{"tenant_id", "t2"}}).status, 201);
  EXPECT_EQ(add({{"role", "runner"}, {"sub", "x"}, {"tenant_id", "none"}}).code(), "tenant_not_found");

  std::string viewer = key("viewer", "eye");
  EXPECT_EQ(talk(viewer).get("/v1/cameras/cam-1").status, 200);
  EXPECT_EQ(talk(viewer).post("/v1/tenants", {{"tenant_id", "t3"}}).status, 403);
  EXPECT_EQ(talk(viewer).get("/v1/api-keys").status, 403);
  for (std::string role : {"worker", "runner", "admin"})
    EXPECT_EQ(buy(viewer, {{"role", role}, {"boot_id", "b"}}).code(), "role_forbidden") << role;

  std::string foreign = key("runner", "runner-2", "t2");
  EXPECT_EQ(talk(foreign).get("/v1/cameras/cam-1").status, 404);
  EXPECT_EQ(talk(foreign, {{"role", "worker"}, {"boot_id", "b"}}).get("/v1/leases/camera/cam-1").status, 404);
  Talk bound = talk(key("admin", "root-of-t2", "t2"));
  EXPECT_EQ(items_of(bound.get("/v1/api-keys")).size(), 2u);
  EXPECT_EQ(bound.post("/v1/api-keys", {{"role", "admin"}, {"sub", "x"}, {"tenant_id", "t1"}}).status, 404);
  EXPECT_EQ(talk(key("runner", "runner-1", "t1")).get("/v1/cameras/cam-1").status, 200);

  ASSERT_EQ(admin.del("/v1/tenants/t2").status, 200);
  EXPECT_EQ(buy(foreign).status, 401) << "a tenant's keys go with it";
}

// A program that knows no tokens shows its key with every request.
TEST_P(ApiKeys, KeyAsABearer_Works_AndIsRefusedSoonAfterItWasRevoked) {
  START_OR_SKIP();
  process().furnish(1);
  Reply added = add({{"role", "runner"}, {"sub", "runner-1"}});
  Talk direct(process(), Secret(added.field("api_key")));
  EXPECT_EQ(direct.get("/v1/runners/runner-1").field("capacity_streams"), "40");
  ASSERT_EQ(direct.post("/v1/runners/heartbeat", {{"runner_id", "runner-1"}}).status, 200);
  const json::object lease{{"runner_id", "runner-1"}, {"camera_uuid", "cam-1"}, {"ttl_seconds", 60}};
  ASSERT_EQ(direct.post("/v1/leases/camera/acquire", lease).status, 200);
  EXPECT_EQ(direct.post("/v1/runners/heartbeat", {{"runner_id", "runner-2"}}).code(), "not_yours");
  EXPECT_EQ(direct.get("/v1/api-keys").code(), "role_forbidden");
  ASSERT_EQ(process().call(Method::del, "/v1/api-keys/" + added.field("key_id"), nullptr, process().token("admin")).status,
            200);
  EXPECT_TRUE(eventually(10s, [&] { return direct.post("/v1/leases/camera/renew", lease).code() == "key_invalid"; }));
}

// The stream of events that a key began ends when a token of so short a life would.
TEST_P(ApiKeys, EventsHeardWithAKey_EndWithinTenSeconds) {
  START_OR_SKIP();
  std::string text = key("viewer", "v");
  Talk direct(process(), Secret(text));
  net::ClientRequest request = request_for(Method::get, "/v1/events", nullptr, Secret(text));
  request.timeout = 20s;
  Instant began = boot_now();
  Reply heard = direct.send(std::move(request));
  EXPECT_EQ(heard.status, 200) << heard.text;
  EXPECT_LE(boot_now() - began, 14s) << "ten seconds, and what a busy machine adds";
}

TEST_P(ApiKeys, Tokens_EndWhenTheirTimeIsUp) {
  START_OR_SKIP({"--token-ttl-s", "3"});
  Reply bought = buy(key("admin", "root"));
  EXPECT_EQ(bought.field("expires_in"), "3");
  Talk brief(process(), Secret(bought.field("token")));
  EXPECT_EQ(brief.get("/v1/api-keys").status, 200);
  EXPECT_TRUE(eventually(10s, [&] { return brief.get("/v1/api-keys").code() == "token_expired"; }));

  // A runner that was given nothing but a token stays, as long as it asks in time.
  std::string token = process().token("runner", "runner-1").reveal();
  for (int n = 0; n < 3; ++n) {
    Reply next = buy(token, {{"role", "runner"}, {"ttl_seconds", 60}});
    ASSERT_EQ(next.status, 200) << next.text;
    token = next.field("token");
  }
  ASSERT_EQ(Talk(process(), Secret(token)).post("/v1/runners/register", {{"runner_id", "runner-1"}}).status, 200);
}

TEST_P(ApiKeys, AppearInNoLogListMetricOrFile) {
  START_OR_SKIP({"--log-level", "debug"});
  std::vector<std::string> secrets;
  Reply added = add({{"role", "runner"}, {"sub", "runner-1"}});
  std::string key = added.field("api_key");
  ASSERT_EQ(added.status, 201);
  EXPECT_EQ(added.headers["cache-control"], "no-store");
  secrets.push_back(key.substr(key.rfind('_') + 1));
  std::string wrong = key.substr(0, key.size() - 1) + (key.ends_with('0') ? '1' : '0');
  secrets.push_back(wrong.substr(wrong.rfind('_') + 1, 60));

  Reply bought = buy(key), worker = buy(key, {{"role", "worker"}, {"boot_id", "b"}});
  EXPECT_EQ(bought.headers["cache-control"], "no-store");
  for (const Reply& each : {bought, worker}) secrets.push_back(each.field("token"));
  auto clean = [&](const std::string& text, const std::string& where) {
    for (const std::string& secret : secrets) EXPECT_EQ(text.find(secret), std::string::npos) << where;
  };
  Talk nobody(process(), Secret()), admin(process(), process().token("admin"));
  // Wherever a key could be put by mistake.
  std::vector<Reply> said = {
      buy(wrong),
      nobody.post("/v1/auth/token", {{"api_key", wrong}}),
      nobody.post("/v1/auth/token", {{"api_key", json::array{key}}}),
      nobody.post("/v1/auth/token", {{key, 1}}),
      nobody.say(Method::post, "/v1/auth/token", "{\"api_key\":\"" + key),
      buy(key, {{"role", key}}),
      buy(key, {{"ttl_seconds", key}}),
      buy(key, {{"api_key", key}}),
      Talk(process(), Secret(wrong)).get("/v1/cameras"),
      admin.del("/v1/api-keys/" + key),
      admin.get("/v1/api-keys?cursor=" + key),
      admin.post("/v1/api-keys", {{"role", key}, {"sub", key + "\n"}}),
  };
  for (size_t i = 0; i < said.size(); ++i) {
    EXPECT_GE(said[i].status, 400) << i;
    EXPECT_LT(said[i].status, 500) << i << said[i].text;
    EXPECT_TRUE(said[i].text.find(key) == std::string::npos || i == 3) << i << said[i].text;
  }
  clean(admin.get("/v1/api-keys").text, "list");
  clean(admin.get("/metrics").text, "metrics");
  EXPECT_EQ(process().terminate(), 0);
  std::string log = process().log();
  EXPECT_NE(log.find("key.created"), std::string::npos);
  EXPECT_NE(log.find("token.issued"), std::string::npos) << "the debug level is on";
  clean(log, "log");
  EXPECT_EQ(log.find(net::sha256_hex(key)), std::string::npos);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder().path()))
    if (entry.is_regular_file()) clean(text_in_file(entry.path()), entry.path());
}

// ---- at a shell ----

struct Ran {
  int code;
  std::string out, err;
};

class KeyCommands : public testing::Test {
 protected:
  KeyCommands() : process_(folder_.path(), "sqlite:" + folder_.path() + "/weir.db") {}
  Ran weir(const std::string& words) {
    std::string out = folder_.path() + "/out", err = folder_.path() + "/err";
    int status = std::system(fmt::format("env -u WEIR_TOKEN WEIR_URL={} '{}' {} --auth-secret-file {}/auth.secret >{} "
                                         "2>{} </dev/null",
                                         process_.url(), WEIR_BINARY, words, folder_.path(), out, err)
                                 .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_in_file(out), text_in_file(err)};
  }
  TempDir folder_;
  WeirProcess process_;
};

TEST_F(KeyCommands, Key_IsAddedListedAndRevoked) {
  EXPECT_NE(weir("key list").out.find("no keys yet"), std::string::npos);
  Ran added = weir("key add --role runner --sub runner-1 --name 'the first'");
  ASSERT_EQ(added.code, 0) << added.err;
  ASSERT_TRUE(added.out.starts_with("wk_")) << added.out;
  std::string key = added.out.substr(0, added.out.size() - 1), id = key.substr(3, 16);
  auto buy = [&] { return Talk(process_, Secret(key)).post("/v1/auth/token", json::object{}).status; };
  EXPECT_EQ(buy(), 200);
  Ran list = weir("key list");
  for (std::string part : {id, std::string("runner-1"), std::string("the first"), std::string("LAST USED")})
    EXPECT_NE(list.out.find(part), std::string::npos) << list.out;
  EXPECT_EQ(list.out.find(key), std::string::npos);
  auto parsed = json::parse_text(weir("key list --json").out);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->at("items").at(0).at("key_id").as_string(), id);
  auto second = json::parse_text(weir("key add --role viewer --sub eye --json").out);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->at("api_key").as_string().starts_with("wk_"));

  Ran mistaken = weir("key revoke " + key);
  EXPECT_EQ(mistaken.code, 2);
  EXPECT_EQ(mistaken.err.find(key), std::string::npos);
  EXPECT_EQ(buy(), 200);
  EXPECT_EQ(weir("key revoke " + id).code, 0);
  EXPECT_EQ(buy(), 401);
  EXPECT_EQ(weir("key revoke " + id).code, 1);
  EXPECT_EQ(weir("key add --role root --sub x").code, 2);
  EXPECT_EQ(weir("key add --role viewer").code, 2);
}

}  // namespace
}  // namespace weir::test
