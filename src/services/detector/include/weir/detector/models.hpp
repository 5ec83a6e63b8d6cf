// Models: where a detection worker gets its models' files.
// Loop thread only.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/cluster/field_mapping.hpp"
#include "weir/ports/async.hpp"

namespace weir::detector {

// What a file says about the model in it.
struct ModelFacts {
  std::string detector;               // that runs it: "tflite" or "onnx"
  cluster::FieldMapping fields = {};  // what its labels mean
};
struct StoredModel {
  std::string sha256;  // of the file; the model's name on this machine
  ModelFacts facts;
};

class Models {
 public:
  virtual ~Models() = default;
  // The model that this address leads to, once its file is on this machine. `unavailable`: asking again may help.
  virtual Async<StoredModel> get(Secret url) = 0;
};

}  // namespace weir::detector
