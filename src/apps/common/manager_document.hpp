// Manager documents: JSON that other programs write for a manager of workers, with the seconds spelled out in its names
// and with what its workers shall do beside it. `--config` takes such a file in the place of a settings file. Plain
// function; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

struct ManagerDocument {
  std::string settings;             // the same as a settings file
  std::vector<std::string> unused;  // the names in it that mean nothing to Weir's runner
};
// None where the text is no such document.
std::optional<ManagerDocument> read_manager_document(std::string_view text);

}  // namespace weir::apps
