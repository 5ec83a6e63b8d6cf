#include "files.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace weir::apps {

namespace {
Error failure(std::string_view what, const std::string& path) {
  return Error{Errc::unavailable, std::string(kFileFailed), fmt::format("cannot {} {}: {}", what, path, std::strerror(errno))};
}
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd > 2) ::close(fd);
  }
};
}  // namespace

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  Descriptor file{path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return failure("read", path);
  std::string text;
  char buffer[65536];
  for (;;) {
    ssize_t got = ::read(file.fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("read", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > bytes_max)
      return Error{Errc::too_large, std::string(kFileFailed), fmt::format("{} is larger than {} bytes", path, bytes_max)};
  }
}

std::string trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

// A file that is replaced is another one, even if it was written in the same second.
std::string file_state(const std::string& path) {
  struct ::stat about {};
  if (::stat(path.c_str(), &about) != 0) return "";
  auto nanoseconds = [](const timespec& at) { return at.tv_sec * 1'000'000'000 + at.tv_nsec; };
  return fmt::format("{}/{}/{}/{}", about.st_ino, about.st_size, nanoseconds(about.st_mtim), nanoseconds(about.st_ctim));
}

Status write_file(const std::string& path, std::string_view text, unsigned mode) {
  std::string beside = path + ".new";
  {
    Descriptor file{::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)};
    if (file.fd < 0) return failure("write", beside);
    if (::write(file.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return failure("write", beside);
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) return failure("write", path);
  return ok();
}

Status make_private_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::path folder(path);
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failure("create the folder", path);
  if (!std::filesystem::is_directory(folder, failed))
    return Error{Errc::unavailable, std::string(kFileFailed), fmt::format("{} is not a folder", path)};
  return ok();
}

Result<std::string> spool_folder(const Settings& settings) {
  if (std::string given = settings.text("spool_dir"); !given.empty()) return given;
  TRY(made, make_private_folder(settings.text("state_dir")));
  return settings.text("state_dir") + "/spool";
}

}  // namespace weir::apps
