// The kinds that are built in: what their objects look like and how they are called.
//
// They are described in kinds/*.kinds, in a notation of our own that says in one line what a schema says of a
// field. It is read once, at start, into the very trees that a CustomResourceDefinition's schema becomes.
//
//   # a comment
//   package io.k8s.api.core.v1               the OpenAPI name of what follows begins with this
//   group "" v1                              group and version of the kinds that follow
//   type Container "What it is."             a type that others use
//   type EphemeralContainer like Container "A type that has all fields of another and more."
//   kind Pod plural=pods short=po category=all scope=namespaced "What it is."
//     name=1   string!     "A field, indented. '!': it is required."
//     env      []EnvVar @name "A list merged by its items' name, by strategic merge and by server-side
//     apply." ports    []ContainerPort @containerPort,protocol "The first key is the one of strategic merge."
//     args     []string = ["a"] "A list that is replaced whole, with a default."
//     limits   {}quantity  "A map."
//     policy   string in Always|Never := "Always" "An enumeration with a default, also for \"\" (':=')."
//     code     int32 >= 0 <= 255 "Bounds."
//     id       string /^[a-z]+$/ "A regular expression."
//
// A number behind a field's name is the one that it has in protobuf; 2.1 is field 1 of the message in field
// 2, which JSON does not show. '?' after it: 0, false and "" are values there, and do not mean that it is
// missing. `like Container=1`: all fields of the other are in the message in field 1. Types: string bool
// int32 int64 number time microtime quantity int-or-string bytes (base64), object (any fields), any (any
// value), or the name of a type. A type may contain itself: there, anything is taken. Attributes of a field,
// in any order: @KEYS, nomerge (the keys are for server-side apply only), set (a list without duplicates),
// atomic (a map or object that server-side apply replaces whole), retainKeys, nullable,
// "= JSON", ":= JSON" (0 and "" count as missing), "in A|B" ("" counts as missing, if it is not required),
// ">= N", "<= N", "/RE/". After `type NAME`: atomic, keep (unknown fields are kept).
// `kind` adds apiVersion and kind; metadata is written out, as not all have the same. A description is one or
// more texts in double quotes, also on lines of their own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "apiserver/schema/schema.h"

namespace trainyard::apiserver {

// One kind, and the collection of it that a server has.
struct KindInfo {
  std::string group;
  std::string version;
  std::string kind;
  std::string plural;    // empty: it is only sent and received (Status, Eviction)
  std::string singular;  // "pod"
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  SchemaPtr schema;  // its name is that of the definition in OpenAPI

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
};

struct KindsFile {
  std::string_view name;
  std::string_view text;
};

class KindTable {
 public:
  // InvalidArgument: "pod.kinds:12: what is wrong".
  static absl::StatusOr<KindTable> Parse(const std::vector<KindsFile>& files);

  // Null: there is none.
  const KindInfo* Find(std::string_view group, std::string_view version, std::string_view kind) const;
  const std::vector<KindInfo>& kinds() const { return kinds_; }

  // A definition by its whole name ("io.k8s.api.core.v1.Container") or by its last part, if only one has it.
  // Null: there is none.
  SchemaPtr FindType(std::string_view name) const;
  const std::map<std::string, SchemaPtr, std::less<>>& types() const { return types_; }

 private:
  std::vector<KindInfo> kinds_;
  std::map<std::string, SchemaPtr, std::less<>> types_;  // by whole name
};

// Those that this program has built in. Read at the first call; never fails.
const KindTable& BuiltInKinds();

}  // namespace trainyard::apiserver
