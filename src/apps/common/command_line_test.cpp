#include "command_line.hpp"

#include "api.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace weir::apps {
namespace {

Result<Parsed> parse(std::vector<std::string> words) { return parse_command_line(all_commands(), words); }

std::string refusal(std::vector<std::string> words) {
  auto parsed = parse(std::move(words));
  if (parsed) return "no error";
  EXPECT_EQ(exit_code(parsed.error()), 2);
  return parsed.error().message;
}

TEST(CommandLine, EveryCommand_HasHelp_WithAnExample) {
  std::set<std::string_view> paths;
  for (const Command& command : all_commands()) {
    EXPECT_TRUE(paths.insert(command.path).second) << command.path;
    std::vector<std::string> words;
    for (std::string_view rest = command.path; !rest.empty();) {
      size_t end = std::min(rest.find(' '), rest.size());
      words.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    words.push_back("--help");
    auto parsed = parse(words);
    ASSERT_TRUE(parsed) << command.path;
    EXPECT_EQ(parsed->command, nullptr);
    EXPECT_NE(parsed->help.find("Example:\n  weir " + std::string(command.path)), std::string::npos) << parsed->help;
    EXPECT_NE(parsed->help.find(command.sentence), std::string::npos) << command.path;
    for (const Option& option : command.options)
      EXPECT_NE(parsed->help.find(option.sentence), std::string::npos) << command.path << " " << option.name;
  }
}

TEST(CommandLine, Options_Switches_Settings_AndArguments_Arrive) {
  auto parsed = parse({"camera", "add", "rtsp://h/x", "--tenant", "t", "--json", "--max-fps=2.5", "--url", "http://h:1",
                       "--state-dir", "sd"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_NE(parsed->command, nullptr);
  EXPECT_EQ(parsed->command->path, "camera add");
  const Arguments& arguments = parsed->arguments;
  EXPECT_EQ(arguments.text("<camera_url>"), "rtsp://h/x");
  EXPECT_EQ(arguments.text("tenant"), "t");
  EXPECT_TRUE(arguments.has("json"));
  EXPECT_FALSE(arguments.has("site"));
  EXPECT_EQ(**arguments.number("max-fps"), 2.5);
  EXPECT_FALSE(arguments.number("site")->has_value());
  EXPECT_FALSE(arguments.number("tenant"));
  auto settings = arguments.settings();
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->text("control_plane_url"), "http://h:1");
  EXPECT_EQ(settings->origin("state_dir"), "flag --state-dir");
}

TEST(CommandLine, Db_IsShortForDatabaseUrl) {
  auto parsed = parse({"control-plane", "--db", "sqlite:x.db"});
  ASSERT_TRUE(parsed);
  auto settings = parsed->arguments.settings();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->secret("database_url").reveal(), "sqlite:x.db");
}

TEST(CommandLine, ControlPlane_IsShortForControlPlaneUrl) {
  for (std::vector<std::string> command : {std::vector<std::string>{"runner"}, {"status"}, {"camera", "list"}}) {
    command.insert(command.end(), {"--control-plane", "http://h:1"});
    auto parsed = parse(command);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->arguments.settings()->text("control_plane_url"), "http://h:1");
  }
  EXPECT_NE(parse({"runner", "--help"})->help.find("--control-plane,"), std::string::npos);
}

TEST(CommandLine, Help_ShowsTheDefaultsThatRun) {
  auto line_of = [](std::string command, std::string_view flag) {
    std::string help = parse({std::move(command), "--help"})->help;
    size_t at = help.find(flag);
    size_t end = at == std::string::npos ? at : help.find("\n  --", at);
    return at == std::string::npos ? "" : help.substr(at, end - at);
  };
  for (auto [flag, up, runner] : {std::tuple{"--capacity-streams", "Default 0.", "Default 0."},
                                  {"--drain-batch", "Default 10000.", "Default 4."},
                                  {"--drain-timeout-s", "Default 5.", "Default 60."}}) {
    EXPECT_NE(line_of("up", flag).find(up), std::string::npos) << line_of("up", flag);
    EXPECT_NE(line_of("runner", flag).find(runner), std::string::npos) << line_of("runner", flag);
  }
}

TEST(CommandLine, AnotherProgram_HintsAtItsOwnHelp) {
  const std::vector<Command> commands{{"shard", "Run a shard", "weir worker shard", ""}};
  auto parsed = parse_command_line(commands, {}, "weir worker");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "`weir worker` needs one of: shard; see weir worker --help");
}

