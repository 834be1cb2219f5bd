#include "apiserver/stored_object.h"

#include "base/status.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

constexpr std::string_view kOpening = R"({"metadata":{)";
constexpr std::string_view kCoreGroup = "core";

}  // namespace

std::string StoreKey(std::string_view group, std::string_view plural, std::string_view ns,
                     std::string_view name) {
  std::string key = StrCat(kRegistryPrefix, group.empty() ? kCoreGroup : group, "/", plural, "/");
  if (!ns.empty()) StrAppend(key, ns, "/");
  key += name;
  return key;
}

std::optional<ParsedStoreKey> ParseStoreKey(std::string_view key) {
  if (!key.starts_with(kRegistryPrefix)) return std::nullopt;
  const std::vector<std::string_view> parts = Split(key.substr(kRegistryPrefix.size()), '/');
  if (parts.size() < 3 || parts.size() > 4) return std::nullopt;
  ParsedStoreKey parsed{.group = parts[0] == kCoreGroup ? std::string_view() : parts[0], .plural = parts[1]};
  if (parts.size() == 4) parsed.ns = parts[2];
  parsed.name = parts.back();
  return parsed;
}

std::string EncodeStored(const Document& object) {
  std::string out(kOpening);
  const auto append_members = [&out](const Object& members, auto skip) {
    bool first = true;
    for (const auto& member : members) {
      if (skip(Key(member))) continue;
      if (!first) out += ',';
      first = false;
      AppendJson(out, Document(member.key()));
      out += ':';
      AppendJson(out, member.value());
    }
    return !first;
  };
  if (const Object* metadata = ObjectAt(object, {"metadata"})) {
    append_members(*metadata, [](std::string_view key) { return key == "resourceVersion"; });
  }
  out += '}';
  if (const Object* top = object.if_object()) {
    std::string rest;
    rest.swap(out);
    const bool any = append_members(
        *top, [](std::string_view key) { return key == "metadata" || key == "apiVersion" || key == "kind"; });
    rest.swap(out);
    if (any) StrAppend(out, ",", rest);
  }
  out += '}';
  return out;
}

void AppendStored(std::string& out, std::string_view api_version, std::string_view kind,
                  std::string_view stored, kv::Revision revision) {
  out += '{';
  if (!kind.empty()) StrAppend(out, R"("kind":")", kind, R"(","apiVersion":")", api_version, R"(",)");
  StrAppend(out, R"("metadata":{"resourceVersion":")", revision, "\"");
  std::string_view rest = stored.substr(std::min(kOpening.size(), stored.size()));
  if (!rest.starts_with('}')) out += ',';
  out += rest;
}

std::string ShowStored(std::string_view api_version, std::string_view kind, std::string_view stored,
                       kv::Revision revision) {
  std::string out;
  out.reserve(stored.size() + 128);
  AppendStored(out, api_version, kind, stored, revision);
  return out;
}

absl::StatusOr<Document> DecodeStored(std::string_view api_version, std::string_view kind,
                                      std::string_view stored, kv::Revision revision) {
  if (!stored.starts_with(kOpening)) {
    return absl::DataLossError(StrCat("what is stored at revision ", revision, " is not an object of ours"));
  }
  auto document = ParseJson(ShowStored(api_version, kind, stored, revision));
  if (!document.ok()) {
    return absl::DataLossError(
        StrCat("what is stored at revision ", revision, " cannot be read: ", Message(document.status())));
  }
  return document;
}

}  // namespace trainyard::apiserver
