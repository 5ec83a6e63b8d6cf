#include "weir/base/settings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

// A table of two services, small enough to know by heart.
constexpr SettingSpec kServer[] = {
    {"listen", SettingKind::text, "127.0.0.1:8080", "host:port", "Where it answers.", "server"},
    {"database_url", SettingKind::secret, "", "URL", "The store.", "server"},
    {"database_pool_size", SettingKind::integer, "16", "connections", "How many it opens.", "server", 1, 64},
    {"state_dir", SettingKind::text, ".weir", "path", "Its folder.", "server client"},
    {"lease_ttl_s", SettingKind::number, "6", "s", "How long a lease lasts.", "server client", 1, 3600},
    {"lease_ttl_max_s", SettingKind::number, "60", "s", "The longest lease.", "server", 1, 3600},
    {"loopback_cameras", SettingKind::text, "auto", "auto|allow|refuse", "Whether they may stand here.", "server"},
};
constexpr SettingSpec kClient[] = {
    {"log_level", SettingKind::text, "info", "debug|info|warn|error|off", "What is logged.", "server client"},
    {"log_dir", SettingKind::text, "", "path", "Where to.", "client"},
    {"verify", SettingKind::flag, "true", "", "Whether certificates count.", "client"},
};
Status lease_fits(const Settings& s) {
  if (s.number("lease_ttl_s") <= s.number("lease_ttl_max_s")) return ok();
  return s.refused("lease_ttl_s", "at most lease_ttl_max_s");
}
const SettingTable& table() {
  static const SettingTable all({{kServer, lease_fits}, {kClient}});
  return all;
}

auto environment(std::map<std::string, std::string> variables) {
  auto held = std::make_shared<std::map<std::string, std::string>>(std::move(variables));
  return [held](const char* name) -> const char* {
    auto found = held->find(name);
    return found == held->end() ? nullptr : found->second.c_str();
  };
}

std::string message(const Settings::Sources& sources) {
  auto loaded = Settings::load(table(), sources);
  return loaded ? "no error" : loaded.error().message;
}

Settings::Sources yaml(std::string text) { return {.yaml = std::move(text), .yaml_name = "weir.yaml"}; }

TEST(SettingTable, Groups_StandInTheirOrder_AndAreFoundByName) {
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : table()) names.push_back(spec.name);
  ASSERT_EQ(names.size(), 10u);
  EXPECT_EQ(names.front(), "listen");
  EXPECT_EQ(names[7], "log_level") << "the second group follows the first";
  ASSERT_NE(table().find("log_dir"), nullptr);
  EXPECT_EQ(table().find("log_dir")->sentence, "Where to.");
  EXPECT_EQ(table().find("log-dir"), nullptr);
}

TEST(SettingTable, Pages_ShowEveryRow) {
  std::string reference = settings_reference(table()), sample = settings_sample(table());
  for (const SettingSpec& spec : table()) {
    EXPECT_NE(reference.find(fmt::format("\n| `{}` | ", spec.name)), std::string::npos) << reference;
    EXPECT_NE(sample.find(fmt::format("\n# {}\n", spec.sentence)), std::string::npos) << sample;
  }
  std::string_view row = "`LEASE_TTL_S` | number | `6` | s | 1 to 3600 | server client | How long a lease lasts. |\n";
  EXPECT_NE(reference.find(row), std::string::npos);
  EXPECT_NE(sample.find("\n# (debug, info, warn, error, off)\nlog_level: \"info\"\n"), std::string::npos);
}

TEST(Settings, Names_BecomeFlagsAndVariables) {
  EXPECT_EQ(setting_flag("lease_ttl_s"), "--lease-ttl-s");
  EXPECT_EQ(setting_environment("lease_ttl_s"), "LEASE_TTL_S");
}

TEST(Settings, Flag_BeatsEnvironment_BeatsFile_BeatsDefault) {
  Settings::Sources sources = yaml("# comment\nlease_ttl_s: 10\nlisten: \"0.0.0.0:1\"\nstate_dir: from-file\n");
  sources.environment = environment({{"LEASE_TTL_S", "12"}, {"LISTEN", "0.0.0.0:2"}, {"LOG_DIR", ""}});
  sources.flags = {{"lease_ttl_s", "14.5"}};
  auto loaded = Settings::load(table(), sources);
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

TEST(Settings, AsShown_NumbersAreShort_AndASecretIsNotTold) {
  Settings::Sources given{
      .flags = {{"lease_ttl_s", "14.50"}, {"verify", "no"}, {"database_url", "canary"}, {"log_dir", "logs"}}};
  auto loaded = Settings::load(table(), given);
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::map<std::string_view, std::string> shown;
  for (const SettingSpec& spec : table()) shown[spec.name] = loaded->shown(spec);
  EXPECT_EQ(shown["lease_ttl_s"], "14.5");
  EXPECT_EQ(shown["database_pool_size"], "16");
  EXPECT_EQ(shown["verify"], "false");
  EXPECT_EQ(shown["database_url"], "***");
  EXPECT_EQ(shown["log_dir"], "logs");
  EXPECT_EQ(Settings(table()).shown(*table().find("database_url")), "") << "nothing is given";
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
      {"lease_ttl_s: 61", "lease_ttl_s must be at most lease_ttl_max_s (file weir.yaml:1)"},
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
  auto loaded = Settings::load(table(), {.flags = {{"database_url", "postgres://weir:hunter2canary@db/weir"}}});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->secret("database_url").reveal(), "postgres://weir:hunter2canary@db/weir");
}

TEST(SettingsDeathTest, AskingForTheWrongKind_IsAnImpossibleState) {
  Settings settings(table());
  EXPECT_DEATH((void)settings.text("lease_ttl_s"), "impossible state");
  EXPECT_DEATH((void)settings.text("no_such_setting"), "impossible state");
}

}  // namespace
}  // namespace weir
