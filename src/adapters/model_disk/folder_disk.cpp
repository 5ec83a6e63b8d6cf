#include "weir/model_disk/folder_disk.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"
#include "weir/net/sha256.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

namespace weir::model_disk {

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kIncoming = "incoming-";
constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kUnsyncedBytesMax = 64 << 20;  // so that the end of a large upload has little left to wait for

Error failure(std::string_view what) {
  return {Errc::unavailable, "model_files",
          fmt::format("cannot {} the folder of model files (model_files_dir, or detector_models_dir of a detection "
                      "worker): {}",
                      what, std::strerror(errno))};
}

bool is_checksum(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  const int fd;
};

Result<std::unique_ptr<Descriptor>> lock_folder(const std::string& folder) {
  auto lock = std::make_unique<Descriptor>(::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock->fd < 0) return failure("lock");
  while (::flock(lock->fd, LOCK_EX) != 0)
    if (errno != EINTR) return failure("lock");
  return lock;
}

// ---- a file that comes ----

// Removes itself where it was not kept.
struct Arriving {
  Arriving(int fd, std::string at) : file(fd), path(std::move(at)) {}
  ~Arriving() {
    if (!path.empty()) ::unlink(path.c_str());
  }
  Arriving(const Arriving&) = delete;

  Descriptor file;
  std::string path;
  net::Sha256 sum = {};
  size_t unsynced = 0;
};

Result<std::shared_ptr<Arriving>> begin(const std::string& folder) {
  std::error_code ignored;  // where the folder cannot be made, the file in it cannot either
  fs::create_directories(fs::path(folder).parent_path(), ignored);
  ::mkdir(folder.c_str(), 0700);
  std::string path = fmt::format("{}/{}{}", folder, kIncoming, random_hex(16));
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return failure("write to");
  return std::make_shared<Arriving>(fd, std::move(path));
}

Status add(Arriving& arriving, std::string_view bytes) {
  arriving.sum.add(bytes);
  arriving.unsynced += bytes.size();
  while (!bytes.empty()) {
    ssize_t put = ::write(arriving.file.fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return failure("write to");
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (arriving.unsynced < kUnsyncedBytesMax) return ok();
  arriving.unsynced = 0;
  if (::fdatasync(arriving.file.fd) != 0) return failure("write to");
  return ok();
}

// The time of change becomes now, so that nobody removes the file before a model names it.
Result<std::string> finish(const std::string& folder, Arriving& arriving, const std::string& expected) {
  std::string sum = arriving.sum.hex();
  if (!expected.empty() && sum != expected)
    return Error{Errc::unprocessable, "wrong_checksum",
                 fmt::format("the file that arrived has the SHA-256 {}, not {}; nothing of it is kept", sum, expected)};
  if (::futimens(arriving.file.fd, nullptr) != 0 || ::fsync(arriving.file.fd) != 0) return failure("write to");
  TRY(lock, lock_folder(folder));
  if (::rename(arriving.path.c_str(), fmt::format("{}/{}", folder, sum).c_str()) != 0) return failure("write to");
  arriving.path.clear();
  Descriptor entries(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entries.fd < 0 || ::fsync(entries.fd) != 0) return failure("write to");
  return sum;
}

// ---- files that are there ----

struct Leaving {
  explicit Leaving(int fd) : file(fd) {}
  Descriptor file;
  std::uint64_t bytes = 0;
};

Result<std::shared_ptr<Leaving>> open_kept(const std::string& folder, const std::string& sha256) {
  auto leaving = std::make_shared<Leaving>(::open(fmt::format("{}/{}", folder, sha256).c_str(), O_RDONLY | O_CLOEXEC));
  if (!is_checksum(sha256) || (leaving->file.fd < 0 && errno == ENOENT))
    return Error{Errc::unavailable, "file_missing",
                 "the model's file is not in this control plane's folder of model files (model_files_dir); control "
                 "planes of one store must share that folder"};
  struct stat facts {};
  if (leaving->file.fd < 0 || ::fstat(leaving->file.fd, &facts) != 0) return failure("read from");
  leaving->bytes = static_cast<std::uint64_t>(facts.st_size);
  return leaving;
}

Result<std::string> read_piece(const Leaving& leaving) {
  std::string piece(kPieceBytes, '\0');
  ssize_t got = -1;
  do got = ::read(leaving.file.fd, piece.data(), piece.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) return failure("read from");
  piece.resize(static_cast<size_t>(got));
  return piece;
}

bool lay_still(const std::string& path, Duration span) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return false;
  WallTime changed(std::chrono::seconds(facts.st_mtim.tv_sec));
  return wall_now() - changed >= span;
}

Result<int> sweep(const std::string& folder, const std::set<std::string>& named, Duration unnamed_for) {
  int removed = 0;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::string name = at->path().filename();
    bool ours = is_checksum(name) || name.starts_with(kIncoming);
    if (!ours || named.contains(name)) continue;
    TRY(lock, lock_folder(folder));
    if (lay_still(at->path(), unnamed_for) && ::unlink(at->path().c_str()) == 0) ++removed;
  }
  return removed;
}

}  // namespace

