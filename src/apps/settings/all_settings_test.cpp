#include "weir/settings/all_settings.hpp"

#include "temp_files.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weir {
namespace {

std::string file(const std::string& path) {
  return test::text_in_file(std::string(WEIR_SOURCE_DIR) + "/" + path);
}

std::string message(const Settings::Sources& sources) {
  auto loaded = Settings::load(all_settings(), sources);
  return loaded ? "no error" : loaded.error().message;
}

TEST(AllSettings, ReferencePage_OnDisk_EqualsTheTable) {
  EXPECT_EQ(file("docs/settings.md"), settings_reference(all_settings()));
}
TEST(AllSettings, SampleFile_OnDisk_EqualsTheTable) {
  EXPECT_EQ(file("deploy/weir.sample.yaml"), settings_sample(all_settings()));
}

TEST(AllSettings, Sample_Loads_ToExactlyTheDefaults) {
  Settings::Sources sample{.yaml = settings_sample(all_settings()), .yaml_name = "weir.sample.yaml"};
  auto loaded = Settings::load(all_settings(), sample);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Settings defaults(all_settings());
  for (const auto& spec : all_settings()) {
    EXPECT_TRUE(loaded->origin(spec.name).starts_with("file weir.sample.yaml:")) << spec.name;
    switch (spec.kind) {
      case SettingKind::text: EXPECT_EQ(loaded->text(spec.name), defaults.text(spec.name)); break;
      case SettingKind::secret: EXPECT_EQ(loaded->secret(spec.name), defaults.secret(spec.name)); break;
      case SettingKind::integer: EXPECT_EQ(loaded->integer(spec.name), defaults.integer(spec.name)); break;
      case SettingKind::number: EXPECT_EQ(loaded->number(spec.name), defaults.number(spec.name)); break;
      case SettingKind::flag: EXPECT_EQ(loaded->flag(spec.name), defaults.flag(spec.name)); break;
    }
  }
}

TEST(AllSettings, EveryRow_IsWellFormed_AndItsDefaultAcceptable) {
  std::set<std::string_view> names;
  for (const auto& spec : all_settings()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " stands twice";
    EXPECT_TRUE(spec.sentence.ends_with('.')) << spec.name;
    EXPECT_FALSE(spec.used_by.empty()) << spec.name;
    EXPECT_EQ(spec.sentence.find('|'), std::string_view::npos) << spec.name << " would break the table";
    Settings::Sources given{.flags = {{std::string(spec.name), std::string(spec.fallback)}}};
    EXPECT_EQ(message(given), "no error") << spec.name;
  }
}

TEST(AllSettings, ThoseThatDoNotGoTogether_AreRefused_WithTheOtherOnesValue) {
  const std::pair<std::string, std::string> rows[] = {
      {"lease_ttl_s: 2",
       "lease_ttl_s must be between lease_ttl_min_s and lease_ttl_max_s, which are 3 and 60 (file weir.yaml:1)"},
      {"lease_renew_interval_s: 4",
       "lease_renew_interval_s must be at most half of lease_ttl_s, which is 6 (file weir.yaml:1)"},
      {"lease_ttl_min_s: 61", "lease_ttl_min_s must be at most lease_ttl_max_s, which is 60 (file weir.yaml:1)"},
      {"retry_base_delay_ms: 10001",
       "retry_base_delay_ms must be at most retry_max_delay_ms, which is 10000 (file weir.yaml:1)"},
      {"go2rtc_api: http://10.0.0.1:1984", "go2rtc_api must be http:// with 127.0.0.1, localhost or [::1] and a port, and "
                                           "nothing after it (file weir.yaml:1)"},
      {"go2rtc_api: http://127.0.0.1:1984/x", "go2rtc_api must be http:// with 127.0.0.1, localhost or [::1] and a port, and "
                                             "nothing after it (file weir.yaml:1)"},
      {"go2rtc_rtsp_base: http://localhost:8554", "go2rtc_rtsp_base must be rtsp:// with 127.0.0.1, localhost or [::1] and a "
                                                  "port, and nothing after it (file weir.yaml:1)"},
      {"tls_certificate_file: a.pem",
       "tls_certificate_file must be given together with tls_key_file (file weir.yaml:1)"},
      {"tls_key_file: a.key", "tls_key_file must be given together with tls_certificate_file (file weir.yaml:1)"},
  };
  for (const auto& [text, expected] : rows)
    EXPECT_EQ(message({.yaml = text, .yaml_name = "weir.yaml"}), expected) << text;
}

}  // namespace
}  // namespace weir
