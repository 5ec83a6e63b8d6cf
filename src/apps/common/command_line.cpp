#include "command_line.hpp"

#include "words.hpp"

#include "weir/settings/all_settings.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <deque>

namespace weir::apps {

namespace {

// Short names that people expect, beside the ones that follow from the table.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"database_url", "--db"}, {"control_plane_url", "--control-plane"}, {"control_plane_url", "--url"}};

std::vector<std::string> split(std::string_view text) { return split_words(text, " "); }

bool contains_word(std::string_view text, std::string_view word) {
  auto words = split(text);
  return !word.empty() && std::find(words.begin(), words.end(), word) != words.end();
}

// What CLI11 fills while it parses. One entry an option of one command; addresses must not move.
struct Slot {
  const Command* command;
  std::string name;
  enum class Kind { option, setting, config } kind;
  CLI::Option* declared = nullptr;
  std::string value = {};
  std::vector<std::string> values = {};
};

class Grammar {
 public:
  Grammar(std::span<const Command> commands, std::string_view program)
      : app_("Weir keeps exactly one processor on every live stream."), program_(program) {
    app_.name(program_);
    app_.set_help_flag("-h,--help", "Show this help");
    std::string footer = fmt::format("`{} COMMAND --help` shows options and an example.", program_);
    if (program == "weir")
      footer = "`weir worker|egress|camsim|hook …` start the helpers weir-worker, weir-egress, weir-camsim and "
               "weir-hook, where installed.\n" + footer + "\n\nExample:\n  weir up";
    app_.footer(footer);
    for (const Command& command : commands) add(command);
  }

  Result<Parsed> parse(std::vector<std::string> words) {
    TRY(known, all_known(words));
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    try {
      app_.parse(words);
    } catch (const CLI::CallForHelp&) {
      return Parsed{.help = app_.help()};
    } catch (const CLI::ParseError& failed) {
      return usage_error(hinted(sentence(failed)));
    }
    const CLI::App* chosen = deepest();
    auto found = by_app_.find(chosen);
    if (found == by_app_.end()) return usage_error(hinted(missing_command(*chosen)));
    return collect(*found->second);
  }

 private:
  // A word that is none of a group's commands is wrong usage, whatever follows it: CLI11 would answer a --help behind it
  // with the group's.
  Status all_known(const std::vector<std::string>& words) {
    const CLI::App* at = &app_;
    std::string path;
    for (const std::string& word : words) {
      if (by_app_.contains(at) || word.starts_with('-')) break;
      path += " " + word;
      auto next = by_path_.find(path);
      if (next == by_path_.end()) return usage_error(no_command(*at, path.substr(0, path.size() - word.size() - 1), word));
      at = next->second;
    }
    return ok();
  }

  std::string no_command(const CLI::App& group, std::string_view before, const std::string& word) const {
    std::string words = program_ + std::string(before);
    std::vector<std::string> meant = nearest(word, names_in(group));
    std::string between = fmt::format(", {} ", words);
    std::string hint = meant.empty() ? "" : fmt::format("; the nearest: {} {}", words, fmt::join(meant, between));
    return fmt::format("there is no command \"{} {}\"{}; see {} --help", words, redact_url(word), hint, words);
  }

  static std::vector<std::string> names_in(const CLI::App& group) {
    std::vector<std::string> names;
    for (const CLI::App* each : group.get_subcommands({})) names.push_back(each->get_name());
    return names;
  }

  void add(const Command& command) {
    CLI::App* at = &app_;
    std::string path;
    for (const std::string& word : split(command.path)) {
      path += " " + word;
      CLI::App*& next = by_path_[path];
      if (next == nullptr) {
        next = at->add_subcommand(word, group_sentence(word));
        next->set_help_flag("-h,--help", "Show this help");
      }
      at = next;
    }
    at->description(std::string(command.sentence));
    at->footer("Example:\n" + indented(command.example));
    by_app_[at] = &command;
    for (const Option& option : command.options) add(*at, command, option);
    if (command.settings.empty()) return;
    // A worker's --config is its shard; its settings file has another name.
    bool taken = std::ranges::any_of(command.options, [](const Option& o) { return o.name == "config"; });
    Slot& config = slots_.emplace_back(Slot{&command, "config", Slot::Kind::config});
    config.declared = at->add_option(taken ? "--settings" : "--config", config.value, "A settings file (YAML)");
    config.declared->type_name("FILE")->group("Settings");
    for (const SettingSpec& spec : all_settings())
      if (command.settings == "all" || contains_word(spec.used_by, command.settings)) add(*at, command, spec);
  }

