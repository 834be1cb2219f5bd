#include "kube/json_status.h"

#include <algorithm>
#include <limits>

#include "kube/quantity.h"

namespace trainyard::kube::json {
namespace {

// A quantity is a text; a plain number is taken too, as the API server takes it.
Error ReadMilli(Value value, std::int64_t& out) {
  std::string_view text;
  simdjson::ondemand::json_type type{};
  if (const Error error = value.type().get(type); error != kOk) return error;
  if (type == simdjson::ondemand::json_type::number) {
    text = value.raw_json_token();
    while (!text.empty() && text.back() <= ' ') text.remove_suffix(1);
  } else if (const Error error = value.get_string().get(text); error != kOk) {
    return error;
  }
  const auto quantity = Quantity::Parse(text);
  if (!quantity.ok()) {
    return absl::IsOutOfRange(quantity.status()) ? simdjson::NUMBER_OUT_OF_RANGE : simdjson::NUMBER_ERROR;
  }
  using Limits = std::numeric_limits<std::int64_t>;
  out = quantity->Milli().value_or(quantity->Sign() < 0 ? Limits::min() : Limits::max());
  return kOk;
}

}  // namespace

void AddAmount(std::vector<ResourceAmount>& amounts, const SharedText& name, std::int64_t milli) {
  const auto at = std::ranges::lower_bound(amounts, name, {}, &ResourceAmount::name);
  if (at == amounts.end() || at->name != name) {
    amounts.insert(at, {.name = name, .milli = milli});
  } else if (__builtin_add_overflow(at->milli, milli, &at->milli)) {
    at->milli = std::numeric_limits<std::int64_t>::max();
  }
}

Error Read(Reader& reader, Value value, std::vector<ResourceAmount>& out) {
  return reader.ForEachMember(value, [&](std::string_view key, Value amount) {
    std::int64_t milli = 0;
    const Error error = ReadMilli(amount, milli);
    if (error == kOk) AddAmount(out, SharedText(key), milli);
    return error;
  });
}

}  // namespace trainyard::kube::json
