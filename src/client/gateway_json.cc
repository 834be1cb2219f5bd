#include "client/gateway_json.h"

#include <string_view>
#include <utility>

#include "base/base64.h"
#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::client {
namespace {

// Base64 needs no escapes, and the names are ours: texts are put together as they are.
class Printer {
 public:
  Printer() : text_("{") {}
  void Bytes(std::string_view name, std::string_view bytes) {
    if (!bytes.empty()) StrAppend(text_, Comma(), "\"", name, "\":\"", EncodeBase64(bytes), "\"");
  }
  void Number(std::string_view name, std::int64_t number) {
    if (number != 0) StrAppend(text_, Comma(), "\"", name, "\":\"", number, "\"");
  }
  void Flag(std::string_view name, bool flag) {
    if (flag) StrAppend(text_, Comma(), "\"", name, "\":true");
  }
  void Word(std::string_view name, std::string_view word) {
    StrAppend(text_, Comma(), "\"", name, "\":\"", word, "\"");
  }
  void Json(std::string_view name, std::string_view json) {
    StrAppend(text_, Comma(), "\"", name, "\":", json);
  }
  std::string Done() && { return std::move(text_) + "}"; }

 private:
  std::string_view Comma() const { return text_.size() > 1 ? "," : ""; }
  std::string text_;
};

void AddRange(Printer& printer, const kv::KeyRange& range) {
  if (range.Empty()) {  // which etcd would in part understand as one key, or as all
    printer.Bytes("key", "b");
    printer.Bytes("range_end", "a");
    return;
  }
  if (const auto key = range.AsKey()) return printer.Bytes("key", *key);
  // To etcd a lone zero byte means "no end", and as a key "from the very first"; no key can be empty.
  const std::string zero(1, '\0');
  printer.Bytes("key", range.begin.empty() ? zero : range.begin);
  printer.Bytes("range_end", range.end ? *range.end : zero);
}

std::string_view Print(kv::Compare::Relation relation) {
  switch (relation) {
    case kv::Compare::Relation::kEqual:
      return "EQUAL";
    case kv::Compare::Relation::kNotEqual:
      return "NOT_EQUAL";
    case kv::Compare::Relation::kLess:
      return "LESS";
    case kv::Compare::Relation::kGreater:
      return "GREATER";
  }
  TY_CHECK(false, "a relation has one of four values");
}

std::string Print(const kv::Compare& compare) {
  Printer printer;
  printer.Bytes("key", compare.key);
  printer.Word("result", Print(compare.relation));
  // What it is compared with stands there also where it is zero or empty: it says which of the four it is.
  const auto number = [&](std::string_view target, std::string_view field) {
    printer.Word("target", target);
    printer.Word(field, StrCat(std::get<std::int64_t>(compare.operand)));
  };
  switch (compare.target) {
    case kv::Compare::Target::kValue:
      printer.Word("target", "VALUE");
      printer.Word("value", EncodeBase64(std::get<std::string>(compare.operand)));
      break;
    case kv::Compare::Target::kVersion:
      number("VERSION", "version");
      break;
    case kv::Compare::Target::kCreateRevision:
      number("CREATE", "create_revision");
      break;
    case kv::Compare::Target::kModRevision:
      number("MOD", "mod_revision");
      break;
  }
  return std::move(printer).Done();
}

std::string Print(const kv::Op& op) {
  Printer printer;
  if (const auto* put = std::get_if<kv::PutOp>(&op)) {
    Printer inner;
    inner.Bytes("key", put->key);
    inner.Bytes("value", put->value);
    inner.Number("lease", put->lease);
    printer.Json("request_put", std::move(inner).Done());
  } else if (const auto* del = std::get_if<kv::DeleteOp>(&op)) {
    Printer inner;
    AddRange(inner, del->range);
    printer.Json("request_delete_range", std::move(inner).Done());
  } else {
    printer.Json("request_range", PrintRange(std::get<kv::GetOp>(op).request));
  }
  return std::move(printer).Done();
}

template <typename T>
void AddList(Printer& printer, std::string_view name, const std::vector<T>& list) {
  std::string json = "[";
  for (const T& item : list) StrAppend(json, json.size() > 1 ? "," : "", Print(item));
  printer.Json(name, json + "]");
}

absl::Status NoAnswer(std::string_view what) {
  return absl::InternalError(StrCat("the store's answer is not that of an etcd: ", what));
}

absl::StatusOr<std::string> BytesAt(const Document& document, std::string_view name) {
  auto bytes = DecodeBase64(StringAt(document, {name}));
  if (!bytes.ok()) return NoAnswer(StrCat(name, " is not base64"));
  return bytes;
}

absl::StatusOr<kv::KeyValue> ReadKeyValue(const Document& document) {
  kv::KeyValue kv{.create_revision = NumberAt(document, {"create_revision"}),
                  .mod_revision = NumberAt(document, {"mod_revision"}),
                  .version = NumberAt(document, {"version"}),
                  .lease = NumberAt(document, {"lease"})};
  TY_ASSIGN_OR_RETURN(kv.key, BytesAt(document, "key"));
  TY_ASSIGN_OR_RETURN(kv.value, BytesAt(document, "value"));
  return kv;
}

absl::StatusOr<kv::Revision> ReadRevision(const Document& answer) {
  const kv::Revision revision = NumberAt(answer, {"header", "revision"});
  if (revision <= 0) return NoAnswer("it names no revision");
  return revision;
}

absl::Status ReadKeyValues(const Document& answer, kv::RangeResult& result) {
  result.more = BoolAt(answer, {"more"});
  const Array* kvs = ArrayAt(answer, {"kvs"});
  if (kvs == nullptr) return absl::OkStatus();
  result.kvs.reserve(kvs->size());
  for (const Document& document : *kvs) {
    TY_ASSIGN_OR_RETURN(kv::KeyValue kv, ReadKeyValue(document));
    result.kvs.push_back(std::move(kv));
  }
  return absl::OkStatus();
}

}  // namespace

