// BlackBox: the input of the run that is under way, in memory that outlives the process which runs it.
//
// The process of the runs writes it; the supervisor reads it when that process has ended, however it ended. A replay
// file has the same form: the seed, then each part behind its size.
#pragma once

#include "target.hpp"

#include "weir/base/clock.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <new>

namespace weir::fuzz {

inline std::string packed(const Input& input) {
  std::string out;
  for (const std::string& part : input) {
    auto size = static_cast<std::uint32_t>(part.size());
    out.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
  }
  return out;
}

inline Input unpacked(std::string_view bytes) {
  Input input;
  for (std::uint32_t size = 0; bytes.size() >= sizeof size;) {
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    input.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(input.back().size());
  }
  return input;
}

class BlackBox {
 public:
  BlackBox() {
    void* shared =
        mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    content_ = new (shared) Content;
  }
  BlackBox(const BlackBox&) = delete;
  ~BlackBox() { munmap(content_, sizeof(Content)); }

  void put(std::uint64_t seed, const Input& input) {
    std::string bytes = packed(input);
    check(bytes.size() <= kBytesMax, "the fuzzer drew an input that does not fit into its black box");
    content_->seed = seed;
    content_->size = bytes.size();
    std::memcpy(content_->bytes, bytes.data(), bytes.size());
    content_->since = boot_now().time_since_epoch().count();
  }
  std::uint64_t seed() const { return content_->seed; }
  std::string input() const { return {content_->bytes, content_->size}; }
  // How long the present run has lasted.
  Duration age() const { return boot_now().time_since_epoch() - Duration(content_->since); }
  void start_waiting() { content_->since = boot_now().time_since_epoch().count(); }

 private:
  static constexpr size_t kBytesMax = 8 << 20;
  struct Content {
    std::uint64_t seed = 0;
    size_t size = 0;
    std::atomic<Duration::rep> since = 0;
    char bytes[kBytesMax];
  };
  Content* content_;
};

}  // namespace weir::fuzz
