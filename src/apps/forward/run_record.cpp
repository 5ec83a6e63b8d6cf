#include "run_record.hpp"

#include "common/files.hpp"

#include "weir/base/json.hpp"

namespace weir::apps {

std::int64_t count_restarts(const std::string& folder, std::string_view file, const egress::Identity& identity) {
  std::string path = fmt::format("{}/{}-{}.run", folder, file, identity.stream);
  std::int64_t restarts = 0;
  auto text = read_file(path, 4096);
  auto parsed = text ? json::parse_text(*text) : Result<json::value>(json::value());
  if (parsed && parsed->is_object()) {
    auto word = [&](std::string_view name) {
      const auto* value = parsed->get_object().if_contains(name);
      return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
    };
    const auto* before = parsed->get_object().if_contains("restarts");
    if (word("run_id") == identity.run && before != nullptr && before->is_int64())
      restarts = before->get_int64() + (word("instance_id") == identity.instance ? 0 : 1);
  }
  json::object record{{"run_id", identity.run}, {"instance_id", identity.instance}, {"restarts", restarts}};
  (void)write_file(path, json::to_text(record), 0600);  // a record that cannot be kept costs a number, no stream
  return restarts;
}

}  // namespace weir::apps
