#include "lease_by_id.hpp"

#include "weir/net/token.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

using lease::Operation;
using lease::Outcome;
using lease::Version;

constexpr TtlBounds kBounds{3s, 60s};

std::vector<std::string> paths_of(const Error& error) {
  std::vector<std::string> paths;
  for (const auto& each : error.details.at("fields").as_array())
    paths.emplace_back(each.as_object().at("field").as_string());
  return paths;
}

Result<lease::Batch> batch_from(std::string_view text, Operation operation) {
  return read_batch(*json::parse_text(text), operation, kBounds);
}
Result<SingleAsk> single_from(std::string_view text, Operation operation) {
  return read_single(*json::parse_text(text), operation, kBounds);
}

TEST(ControlPlaneLeaseBodies, BodyOfTheSimpleRoute_HasNoBootAndNoKey) {
  auto ask = single_from(R"({"runner_id":"r-1","camera_uuid":"cam-1","ttl_seconds":6})", Operation::acquire);
  ASSERT_TRUE(ask) << ask.error().message;
  EXPECT_EQ(ask->batch.owner, (lease::Owner{RunnerId::trusted("r-1"), {}}));
  EXPECT_EQ(ask->batch.ttl, 6s);
  ASSERT_EQ(ask->batch.asks.size(), 1u);
  EXPECT_EQ(ask->batch.asks[0].subject.str(), "cam-1");
  EXPECT_EQ(ask->batch.asks[0].key, "");
  EXPECT_FALSE(ask->batch.asks[0].version);
  EXPECT_TRUE(ask->note.shard.empty());
}

TEST(ControlPlaneLeaseBodies, SimpleRoute_TakesBootVersionAndShard) {
  auto ask = single_from(R"({"runner_id":"r","boot_id":"b","camera_uuid":"c","ttl_seconds":5.5,"version":7,
                             "shard_id":"shard-1","tenant_id":"t","config_version":"abc"})",
                         Operation::renew);
  ASSERT_TRUE(ask) << ask.error().message;
  EXPECT_EQ(ask->batch.owner.boot.str(), "b");
  EXPECT_EQ(ask->batch.ttl, 5500ms);
  EXPECT_EQ(ask->batch.asks[0].version, Version{7});
  EXPECT_EQ(ask->note.shard, "shard-1");
  EXPECT_EQ(ask->note.config_version, "abc");
}

TEST(ControlPlaneLeaseBodies, SimpleRoute_NamesWhatIsWrong) {
  struct Case {
    const char* text;
    Operation operation;
    const char* path;
  };
  const Case cases[] = {
      {"[]", Operation::acquire, "body"},
      {R"({"camera_uuid":"c","ttl_seconds":6})", Operation::acquire, "runner_id"},
      {R"({"runner_id":3,"camera_uuid":"c","ttl_seconds":6})", Operation::acquire, "runner_id"},
      {R"({"runner_id":"r","ttl_seconds":6})", Operation::acquire, "camera_uuid"},
      {R"({"runner_id":"r","camera_uuid":"","ttl_seconds":6})", Operation::acquire, "camera_uuid"},
      {R"({"runner_id":"r","camera_uuid":"c"})", Operation::acquire, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c"})", Operation::renew, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":"6"})", Operation::renew, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":2.9})", Operation::renew, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":60.1})", Operation::renew, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":1e300})", Operation::renew, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":-1})", Operation::acquire, "ttl_seconds"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":6,"version":-1})", Operation::renew, "version"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":6,"version":9007199254740992})", Operation::renew,
       "version"},
      {R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":6,"boot_id":1})", Operation::renew, "boot_id"},
      {R"({"runner_id":"r","camera_uuid":"c","avoid":"x"})", Operation::release, "avoid"},
  };
  for (const Case& each : cases) {
    auto ask = single_from(each.text, each.operation);
    ASSERT_FALSE(ask) << each.text;
    EXPECT_EQ(ask.error().code, Errc::invalid);
    EXPECT_EQ(paths_of(ask.error())[0], each.path) << each.text;
  }
  EXPECT_TRUE(single_from(R"({"runner_id":"r","camera_uuid":"c"})", Operation::release));
  EXPECT_NE(single_from(R"({"runner_id":"r","camera_uuid":"c","ttl_seconds":1})", Operation::acquire)
                .error()
                .message.find("between 3 and 60"),
            std::string::npos);
}

