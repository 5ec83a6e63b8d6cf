// Command: one thing a person can ask of `weir`, declared as data.
//
// A command lists its options and the sentence and example its --help shows; which settings it takes as flags follows
// from the settings table (`used_by`). Parsing turns a command line into Arguments; `run` does the work and answers
// with the exit code, or with an Error that becomes one sentence on stderr. Plain values; main thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/settings.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

struct Option {
  std::string_view name;   // "tenant" is --tenant; "<camera>" is the argument without a name
  std::string_view value;  // what stands for its value in --help; "" for a switch
  std::string_view sentence;
  bool required = false;
  bool many = false;  // may be given several times, or several words after each other
};

class Arguments {
 public:
  Arguments() = default;
  Arguments(std::map<std::string, std::string, std::less<>> given, std::map<std::string, std::string> flags,
            std::optional<std::string> config_file, std::map<std::string, std::vector<std::string>, std::less<>> lists = {})
      : given_(std::move(given)), lists_(std::move(lists)), flags_(std::move(flags)), config_file_(std::move(config_file)) {}

  bool has(std::string_view name) const { return given_.contains(name); }
  std::string text(std::string_view name) const;  // "" where it was not given
  std::vector<std::string> list(std::string_view name) const;  // of an option that takes many
  // The number that was given, or none; a usage error where it is not one.
  Result<std::optional<double>> number(std::string_view name) const;
  // Flags over environment over file, read anew at each call.
  Result<Settings> settings() const;
  const std::optional<std::string>& config_file() const { return config_file_; }

 private:
  std::map<std::string, std::string, std::less<>> given_;
  std::map<std::string, std::vector<std::string>, std::less<>> lists_;
  std::map<std::string, std::string> flags_;  // by setting name
  std::optional<std::string> config_file_;
};

struct Command {
  std::string_view path;  // "camera add"
  std::string_view sentence;
  std::string_view example;   // lines to copy
  std::string_view settings;  // the word in the table's `used_by`, or "all"; "" where it takes none
  std::vector<Option> options = {};
  Result<int> (*run)(const Arguments& arguments) = nullptr;
  std::span<const std::pair<std::string_view, std::string_view>> defaults = {};  // settings whose default is another here
};
// The value of a setting for this command where it is not given.
std::string_view default_of(const Command& command, const SettingSpec& spec);

// Every command there is, in the order of the overview.
const std::vector<Command>& all_commands();

// The error of wrong usage: exit code 2 and a hint to --help.
Error usage_error(std::string message);
// 2 for wrong usage and wrong settings, 1 for everything else.
int exit_code(const Error& error);

}  // namespace weir::apps
