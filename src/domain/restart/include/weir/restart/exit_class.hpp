// ExitClass: what the end of a child process means for its next start.
//
// Workers and forwarders of published streams end with codes that say why they ended; this file turns a code into what
// a supervisor does about it, and into words for a person. An end without an exit code, one by a signal and one with an
// unknown code are transient. Pure; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace weir::restart {

inline constexpr int kExitClean = 0, kExitConfiguration = 10, kExitInputNotReady = 20, kExitDenied = 30,
                     kExitTransient = 40, kExitInternal = 50, kExitLeaseLost = 60, kExitParentGone = 70;

enum class ExitClass {
  clean,            // it ended in good order
  configuration,    // it cannot work with its settings
  input_not_ready,  // the stream that it reads is not there: nobody's failure
  denied,           // the other side refuses it, and will refuse it again
  transient,        // trying again may help
  lease_lost,       // its right ended
};
inline constexpr std::array<json::EnumName<ExitClass>, 6> kExitClassNames = {
    {{ExitClass::clean, "clean"}, {ExitClass::configuration, "configuration"},
     {ExitClass::input_not_ready, "input_not_ready"}, {ExitClass::denied, "denied"},
     {ExitClass::transient, "transient"}, {ExitClass::lease_lost, "lease_lost"}}};
constexpr auto& enum_names(ExitClass) { return kExitClassNames; }

// `code`: 128 + n where signal n ended the process; nothing where nobody knows how it ended.
ExitClass classify_exit(std::optional<int> code);
// "ended with a configuration error (exit code 10)", "was ended by signal 9": follows the child's name in a sentence.
std::string describe_exit(std::optional<int> code);

}  // namespace weir::restart
