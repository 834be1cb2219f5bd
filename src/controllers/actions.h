// What a controller wants done, as values: decided by pure functions, compared by tests, done here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/document.h"
#include "kube/api.h"
#include "kube/resource.h"

namespace trainyard::controllers {

// One object.
struct ObjectRef {
  kube::Resource resource;
  kube::ObjectKey key;

  std::string Str() const { return resource.plural + " " + key.Str(); }
  auto operator<=>(const ObjectRef&) const = default;
};

struct Create {
  kube::Resource resource;
  std::string ns;
  Document object;
  bool operator==(const Create&) const = default;
};

// The object as it is to be; its resourceVersion says what it was made from.
struct Replace {
  ObjectRef ref;
  Document object;
  std::string subresource;
  bool operator==(const Replace&) const = default;
};

struct Delete {
  ObjectRef ref;
  std::string uid;  // preconditions; empty: none
  std::string resource_version;
  std::optional<kube::Propagation> propagation;
  std::optional<std::int64_t> grace_seconds;
  bool operator==(const Delete&) const = default;
};

// All objects of a resource in a namespace, or in all if that is empty.
struct DeleteAll {
  kube::Resource resource;
  std::string ns;
  bool operator==(const DeleteAll&) const = default;
};

using Action = std::variant<Create, Replace, Delete, DeleteAll>;

// For the log: "delete pods default/x".
std::string Print(const Action& action);

// Something to tell users about an object.
struct Note {
  kube::Resource resource;
  kube::ObjectKey key;
  std::string uid;
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const Note&) const = default;
};
using Tell = std::function<void(const Note&)>;

// Does all of them at once and returns what became of each, in their order. What is so already is done: an
// object to be created that exists, one to be deleted that is gone. So is a create in a namespace that is
// ending. A precondition that does not hold is kube::IsConflict: look again.
std::vector<absl::Status> Perform(kube::Api& api, const std::vector<Action>& actions);
absl::Status Perform(kube::Api& api, Action action);

// The objects as they are now, in the order of the references; nothing for one that does not exist. Says so
// only of what the server itself did not find, never of a kind that it does not serve.
std::vector<absl::StatusOr<std::optional<Document>>> ReadAll(kube::Api& api,
                                                             const std::vector<ObjectRef>& refs);
absl::StatusOr<std::optional<Document>> ReadOne(kube::Api& api, const ObjectRef& ref);

// ---- changes to documents

// Sets a condition of `status.conditions` by its type. The time of the last transition is `now` if the status
// changes, and stays otherwise. False: it was so already.
struct ConditionValue {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
};
bool SetCondition(Document& object, const ConditionValue& condition, absl::Time now);

// False: it was not there.
bool RemoveFinalizer(Document& object, std::string_view finalizer);

std::string_view UidOf(const Document& object);
std::string_view VersionOf(const Document& object);
bool IsBeingDeleted(const Document& object);

}  // namespace trainyard::controllers
