#include "weir/base/settings.hpp"

#include "temp_files.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

std::string file(const std::string& path) {
  return test::text_in_file(std::string(WEIR_SOURCE_DIR) + "/" + path);
}

auto environment(std::map<std::string, std::string> variables) {
  auto held = std::make_shared<std::map<std::string, std::string>>(std::move(variables));
  return [held](const char* name) -> const char* {
    auto found = held->find(name);
    return found == held->end() ? nullptr : found->second.c_str();
  };
}

std::string message(const Settings::Sources& sources) {
  auto loaded = Settings::load(sources);
  return loaded ? "no error" : loaded.error().message;
}

Settings::Sources yaml(std::string text) { return {.yaml = std::move(text), .yaml_name = "weir.yaml"}; }

TEST(Settings, ReferencePage_OnDisk_EqualsTheTable) { EXPECT_EQ(file("docs/settings.md"), settings_reference()); }
TEST(Settings, SampleFile_OnDisk_EqualsTheTable) { EXPECT_EQ(file("deploy/weir.sample.yaml"), settings_sample()); }

TEST(Settings, Sample_Loads_ToExactlyTheDefaults) {
  auto loaded = Settings::load({.yaml = settings_sample(), .yaml_name = "weir.sample.yaml"});
  ASSERT_TRUE(loaded) << loaded.error().message;
  Settings defaults;
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

TEST(Settings, EveryRow_IsWellFormed_AndItsDefaultAcceptable) {
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

TEST(Settings, Names_BecomeFlagsAndVariables) {
  EXPECT_EQ(setting_flag("lease_ttl_s"), "--lease-ttl-s");
  EXPECT_EQ(setting_environment("lease_ttl_s"), "LEASE_TTL_S");
  EXPECT_NE(find_setting("lease_ttl_s"), nullptr);
  EXPECT_EQ(find_setting("lease-ttl-s"), nullptr);
}

TEST(Settings, Flag_BeatsEnvironment_BeatsFile_BeatsDefault) {
  Settings::Sources sources = yaml("# comment\nlease_ttl_s: 10\nlisten: \"0.0.0.0:1\"\nstate_dir: from-file\n");
  sources.environment = environment({{"LEASE_TTL_S", "12"}, {"LISTEN", "0.0.0.0:2"}, {"LOG_DIR", ""}});
  sources.flags = {{"lease_ttl_s", "14.5"}};
  auto loaded = Settings::load(sources);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->duration("lease_ttl_s"), 14500ms);
  EXPECT_EQ(loaded->origin("lease_ttl_s"), "flag --lease-ttl-s");
  EXPECT_EQ(loaded->text("listen"), "0.0.0.0:2");
  EXPECT_EQ(loaded->origin("listen"), "environment LISTEN");
  EXPECT_EQ(loaded->text("state_dir"), "from-file");
  EXPECT_EQ(loaded->origin("state_dir"), "file weir.yaml:4");
  EXPECT_EQ(loaded->integer("database_pool_size"), 16);
  EXPECT_EQ(loaded->origin("database_pool_size"), "default");
  EXPECT_EQ(loaded->origin("log_dir"), "default") << "an empty variable counts as not set";
}

TEST(Settings, BadValues_NameKeyAllowedValueAndPlace) {
  struct Row {
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"database_pool_size: 65",
       "database_pool_size must be a whole number between 1 and 64, not \"65\" (file weir.yaml:1)"},
      {"database_pool_size: 3.5",
       "database_pool_size must be a whole number between 1 and 64, not \"3.5\" (file weir.yaml:1)"},
      {"\n\nlease_ttl_s: soon", "lease_ttl_s must be a number between 1 and 3600, not \"soon\" (file weir.yaml:3)"},
      {"lease_ttl_s: .nan", "lease_ttl_s must be a number between 1 and 3600, not \".nan\" (file weir.yaml:1)"},
      {"lease_ttl_s: nan", "lease_ttl_s must be a number between 1 and 3600, not \"nan\" (file weir.yaml:1)"},
      {"loopback_cameras: maybe",
       "loopback_cameras must be one of: auto, allow, refuse, not \"maybe\" (file weir.yaml:1)"},
      {"log_level: loud", "log_level must be one of: debug, info, warn, error, off, not \"loud\" (file weir.yaml:1)"},
      {"state_dir: \"a\\nb\"", "state_dir must be a single line of text, not \"a?b\" (file weir.yaml:1)"},
      {"lease_tl_s: 6", "there is no setting \"lease_tl_s\" (weir.yaml:1); the nearest one is lease_ttl_s"},
      {"listen: {host: a}", "listen must be a single value, not a list or a map (weir.yaml:1)"},
      {"listen: [a]", "listen must be a single value, not a list or a map (weir.yaml:1)"},
      {"listen:", "listen has no value (weir.yaml:1); an empty text is written as \"\""},
      {"listen: a\nlisten: b", "listen is given twice (weir.yaml:2)"},
      {"- listen", "weir.yaml: must be a list of \"name: value\" lines"},
      {"[a]: b", "a setting's name must be text (weir.yaml:1)"},
      {"listen: a\n---\nlisten: b", "weir.yaml: only one YAML document is allowed"},
      {"lease_ttl_s: 2",
       "lease_ttl_s must be between lease_ttl_min_s and lease_ttl_max_s, which are 3 and 60 (file weir.yaml:1)"},
      {"lease_renew_interval_s: 4",
       "lease_renew_interval_s must be at most half of lease_ttl_s, which is 6 (file weir.yaml:1)"},
      {"lease_ttl_min_s: 61", "lease_ttl_min_s must be at most lease_ttl_max_s, which is 60 (file weir.yaml:1)"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(message(yaml(text)), expected) << text;
  EXPECT_EQ(message({.environment = environment({{"DATABASE_POOL_SIZE", "0"}})}),
            "database_pool_size must be a whole number between 1 and 64, not \"0\" (environment DATABASE_POOL_SIZE)");
  EXPECT_EQ(message({.flags = {{"log_level", "x"}}}),
            "log_level must be one of: debug, info, warn, error, off, not \"x\" (flag --log-level)");
  EXPECT_EQ(message({.flags = {{"lgo_level", "x"}}}),
            "there is no setting \"lgo_level\" (flag); the nearest one is log_level");
}

TEST(Settings, BrokenYaml_IsOneSentence_WithItsLine) {
  for (std::string text : {"listen: \"a", "\tlisten: a", "listen: a\n  b: c: d", "*nowhere", "{", "listen: a\n b: c"}) {
    std::string said = message(yaml(text));
    EXPECT_TRUE(said.starts_with("weir.yaml:")) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  EXPECT_NE(message(yaml(std::string(100'000, '['))), "no error");
}

TEST(Settings, EmptyFiles_ChangeNothing) {
  for (std::string text : {"", "\n", "# only a comment\n", "---\n"}) EXPECT_EQ(message(yaml(text)), "no error");
}

TEST(Settings, SecretValues_AreNeverRepeated) {
  std::string canary = "postgres://weir:hunter2canary@db/weir\x01";
  for (const auto& sources : {Settings::Sources{.flags = {{"database_url", canary}}},
                              Settings::Sources{.environment = environment({{"DATABASE_URL", canary}})},
                              yaml("database_url: \"postgres://weir:hunter2canary@db/weir\\x01\""),
                              yaml("database_url: [\"postgres://weir:hunter2canary@db\"]"),
                              yaml("database_url: \"postgres://weir:hunter2canary@db")}) {
    std::string said = message(sources);
    EXPECT_NE(said, "no error");
    EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  }
  auto loaded = Settings::load({.flags = {{"database_url", "postgres://weir:hunter2canary@db/weir"}}});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->secret("database_url").reveal(), "postgres://weir:hunter2canary@db/weir");
}

TEST(SettingsDeathTest, AskingForTheWrongKind_IsAnImpossibleState) {
  Settings settings;
  EXPECT_DEATH((void)settings.text("lease_ttl_s"), "impossible state");
  EXPECT_DEATH((void)settings.text("no_such_setting"), "impossible state");
}

}  // namespace
}  // namespace weir
