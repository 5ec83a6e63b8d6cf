#include "manager_document.hpp"

#include "weir/base/settings.hpp"
#include "weir/settings/all_settings.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

constexpr std::string_view kDocument = R"({
  "control_plane_url": "https://cp.example", "api_key": "wk_1", "runner_id": "runner-ü", "manager_mode": true,
  "max_workers": 4, "max_cameras_per_worker": 16, "lease_ttl_seconds": 60, "heartbeat_interval_seconds": 30,
  "lease_retry_interval_seconds": 10, "database_url": "postgres://db.example/weir", "deployment_group": "production",
  "deployment_version": "v1.2.3", "shard_id": "shard-0", "max_fps": 6, "sources": [], "amqp": {"host": "rabbit"},
  "cp": {"base_url": "https://other.example"}, "telemetry": {"report_interval_seconds": 7}})";

Result<Settings> load(std::string yaml) {
  Settings::Sources sources;
  sources.yaml = std::move(yaml);
  return Settings::load(all_settings(), sources);
}

TEST(ManagerDocument, IsReadAsSettings_AndSaysWhatItDoesNotUse) {
  auto document = read_manager_document(kDocument);
  ASSERT_TRUE(document);
  auto settings = load(document->settings);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->text("control_plane_url"), "https://cp.example");
  EXPECT_EQ(settings->secret("api_key").reveal(), "wk_1");
  EXPECT_EQ(settings->text("runner_id"), "runner-ü");
  EXPECT_EQ(settings->integer("max_workers"), 4);
  EXPECT_EQ(settings->integer("max_cameras_per_worker"), 16);
  EXPECT_EQ(settings->number("lease_ttl_s"), 60);
  EXPECT_EQ(settings->number("lease_retry_interval_s"), 10);
  EXPECT_EQ(settings->number("status_summary_interval_s"), 7);
  EXPECT_EQ(settings->text("deployment_group"), "production");
  EXPECT_EQ(settings->text("deployment_version"), "v1.2.3");
  EXPECT_EQ(document->unused, (std::vector<std::string>{"manager_mode", "heartbeat_interval_seconds", "shard_id",
                                                        "max_fps", "sources", "amqp", "cp"}));
}

TEST(ManagerDocument, WithoutItsOwnAddress_NamesThatOfItsWorkers) {
  auto document = read_manager_document(R"( {"sources": [], "cp": {"base_url": "https://cp.example"}})");
  ASSERT_TRUE(document);
  EXPECT_EQ(load(document->settings)->text("control_plane_url"), "https://cp.example");
  EXPECT_EQ(document->unused, std::vector<std::string>{"sources"});
}

TEST(ManagerDocument, AMistypedName_IsRefusedAsInASettingsFile) {
  auto document = read_manager_document(R"({"manager_mode": true, "max_worker": 4})");
  ASSERT_TRUE(document);
  auto settings = load(document->settings);
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().reason, "unknown_setting");
}

TEST(ManagerDocument, ASettingsFile_IsNone) {
  for (const char* text : {"", "  ", "lease_ttl_s: 6", "{lease_ttl_s: 6}", R"({"lease_ttl_s": 6})", "{", "[]", "null"})
    EXPECT_FALSE(read_manager_document(text)) << text;
}

}  // namespace
}  // namespace weir::apps
