// FakeModelDisk: models' files in memory, for unit tests. One thread.
#pragma once

#include "weir/net/sha256.hpp"
#include "weir/ports/model_disk.hpp"

#include <map>

namespace weir::test {

class FakeModelDisk final : public ModelDisk {
 public:
  std::map<std::string, std::string> files;  // by checksum
  int coming = 0;                            // uploads that are under way
  std::optional<Error> broken;               // what every attempt to write meets

  Async<std::unique_ptr<Incoming>> receive() override { co_return std::unique_ptr<Incoming>(new Arriving(*this)); }
  Async<std::unique_ptr<Outgoing>> open(std::string sha256) override {
    auto at = files.find(sha256);
    if (at == files.end()) co_return Error{Errc::unavailable, "file_missing", "it is not there"};
    co_return std::unique_ptr<Outgoing>(new Leaving(at->second));
  }
  Async<int> remove_unnamed(std::set<std::string> named) override {
    co_return static_cast<int>(std::erase_if(files, [&](const auto& each) { return !named.contains(each.first); }));
  }

 private:
  class Arriving final : public Incoming {
   public:
    explicit Arriving(FakeModelDisk& disk) : disk_(disk) { ++disk_.coming; }
    ~Arriving() override { --disk_.coming; }
    Async<Nothing> write(std::string piece) override {
      if (disk_.broken) co_return *disk_.broken;
      bytes_ += piece;
      co_return ok();
    }
    Async<std::string> keep(std::string expected) override {
      net::Sha256 sum;
      sum.add(bytes_);
      std::string sha256 = sum.hex();
      if (!expected.empty() && expected != sha256)
        co_return Error{Errc::unprocessable, "wrong_checksum", "another file arrived"};
      disk_.files[sha256] = bytes_;
      co_return sha256;
    }

   private:
    FakeModelDisk& disk_;
    std::string bytes_;
  };
  class Leaving final : public Outgoing {
   public:
    explicit Leaving(std::string bytes) : bytes_(std::move(bytes)), size_(bytes_.size()) {}
    std::uint64_t bytes() const override { return size_; }
    Async<std::string> read_some() override { co_return std::exchange(bytes_, {}); }

   private:
    std::string bytes_;
    const std::uint64_t size_;
  };
};

}  // namespace weir::test
