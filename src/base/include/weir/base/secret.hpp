// Secret: a string that cannot be printed by accident, and the tools that keep secrets out of texts.
//
// A Secret has no stream operator and no formatter: putting one into a log line or an error does not compile.
// `reveal` is the one way out and easy to search for. URLs are shown through `redact_url`; texts of foreign libraries
// go through a Redactor, which knows the secret values themselves, raw and percent-encoded.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

namespace weir {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  const std::string& reveal() const { return value_; }
  bool empty() const { return value_.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::string value_;
};

// Takes the same time wherever the texts differ; only their lengths show.
bool equal_constant_time(std::string_view a, std::string_view b);

// "rtsp://user:pass@host/x?token=y" → "rtsp://***@host/x?***": neither user info nor the query survives, nor a path
// with an assignment in it. Where an '@' cannot be told from a query's, everything after the scheme is hidden.
std::string redact_url(std::string_view url);

// Replaces every known secret in a text by "***", and its beginning where the text ends there. Not shared between threads.
class Redactor {
 public:
  // Learns the user, password and assigned values of a URL, as written and percent-decoded and -encoded.
  void learn_url(std::string_view url);
  // Values shorter than three characters are ignored: redacting "a" everywhere would destroy the text.
  void learn(std::string_view value);
  std::string redact(std::string_view text) const;

 private:
  void learn_pairs(std::string_view pairs, std::string_view separators);
  std::set<std::string> values_;
};

std::string percent_encode(std::string_view text);
std::string percent_decode(std::string_view text);

}  // namespace weir

template <>
struct fmt::formatter<weir::Secret>;  // declared, never defined: a Secret cannot be formatted
