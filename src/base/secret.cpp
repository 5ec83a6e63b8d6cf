#include "weir/base/secret.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace weir {

bool equal_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~')
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 ? c - '0' : (c | 32) - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
        std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

namespace {
struct UrlParts {
  std::string_view before, userinfo, middle, query;
  bool ambiguous = false;  // an '@' after a '?' or '#': a password's or a query's, nobody can tell
};

UrlParts split_url(std::string_view url) {
  UrlParts parts;
  size_t start = url.find("://");
  start = start == std::string_view::npos ? 0 : start + 3;
  parts.before = url.substr(0, start);
  std::string_view rest = url.substr(start);
  // A password may hold '/' or '?' unescaped, so the last '@' before any plain path decides; too much hidden is safe.
  size_t at = rest.rfind('@');
  if (at != std::string_view::npos) {
    parts.userinfo = rest.substr(0, at);
    parts.ambiguous = parts.userinfo.find_first_of("?#") != std::string_view::npos;
    rest = rest.substr(at + 1);
  }
  size_t query = rest.find_first_of("?#");
  parts.middle = rest.substr(0, query);
  if (query != std::string_view::npos) parts.query = rest.substr(query);
  return parts;
}
}  // namespace

std::string redact_url(std::string_view url) {
  UrlParts parts = split_url(url);
  std::string out(parts.before);
  if (parts.ambiguous) return out + "***";
  if (!parts.userinfo.empty()) out += "***@";
  // Some cameras take their password in the path: "/user=admin&password=x&channel=1.sdp".
  size_t path = parts.middle.find('/');
  bool assigns = path != std::string_view::npos && parts.middle.find('=', path) != std::string_view::npos;
  out += assigns ? std::string(parts.middle.substr(0, path)) + "/***" : std::string(parts.middle);
  if (!parts.query.empty()) out += "?***";
  return out;
}

namespace {
constexpr size_t kCutMin = 4;  // characters of a secret at the end of a text
}

void Redactor::learn(std::string_view value) {
  std::string decoded = percent_decode(value);
  std::string encoded = percent_encode(decoded);
  std::string lower = encoded;  // "%2F" is "%2f" to some
  for (size_t i = 0; i + 2 < lower.size(); ++i) {
    if (lower[i] != '%') continue;
    for (size_t j = i + 1; j <= i + 2; ++j)
      lower[j] = static_cast<char>(std::tolower(static_cast<unsigned char>(lower[j])));
  }
  for (const std::string& form : {std::string(value), percent_encode(value), decoded, encoded, lower})
    if (form.size() >= 3) values_.insert(form);
}

void Redactor::learn_pairs(std::string_view pairs, std::string_view separators) {
  while (!pairs.empty()) {
    size_t end = pairs.find_first_of(separators);
    std::string_view pair = pairs.substr(0, end);
    if (size_t eq = pair.find('='); eq != std::string_view::npos) learn(pair.substr(eq + 1));
    pairs = end == std::string_view::npos ? std::string_view() : pairs.substr(end + 1);
  }
}

void Redactor::learn_url(std::string_view url) {
  UrlParts parts = split_url(url);
  size_t colon = parts.userinfo.find(':');
  learn(parts.userinfo.substr(0, colon));
  if (colon != std::string_view::npos) learn(parts.userinfo.substr(colon + 1));
  // All of it, so that values in the path count too, and an '@' inside a value does not cut it.
  learn_pairs(url.substr(parts.before.size()), "&;/?#");
  if (!parts.query.empty()) learn_pairs(parts.query.substr(1), "&");
}

std::string Redactor::redact(std::string_view text) const {
  // Marked first and replaced then: known values may overlap, and each must go completely.
  std::vector<bool> hidden(text.size());
  for (const std::string& value : values_)
    for (size_t at = text.find(value); at != std::string_view::npos; at = text.find(value, at + 1))
      std::fill_n(hidden.begin() + static_cast<std::ptrdiff_t>(at), value.size(), true);
  // A text may have been cut off in the middle of one.
  for (const std::string& value : values_)
    for (size_t length = std::min(value.size(), text.size()); length >= kCutMin; --length)
      if (text.ends_with(std::string_view(value).substr(0, length))) {
        std::fill_n(hidden.end() - static_cast<std::ptrdiff_t>(length), length, true);
        break;
      }
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!hidden[i])
      out += text[i];
    else if (i == 0 || !hidden[i - 1])
      out += "***";
  }
  return out;
}

}  // namespace weir
