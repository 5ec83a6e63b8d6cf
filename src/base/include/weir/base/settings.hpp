// Settings: every knob of Weir, declared once, beside the service that reads it.
//
// A service declares a group of rows; a program puts the groups of all services together into one table. A row gives
// a setting its name, kind, default, unit, bounds and sentence. From it come the flag (`--lease-ttl-s`), the
// environment variable (`LEASE_TTL_S`), the YAML key (`lease_ttl_s`), the reference page and the commented sample
// file. A flag beats the environment, which beats the file. An unknown key or a bad value is an error that names the
// key, what is allowed and where it stood. A Settings value is constant after loading, as a table is, and may be read
// from any thread; its table must outlive it.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

enum class SettingKind { text, integer, number, flag, secret };

struct SettingSpec {
  std::string_view name;      // the YAML key
  SettingKind kind;
  std::string_view fallback;  // as it would be written in YAML; "" is an empty text
  std::string_view unit;      // "" where there is none
  std::string_view sentence;
  std::string_view used_by;   // commands, space-separated
  double low = 0;             // bounds of integers and numbers; both 0: none
  double high = 0;
  bool bounded() const { return low != 0 || high != 0; }
};
// The words of a text whose unit lists them ("a|b"), which takes one of these words only; of all others none.
std::vector<std::string_view> choices(const SettingSpec& spec);
std::string setting_flag(std::string_view name);         // "lease_ttl_s" → "--lease-ttl-s"
std::string setting_environment(std::string_view name);  // "lease_ttl_s" → "LEASE_TTL_S"

class Settings;

// What one service declares.
struct SettingGroup {
  std::span<const SettingSpec> rows;                  // constants
  Status (*check)(const Settings& loaded) = nullptr;  // what no single row can say
};

class SettingTable {
 public:
  explicit SettingTable(std::vector<SettingGroup> groups);
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  const SettingSpec* find(std::string_view name) const;  // null: there is no such setting
  Status check(const Settings& loaded) const;

 private:
  std::vector<SettingGroup> groups_;
  std::vector<SettingSpec> rows_;
};

class Settings {
 public:
  struct Sources {
    std::map<std::string, std::string> flags = {};                                       // by setting name
    std::function<const char*(const char*)> environment = [](const char*) -> const char* { return nullptr; };
    std::string yaml = {};
    std::string yaml_name = {};  // where the YAML came from, for messages
  };
  // Every setting at its default.
  explicit Settings(const SettingTable& table);
  static Result<Settings> load(const SettingTable& table, const Sources& sources);

  std::string text(std::string_view name) const;
  Secret secret(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool flag(std::string_view name) const;
  Duration duration(std::string_view name) const;  // a number of seconds
  // As a person may see it: "***" for a secret that is given.
  std::string shown(const SettingSpec& spec) const;
  // "default", "file weir.yaml:3", "environment LEASE_TTL_S", "flag --lease-ttl-s"
  std::string origin(std::string_view name) const;
  // The error of a setting that does not go with another one: "NAME must be RULE (where it stood)".
  Error refused(std::string_view name, std::string_view rule) const;

 private:
  struct Value {
    std::string text;
    std::string origin;
  };
  const std::string& raw(std::string_view name, SettingKind kind) const;
  Status put(const SettingSpec& spec, std::string text, std::string origin);
  const SettingTable* table_;
  std::map<std::string, Value, std::less<>> values_;
};

// The reference page (Markdown) and the commented sample file (YAML).
std::string settings_reference(const SettingTable& table);
std::string settings_sample(const SettingTable& table);

}  // namespace weir
