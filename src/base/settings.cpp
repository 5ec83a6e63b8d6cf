#include "weir/base/settings.hpp"

#include "weir/base/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace weir {

namespace {

using Kind = SettingKind;

// "a whole number between 1 and 64", "one of: auto, allow, refuse"
std::string allowed(const SettingSpec& spec) {
  if (auto words = choices(spec); !words.empty()) return fmt::format("one of: {}", fmt::join(words, ", "));
  std::string range = spec.bounded() ? fmt::format(" between {} and {}", spec.low, spec.high) : std::string();
  switch (spec.kind) {
    case Kind::integer: return "a whole number" + range;
    case Kind::number: return "a number" + range;
    case Kind::flag: return "true or false";
    case Kind::text:
    case Kind::secret: break;
  }
  return "a single line of text";
}

template <class T>
std::optional<T> parse_whole_text(std::string_view text) {
  T number{};
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> parse_flag(std::string_view text) {
  for (auto word : {"true", "yes", "on", "1"})
    if (text == word) return true;
  for (auto word : {"false", "no", "off", "0"})
    if (text == word) return false;
  return std::nullopt;
}

bool acceptable(const SettingSpec& spec, std::string_view text) {
  auto within = [&](double number) {
    return std::isfinite(number) && (!spec.bounded() || (number >= spec.low && number <= spec.high));
  };
  switch (spec.kind) {
    case Kind::text:
    case Kind::secret: {
      if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) return false;
      auto words = choices(spec);
      return words.empty() || std::ranges::find(words, text) != words.end();
    }
    case Kind::integer: {
      auto number = parse_whole_text<std::int64_t>(text);
      return number && within(static_cast<double>(*number));
    }
    case Kind::number: {
      auto number = parse_whole_text<double>(text);
      return number && within(*number);
    }
    case Kind::flag: return parse_flag(text).has_value();
  }
  return false;
}

// A value as an error may show it: bounded, and without anything that a terminal would obey.
std::string harmless(std::string_view text) {
  std::string out;
  for (unsigned char c : text.substr(0, 60)) out += c < 0x20 || c >= 0x7F ? '?' : static_cast<char>(c);
  return text.size() > 60 ? out + "…" : out;
}

Error bad_value(const SettingSpec& spec, std::string_view text, std::string_view origin) {
  std::string value = spec.kind == Kind::secret ? std::string() : fmt::format(", not \"{}\"", harmless(text));
  return Error{Errc::invalid,
               "bad_setting",
               fmt::format("{} must be {}{} ({})", spec.name, allowed(spec), value, origin),
               {{"field", spec.name}}};
}

Error unknown_key(const SettingTable& table, std::string_view key, std::string_view origin) {
  std::string text = harmless(key);
  const auto& nearest = *std::ranges::min_element(
      table, {}, [&](const SettingSpec& spec) { return slips_between(spec.name, text); });
  return Error{Errc::invalid,
               "unknown_setting",
               fmt::format("there is no setting \"{}\" ({}); the nearest one is {}", text, origin, nearest.name),
               {{"field", text}}};
}

struct FileEntry {
  std::string key;
  std::string value;
  int line;
};

Error bad_file(std::string message) { return Error{Errc::invalid, "bad_settings_file", std::move(message)}; }

// The flat map that a settings file is. yaml-cpp throws; nothing of that leaves here, and none of its messages
// repeats a value.
Result<std::vector<FileEntry>> read_yaml(const SettingTable& table, const std::string& text, std::string_view name) {
  auto at = [&](const YAML::Mark& mark) { return fmt::format("{}:{}", name, mark.line + 1); };
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) return bad_file(fmt::format("{}: only one YAML document is allowed", name));
    std::vector<FileEntry> entries;
    if (documents.empty() || documents[0].IsNull()) return entries;
    if (!documents[0].IsMap()) return bad_file(fmt::format("{}: must be a list of \"name: value\" lines", name));
    std::set<std::string> seen;
    for (const auto& entry : documents[0]) {
      if (!entry.first.IsScalar())
        return bad_file(fmt::format("a setting's name must be text ({})", at(entry.first.Mark())));
      std::string key = entry.first.Scalar();
      std::string where = at(entry.first.Mark());
      if (table.find(key) == nullptr) return unknown_key(table, key, where);
      if (!seen.insert(key).second) return bad_file(fmt::format("{} is given twice ({})", key, where));
      if (entry.second.IsNull())
        return bad_file(fmt::format("{} has no value ({}); an empty text is written as \"\"", key, where));
      if (!entry.second.IsScalar())
        return bad_file(fmt::format("{} must be a single value, not a list or a map ({})", key, where));
      entries.push_back({std::move(key), entry.second.Scalar(), entry.first.Mark().line + 1});
    }
    return entries;
  } catch (const YAML::Exception& failed) {
    return bad_file(fmt::format("{} is not valid YAML: {}", at(failed.mark), failed.msg));
  }
}

}  // namespace

