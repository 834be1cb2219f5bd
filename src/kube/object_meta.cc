#include "kube/object_meta.h"

#include <algorithm>
#include <limits>

#include "base/rfc3339.h"
#include "base/status.h"
#include "base/utf8.h"
#include "kube/json_reader.h"

namespace trainyard::kube {

TextMap::TextMap(std::vector<Entry> entries) {
  entries_.reserve(entries.size());
  for (Entry& entry : entries) {
    const auto at = std::ranges::lower_bound(entries_, entry.first, {}, &Entry::first);
    if (at != entries_.end() && at->first == entry.first) {
      at->second = std::move(entry.second);
    } else {
      entries_.insert(at, std::move(entry));
    }
  }
}

std::optional<std::string_view> TextMap::Find(std::string_view key) const {
  for (const auto& [name, value] : entries_) {
    if (name == key) return value.view();
  }
  return std::nullopt;
}

absl::StatusOr<ObjectMeta> ParseObjectMeta(std::string json, const MetaOptions& options) {
  ObjectMeta meta;
  json::Reader reader;
  TY_RETURN_IF_ERROR(
      reader.ReadObject("an object", std::move(json), [&](std::string_view key, json::Value value) {
        return key == "metadata" ? json::Read(reader, value, meta, options) : json::kOk;
      }));
  return meta;
}

namespace json {

simdjson::ondemand::parser& Reader::Parser() {
  thread_local simdjson::ondemand::parser parser;
  return parser;
}

Error Read(Value value, std::string& out) {
  std::string_view text;
  const Error error = value.get_string().get(text);
  if (error == kOk) out = std::string(text);
  return error;
}

Error Read(Value value, SharedText& out) {
  std::string_view text;
  const Error error = value.get_string().get(text);
  if (error == kOk) out = SharedText(text);
  return error;
}

Error Read(Value value, bool& out) { return value.get_bool().get(out); }

Error Read(Value value, std::int64_t& out) { return value.get_int64().get(out); }

Error Read(Value value, std::int32_t& out) {
  std::int64_t number = 0;
  if (const Error error = value.get_int64().get(number); error != kOk) return error;
  if (number > std::numeric_limits<std::int32_t>::max() || number < std::numeric_limits<std::int32_t>::min())
    return simdjson::NUMBER_OUT_OF_RANGE;
  out = static_cast<std::int32_t>(number);
  return kOk;
}

Error Read(Value value, absl::Time& out) {
  std::string_view text;
  if (const Error error = value.get_string().get(text); error != kOk) return error;
  const auto time = ParseTime(text);
  if (!time.ok()) return simdjson::INCORRECT_TYPE;
  out = *time;
  return kOk;
}

Error ReadMessage(Value value, std::string& out) {
  std::string_view text;
  if (const Error error = value.get_string().get(text); error != kOk) return error;
  out = std::string(FirstCharacters(text, kMaxMessage));
  return kOk;
}

Error Read(Reader& reader, Value value, std::vector<SharedText>& out) {
  const Error error = reader.ForEachItem(value, [&](Value item) { return Read(item, out.emplace_back()); });
  out.shrink_to_fit();
  return error;
}

Error Read(Reader& reader, Value value, TextMap& out, const std::vector<std::string>* only) {
  std::vector<TextMap::Entry> entries;
  const Error error = reader.ForEachMember(value, [&](std::string_view key, Value text) -> Error {
    if (only != nullptr && std::ranges::find(*only, key) == only->end()) return kOk;
    entries.emplace_back(key, SharedText());
    return Read(text, entries.back().second);
  });
  out = TextMap(std::move(entries));
  return error;
}

namespace {

Error ReadOwner(Reader& reader, Value value, OwnerReference& out) {
  return reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "apiVersion") return Read(field, out.api_version);
    if (key == "kind") return Read(field, out.kind);
    if (key == "name") return Read(field, out.name);
    if (key == "uid") return Read(field, out.uid);
    if (key == "controller") return Read(field, out.controls);
    if (key == "blockOwnerDeletion") return Read(field, out.blocks);
    return kOk;
  });
}

Error ReadOwners(Reader& reader, Value value, ObjectMeta& out, bool all) {
  return reader.ForEachItem(value, [&](Value item) {
    OwnerReference owner;
    const Error error = ReadOwner(reader, item, owner);
    if (error != kOk) return error;
    if (owner.controls) out.controller = owner;
    if (all) out.owners.push_back(std::move(owner));
    return kOk;
  });
}

}  // namespace

Error Read(Reader& reader, Value value, ObjectMeta& out, const MetaOptions& options) {
  return reader.ForEachMember(value, [&](std::string_view key, Value field) -> Error {
    if (key == "name") return Read(field, out.name);
    if (key == "namespace") return Read(field, out.ns);
    if (key == "uid") return Read(field, out.uid);
    if (key == "resourceVersion") return Read(field, out.resource_version);
    if (key == "generation") return Read(field, out.generation);
    if (key == "creationTimestamp") return Read(field, out.created);
    if (key == "deletionTimestamp") return Read(field, out.deletion_time);
    if (key == "deletionGracePeriodSeconds") return Read(field, out.deletion_grace_seconds);
    if (key == "labels") return Read(reader, field, out.labels, options.labels ? &*options.labels : nullptr);
    if (key == "annotations" && !options.annotations.empty())
      return Read(reader, field, out.annotations, &options.annotations);
    if (key == "ownerReferences") return ReadOwners(reader, field, out, options.owners);
    if (key == "finalizers") return Read(reader, field, out.finalizers);
    return kOk;
  });
}

}  // namespace json
}  // namespace trainyard::kube