TEST(ControlPlaneLeaseBodies, Batch_IsReadInOrder) {
  auto batch = batch_from(R"({"runner_id":"r","boot_id":"b","ttl_seconds":6,"items":[
      {"camera_uuid":"c2","version":9007199254740991},
      {"camera_uuid":"c1","version":5,"rotate":true,"key":"k-1"},
      {"camera_uuid":"c3","version":6,"rotate":false,"key":"unused","avoid":true,"extra":1}]})",
                          Operation::renew);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->owner, (lease::Owner{RunnerId::trusted("r"), BootId::trusted("b")}));
  ASSERT_EQ(batch->asks.size(), 3u);
  EXPECT_EQ(batch->asks[0].subject.str(), "c2");
  EXPECT_EQ(batch->asks[0].version, Version{kVersionMax});
  EXPECT_TRUE(batch->asks[1].rotate);
  EXPECT_EQ(batch->asks[1].key, "k-1");
  EXPECT_FALSE(batch->asks[2].rotate);
  EXPECT_EQ(batch->asks[2].key, "");
  EXPECT_FALSE(batch->asks[2].avoid);
}

TEST(ControlPlaneLeaseBodies, AcquireBatch_DropsWhatItDoesNotKnow) {
  auto batch = batch_from(R"({"runner_id":"r","boot_id":"b","ttl_seconds":6,
      "items":[{"camera_uuid":"c","version":5,"rotate":true,"avoid":true,"key":"k"}]})",
                          Operation::acquire);
  ASSERT_TRUE(batch);
  EXPECT_FALSE(batch->asks[0].version);
  EXPECT_FALSE(batch->asks[0].rotate);
  EXPECT_FALSE(batch->asks[0].avoid);
  EXPECT_EQ(batch->asks[0].key, "k");
}

TEST(ControlPlaneLeaseBodies, Batch_NamesWhatIsWrong) {
  struct Case {
    const char* items;
    Operation operation;
    const char* path;
  };
  const Case cases[] = {
      {"null", Operation::renew, "items"},
      {"{}", Operation::renew, "items"},
      {"[]", Operation::renew, "items"},
      {"[7]", Operation::renew, "items[0]"},
      {"[{}]", Operation::acquire, "items[0].camera_uuid"},
      {R"([{"camera_uuid":7,"key":"k"}])", Operation::acquire, "items[0].camera_uuid"},
      {R"([{"camera_uuid":"acquire","key":"k"}])", Operation::acquire, "items[0].camera_uuid"},
      {R"([{"camera_uuid":"c"}])", Operation::acquire, "items[0].key"},
      {R"([{"camera_uuid":"c","key":""}])", Operation::acquire, "items[0].key"},
      {R"([{"camera_uuid":"c","key":5}])", Operation::acquire, "items[0].key"},
      {R"([{"camera_uuid":"c","key":"a\u0000b"}])", Operation::acquire, "items[0].key"},
      {R"([{"camera_uuid":"c"}])", Operation::renew, "items[0].version"},
      {R"([{"camera_uuid":"c","version":null}])", Operation::release, "items[0].version"},
      {R"([{"camera_uuid":"c","version":"1"}])", Operation::renew, "items[0].version"},
      {R"([{"camera_uuid":"c","version":1.5}])", Operation::renew, "items[0].version"},
      {R"([{"camera_uuid":"c","version":-1}])", Operation::renew, "items[0].version"},
      {R"([{"camera_uuid":"c","version":9007199254740992}])", Operation::renew, "items[0].version"},
      {R"([{"camera_uuid":"c","version":1,"rotate":1}])", Operation::renew, "items[0].rotate"},
      {R"([{"camera_uuid":"c","version":1,"rotate":true}])", Operation::renew, "items[0].key"},
      {R"([{"camera_uuid":"c","version":1,"avoid":0}])", Operation::release, "items[0].avoid"},
      {R"([{"camera_uuid":"c","version":1},{"camera_uuid":"d","version":1},{"camera_uuid":"c","version":2}])",
       Operation::renew, "items[2].camera_uuid"},
  };
  for (const Case& each : cases) {
    auto batch = batch_from(fmt::format(R"({{"runner_id":"r","boot_id":"b","ttl_seconds":6,"items":{}}})", each.items),
                            each.operation);
    ASSERT_FALSE(batch) << each.items;
    EXPECT_EQ(paths_of(batch.error())[0], each.path) << each.items;
  }
  EXPECT_EQ(paths_of(batch_from(R"({"runner_id":"r","ttl_seconds":6,"items":[{"camera_uuid":"c","version":1}]})",
                                Operation::renew)
                         .error()),
            std::vector<std::string>{"boot_id"});
  EXPECT_FALSE(batch_from("3", Operation::renew));
  EXPECT_TRUE(
      batch_from(R"({"runner_id":"r","boot_id":"b","items":[{"camera_uuid":"c","version":1}]})", Operation::release));
}