  void add(CLI::App& at, const Command& command, const Option& option) {
    Slot& slot = slots_.emplace_back(Slot{&command, std::string(option.name), Slot::Kind::option});
    const std::string sentence(option.sentence);  // const: CLI11 would take a changeable one for the result
    bool named = !option.name.starts_with('<');
    std::string name = named ? "--" + slot.name : slot.name.substr(1, slot.name.size() - 2);
    if (option.value.empty()) {
      slot.declared = at.add_flag(name, sentence);
    } else {
      slot.declared = option.many ? at.add_option(name, slot.values, sentence) : at.add_option(name, slot.value, sentence);
      slot.declared->type_name(std::string(option.value))->required(option.required);
    }
  }

  void add(CLI::App& at, const Command& command, const SettingSpec& spec) {
    Slot& slot = slots_.emplace_back(Slot{&command, std::string(spec.name), Slot::Kind::setting});
    std::string names = setting_flag(spec.name);
    for (const auto& [setting, alias] : kAliases)
      if (setting == spec.name) names += "," + std::string(alias);
    std::string sentence(spec.sentence);
    std::string_view fallback = default_of(command, spec);
    if (!fallback.empty()) sentence += fmt::format(" Default {}.", fallback);
    slot.declared = at.add_option(names, slot.value, sentence)
                        ->type_name(spec.unit.empty() ? "TEXT" : std::string(spec.unit))
                        ->group("Settings");
  }

  Parsed collect(const Command& command) const {
    std::map<std::string, std::string, std::less<>> given;
    std::map<std::string, std::vector<std::string>, std::less<>> lists;
    std::map<std::string, std::string> flags;
    std::optional<std::string> config;
    for (const Slot& slot : slots_) {
      if (slot.command != &command || slot.declared->count() == 0) continue;
      switch (slot.kind) {
        case Slot::Kind::option:
          given[slot.name] = slot.value;
          if (!slot.values.empty()) lists[slot.name] = slot.values;
          break;
        case Slot::Kind::setting: flags[slot.name] = slot.value; break;
        case Slot::Kind::config: config = slot.value; break;
      }
    }
    return Parsed{&command, Arguments(std::move(given), std::move(flags), std::move(config), std::move(lists))};
  }

  const CLI::App* deepest() const {
    const CLI::App* at = &app_;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return at;
  }

  std::string command_words() const {
    std::string words = program_;
    for (const CLI::App* at = &app_; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      words += " " + at->get_name();
    }
    return words;
  }

  std::string hinted(std::string message) const { return fmt::format("{}; see {} --help", message, command_words()); }

  std::string missing_command(const CLI::App& group) const {
    return fmt::format("`{}` needs one of: {}", command_words(), fmt::join(names_in(group), ", "));
  }

  // CLI11's own words, except where they would repeat a value: a stray argument may be a URL with a password.
  std::string sentence(const CLI::ParseError& failed) const {
    if (dynamic_cast<const CLI::ExtrasError*>(&failed) != nullptr) {
      auto rest = app_.remaining(true);
      std::string first = rest.empty() ? std::string("something") : redact_url(rest.front());
      return fmt::format("{} does not take \"{}\"", command_words(), first.substr(0, first.find('=')));
    }
    if (dynamic_cast<const CLI::RequiredError*>(&failed) != nullptr ||
        dynamic_cast<const CLI::ArgumentMismatch*>(&failed) != nullptr) {
      std::string what = failed.what();
      return what.substr(0, what.find('\n'));
    }
    return fmt::format("{} cannot be read: wrong use of an option", command_words());
  }

  static std::string group_sentence(std::string_view word) {
    if (word == "tenant") return "Who owns sites and cameras";
    if (word == "site") return "Places with cameras, and how quickly they may be dialled";
    if (word == "camera") return "What should be processed";
    if (word == "zone") return "Where in a camera's picture detections count";
    if (word == "model") return "What detectors can see, and the models of detector clusters";
    if (word == "display") return "For which displays a detector cluster looks at which camera";
    if (word == "playlist") return "What displays show, and which model looks for it";
    if (word == "subscription") return "Cameras that a detector cluster looks at without a display";
    if (word == "node") return "Runners, as an operator sees them";
    if (word == "lease") return "Who owns which camera now";
    if (word == "stream") return "Published streams: what becomes of them, orders and wishes";
    if (word == "key") return "API keys: what runners and programs buy their tokens with";
    if (word == "store") return "Backup, restore and move of what the control plane keeps";
    return "";
  }

  static std::string indented(std::string_view lines) {
    std::string out;
    while (!lines.empty()) {
      size_t end = lines.find('\n');
      out += fmt::format("  {}\n", lines.substr(0, end));
      lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
    }
    if (!out.empty()) out.pop_back();
    return out;
  }

  CLI::App app_;
  const std::string program_;
  std::deque<Slot> slots_;
  std::map<std::string, CLI::App*> by_path_;
  std::map<const CLI::App*, const Command*> by_app_;
};

}  // namespace

Result<Parsed> parse_command_line(std::span<const Command> commands, const std::vector<std::string>& words,
                                  std::string_view program) {
  return Grammar(commands, program).parse(words);
}

}  // namespace weir::apps
