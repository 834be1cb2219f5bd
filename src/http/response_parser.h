// HTTP/1.1 answers of somebody else's server read from bytes as they come, with a bound on what is kept.
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

struct ResponseHead {
  int code = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // as they came
  std::optional<std::uint64_t> body_length;                  // where the head tells it
};

// One answer; those before it that only say that it is still to come (100 to 199) are passed over, except
// 101, behind which there is no HTTP any more. Pure but for its own state.
class ResponseParser {
 public:
  enum class State : std::uint8_t { kHead, kBody, kWhole, kFailed };

  // `to_head`: the answer is to a HEAD, and has no body whatever its head says.
  explicit ResponseParser(bool to_head);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  // Takes bytes until the answer is whole or something is wrong; returns how many. The rest must be given
  // again, with more behind it.
  std::size_t Feed(std::string_view bytes);
  // Nothing follows: an answer whose body had no other end is whole now, and any other has failed.
  void FeedEnd();

  State state() const;
  const ResponseHead& head() const;  // once the state is kBody or kWhole
  std::string TakeBody();            // what has come of it since the last call
  const std::string& error() const;  // once the state is kFailed

 private:
  class Beast;

  const bool to_head_;
  std::unique_ptr<Beast> beast_;
};

}  // namespace trainyard::http
