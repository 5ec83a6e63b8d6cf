// The commands that are not a server: each function lists those of one file.
// Plain values; main thread only.
#pragma once

#include "common/command.hpp"

#include "weir/base/json.hpp"
#include "weir/net/token.hpp"

namespace weir::apps {

// The role that --role names; a usage error where there is no such role.
Result<net::Role> read_role(const std::string& text);

// What a command that changed something prints: the sentence, or the answer where JSON was asked for; and the warnings
// in the answer.
int done(const Arguments& arguments, const json::value& answer, std::string_view sentence);

// The whole number that an option gives, or none; a usage error where it gives something else.
Result<std::optional<std::int64_t>> whole_number(const Arguments& arguments, std::string_view option);

std::vector<Command> token_commands();
std::vector<Command> key_commands();
std::vector<Command> tenant_commands();
std::vector<Command> site_commands();
std::vector<Command> camera_commands();
std::vector<Command> zone_commands();
std::vector<Command> model_commands();
std::vector<Command> model_file_commands();
std::vector<Command> display_commands();
std::vector<Command> node_commands();
std::vector<Command> lease_commands();
std::vector<Command> stream_commands();
std::vector<Command> event_commands();
std::vector<Command> status_commands();
std::vector<Command> store_commands();
std::vector<Command> size_commands();
std::vector<Command> about_commands();

}  // namespace weir::apps
