#include "words.hpp"

#include "weir/base/spelling.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weir::apps {

namespace {

// What other tools call the same thing.
constexpr std::pair<std::string_view, std::string_view> kSameMeaning[] = {
    {"update", "set"},    {"change", "set"},    {"edit", "set"},     {"modify", "set"},  {"patch", "set"},
    {"delete", "remove"}, {"rm", "remove"},     {"del", "remove"},   {"create", "add"},  {"new", "add"},
    {"ls", "list"},       {"get", "show"},      {"describe", "show"}, {"picture", "snapshot"}, {"probe", "test"},
    {"dump", "export"},   {"load", "import"},   {"runner", "node"},  {"host", "node"},   {"stop", "disable"},
    {"start", "enable"}};

}  // namespace

std::vector<std::string> split_words(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t end = text.find_first_of(separators);
    if (end != 0) words.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return words;
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  auto [stopped, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc{} || stopped != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string counted(int n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  std::vector<std::pair<size_t, std::string>> found;
  for (const std::string& each : known) {
    bool same = std::ranges::any_of(kSameMeaning, [&](const auto& pair) { return pair.first == word && pair.second == each; });
    bool begins = word.size() >= 2 && (each.starts_with(word) || word.starts_with(each));
    size_t apart = slips_between(word, each);
    bool close = apart <= (std::min(word.size(), each.size()) >= 4 ? 2u : 1u);
    if (same || begins || close) found.emplace_back(same ? 0 : apart, each);
  }
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<std::string> out;
  for (const auto& [apart, each] : found)
    if (apart == found.front().first && out.size() < 3) out.push_back(each);
  return out;
}

}  // namespace weir::apps
