// How a CustomResourceDefinition ends: all of its objects are deleted first.
#pragma once

#include "base/clock.h"
#include "base/document.h"
#include "base/ids.h"
#include "controllers/actions.h"
#include "controllers/loop.h"
#include "controllers/namespace_ending.h"
#include "controllers/watches.h"
#include "kube/api.h"

namespace trainyard::controllers {

// Used by one thread. What it is given must outlive it.
class DefinitionEnding {
 public:
  DefinitionEnding(kube::Api& api, Watches& watches, Clock& clock, IdSource random, ServedResources served);

  Loop& loop() { return loop_; }

 private:
  kube::Outcome Pass(const kube::ObjectKey& key);
  kube::Outcome Tell(const ObjectRef& ref, Document definition, const ConditionValue& condition);
  // What is left of its objects, once those that were not being deleted are.
  absl::StatusOr<Remains> DeleteObjects(const kube::Resource& resource);

  kube::Api& api_;
  Watches& watches_;
  Clock& clock_;
  const ServedResources served_;
  Loop loop_;
};

}  // namespace trainyard::controllers
