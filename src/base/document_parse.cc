// Reading JSON. Boost's own builder of documents rounds one number in a few to a neighbour of the nearest
// double, so that a value would change each time that it is read and written; this one does not.
#include <charconv>
#include <cmath>
#include <utility>

#include "base/document.h"
#include "base/text.h"
#include "boost/json/basic_parser_impl.hpp"
#include "boost/json/value_stack.hpp"

namespace trainyard {
namespace {

using boost::json::error_code;
using boost::json::string_view;

// What the parser calls with each part of a document; the names and signatures are the library's.
class DocumentBuilder {
 public:
  static constexpr std::size_t max_object_size = Object::max_size();
  static constexpr std::size_t max_array_size = Array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  DocumentBuilder() { stack_.reset(); }
  Document Release() { return stack_.release(); }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t size, error_code&) { return stack_.push_object(size), true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t size, error_code&) { return stack_.push_array(size), true; }
  bool on_key_part(string_view text, std::size_t, error_code&) { return stack_.push_chars(text), true; }
  bool on_key(string_view text, std::size_t, error_code&) { return stack_.push_key(text), true; }
  bool on_string_part(string_view text, std::size_t, error_code&) { return stack_.push_chars(text), true; }
  bool on_string(string_view text, std::size_t, error_code&) { return stack_.push_string(text), true; }
  bool on_number_part(string_view text, error_code&) {
    return number_.append(text.data(), text.size()), true;
  }
  bool on_int64(std::int64_t number, string_view, error_code&) {
    number_.clear();
    return stack_.push_int64(number), true;
  }
  bool on_uint64(std::uint64_t number, string_view, error_code&) {
    number_.clear();
    return stack_.push_uint64(number), true;
  }
  bool on_double(double rounded, string_view text, error_code& error) {
    number_.append(text.data(), text.size());
    double number = 0;
    const auto parsed = std::from_chars(number_.data(), number_.data() + number_.size(), number);
    number_.clear();
    // Too close to zero is zero; too large is what JSON cannot say.
    if (parsed.ec == std::errc::result_out_of_range) number = rounded;
    if (!std::isfinite(number)) {
      error = boost::json::error::exponent_overflow;
      return false;
    }
    return stack_.push_double(number), true;
  }
  bool on_bool(bool value, error_code&) { return stack_.push_bool(value), true; }
  bool on_null(error_code&) { return stack_.push_null(), true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  boost::json::value_stack stack_;
  std::string number_;  // what has come of one so far
};

// Where a byte of a text stands, as an editor counts.
std::string Place(std::string_view text, std::size_t offset) {
  std::size_t line = 1;
  std::size_t line_start = 0;
  for (std::size_t at = 0; at < offset && at < text.size(); ++at) {
    if (text[at] != '\n') continue;
    ++line;
    line_start = at + 1;
  }
  return StrCat("line ", line, ", column ", offset - line_start + 1);
}

}  // namespace

absl::StatusOr<Document> ParseJson(std::string_view text) {
  boost::json::basic_parser<DocumentBuilder> parser(
      boost::json::parse_options{.max_depth = kMaxDocumentDepth});
  error_code error;
  const std::size_t taken = parser.write_some(false, text.data(), text.size(), error);
  if (error) {
    return absl::InvalidArgumentError(
        StrCat("not valid JSON: ", error.message(), " at ", Place(text, taken)));
  }
  if (taken < text.size()) {
    return absl::InvalidArgumentError(
        StrCat("not valid JSON: more follows the document at ", Place(text, taken)));
  }
  return parser.handler().Release();
}

}  // namespace trainyard
