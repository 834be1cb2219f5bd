// HTTP/1.1 requests out of a stream of bytes, one after the other, however the network cuts it. No input or
// output here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::agent {

inline constexpr std::size_t kMaxHeadBytes = std::size_t{16} << 10;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 20;

struct Request {
  std::string method;
  std::string path;                                        // decoded: "/status"
  std::vector<std::pair<std::string, std::string>> query;  // decoded, as it came
  std::string authorization;
  std::string body;
  bool keep_alive = true;
  bool chunks = true;  // the client understands them: it speaks 1.1

  // The last value given of this name.
  const std::string* Find(std::string_view name) const;
  bool operator==(const Request&) const = default;
};

// What is wrong with a request. The bytes behind it cannot be understood either.
struct BadRequest {
  int code = 400;
  std::string what;
};

//   kHead ──▶ kBody ──▶ kDone ──(Take)──▶ kHead
//     └─────────┴─▶ kBad
class RequestParser {
 public:
  enum class Stage : std::uint8_t { kHead, kBody, kDone, kBad };

  // Takes bytes up to the end of the head or of the request, whichever comes next, and returns how many it
  // took. So whoever feeds can look at a head before its body is read.
  std::size_t Feed(std::string_view bytes);

  Stage stage() const { return stage_; }
  // Some of a request has come.
  bool begun() const { return stage_ != Stage::kHead || !head_.empty(); }
  // kBody: the client sends the body only when it is told to go on.
  bool awaits_continue() const { return awaits_continue_; }
  const Request& request() const { return request_; }
  const BadRequest& bad() const { return bad_; }

  // kDone: the request; the next one can be fed.
  Request Take();

 private:
  std::size_t FeedHead(std::string_view bytes);
  void Refuse(int code, std::string what);
  bool ParseHead(std::string_view head);
  bool ParseRequestLine(std::string_view line);
  bool ParseTarget(std::string_view target);
  bool ParseHeader(std::string_view line);
  bool TakeHeader(std::string_view name, std::string_view value);
  bool ParseLength(std::string_view value);
  void TakeConnection(std::string_view value);

  Stage stage_ = Stage::kHead;
  std::string head_;
  Request request_;
  BadRequest bad_;
  std::optional<std::uint64_t> length_;
  bool has_host_ = false;
  bool has_authorization_ = false;
  bool awaits_continue_ = false;
};

}  // namespace trainyard::agent
