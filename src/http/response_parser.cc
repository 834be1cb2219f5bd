#include "http/response_parser.h"

#include <utility>

#include "base/text.h"

// As in the parser of requests, with the same effect on what the two share.
#define BOOST_DISABLE_ASSERTS
#include "boost/beast/http/basic_parser.hpp"

namespace trainyard::http {
namespace beast = boost::beast::http;

namespace {

using BeastText = boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

constexpr std::uint32_t kMaxHeadBytes = 64 * 1024;

std::string_view StdView(BeastText text) { return {text.data(), text.size()}; }

}  // namespace

class ResponseParser::Beast final : public beast::basic_parser<false> {
 public:
  explicit Beast(bool to_head) {
    header_limit(kMaxHeadBytes);
    body_limit(boost::none);
    skip(to_head);
  }

  std::size_t Feed(std::string_view bytes) {
    std::size_t taken = 0;
    // Beast stops after the head and after each piece of a body.
    while (state_ == State::kHead || state_ == State::kBody) {
      ErrorCode error;
      const std::size_t took = put({bytes.data() + taken, bytes.size() - taken}, error);
      taken += took;
      // Beast holds each call to its limit, not all calls together.
      if (state_ == State::kHead) head_bytes_ += took;
      if (head_bytes_ > kMaxHeadBytes || error == beast::error::header_limit) {
        Fail(StrCat("its headers have more than ", kMaxHeadBytes, " bytes"));
        return taken;
      }
      if (error == beast::error::need_more || (!error && took == 0 && taken == bytes.size())) {
        if (bytes.size() - taken > kMaxHeadBytes) Fail("a line of it has no end");
        return taken;
      }
      if (error) {
        Fail(error.message());
        return taken;
      }
      Advance();
    }
    return taken;
  }

  void FeedEnd() {
    if (state_ != State::kHead && state_ != State::kBody) return;
    if (state_ == State::kHead) return Fail("EOF");
    ErrorCode error;
    put_eof(error);
    if (error) return Fail("unexpected EOF");
    Advance();
    if (state_ != State::kWhole) Fail("unexpected EOF");
  }

  State state_ = State::kHead;
  ResponseHead head_;
  std::string body_;
  std::string error_;

 private:
  void Fail(std::string error) {
    error_ = std::move(error);
    state_ = State::kFailed;
  }
  void Advance() {
    if (state_ == State::kHead && is_header_done()) {
      if (const auto length = content_length(); length) head_.body_length = *length;
      state_ = State::kBody;
    }
    if (is_done()) state_ = State::kWhole;
  }

  void on_request_impl(beast::verb /*verb*/, BeastText /*method*/, BeastText /*target*/, int /*version*/,
                       ErrorCode& /*error*/) override {}
  void on_response_impl(int code, BeastText /*reason*/, int /*version*/, ErrorCode& /*error*/) override {
    head_.code = code;
  }
  void on_field_impl(beast::field /*field*/, BeastText name, BeastText value, ErrorCode& /*error*/) override {
    if (state_ != State::kHead) return;  // a trailer
    head_.headers.emplace_back(StdView(name), StdView(value));
  }
  void on_header_impl(ErrorCode& /*error*/) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/, ErrorCode& /*error*/) override {}
  std::size_t on_body_impl(BeastText text, ErrorCode& /*error*/) override {
    body_ += StdView(text);
    return text.size();
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, BeastText /*extensions*/, ErrorCode& /*error*/) override {
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, BeastText text, ErrorCode& /*error*/) override {
    body_ += StdView(text);
    return text.size();
  }
  void on_finish_impl(ErrorCode& /*error*/) override {}

  std::size_t head_bytes_ = 0;
};

ResponseParser::ResponseParser(bool to_head) : to_head_(to_head), beast_(std::make_unique<Beast>(to_head)) {}
ResponseParser::~ResponseParser() = default;

std::size_t ResponseParser::Feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (true) {
    taken += beast_->Feed(bytes.substr(taken));
    const bool interim = beast_->state_ == State::kWhole && beast_->head_.code < 200 &&
                         beast_->head_.code >= 100 && beast_->head_.code != 101;
    if (!interim) return taken;
    beast_ = std::make_unique<Beast>(to_head_);
  }
}

void ResponseParser::FeedEnd() { beast_->FeedEnd(); }
ResponseParser::State ResponseParser::state() const { return beast_->state_; }
const ResponseHead& ResponseParser::head() const { return beast_->head_; }
std::string ResponseParser::TakeBody() { return std::exchange(beast_->body_, {}); }
const std::string& ResponseParser::error() const { return beast_->error_; }

}  // namespace trainyard::http
