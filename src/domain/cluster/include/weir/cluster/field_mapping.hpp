// FieldMapping: what a model's labels mean in the fields of a detection result.
//
// A model says "truck" and "toyota_hilux"; those who listen to a cluster ask for a body type, a brand and a model. The
// model's file carries the translation, for each field from labels to values:
//
//   {"bodyType": {"car": "sedan", "truck": "truck"}, "carYear": {"hilux_2019": 2019}}
//
// Pure functions; any thread.
#pragma once

#include "weir/cluster/worker_protocol.hpp"

namespace weir::cluster {

struct FieldMapping {
  using Texts = std::map<std::string, std::string, std::less<>>;
  Texts car_model = {}, car_brand = {};
  std::map<std::string, std::int64_t, std::less<>> car_year = {};
  Texts body_type = {}, license_plate_text = {}, license_plate_type = {};
  friend bool operator==(const FieldMapping&, const FieldMapping&) = default;
};

// An error names the field and the label. A field that is none of a detection's is an error, too: it is misspelt.
Result<FieldMapping> read_field_mapping(std::string_view text);
// Each field is what the most certain of the boxes says whose label means something there.
Detection describe(const FieldMapping& mapping, const std::vector<Box>& boxes);

}  // namespace weir::cluster
