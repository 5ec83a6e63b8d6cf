#include "weir/detector/model_store.hpp"

#include "weir/base/log.hpp"

#include <algorithm>

namespace weir::detector {

namespace asio = boost::asio;

namespace {

constexpr Duration kTurn = 10ms;   // how often those who wait look whether it is theirs
constexpr size_t kPlacesMax = 1000;

// The tag by which a host tells versions of a file apart; a control plane's is the file's checksum.
std::string tag_of(const net::ClientResponse& response) {
  auto found = response.headers.find("etag");
  return found == response.headers.end() || found->second.starts_with("W/") ? "" : found->second;
}

// "" where the tag is something else.
std::string checksum_in(std::string_view tag) {
  if (tag.size() != 66 || tag.front() != '"' || tag.back() != '"') return "";
  std::string_view sum = tag.substr(1, 64);
  return sum.find_first_not_of("0123456789abcdef") == std::string_view::npos ? std::string(sum) : "";
}

Error refusal(const net::ClientResponse& response, const WebPlace& place) {
  std::string from = fmt::format("{}:{}", place.host, place.port);
  if (response.status / 100 == 3)
    return {Errc::forbidden, "redirected",
            fmt::format("{} answered {}: redirects to other addresses are not followed", from, response.status)};
  Error said = net::response_error(response);
  bool later = response.status / 100 == 5 || response.status == 429 || response.status == 408;
  return {later ? Errc::unavailable : Errc::forbidden, said.reason,
          fmt::format("{} does not give the model's file: {} ({})", from, said.message, response.status)};
}

class Asking {
 public:
  Asking(std::set<std::string>& asked, std::string place) : asked_(asked), place_(std::move(place)) {
    asked_.insert(place_);
  }
  ~Asking() { asked_.erase(place_); }
  Asking(const Asking&) = delete;

 private:
  std::set<std::string>& asked_;
  const std::string place_;
};

}  // namespace

ModelStore::ModelStore(asio::io_context& io, Clock& clock, ModelDisk& disk, ModelStoreConfig config, Inspect inspect,
                       InUse in_use)
    : io_(io),
      clock_(clock),
      disk_(disk),
      config_(std::move(config)),
      inspect_(std::move(inspect)),
      in_use_(std::move(in_use)) {}

Async<StoredModel> ModelStore::get(Secret url) {
  CO_TRY(place, web_place(url));
  if (place.credentials)
    co_return Error{Errc::forbidden, "model_url_refused", "a model's address must have no user and no password"};
  if (!config_.hosts.has(place))
    co_return Error{Errc::forbidden, "model_host_refused",
                    fmt::format("models may come from {} and not from {}:{}: name it in detector_model_hosts if they "
                                "may",
                                config_.hosts.text(), place.host, place.port)};
  std::string where = place.base + place.path;
  while (asked_.contains(where) || asked_.size() >= config_.downloads_max) co_await clock_.wait(kTurn);
  Asking asking(asked_, std::move(where));
  CO_TRY(sha256, co_await find(place));
  used(sha256);
  co_return co_await inspected(std::move(sha256));
}

// The checksum of a file that is on the disk, whether it had to be fetched or not.
Async<std::string> ModelStore::find(const WebPlace& place) {
  net::ClientOptions options;
  options.ca_file = config_.ca_file;
  CO_TRY(client, net::HttpClient::create(io_, place.base, std::move(options)));
  net::ClientRequest question;
  question.method = net::Method::head;
  question.target = place.target;
  CO_TRY(told, co_await client.send(std::move(question)));
  // A host whose links hold for reading alone refuses this question; what is wrong is said when the file is asked for.
  std::string tag = told.status == 200 ? tag_of(told) : "";
  std::string sha256 = checksum_in(tag);
  auto known = known_.find(place.base + place.path);
  bool same = known != known_.end() && !tag.empty() && known->second.tag == tag;
  if (sha256.empty() && same) sha256 = known->second.sha256;
  if (!sha256.empty() && co_await has(sha256)) co_return sha256;
  co_return co_await download(client, place);
}

Async<std::string> ModelStore::download(net::HttpClient& client, const WebPlace& place) {
  std::string where = place.base + place.path;
  CO_TRY(incoming, co_await disk_.receive());
  net::ClientRequest request;
  request.target = place.target;
  request.sink_bytes_max = config_.bytes_max;
  request.sink = [to = incoming.get()](std::string piece) { return to->write(std::move(piece)); };
  // Without its file on the disk, being told that the file is still the same would be of no use.
  std::string before;
  if (auto known = known_.find(where); known != known_.end() && !known->second.tag.empty()) {
    before = known->second.sha256;
    std::string tag = known->second.tag;
    if (co_await has(before)) request.headers.emplace_back("If-None-Match", std::move(tag));
  }
  CO_TRY(answer, co_await client.send(std::move(request)));
  if (answer.status == 304 && !before.empty()) co_return before;
  if (answer.status != 200) co_return refusal(answer, place);
  std::string tag = tag_of(answer);
  std::string expected = checksum_in(tag);
  CO_TRY(sha256, co_await incoming->keep(std::move(expected)));
  if (known_.size() >= kPlacesMax) known_.clear();
  known_[where] = {std::move(tag), sha256};
  used(sha256);
  log::info("model.fetched", "a model's file was fetched").with("host", place.host).with("sha256", sha256);
  co_await tidy_up();
  co_return sha256;
}

asio::awaitable<bool> ModelStore::has(std::string sha256) {
  auto opened = co_await disk_.open(std::move(sha256));
  co_return bool(opened);
}

Async<StoredModel> ModelStore::inspected(std::string sha256) {
  StoredModel model;
  model.sha256 = sha256;
  if (auto known = facts_.find(sha256); known != facts_.end()) {
    model.facts = known->second;
    co_return model;
  }
  CO_TRY(facts, co_await inspect_(std::move(sha256)));
  model.facts = facts_[model.sha256] = facts;
  co_return model;
}

void ModelStore::used(const std::string& sha256) {
  std::erase(recent_, sha256);
  recent_.push_front(sha256);
  if (recent_.size() > config_.unused_max) recent_.pop_back();
}

asio::awaitable<void> ModelStore::tidy_up() {
  std::set<std::string> kept = in_use_();
  kept.insert(recent_.begin(), recent_.end());
  std::erase_if(facts_, [&](const auto& each) { return !kept.contains(each.first); });
  auto removed = co_await disk_.remove_unnamed(std::move(kept));
  if (!removed)
    log::warn("models.not_tidied", removed.error().message).with("error_code", removed.error().reason);
  else if (*removed > 0)
    log::info("models.removed", "files of models that no subscription has were removed").with("files", *removed);
}

}  // namespace weir::detector
