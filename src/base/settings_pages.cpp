// The pages that are made from a table of settings: the reference and the sample file.
#include "weir/base/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weir {

namespace {

using Kind = SettingKind;

std::string_view kind_words(Kind kind) {
  switch (kind) {
    case Kind::text: return "text";
    case Kind::integer: return "whole number";
    case Kind::number: return "number";
    case Kind::flag: return "true or false";
    case Kind::secret: return "secret";
  }
  return "";
}

// Bounds and choices for a person, "" where everything goes.
std::string limits(const SettingSpec& spec) {
  if (auto words = choices(spec); !words.empty()) return fmt::format("{}", fmt::join(words, ", "));
  return spec.bounded() ? fmt::format("{} to {}", spec.low, spec.high) : std::string();
}

std::string unit_of(const SettingSpec& spec) { return choices(spec).empty() ? std::string(spec.unit) : std::string(); }

std::string yaml_value(const SettingSpec& spec) {
  bool quoted = spec.kind == Kind::text || spec.kind == Kind::secret;
  return quoted ? fmt::format("\"{}\"", spec.fallback) : std::string(spec.fallback);
}

// Breaks a sentence into comment lines of at most 110 columns.
std::string comment(std::string_view sentence) {
  std::string out, line = "#";
  while (!sentence.empty()) {
    size_t end = sentence.find(' ');
    std::string_view word = sentence.substr(0, end);
    if (line.size() + 1 + word.size() > 110) {
      out += line + "\n";
      line = "#";
    }
    line += fmt::format(" {}", word);
    sentence = end == std::string_view::npos ? std::string_view() : sentence.substr(end + 1);
  }
  return out + line + "\n";
}

}  // namespace

std::string settings_reference(const SettingTable& table) {
  std::string out =
      "# Settings\n\n"
      "Every setting can be given in three ways; a flag beats the environment, which beats the file named by "
      "`--config FILE` (`--settings FILE` for `weir worker shard`).\n"
      "An environment variable that is set but empty counts as not set. An unknown key or a bad value is an error that "
      "says where it stood.\n"
      "This page is made from the table in the code: `weir settings --reference`. `weir settings` shows the values in "
      "effect and where each came from; `weir settings --sample` prints a file with every default.\n\n"
      "| setting (YAML) | flag | environment | kind | default | unit | allowed | used by | what it does |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& spec : table)
    out += fmt::format("| `{}` | `{}` | `{}` | {} | {} | {} | {} | {} | {} |\n", spec.name, setting_flag(spec.name),
                       setting_environment(spec.name), kind_words(spec.kind),
                       spec.fallback.empty() ? "empty" : fmt::format("`{}`", spec.fallback), unit_of(spec),
                       limits(spec), spec.used_by, spec.sentence);
  out +=
      "\n`--db` is short for `--database-url`. \"admin\" stands for the commands that ask a control plane: `tenant`, "
      "`site`, `camera`, `zone`, `node`, `lease`, `events`, `key`, `status`; they also take `WEIR_URL` and "
      "`WEIR_TOKEN`, a runner `WEIR_URL`.\n"
      "A secret is never shown in a log, an error or by `weir settings`.\n";
  return out;
}

std::string settings_sample(const SettingTable& table) {
  std::string out =
      "# Every setting of Weir at its default. Loading this file unchanged changes nothing, but for "
      "the settings of which\n"
      "# `weir up` has defaults of its own, as they say.\n"
      "# Use it with: weir control-plane --config FILE\n";
  for (const auto& spec : table) {
    std::string note = unit_of(spec);
    if (std::string bounds = limits(spec); !bounds.empty()) note += (note.empty() ? "" : ", ") + bounds;
    out += "\n" + comment(spec.sentence);
    if (!note.empty()) out += comment(fmt::format("({})", note));
    out += fmt::format("{}: {}\n", spec.name, yaml_value(spec));
  }
  return out;
}

}  // namespace weir
