// How a namespace ends: everything in it is deleted, and when all of it is gone, so is the namespace.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/document.h"
#include "base/ids.h"
#include "controllers/actions.h"
#include "controllers/loop.h"
#include "controllers/watches.h"
#include "kube/api.h"

namespace trainyard::controllers {

// ---- pure

// What is left of something that is being deleted.
struct Remains {
  std::map<std::string, std::size_t> objects;     // by resource: "pods", "tfjobs.kubeflow.org"
  std::map<std::string, std::size_t> finalizers;  // how many objects each one holds

  void Add(const kube::Resource& resource, const kube::ObjectMeta& meta);
  bool operator==(const Remains&) const = default;
};

// Writes the conditions of a namespace that say what it waits for. `failure` says what could not be deleted,
// and is empty if all could. False: they say so already.
bool SetNamespaceConditions(Document& ns, const Remains& remains, std::string_view failure, absl::Time now);

// "pods: 3, services: 1".
std::string PrintCounts(const std::map<std::string, std::size_t>& counts);

// ---- the loop

using ServedResources = std::function<std::shared_ptr<const apiserver::ResourceTable>()>;

// Used by one thread. What it is given must outlive it.
class NamespaceEnding {
 public:
  NamespaceEnding(kube::Api& api, Watches& watches, Clock& clock, IdSource random, ServedResources served);

  Loop& loop() { return loop_; }

 private:
  kube::Outcome Pass(const kube::ObjectKey& key);
  // Deletes what is not being deleted yet; returns what is left by what is known, and what went wrong.
  Remains DeleteContents(const std::string& ns, absl::Status& failure);
  // Whether the server itself finds nothing in it any more.
  absl::StatusOr<bool> IsEmpty(const std::string& ns);

  kube::Api& api_;
  Watches& watches_;
  Clock& clock_;
  const ServedResources served_;
  Loop loop_;
};

}  // namespace trainyard::controllers
