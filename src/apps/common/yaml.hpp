// YAML as JSON values: for files that people write by hand and code that reads JSON.
//
// A scalar without quotes is a number, a truth or null where it looks like one, and a text otherwise. Plain functions;
// any thread.
#pragma once

#include "weir/base/json.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace YAML {
class Node;
}

namespace weir::apps {

// `is_text`: the keys whose values are texts even where they look like a number, as an id may.
json::value to_json(const YAML::Node& node, const std::function<bool(std::string_view)>& is_text = {});
// The whole document; the error names the file and the line.
Result<json::value> read_yaml(const std::string& text, std::string_view file_name);

}  // namespace weir::apps
