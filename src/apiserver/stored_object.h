// How an object lies in the store, and how it is shown. Stored without what depends on how it is asked for:
//
//   stored   {"metadata":{"name":"x",...},"spec":...}
//   shown    {"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"42","name":"x",...},"spec":...}
//
// so that showing it is putting texts together, and never parsing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "kube/resource.h"
#include "kv/store.h"

namespace trainyard::apiserver {

inline constexpr std::string_view kRegistryPrefix = "registry/";

// "registry/core/pods/default/x"; an empty name gives the prefix of the collection, an empty namespace that
// of all.
std::string StoreKey(std::string_view group, std::string_view plural, std::string_view ns,
                     std::string_view name);

struct ParsedStoreKey {
  std::string_view group;  // empty: core
  std::string_view plural;
  std::string_view ns;
  std::string_view name;
};
// What a key is of; nothing if it is not ours. `namespaced` is not in the key: three parts are a cluster's
// object.
std::optional<ParsedStoreKey> ParseStoreKey(std::string_view key);

// The text to store. The document must have a metadata object; its apiVersion, kind and resourceVersion are
// left out.
std::string EncodeStored(const Document& object);

// The object as clients see it.
std::string ShowStored(std::string_view api_version, std::string_view kind, std::string_view stored,
                       kv::Revision revision);
void AppendStored(std::string& out, std::string_view api_version, std::string_view kind,
                  std::string_view stored, kv::Revision revision);
// The same as a document to work on. DataLoss: the store holds no object there.
absl::StatusOr<Document> DecodeStored(std::string_view api_version, std::string_view kind,
                                      std::string_view stored, kv::Revision revision);

}  // namespace trainyard::apiserver
