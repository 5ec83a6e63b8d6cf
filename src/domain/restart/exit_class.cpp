#include "weir/restart/exit_class.hpp"

#include <fmt/format.h>

namespace weir::restart {

ExitClass classify_exit(std::optional<int> code) {
  if (!code) return ExitClass::transient;
  switch (*code) {
    case kExitClean: return ExitClass::clean;
    case kExitConfiguration: return ExitClass::configuration;
    case kExitInputNotReady: return ExitClass::input_not_ready;
    case kExitDenied: return ExitClass::denied;
    case kExitLeaseLost: return ExitClass::lease_lost;
    default: return ExitClass::transient;
  }
}

std::string describe_exit(std::optional<int> code) {
  if (!code) return "ended, and nobody saw its exit code";
  if (*code > 128 && *code < 128 + 65) return fmt::format("was ended by signal {}", *code - 128);
  auto with_code = [&](std::string_view what) { return fmt::format("{} (exit code {})", what, *code); };
  switch (*code) {
    case kExitClean: return with_code("ended in good order");
    case kExitConfiguration: return with_code("ended with a configuration error");
    case kExitInputNotReady: return with_code("ended because its input was not there");
    case kExitDenied: return with_code("ended because it was denied");
    case kExitTransient: return with_code("ended with a transient failure");
    case kExitInternal: return with_code("ended with an internal error");
    case kExitLeaseLost: return with_code("ended because its lease was lost");
    case kExitParentGone: return with_code("ended because its parent was gone");
    default: return with_code("ended unexpectedly");
  }
}

}  // namespace weir::restart
