// Reading objects' JSON text straight into typed fields, in one pass and without a document. Only for the
// few sources that make compact objects.
#pragma once

#include <simdjson.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/text.h"
#include "kube/object_meta.h"
#include "kube/shared_text.h"

namespace trainyard::kube::json {

using Value = simdjson::ondemand::value;
using Error = simdjson::error_code;
inline constexpr Error kOk = simdjson::SUCCESS;

// A message of a status is for people; more than this much of it is not kept.
inline constexpr std::size_t kMaxMessage = 256;

// What it read so far, for an error's sake.
class Reader {
 public:
  // Calls `member(key, value)` for each member of the object that `text` is. A member that is null is left
  // out. InvalidArgument, naming the kind ("a Pod") and the member, if the text or a member is not as it
  // should be.
  template <typename F>
  absl::Status ReadObject(std::string_view kind, std::string text, F&& member) {
    // The parser reads whole blocks, also past the end.
    text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document;
    Error error = Parser().iterate(text).get(document);
    Value root;
    if (error == kOk) error = document.get_value().get(root);
    if (error == kOk) error = ForEachMember(root, member);
    if (error == kOk) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("cannot read ", kind, at_.empty() ? "" : ": at \"", at_,
                                             at_.empty() ? ": " : "\": ", simdjson::error_message(error)));
  }

  template <typename F>
  Error ForEachMember(Value value, F&& member) {
    simdjson::ondemand::object object;
    if (const Error error = value.get_object().get(object); error != kOk) return error;
    for (auto field : object) {
      std::string_view key;
      if (const Error error = field.unescaped_key().get(key); error != kOk) return error;
      Value inner;
      if (const Error error = field.value().get(inner); error != kOk) return Fail(key, error);
      bool is_null = false;
      if (const Error error = inner.is_null().get(is_null); error != kOk) return Fail(key, error);
      if (is_null) continue;
      if (const Error error = member(key, inner); error != kOk) return Fail(key, error);
    }
    return kOk;
  }

  // Calls `item(value)` for each item of a list.
  template <typename F>
  Error ForEachItem(Value value, F&& item) {
    simdjson::ondemand::array array;
    if (const Error error = value.get_array().get(array); error != kOk) return error;
    for (auto result : array) {
      Value inner;
      if (const Error error = result.get(inner); error != kOk) return error;
      if (const Error error = item(inner); error != kOk) return error;
    }
    return kOk;
  }

 private:
  static simdjson::ondemand::parser& Parser();
  // Remembers the innermost member.
  Error Fail(std::string_view key, Error error) {
    if (at_.empty()) at_ = std::string(key);
    return error;
  }

  std::string at_;
};

Error Read(Value value, std::string& out);
Error Read(Value value, SharedText& out);
Error Read(Value value, bool& out);
Error Read(Value value, std::int64_t& out);
Error Read(Value value, std::int32_t& out);
Error Read(Value value, absl::Time& out);
template <typename T>
Error Read(Value value, std::optional<T>& out) {
  return Read(value, out.emplace());
}
// At most kMaxMessage bytes, cut between two characters.
Error ReadMessage(Value value, std::string& out);
// A list of texts.
Error Read(Reader& reader, Value value, std::vector<SharedText>& out);
// An object of texts; of those in `only`, if it is given.
Error Read(Reader& reader, Value value, TextMap& out, const std::vector<std::string>* only = nullptr);
Error Read(Reader& reader, Value value, ObjectMeta& out, const MetaOptions& options);

}  // namespace trainyard::kube::json
