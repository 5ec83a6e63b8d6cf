#include "fake_redis.hpp"

#include "weir/in_process/coordination.hpp"

namespace weir::test {

class FakeRedis::Way::Ear final : public Listening {
 public:
  Ear(Way& way, std::vector<std::string> channels, std::function<void(const Heard&)> each)
      : way_(way), channels_(std::move(channels)), each_(std::move(each)) {
    way_.ears_.insert(this);
    begin();
  }
  ~Ear() override { way_.ears_.erase(this); }
  void begin() {
    inner_.reset();
    if (!way_.away()) inner_ = way_.redis_.kept().listen(channels_, each_);
  }

 private:
  Way& way_;
  const std::vector<std::string> channels_;
  const std::function<void(const Heard&)> each_;
  std::unique_ptr<Listening> inner_;
};

FakeRedis::FakeRedis(boost::asio::io_context& io, Clock& clock) : io_(io), clock_(clock) { empty(); }
FakeRedis::~FakeRedis() = default;

std::unique_ptr<FakeRedis::Way> FakeRedis::connect() { return std::make_unique<Way>(*this); }

void FakeRedis::empty() {
  kept_.push_back(in_process::make_coordination(io_.get_executor()));
  for (Way* way : ways_) way->interrupt();
}

void FakeRedis::set_away(bool away) {
  away_ = away;
  for (Way* way : ways_) way->interrupt();
}

void FakeRedis::Way::set_away(bool away) {
  away_ = away;
  interrupt();
}

void FakeRedis::Way::interrupt() {
  for (Ear* ear : std::set(ears_)) ear->begin();
}

std::unique_ptr<Listening> FakeRedis::Way::listen(std::vector<std::string> channels,
                                                  std::function<void(const Heard&)> each) {
  return std::make_unique<Ear>(*this, std::move(channels), std::move(each));
}

}  // namespace weir::test