SettingTable::SettingTable(std::vector<SettingGroup> groups) : groups_(std::move(groups)) {
  for (const SettingGroup& group : groups_) rows_.insert(rows_.end(), group.rows.begin(), group.rows.end());
}

const SettingSpec* SettingTable::find(std::string_view name) const {
  auto found = std::ranges::find(rows_, name, &SettingSpec::name);
  return found == rows_.end() ? nullptr : &*found;
}

Status SettingTable::check(const Settings& loaded) const {
  for (const SettingGroup& group : groups_)
    if (Status fits = group.check ? group.check(loaded) : ok(); !fits) return fits;
  return ok();
}

std::vector<std::string_view> choices(const SettingSpec& spec) {
  std::vector<std::string_view> words;
  if (spec.kind != Kind::text || spec.unit.find('|') == std::string_view::npos) return words;
  for (std::string_view rest = spec.unit;;) {
    size_t end = rest.find('|');
    words.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) return words;
    rest = rest.substr(end + 1);
  }
}

std::string setting_flag(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string setting_environment(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

Settings::Settings(const SettingTable& table) : table_(&table) {
  for (const auto& spec : table) values_[std::string(spec.name)] = {std::string(spec.fallback), "default"};
}

Result<Settings> Settings::load(const SettingTable& table, const Sources& sources) {
  Settings settings(table);
  std::string_view file = sources.yaml_name.empty() ? std::string_view("settings file") : sources.yaml_name;
  TRY(entries, read_yaml(table, sources.yaml, file));
  for (const auto& [key, value, line] : entries) {
    TRY(stored, settings.put(*table.find(key), value, fmt::format("file {}:{}", file, line)));
  }
  for (const auto& spec : table) {
    std::string variable = setting_environment(spec.name);
    const char* value = sources.environment ? sources.environment(variable.c_str()) : nullptr;
    // Compose files and units set empty variables where they mean none.
    if (value == nullptr || *value == '\0') continue;
    TRY(stored, settings.put(spec, value, "environment " + variable));
  }
  for (const auto& [name, value] : sources.flags) {
    const SettingSpec* spec = table.find(name);
    if (spec == nullptr) return unknown_key(table, name, "flag");
    TRY(stored, settings.put(*spec, value, "flag " + setting_flag(name)));
  }
  TRY(together, table.check(settings));
  return settings;
}

Status Settings::put(const SettingSpec& spec, std::string text, std::string origin) {
  if (!acceptable(spec, text)) return bad_value(spec, text, origin);
  values_[std::string(spec.name)] = {std::move(text), std::move(origin)};
  return ok();
}

const std::string& Settings::raw(std::string_view name, SettingKind kind) const {
  const SettingSpec* spec = table_->find(name);
  WEIR_ASSERT(spec != nullptr);
  WEIR_ASSERT(spec->kind == kind || (kind == Kind::number && spec->kind == Kind::integer));
  return values_.find(name)->second.text;
}

std::string Settings::text(std::string_view name) const { return raw(name, Kind::text); }
Secret Settings::secret(std::string_view name) const { return Secret(raw(name, Kind::secret)); }
std::int64_t Settings::integer(std::string_view name) const {
  return *parse_whole_text<std::int64_t>(raw(name, Kind::integer));
}
double Settings::number(std::string_view name) const { return *parse_whole_text<double>(raw(name, Kind::number)); }
bool Settings::flag(std::string_view name) const { return *parse_flag(raw(name, Kind::flag)); }
Duration Settings::duration(std::string_view name) const { return from_seconds(number(name)); }

std::string Settings::shown(const SettingSpec& spec) const {
  switch (spec.kind) {
    case Kind::text: return text(spec.name);
    case Kind::secret: return secret(spec.name).empty() ? "" : "***";
    case Kind::integer: return fmt::format("{}", integer(spec.name));
    case Kind::number: return fmt::format("{}", number(spec.name));
    case Kind::flag: return flag(spec.name) ? "true" : "false";
  }
  return {};
}

Error Settings::refused(std::string_view name, std::string_view rule) const {
  return {Errc::invalid, "bad_setting", fmt::format("{} must be {} ({})", name, rule, origin(name)), {{"field", name}}};
}

std::string Settings::origin(std::string_view name) const {
  auto found = values_.find(name);
  WEIR_ASSERT(found != values_.end());
  return found->second.origin;
}

}  // namespace weir
