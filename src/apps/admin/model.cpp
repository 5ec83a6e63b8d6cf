#include "admin.hpp"
#include "common/api.hpp"
#include "common/model_labels.hpp"

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
  TRY(models, api.list("/v1/models"));
  if (models.empty())
    return Error{Errc::not_found, "no_models",
                 "no runner has said which models it has: start one (weir runner --help), or look at the models of "
                 "this machine (weir model labels --local)"};
  return print_labels(models, arguments.text("<model>"), arguments.has("json"));
}

}  // namespace

std::vector<Command> model_commands() {
  return {{"model labels",
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
