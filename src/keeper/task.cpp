#include "task.hpp"

namespace weir::keeper {

namespace {

constexpr size_t kDigitsMax = 18;

// The text after "--NAME=", which ends where the argument ends; null for any other argument.
const char* value_of(const char* argument, std::string_view name) {
  std::string_view text(argument);
  return text.starts_with(name) ? argument + name.size() : nullptr;
}

bool take(const char* argument, Task& task) {
  if (const char* folder = value_of(argument, "--folder=")) return *(task.folder = folder) != '\0';
  if (const char* nonce = value_of(argument, "--nonce=")) return *(task.nonce = nonce) != '\0';
  const char* text = nullptr;
  auto number = [&](std::string_view name, auto& out, auto unit) {
    text = value_of(argument, name);
    auto read = text != nullptr ? read_number(text) : std::nullopt;
    if (read) out = unit(*read);
    return read.has_value();
  };
  auto plain = [](std::int64_t n) { return n; };
  auto us = [](std::int64_t n) { return Micros(n); };
  auto ms = [](std::int64_t n) { return Micros(n * 1000); };
  return number("--version=", task.version, plain) || number("--until-us=", task.valid_until, us) ||
         number("--stop-grace-ms=", task.stop_grace, ms) || number("--backstop-ms=", task.backstop, ms);
}

}  // namespace

std::optional<std::int64_t> read_number(std::string_view text) {
  if (text.empty() || text.size() > kDigitsMax) return std::nullopt;
  std::int64_t number = 0;
  for (char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
  }
  return number;
}

std::optional<Task> read_task(int argc, char** argv) {
  Task task;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") {
      task.command = argv + i + 1;
      break;
    }
    if (!take(argv[i], task)) return std::nullopt;
  }
  bool whole = task.folder != nullptr && task.nonce != nullptr && task.command != nullptr && *task.command != nullptr;
  return whole ? std::optional(task) : std::nullopt;
}

}  // namespace weir::keeper
