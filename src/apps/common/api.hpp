// Api: a control plane, asked one question after the other by a command.
//
// Where it is: --url; the folder that --state-dir names; WEIR_URL; control_plane_url of the settings; otherwise the
// usual state folder of `weir up`. What to show it: --token-file; an --api-key; WEIR_TOKEN; API_KEY; otherwise the
// secret in the folder, from which a short-lived admin token is made here. An API key buys its token at the address,
// and one of the environment does so only where the address does not come from a folder: a shell may hold the key of a
// runner elsewhere. A token is made only for a control plane whose secret was named on purpose, never for any address
// that happens to be given. Where there are several addresses, each is tried until one answers. Each call blocks until
// the answer is there or its time is up. One thread.
#pragma once

#include "command.hpp"

#include "weir/base/json.hpp"
#include "weir/net/client.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>

namespace weir::apps {

// The options that every command which asks a control plane takes, before its own.
std::vector<Option> with_api_options(std::vector<Option> own);

class Api {
 public:
  static Result<Api> connect(const Arguments& arguments);
  static Result<Api> connect(std::string url, Secret token, const std::string& ca_file = {});

  Api(Api&&) = default;
  ~Api();
  const std::string& url() const { return url_; }
  // Once `over` has answered true, calls wait for nothing any more; from then on it must always answer true.
  void end_when(std::function<bool()> over) { over_ = std::move(over); }
  Result<json::value> get(std::string target);
  Result<json::value> send(net::Method method, std::string target, const json::object& body = {});
  // The plain answer, whatever its status: health and metrics.
  Result<net::ClientResponse> raw(net::Method method, std::string target, std::string body = {});
  // Bodies of any size, which may take as long as they need while every few minutes something of them is passed on.
  Result<json::value> upload(std::string target, net::BodySource body, std::pair<std::string, std::string> header);
  Status download(std::string target, std::function<Status(std::string_view)> sink);
  // Server-sent events, until `each` answers false, it is over, or the stream ends: the error says why.
  Status follow(std::string target, const std::function<bool(const net::StreamedEvent&)>& each);
  // Every item of a list, page by page. `target` may hold a query.
  Result<json::array> list(const std::string& target);

 private:
  // Buys the token that is shown from now on.
  Status buy_token(const Secret& api_key);
  Api(std::string url, Secret token) : url_(std::move(url)), token_(std::move(token)) {}
  Result<net::ClientResponse> ask_once(const net::ClientRequest& request);
  Result<net::ClientResponse> ask_each(const net::ClientRequest& request);
  Result<json::value> read_answer(const net::ClientResponse& response) const;
  bool over() const { return over_ && over_(); }
  std::string url_;
  bool of_folder_ = false;
  Secret token_;
  std::string bought_role_;  // what the token is good for, where an API key bought it
  std::function<bool()> over_;
  bool abandoned_ = false;  // a call was not waited for and uses what is gone: nothing of it may run any more
  std::unique_ptr<boost::asio::io_context> io_;
  std::unique_ptr<net::HttpClient> client_;
};

// What a person is told where a request was not answered. `of_folder`: the address is the one that a `weir up` left.
Error unanswered(const Error& why, const net::ClientRequest& request, const std::string& url, bool of_folder);

// "/v1/cameras" and an id that may hold anything → "/v1/cameras/a%2Fb"
std::string route(std::string_view base, std::string_view id, std::string_view rest = "");
// Where a control plane is expected if no setting says so: in WEIR_URL, or in the folder that a flag named if a
// `weir up` left its address there; "" where neither says anything.
std::string usual_url(const Settings& settings);

// Adds "?name=value" or "&name=value" where `value` is not empty.
void add_query(std::string& target, std::string_view name, std::string_view value);

// Where `weir up` in this state folder answers, or "" where none has said so.
std::string endpoint_file(const std::string& state_dir);
std::string secret_file(const Settings& settings);
// The URL under which this machine reaches a server bound to `address`.
std::string url_of(const std::string& address, std::string_view scheme = "http");
// Whether "host:port" can be reached from this machine alone.
bool listens_on_loopback(std::string_view listen);

}  // namespace weir::apps
