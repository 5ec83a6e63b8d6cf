#include "model_facts.hpp"

#include "weir/base/plain_file.hpp"
#include "weir/onnx/labels.hpp"
#include "weir/ports/model_files.hpp"
#include "weir/tflite/labels.hpp"

namespace weir::apps {

Result<detector::ModelFacts> model_facts(const std::string& path) {
  TRY(bytes, for_model(read_plain_file(path, kModelBytesMax)));
  detector::ModelFacts facts;
  std::string_view mapping;
  if (tflite::is_model(bytes)) {
    facts.detector = "tflite";
    mapping = tflite::metadata_of(bytes, "weir_fields.json");
  } else if (onnx::is_model(bytes)) {
    facts.detector = "onnx";
    mapping = onnx::metadata_of(bytes, "weir_fields");
  } else {
    Error unknown = model_failure(path + " is neither a TensorFlow Lite nor an ONNX model");
    unknown.code = Errc::unsupported;  // and will not be one if it is fetched again
    return unknown;
  }
  if (mapping.empty()) return facts;
  auto fields = cluster::read_field_mapping(mapping);
  if (!fields)
    return Error{Errc::unsupported, "MODEL_ERROR",
                 fmt::format("what {} says in weir_fields cannot be read: {}", path, fields.error().message)};
  facts.fields = *std::move(fields);
  return facts;
}

}  // namespace weir::apps