TEST(ControlPlaneLeaseBodies, Batch_HasAtMostAThousandItems) {
  json::array items;
  for (int i = 0; i < 1001; ++i) items.push_back(json::object{{"camera_uuid", fmt::format("c{}", i)}, {"version", i}});
  json::object body{{"runner_id", "r"}, {"boot_id", "b"}, {"ttl_seconds", 6}, {"items", items}};
  EXPECT_FALSE(read_batch(body, Operation::renew, kBounds));
  body["items"].as_array().pop_back();
  EXPECT_TRUE(read_batch(body, Operation::renew, kBounds));
}

TEST(ControlPlaneLeaseBodies, BatchAnswer_IsValidJsonWithEveryField) {
  WallTime until = *from_iso("2026-01-02T03:04:05.678Z");
  lease::Answer granted{CameraId::trusted("c\"\\ü"), Outcome::granted, Version{12}, Version{12}, 6s, until};
  granted.previous = lease::Tenure{BootId::trusted("old"), Version{9}};
  lease::Answer renewed{CameraId::trusted("c2"), Outcome::renewed, Version{11}, Version{8}, 6s, until};
  lease::Answer held{CameraId::trusted("c3"), Outcome::held, Version{10}, Version{10}, 5s, until + 1ms};
  held.yours = true;
  lease::Answer lost{CameraId::trusted("c4"), Outcome::lost, Version{99}};
  lease::Answer refused{CameraId::trusted("c5"), Outcome::refused};
  refused.why = lease::Refusal::cordoned;
  std::vector<lease::Answer> answers{granted, renewed, held, lost, refused};
  auto parsed = json::parse_text(write_batch(answers));
  ASSERT_TRUE(parsed) << write_batch(answers);
  EXPECT_EQ(*parsed, *json::parse_text(R"({"items":[
    {"camera_uuid":"c\"\\ü","result":"granted","version":12,"grant_version":12,"ttl_ms":6000,
     "expires_at":"2026-01-02T03:04:05.678Z","previous":{"boot_id":"old","grant_version":9}},
    {"camera_uuid":"c2","result":"renewed","version":11,"grant_version":8,"ttl_ms":6000,
     "expires_at":"2026-01-02T03:04:05.678Z"},
    {"camera_uuid":"c3","result":"held","version":10,"grant_version":10,"ttl_ms":5000,
     "expires_at":"2026-01-02T03:04:05.679Z","yours":true},
    {"camera_uuid":"c4","result":"lost","version":99},
    {"camera_uuid":"c5","result":"refused","version":0,"reason":"cordoned"}]})"));
  EXPECT_EQ(write_batch({}), R"({"items":[]})");
}

TEST(ControlPlaneLeaseBodies, Refusals_HaveTheirStatusAndWord) {
  auto of = [](Outcome outcome, lease::Refusal why = lease::Refusal::none) {
    lease::Answer answer{CameraId::trusted("c"), outcome, Version{77}};
    answer.why = why;
    return refusal_error(answer);
  };
  struct Case {
    Error error;
    Errc code;
    const char* reason;
  };
  const Case cases[] = {
      {of(Outcome::held), Errc::conflict, "lease_held"},
      {of(Outcome::lost), Errc::not_found, "lease_lost"},
      {of(Outcome::unknown), Errc::conflict, "lease_unknown"},
      {of(Outcome::refused, lease::Refusal::not_found), Errc::not_found, "camera_not_found"},
      {of(Outcome::refused, lease::Refusal::disabled), Errc::unprocessable, "camera_disabled"},
      {of(Outcome::refused, lease::Refusal::boot_dead), Errc::conflict, "boot_dead"},
      {of(Outcome::refused, lease::Refusal::cordoned), Errc::unprocessable, "runner_cordoned"},
      {of(Outcome::refused, lease::Refusal::avoided), Errc::conflict, "lease_avoided"},
      {of(Outcome::refused, lease::Refusal::settling), Errc::conflict, "lease_settling"},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(each.error.code, each.code) << each.reason;
    EXPECT_EQ(each.error.reason, each.reason);
    EXPECT_EQ(each.error.details.at("camera_uuid").as_string(), "c");
  }
  EXPECT_EQ(of(Outcome::lost).details.at("current_version"), json::value(77));
}

