#include "yaml.hpp"

#include <yaml-cpp/yaml.h>

#include <charconv>

namespace weir::apps {

namespace {

json::value scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return json::value(text);  // what yaml-cpp calls quoted
  if (text == "true" || text == "false") return text == "true";
  if (text == "null" || text == "~") return nullptr;
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (auto [at, failed] = std::from_chars(text.data(), end, whole); failed == std::errc{} && at == end) return whole;
  double number = 0;
  if (auto [at, failed] = std::from_chars(text.data(), end, number); failed == std::errc{} && at == end) return number;
  return json::value(text);
}

}  // namespace

json::value to_json(const YAML::Node& node, const std::function<bool(std::string_view)>& is_text) {
  if (node.IsSequence()) {
    json::array out;
    for (const auto& each : node) out.push_back(to_json(each, is_text));
    return out;
  }
  if (node.IsMap()) {
    json::object out;
    for (const auto& each : node) {
      std::string key = each.first.IsScalar() ? each.first.Scalar() : std::string("?");
      bool text = is_text && is_text(key) && each.second.IsScalar();
      out[key] = text ? json::value(each.second.Scalar()) : to_json(each.second, is_text);
    }
    return out;
  }
  return node.IsScalar() ? scalar(node) : json::value();
}

Result<json::value> read_yaml(const std::string& text, std::string_view file_name) {
  try {
    return to_json(YAML::Load(text));
  } catch (const YAML::Exception& failed) {
    return Error{Errc::invalid, "bad_yaml",
                 fmt::format("{}:{} is not valid YAML: {}", file_name, failed.mark.line + 1, failed.msg)};
  }
}

}  // namespace weir::apps
