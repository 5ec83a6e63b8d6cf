#include "admin.hpp"
#include "common/api.hpp"
#include "common/model_labels.hpp"
#include "common/print.hpp"

#include "weir/posix/child_process.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::apps {

namespace {

// The helper that can read models does it; this process becomes it.
Result<int> labels_here(const Arguments& arguments) {
  std::string helper = posix::helper_path("worker");
  std::vector<std::string> words{helper, "labels"};
  if (arguments.has("<model>")) words.push_back(arguments.text("<model>"));
  if (arguments.has("models-dir")) words.insert(words.end(), {"--models-dir", arguments.text("models-dir")});
  if (arguments.has("json")) words.push_back("--json");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(helper.c_str(), argv.data());
  return Error{Errc::unavailable, "helper", fmt::format("cannot start {}: {}", helper, std::strerror(errno))};
}

Result<int> model_labels(const Arguments& arguments) {
  if (arguments.has("local")) return labels_here(arguments);
  if (arguments.has("models-dir")) return usage_error("--models-dir is for --local; see weir model labels --help");
  TRY(api, Api::connect(arguments));
  TRY(models, api.list("/v1/models?kind=runner"));
  if (models.empty())
    return Error{Errc::not_found, "no_models",
                 "no runner has said which models it has: start one (weir runner --help), or look at the models of "
                 "this machine (weir model labels --local)"};
  return print_labels(models, arguments.text("<model>"), arguments.has("json"));
}

// ---- models of detector clusters ----

Result<int> model_add(const Arguments& arguments) {
  std::string name = arguments.text("<name>");
  json::object body{{"name", name}};
  if (arguments.has("tenant")) body["tenant_id"] = arguments.text("tenant");
  TRY(id, whole_number(arguments, "id"));
  if (id) body["model_id"] = *id;
  if (arguments.has("metadata")) {
    auto metadata = json::parse_text(arguments.text("metadata"));
    if (!metadata || !metadata->is_object()) return usage_error("--metadata must be a JSON object");
    body["metadata"] = *std::move(metadata);
  }
  TRY(api, Api::connect(arguments));
  TRY(answer, api.send(net::Method::post, "/v1/models", body));
  return done(arguments, answer, fmt::format("added model {} under the number {}", name, cell(answer, "model_id")));
}

Result<int> model_list(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  TRY(items, api.list("/v1/models"));
  if (arguments.has("json")) return done(arguments, json::object{{"items", items}}, "");
  if (items.empty())
    return done(arguments, {}, "no models: no runner has said which it has, and none was added for detector clusters "
                               "(weir model add --help)");
  Table table({"KIND", "MODEL", "NAME", "TENANT", "RUNNERS"});
  for (const json::value& item : items)
    table.add({cell(item, "kind"), cell(item, cell(item, "kind") == "cluster" ? "model_id" : "detector"),
               cell(item, "name"), cell(item, "tenant_id"), cell(item, "runners")});
  print(table.text());
  return 0;
}

Result<int> model_remove(const Arguments& arguments) {
  TRY(api, Api::connect(arguments));
  std::string id = arguments.text("<model>");
  TRY(answer, api.send(net::Method::del, route("/v1/models", id)));
  return done(arguments, answer, fmt::format("removed model {}", id));
}

}  // namespace

std::vector<Command> model_commands() {
  return {{"model add", "Add a model that detector clusters give to their workers",
           "weir model add yolo11n --tenant t-01\n"
           "weir model add yolo11n --tenant t-01 --id 7 --metadata '{\"labels\":[\"car\"]}'",
           "admin",
           with_api_options({{"<name>", "NAME", "What workers call it", true},
                             {"tenant", "ID", "Whose it is; by default the token's tenant"},
                             {"id", "N", "Its number; by default the next above all there are"},
                             {"metadata", "JSON", "An object that is kept beside it: how its labels are mapped"}}),
           model_add},
          {"model list", "List the models: those that runners have, and those of detector clusters", "weir model list",
           "admin", with_api_options({}), model_list},
          {"model remove", "Remove a model of detector clusters that no playlist and no subscription names",
           "weir model remove 7", "admin", with_api_options({{"<model>", "N", "Its number", true}}), model_remove},
          {"model labels",
           "Print what a model's detections can be called, one label a line: the words for allow_labels",
           "weir model labels\nweir model labels yolo11n\n"
           "weir model labels --local --models-dir /usr/share/weir/models",
           "admin",
           with_api_options({{"<model>", "MODEL",
                              "A model's name, or a detector for its default; else the model of a camera that names none"},
                             {"local", "", "Look at the models of this machine instead of asking the runners"},
                             {"models-dir", "DIR", "With --local: where they lie"}}),
           model_labels}};
}

}  // namespace weir::apps
