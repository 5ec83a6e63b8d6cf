#if __has_include(<onnxruntime_c_api.h>)

#include "session.hpp"

namespace weir::onnx {

Status open_session(const Runtime& runtime, std::string_view onnx, const SessionNeeds& needs,
                    Handle<OrtSession>& session) {
  const OrtApi& api = runtime.api();
  Handle<OrtSessionOptions> options(api.ReleaseSessionOptions);
  TRY(made, runtime.check(api.CreateSessionOptions(options.out())));
  TRY(intra, runtime.check(api.SetIntraOpNumThreads(options.get(), needs.threads)));
  TRY(inter, runtime.check(api.SetInterOpNumThreads(options.get(), 1)));
  // Cameras' threads want the processor while the next picture is not there yet.
  TRY(spin, runtime.check(api.AddSessionConfigEntry(options.get(), "session.intra_op.allow_spinning", "0")));
  if (needs.exact) {
    TRY(exact, runtime.check(api.AddSessionConfigEntry(options.get(), "session.x64quantprecision", "1")));
  }
  if (needs.shared) {
    TRY(shared, runtime.check(api.DisableMemPattern(options.get())));
  }
  return runtime.check(
      api.CreateSessionFromArray(runtime.env(), onnx.data(), onnx.size(), options.get(), session.out()));
}

}  // namespace weir::onnx

#endif