std::string PrintRange(const kv::RangeRequest& request) {
  Printer printer;
  AddRange(printer, request.range);
  printer.Number("limit", request.limit);
  printer.Number("revision", request.revision);
  printer.Flag("keys_only", request.keys_only);
  return std::move(printer).Done();
}

std::string PrintTxn(const kv::TxnRequest& request) {
  Printer printer;
  AddList(printer, "compare", request.compares);
  AddList(printer, "success", request.then);
  AddList(printer, "failure", request.otherwise);
  return std::move(printer).Done();
}

std::string PrintWatch(const kv::WatchRequest& request, kv::Revision start) {
  Printer create;
  AddRange(create, request.range);
  create.Number("start_revision", start);
  create.Flag("progress_notify", true);
  create.Flag("prev_kv", request.with_previous);
  Printer printer;
  printer.Json("create_request", std::move(create).Done());
  return std::move(printer).Done();
}

std::string PrintNumber(std::string_view name, std::int64_t number) {
  Printer printer;
  printer.Number(name, number);
  return std::move(printer).Done();
}

std::int64_t NumberAt(const Document& document, Path path) {
  if (const auto number = IntAt(document, path)) return *number;
  return ParseNumber<std::int64_t>(StringAt(document, path)).value_or(0);
}

absl::StatusOr<kv::RangeResult> ReadRange(const Document& answer) {
  kv::RangeResult result;
  TY_ASSIGN_OR_RETURN(result.revision, ReadRevision(answer));
  TY_RETURN_IF_ERROR(ReadKeyValues(answer, result));
  return result;
}

absl::StatusOr<kv::TxnResult> ReadTxn(const Document& answer) {
  kv::TxnResult result{.succeeded = BoolAt(answer, {"succeeded"})};
  TY_ASSIGN_OR_RETURN(result.revision, ReadRevision(answer));
  const Array* responses = ArrayAt(answer, {"responses"});
  if (responses == nullptr) return result;
  for (const Document& response : *responses) {
    if (const Document* range = Find(response, {"response_range"})) {
      kv::RangeResult read{.revision = result.revision};
      TY_RETURN_IF_ERROR(ReadKeyValues(*range, read));
      result.results.emplace_back(std::move(read));
    } else if (Find(response, {"response_delete_range"}) != nullptr) {
      result.results.emplace_back(
          kv::DeleteResult{.deleted = NumberAt(response, {"response_delete_range", "deleted"})});
    } else {
      result.results.emplace_back(kv::PutResult{});
    }
  }
  return result;
}

absl::StatusOr<WatchAnswer> ReadWatchAnswer(const Document& result) {
  WatchAnswer answer{.created = BoolAt(result, {"created"}),
                     .canceled = BoolAt(result, {"canceled"}),
                     .revision = NumberAt(result, {"header", "revision"}),
                     .compacted = NumberAt(result, {"compact_revision"}),
                     .reason = std::string(StringAt(result, {"cancel_reason"}))};
  if (!answer.canceled && answer.revision <= 0) return NoAnswer("it names no revision");
  const Array* events = ArrayAt(result, {"events"});
  if (events == nullptr) return answer;
  for (const Document& document : *events) {
    kv::WatchEvent event;
    if (StringAt(document, {"type"}) == "DELETE") event.type = kv::WatchEvent::Type::kDelete;
    const Document* kv = Find(document, {"kv"});
    if (kv == nullptr) return NoAnswer("an event is of no key");
    TY_ASSIGN_OR_RETURN(event.kv, ReadKeyValue(*kv));
    if (const Document* previous = Find(document, {"prev_kv"})) {
      TY_ASSIGN_OR_RETURN(event.previous, ReadKeyValue(*previous));
    }
    answer.events.push_back(std::move(event));
  }
  return answer;
}

}  // namespace trainyard::client