// ---- on the loop's thread ----

struct FolderDisk::State {
  State(std::string where, Duration span) : folder(std::move(where)), unnamed_for(span) {}

  template <class T>
  Async<T> run(std::function<Result<T>()> work) {
    auto result = std::make_shared<Result<T>>(Error{Errc::internal, "model_files", "the work was not done"});
    auto job = [](std::function<Result<T>()> what, std::shared_ptr<Result<T>> into) -> asio::awaitable<void> {
      *into = what();
      co_return;
    };
    co_await asio::co_spawn(threads, job(std::move(work), result), asio::use_awaitable);
    co_return std::move(*result);
  }
  // Closing and removing a large file takes its time, too.
  void let_go(std::shared_ptr<void> file) {
    asio::post(threads, [file = std::move(file)]() mutable { file.reset(); });
  }

  const std::string folder;
  const Duration unnamed_for;
  asio::thread_pool threads{2};  // no work on them holds this object: its end waits for theirs
};

class FolderDisk::IncomingFile final : public Incoming {
 public:
  IncomingFile(std::shared_ptr<State> state, std::shared_ptr<Arriving> file)
      : state_(std::move(state)), file_(std::move(file)) {}
  ~IncomingFile() override { state_->let_go(std::move(file_)); }

  Async<Nothing> write(std::string piece) override {
    std::function<Status()> work = [file = file_, piece = std::move(piece)] { return add(*file, piece); };
    return state_->run(std::move(work));
  }
  Async<std::string> keep(std::string expected) override {
    std::function<Result<std::string>()> work = [file = file_, folder = state_->folder,
                                                 expected = std::move(expected)] {
      return finish(folder, *file, expected);
    };
    return state_->run(std::move(work));
  }

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<Arriving> file_;
};

class FolderDisk::OutgoingFile final : public Outgoing {
 public:
  OutgoingFile(std::shared_ptr<State> state, std::shared_ptr<Leaving> file)
      : state_(std::move(state)), file_(std::move(file)) {}
  ~OutgoingFile() override { state_->let_go(std::move(file_)); }

  std::uint64_t bytes() const override { return file_->bytes; }
  Async<std::string> read_some() override {
    std::function<Result<std::string>()> work = [file = file_] { return read_piece(*file); };
    return state_->run(std::move(work));
  }

 private:
  const std::shared_ptr<State> state_;
  std::shared_ptr<Leaving> file_;
};

FolderDisk::FolderDisk(std::string folder, Duration unnamed_for)
    : state_(std::make_shared<State>(std::move(folder), unnamed_for)) {}

Async<std::unique_ptr<ModelDisk::Incoming>> FolderDisk::receive() {
  std::function<Result<std::shared_ptr<Arriving>>()> work = [folder = state_->folder] { return begin(folder); };
  CO_TRY(file, co_await state_->run(std::move(work)));
  co_return std::unique_ptr<Incoming>(std::make_unique<IncomingFile>(state_, std::move(file)));
}

Async<std::unique_ptr<ModelDisk::Outgoing>> FolderDisk::open(std::string sha256) {
  std::function<Result<std::shared_ptr<Leaving>>()> work = [folder = state_->folder, sha256 = std::move(sha256)] {
    return open_kept(folder, sha256);
  };
  CO_TRY(file, co_await state_->run(std::move(work)));
  co_return std::unique_ptr<Outgoing>(std::make_unique<OutgoingFile>(state_, std::move(file)));
}

Async<int> FolderDisk::remove_unnamed(std::set<std::string> named) {
  std::function<Result<int>()> work = [folder = state_->folder, span = state_->unnamed_for, named = std::move(named)] {
    return sweep(folder, named, span);
  };
  co_return co_await state_->run(std::move(work));
}

}  // namespace weir::model_disk
