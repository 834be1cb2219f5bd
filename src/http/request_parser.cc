#include "http/request_parser.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "http/message.h"

// Beast asserts that a last chunk has five bytes before the end of its trailer is there. It has three if
// there was no chunk before it, which is no mistake; and what it asserts, it does not need.
#define BOOST_DISABLE_ASSERTS
#include "boost/beast/http/basic_parser.hpp"

namespace trainyard::http {
namespace beast = boost::beast::http;

namespace {

using BeastText = boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

std::string_view Std(BeastText text) { return {text.data(), text.size()}; }

// The reasons of Beast, in words for whoever reads the answer.
std::string Describe(const ErrorCode& error) {
  const std::pair<beast::error, const char*> reasons[] = {
      {beast::error::bad_method, "the method is not a word"},
      {beast::error::bad_target, "the target has characters that a URL may not have"},
      {beast::error::bad_version, "the version is neither HTTP/1.0 nor HTTP/1.1"},
      {beast::error::bad_line_ending, "a line does not end in CR LF"},
      {beast::error::bad_field, "a header's name has characters that it may not have"},
      {beast::error::bad_value, "a header's value has characters that it may not have"},
      {beast::error::bad_content_length,
       "Content-Length is not one number, or stands beside a transfer coding"},
      {beast::error::multiple_content_length, "Content-Length is given twice with different numbers"},
      {beast::error::bad_transfer_encoding, "Transfer-Encoding is given twice or beside Content-Length"},
      {beast::error::bad_chunk, "a chunk's length is not a number, or the chunk is longer than that"},
      {beast::error::bad_chunk_extension, "a chunk's extension is malformed"},
      {beast::error::bad_obs_fold, "a folded header is malformed"},
  };
  for (const auto& [known, reason] : reasons) {
    if (error == known) return reason;
  }
  return error.message();
}

bool SameWord(std::string_view a, std::string_view b) { return boost::beast::iequals(a, b); }

}  // namespace

class RequestParser::Beast final : public beast::basic_parser<true> {
 public:
  explicit Beast(RequestLimits limits) : limits_(limits) {
    header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(limits.head_bytes, UINT32_MAX)));
    body_limit(limits.body_bytes);
  }

  std::size_t Feed(std::string_view bytes) {
    std::size_t taken = 0;
    // Beast stops after the head and after each piece of a body; the caller wants to know of the head only.
    while (state_ == State::kHead || state_ == State::kBody) {
      const State before = state_;
      ErrorCode error;
      const std::size_t took = put({bytes.data() + taken, bytes.size() - taken}, error);
      taken += took;
      if (before == State::kHead) head_bytes_ += took;
      if (state_ == State::kFailed) return taken;  // by one of our own rules
      if (error == beast::error::need_more || (!error && took == 0 && taken == bytes.size())) {
        CheckSize(bytes.size() - taken);
        return taken;
      }
      if (error) {
        FailFor(error);
        return taken;
      }
      Advance();
      if (before == State::kHead && state_ == State::kBody) return taken;
    }
    return taken;
  }

  void Fail(int code, std::string message) {
    error_ = {code, std::move(message)};
    state_ = State::kFailed;
  }

  State state_ = State::kHead;
  RequestHead head_;
  std::string body_;
  bool keep_body_ = true;
  RequestError error_;

 private:
  // Beast holds each call to its limit, not all calls together.
  void CheckSize(std::size_t left) {
    if (state_ == State::kHead && head_bytes_ + left > limits_.head_bytes) return FailHead();
    if (state_ == State::kBody && left > limits_.head_bytes) {
      Fail(400, "a chunk's header or the trailer is too long");
    }
  }
  void FailHead() {
    Fail(431,
         StrCat("the request's headers have more than ", limits_.head_bytes, " bytes, which is the limit"));
  }
  void FailFor(const ErrorCode& error) {
    if (error == beast::error::header_limit) return FailHead();
    if (error == beast::error::body_limit) {
      return Fail(413, StrCat("the request's body is larger than ", limits_.body_bytes,
                              " bytes, which is the limit"));
    }
    Fail(400, StrCat("malformed HTTP request: ", Describe(error)));
  }
  void Advance() {
    if (state_ == State::kHead && is_header_done()) {
      if (head_bytes_ > limits_.head_bytes) return FailHead();
      if (!CheckHead()) return;
      head_.keep_alive = keep_alive();
      if (!chunked()) head_.body_length = content_length().value_or(0);
      state_ = State::kBody;
    }
    if (is_done()) state_ = State::kWhole;
  }
  bool CheckHead() {
    if (hosts_ != 1 && head_.http11) {
      Fail(400, "malformed HTTP request: a Host header is required, and only one");
    } else if (strange_coding_) {
      Fail(501, "of the transfer codings only \"chunked\" is supported");
    } else if (encoded_ && !head_.relayed) {
      Fail(415, "a body with a Content-Encoding is not supported");
    } else if (!head_.target.starts_with('/')) {
      Fail(400, "malformed HTTP request: the target must begin with '/'");
    }
    return state_ != State::kFailed;
  }

  void on_request_impl(beast::verb /*verb*/, BeastText method, BeastText target, int version,
                       ErrorCode& /*error*/) override {
    head_.method = Std(method);
    head_.http11 = version >= 11;
    std::string_view at = Std(target);
    const bool absolute = at.starts_with("https://") || at.starts_with("http://");
    if (absolute) {
      at.remove_prefix(at.find("//") + 2);
      const std::size_t path = at.find_first_of("/?");
      at = path == std::string_view::npos ? "/" : at.substr(path);
    }
    head_.target = absolute && at.starts_with('?') ? StrCat("/", at) : std::string(at);
    head_.relayed = limits_.relayed != nullptr && limits_.relayed(head_.target);
    if (head_.relayed) body_limit(boost::none);
  }

  void on_field_impl(beast::field field, BeastText name, BeastText text, ErrorCode& /*error*/) override {
    if (state_ != State::kHead) return;  // a trailer
    const std::string_view value = Std(text);
    if (head_.relayed || limits_.all_headers) head_.headers.emplace_back(Std(name), value);
    switch (field) {
      case beast::field::host:
        ++hosts_;
        break;
      case beast::field::content_type:
        head_.content_type = value;
        break;
      case beast::field::accept:
        StrAppend(head_.accept, head_.accept.empty() ? "" : ", ", value);
        break;
      case beast::field::authorization:
        if (head_.authorization.empty()) head_.authorization = value;
        break;
      case beast::field::user_agent:
        head_.user_agent = value;
        break;
      case beast::field::expect:
        head_.expects_continue = SameWord(value, "100-continue");
        break;
      case beast::field::transfer_encoding:
        strange_coding_ = strange_coding_ || !SameWord(value, "chunked");
        break;
      case beast::field::content_encoding:
        encoded_ = encoded_ || !SameWord(value, "identity");
        break;
      default:
        break;
    }
  }

  void Keep(BeastText text) {
    if (keep_body_) body_.append(text.data(), text.size());
  }
  void on_header_impl(ErrorCode& /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode& /*error*/) override {
    // Not more at once than a client has shown to have: the rest comes as it comes.
    if (length && keep_body_) body_.reserve(std::min<std::uint64_t>(*length, 65'536));
  }
  std::size_t on_body_impl(BeastText text, ErrorCode& /*error*/) override {
    Keep(text);
    return text.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, BeastText /*extensions*/, ErrorCode& /*error*/) override {
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastText text, ErrorCode& /*error*/) override {
    Keep(text);
    return text.size();
  }
  void on_finish_impl(ErrorCode& /*error*/) override {}
  // A request never ends with its connection.
  void on_response_impl(int /*code*/, BeastText /*reason*/, int /*version*/, ErrorCode& /*error*/) override {}

  RequestLimits limits_;
  std::size_t head_bytes_ = 0;
  int hosts_ = 0;
  bool strange_coding_ = false;
  bool encoded_ = false;
};

std::string_view RequestHead::Header(std::string_view name) const { return FindHeader(headers, name); }

RequestParser::RequestParser(RequestLimits limits) : beast_(std::make_unique<Beast>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

std::size_t RequestParser::Feed(std::string_view bytes) { return beast_->Feed(bytes); }
RequestParser::State RequestParser::state() const { return beast_->state_; }
RequestHead& RequestParser::head() { return beast_->head_; }
std::string& RequestParser::body() { return beast_->body_; }
const RequestError& RequestParser::error() { return beast_->error_; }
void RequestParser::DropBody() { beast_->keep_body_ = false; }

}  // namespace trainyard::http
