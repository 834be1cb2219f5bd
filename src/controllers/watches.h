// Keeps up with every object that the API server has, of built-in kinds and of custom ones as they come and
// go: one watch a resource, shared by all controllers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/resources.h"
#include "base/clock.h"
#include "base/ids.h"
#include "controllers/observed.h"
#include "kube/api.h"
#include "kube/cache.h"
#include "kube/informer.h"
#include "kube/resource.h"
#include "kube/service.h"

namespace trainyard::controllers {

using MetaPtr = std::shared_ptr<const kube::ObjectMeta>;

// One resource's objects, whatever their type.
class Watch {
 public:
  virtual ~Watch() = default;
  const kube::Resource& resource() const { return resource_; }

  virtual MetaPtr Find(const kube::ObjectKey& key) const = 0;  // null: none
  virtual MetaPtr FindUid(std::string_view uid) const = 0;
  virtual std::vector<MetaPtr> ListNamespace(std::string_view ns) const = 0;
  virtual std::vector<MetaPtr> ListAll() const = 0;
  // Those that name an owner of that uid.
  virtual std::vector<MetaPtr> ListDependents(std::string_view uid) const = 0;

 protected:
  explicit Watch(kube::Resource resource) : resource_(std::move(resource)) {}

 private:
  friend class Watches;
  virtual kube::InformerBase& informer() = 0;

  const kube::Resource resource_;
  SteadyTime resume_;     // after a failure: not before
  bool current_ = false;  // all that had happened when it was last looked at has been told
};

// Used by one thread. The API and the clock must outlive it.
class Watches {
 public:
  // One of the two is null: the object is new, or gone.
  using OnChange =
      std::function<void(const Watch& watch, const kube::ObjectMeta* before, const kube::ObjectMeta* after)>;

  Watches(kube::Api& api, Clock& clock, IdSource random);
  ~Watches();

  // ---- before the first Pump()

  void AddHandler(OnChange handler) { handlers_.push_back(std::move(handler)); }
  kube::Informer<ObservedPod>& pods() { return *pods_; }
  kube::Informer<kube::CompactService>& services() { return *services_; }
  kube::Informer<ObservedEndpoints>& endpoints() { return *endpoints_; }
  kube::Informer<ObservedNode>& nodes() { return *nodes_; }
  kube::Informer<ObservedLease>& leases() { return *leases_; }

  // Watches what the table has, from now on: a resource that is new is listed by the next Pump(), the objects
  // of one that is gone are told as gone. True: something has changed.
  bool Follow(const apiserver::ResourceTable& table);

  // Tells the handlers what has happened. Returns when nothing more is there to be told, or after so many
  // steps.
  void Pump(int most_steps);
  // When the next step is due that is not for an event; now if Pump() did not come to the end.
  SteadyTime NextTime() const;
  // Everything that had happened before the last Pump() has been told: what is not there does not exist.
  bool IsCurrent() const;

  // By plural and group; null: not watched.
  const Watch* Find(std::string_view group, std::string_view plural) const;
  const Watch* FindKind(std::string_view api_version, std::string_view kind) const;
  std::vector<const Watch*> All() const;

 private:
  template <typename T>
  class TypedWatch;
  using Name = std::pair<std::string, std::string>;  // group, plural

  template <typename T>
  kube::Informer<T>* Add(const kube::Resource& resource, typename kube::Watcher<T>::Decode decode);
  void Tell(const Watch& watch, const kube::ObjectMeta* before, const kube::ObjectMeta* after);
  bool StepAll(int& steps_left);

  kube::Api& api_;
  Clock& clock_;
  IdSource random_;
  std::vector<OnChange> handlers_;
  std::map<Name, std::unique_ptr<Watch>> watches_;
  bool unfinished_ = true;

  kube::Informer<ObservedPod>* pods_;
  kube::Informer<kube::CompactService>* services_;
  kube::Informer<ObservedEndpoints>* endpoints_;
  kube::Informer<ObservedNode>* nodes_;
  kube::Informer<ObservedLease>* leases_;
};

}  // namespace trainyard::controllers
