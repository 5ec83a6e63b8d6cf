#include "gst.hpp"

#include <fmt/format.h>

namespace weir::camsim {

void init_gst() {
  static const bool done = (gst_init(nullptr, nullptr), true);
  (void)done;
}

Result<Pipeline> Pipeline::create(const std::string& text) {
  init_gst();
  GError* failed = nullptr;
  GstElement* pipeline = gst_parse_launch(text.c_str(), &failed);
  GErrorPtr error(failed);
  if (pipeline != nullptr) gst_object_ref_sink(pipeline);
  Pipeline made(pipeline);
  if (error) return Error{Errc::unsupported, "no_element", fmt::format("GStreamer: {}", error->message)};
  return made;
}

Pipeline::~Pipeline() {
  if (pipeline_) gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
}

Status Pipeline::status() const {
  Ref<GstBus> bus(gst_element_get_bus(pipeline_.get()));
  GstMessage* message = gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR);
  if (message == nullptr) return ok();
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  gst_message_unref(message);
  return Error{Errc::unprocessable, "bad_video", fmt::format("GStreamer: {}", GErrorPtr(error)->message)};
}

}  // namespace weir::camsim