TEST(ControlPlaneLeaseBodies, LeaseId_HoldsSubjectAndGrant_AndNothingElseIsOne) {
  for (const char* subject : {"c", "a/b.c ü", "lease-x"}) {
    auto id = read_lease_id(lease_id(CameraId::trusted(subject), Version{0x10000000005}));
    ASSERT_TRUE(id) << subject;
    EXPECT_EQ(id->subject.str(), subject);
    EXPECT_EQ(id->grant, Version{0x10000000005});
  }
  auto made = [](std::string_view inside) { return "lease-" + net::base64url(inside); };
  for (const std::string& wrong : {std::string(), std::string("lease-"), std::string("lease-ff"), std::string("x"),
                                   made("5"), made(".c"), made("0.c"), made("-5.c"), made("5x.c"), made("5."),
                                   made("5.acquire"), made("5.a\nb"), made("fffffffffffffff.c"), made("ffffffffffffffffff.c")}) {
    auto id = read_lease_id(wrong);
    ASSERT_FALSE(id) << wrong;
    EXPECT_EQ(id.error().reason, "lease_not_found");
  }
}

TEST(ControlPlaneLeaseBodies, RenewalById_LastsAsBefore_OrAsLongAsItAsks) {
  TtlBounds bounds{3s, 60s};
  EXPECT_FALSE(*read_renewal("", bounds));
  EXPECT_FALSE(*read_renewal("{}", bounds));
  EXPECT_EQ(**read_renewal(R"({"ttl_seconds":30})", bounds), Duration(30s));
  for (const char* wrong : {"[]", "x", R"({"ttl_seconds":2})", R"({"ttl_seconds":61})", R"({"ttl_seconds":"30"})"})
    EXPECT_EQ(read_renewal(wrong, bounds).error().code, Errc::invalid) << wrong;
}

TEST(ControlPlaneLeaseBodies, LeaseHeartbeat_TakesStatisticsUnderTheirNameOrBare) {
  TenureId id{CameraId::trusted("c"), Version{5}};
  EXPECT_FALSE(read_lease_word("", id)->stats);
  for (const char* body : {R"({"processing_stats":{"fps":5}})", R"({"fps":5})"}) {
    auto word = read_lease_word(body, id);
    ASSERT_TRUE(word) << body;
    EXPECT_TRUE(word->heartbeat);
    EXPECT_EQ(word->grant, Version{5});
    EXPECT_EQ(word->stats, (json::object{{"fps", 5}}));
  }
  std::string much = json::to_text(json::object{{"text", std::string(20'000, 'x')}});
  for (const std::string& wrong : {std::string("[]"), std::string(R"({"processing_stats":5})"), much})
    EXPECT_EQ(read_lease_word(wrong, id).error().code, Errc::invalid);
}

TEST(ControlPlaneLeaseBodies, LeaseView_SaysItsStatus) {
  LeaseView view;
  view.row.subject = CameraId::trusted("c");
  EXPECT_EQ(write_lease(view).at("status").as_string(), "free");
  EXPECT_FALSE(write_lease(view).contains("owner_id"));
  view.row.owner = {RunnerId::trusted("r"), BootId::trusted("b")};
  view.row.grant = Version{255};
  EXPECT_EQ(write_lease(view).at("status").as_string(), "released");
  view.row.revoked = true;
  EXPECT_EQ(write_lease(view).at("status").as_string(), "revoked");
  view.row.revoked = view.row.released = false;
  EXPECT_EQ(write_lease(view).at("status").as_string(), "active");
  EXPECT_EQ(write_lease(view, false).at("status").as_string(), "pending") << "nothing was heard of it yet";
  view.note.heard = WallTime(1s);
  EXPECT_EQ(write_lease(view, false).at("status").as_string(), "active") << "its owner said that it works";
  view.expired = true;
  EXPECT_EQ(write_lease(view).at("status").as_string(), "expired");
  EXPECT_EQ(write_lease(view).at("lease_id").as_string(), lease_id(view.row.subject, Version{255}));
  EXPECT_EQ(write_lease(view).at("owner_id"), write_lease(view).at("runner_id"));
}

}  // namespace
}  // namespace weir::control_plane
