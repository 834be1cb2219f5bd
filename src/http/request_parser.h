// HTTP/1.1 requests read from bytes as they come, with a bound on everything that a client decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::http {

struct RequestLimits {
  std::size_t head_bytes = std::size_t{64} * 1024;
  std::size_t body_bytes = std::size_t{3} * 1024 * 1024;
  // Which targets are carried on to somebody else: of those all headers are kept, and a body may be of any
  // length and in any coding, for it is taken away as it comes. Null: none.
  bool (*relayed)(std::string_view target) = nullptr;
  bool all_headers = false;  // of the others too
};

struct RequestHead {
  std::string method;
  std::string target;  // begins with '/'; an absolute URL's scheme and host are cut off
  std::string content_type;
  std::string accept;
  std::string authorization;
  std::string user_agent;
  bool http11 = true;
  bool keep_alive = true;
  bool expects_continue = false;
  bool relayed = false;
  // Of one that is, or where all are kept.
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::uint64_t> body_length;  // unset: it comes in chunks

  // The first header of that name, in any letter case; empty if there is none or they are not kept.
  std::string_view Header(std::string_view name) const;
};

// Why a request cannot be taken, as an answer's code and reason.
struct RequestError {
  int code = 400;
  std::string message;
};

// One request. Pure but for its own state.
class RequestParser {
 public:
  enum class State : std::uint8_t { kHead, kBody, kWhole, kFailed };

  explicit RequestParser(RequestLimits limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // Takes bytes until the head is complete, the request is whole or something is wrong, whichever comes
  // first; returns how many. The rest must be given again, with more behind it, unless the state says that
  // there is no need.
  std::size_t Feed(std::string_view bytes);

  State state() const;
  RequestHead& head();          // once the state is not kHead
  std::string& body();          // once it is kWhole; of one that is relayed, what has come and was not taken
  const RequestError& error();  // once it is kFailed
  void DropBody();              // what comes of the body is counted, not kept

 private:
  class Beast;
  std::unique_ptr<Beast> beast_;
};

}  // namespace trainyard::http
