// Ownership of GLib's and GStreamer's counted objects, and their errors as ours. Plain functions; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <gst/gst.h>

#include <memory>

namespace weir::camsim {

struct Unref {
  void operator()(gpointer object) const { g_object_unref(object); }
};
template <class T>
using Ref = std::unique_ptr<T, Unref>;

struct FreeError {
  void operator()(GError* error) const { g_error_free(error); }
};
using GErrorPtr = std::unique_ptr<GError, FreeError>;

void init_gst();

// A pipeline made from GStreamer's text form. It is stopped when the object is destroyed.
class Pipeline {
 public:
  static Result<Pipeline> create(const std::string& text);
  Pipeline(Pipeline&&) = default;
  ~Pipeline();

  template <class T>
  Ref<T> element(const char* name) const {
    return Ref<T>(reinterpret_cast<T*>(gst_bin_get_by_name(GST_BIN(pipeline_.get()), name)));
  }
  void play() { gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING); }
  // What went wrong since the pipeline began to play, if anything.
  Status status() const;

 private:
  explicit Pipeline(GstElement* pipeline) : pipeline_(pipeline) {}
  Ref<GstElement> pipeline_;
};

}  // namespace weir::camsim