TEST(CommandLine, EveryGroup_SaysWhatItIsAbout) {
  std::istringstream lines(parse({"--help"})->help);
  bool commands = false;
  int seen = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) commands = false;
    std::istringstream words(line);
    std::string name, about;
    if (commands && words >> name) {
      ++seen;
      EXPECT_TRUE(words >> about) << name << " says nothing";
    }
    if (line == "Subcommands:") commands = true;
  }
  EXPECT_GT(seen, 8);
}

TEST(CommandLine, WrongUsage_IsOneSentence_WithAHint) {
  EXPECT_EQ(refusal({"bogus"}), "there is no command \"weir bogus\"; see weir --help");
  EXPECT_EQ(refusal({"camera", "bogus"}), "there is no command \"weir camera bogus\"; see weir camera --help");
  EXPECT_EQ(refusal({"camera", "update", "--help"}),
            "there is no command \"weir camera update\"; the nearest: weir camera set; see weir camera --help");
  EXPECT_EQ(refusal({"nodes", "--help"}), "there is no command \"weir nodes\"; the nearest: weir node; see weir --help");
  EXPECT_EQ(refusal({"camera", "list", "--nope"}),
            "weir camera list does not take \"--nope\"; see weir camera list --help");
  EXPECT_TRUE(refusal({}).starts_with("`weir` needs one of: up, "));
  EXPECT_TRUE(refusal({"node"}).starts_with("`weir node` needs one of: list, "));
  const std::vector<std::vector<std::string>> kWrong = {{"camera", "show"},
                                                        {"token", "--role", "admin"},
                                                        {"up", "--for"},
                                                        {"tenant", "add", "a", "b"},
                                                        {"up", "--for", "1", "--for", "2"}};
  for (const auto& words : kWrong) {
    std::string said = refusal(words);
    EXPECT_NE(said.find("--help"), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST(CommandLine, AStrayUrl_IsNotRepeatedWithItsPassword) {
  std::string said = refusal({"camera", "list", "rtsp://u:hunter2@h/x"});
  EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
}

TEST(CommandLine, SettingsErrors_AreWrongUsage) {
  auto parsed = parse({"up", "--log-level", "loud"});
  ASSERT_TRUE(parsed);
  auto settings = parsed->arguments.settings();
  ASSERT_FALSE(settings);
  EXPECT_EQ(exit_code(settings.error()), 2);
  EXPECT_EQ(exit_code(Error{Errc::not_found, "camera_not_found", ""}), 1);
}

TEST(Api, Targets_AreEncoded) {
  EXPECT_EQ(route("/v1/cameras", "a/b c?"), "/v1/cameras/a%2Fb%20c%3F");
  EXPECT_EQ(route("/v1/sites", "s", "/budget"), "/v1/sites/s/budget");
  std::string target = "/v1/cameras";
  add_query(target, "tenant_id", "");
  add_query(target, "site_id", "a&b");
  add_query(target, "limit", "5");
  EXPECT_EQ(target, "/v1/cameras?site_id=a%26b&limit=5");
}

TEST(Api, AUrl_IsReachableFromThisMachine) {
  EXPECT_EQ(url_of("127.0.0.1:8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(url_of("0.0.0.0:8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(url_of("[::]:8080"), "http://[::1]:8080");
  EXPECT_EQ(url_of("10.0.0.1:80"), "http://10.0.0.1:80");
}

}  // namespace
}  // namespace weir::apps
