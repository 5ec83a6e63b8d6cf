#include "labels.hpp"

#include "common/logging.hpp"
#include "common/model_labels.hpp"
#include "detectors.hpp"

namespace weir::apps {

namespace {
Result<int> run_labels(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  DetectorFolders folders = detector_folders(settings);
  json::array models = json::write_value(list_models(folders)).as_array();
  if (models.empty() && !arguments.has("json"))
    return Error{Errc::not_found, "no_models",
                 fmt::format("there is no model in {}; --models-dir or MODELS_DIR names another folder",
                             folders.models)};
  return print_labels(models, arguments.text("<model>"), arguments.has("json"));
}
}  // namespace

Command labels_command() {
  return {.path = "labels",
          .sentence = "Prints what the detections of a model on this machine can be called, one label a line",
          .example = "weir-worker labels\nweir-worker labels yolo11n --models-dir /usr/share/weir/models",
          .settings = "labels",
          .options = {{"<model>", "MODEL",
                       "A model's name, or a detector for its default; else the model of a camera that names none"},
                      {"json", "", "Prints every model with its labels as JSON"}},
          .run = run_labels};
}

}  // namespace weir::apps
