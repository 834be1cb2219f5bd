// Speaking Kubernetes: objects read, written and watched through a Transport, with what fails in passing
// tried again.
//
// A call blocks until its answer is there. What wants concurrency asks for it as one call: Do() takes many
// operations, puts them all in flight and returns all results.
//
// Tried again, with exponential back-off and jitter, or as the server's Retry-After says: 429, 502, 503, 504,
// and a connection that was refused. Of a write whose outcome is not known only what may safely be done
// twice: an update with a resourceVersion, a delete with a precondition, a create with a fixed name (which
// may then find its own object: IsAlreadyExists), an apply. Returned at once: 409 (IsConflict,
// IsAlreadyExists), 410 (IsGone), all other 4xx, an exchange that took longer than its timeout, and a
// Retry-After that is longer than the policy's longest wait.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "kube/error.h"
#include "kube/http.h"
#include "kube/resource.h"

namespace trainyard::kube {

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  std::int64_t limit = 500;  // of one page; 0: none
  std::string continue_token;
  std::string resource_version;
  std::string resource_version_match;
  bool once = false;  // a failure is reported at once, for a caller that tries again by itself
};

// One page; the items are JSON texts, as the server sent them.
struct ListPage {
  std::vector<std::string> items;
  std::string resource_version;
  std::string continue_token;  // empty: the last page
};

enum class PatchType { kMerge, kJson, kStrategic, kApply };

struct PatchOptions {
  PatchType type = PatchType::kMerge;
  std::string field_manager;  // required for kApply
  bool force = false;         // kApply: take fields over from others
  bool dry_run = false;
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<std::int64_t> grace_seconds;
  std::optional<Propagation> propagation;
  std::string uid;               // precondition
  std::string resource_version;  // precondition
};

// One operation of a batch. The functions below make them.
struct Operation {
  Request request;
  bool repeatable = true;  // doing it twice is the same as once
  bool once = false;       // not tried again, whatever the policy
};

Operation GetOperation(const Resource& resource, const ObjectKey& key);
// The same, answered with no more than the object's metadata; a server that cannot answers with all of it.
Operation ForMetadata(Operation operation);
// `object` is JSON text with metadata.name or generateName.
Operation CreateOperation(const Resource& resource, std::string_view ns, std::string object);
// Replaces; a metadata.resourceVersion in `object` is the precondition.
Operation UpdateOperation(const Resource& resource, const ObjectKey& key, std::string object,
                          std::string_view subresource = "");
Operation PatchOperation(const Resource& resource, const ObjectKey& key, std::string patch,
                         const PatchOptions& options, std::string_view subresource = "");
Operation DeleteOperation(const Resource& resource, const ObjectKey& key, const DeleteOptions& options = {});
// Asks for the pod of that uid to be replaced, within disruption budgets: by a process that knows better than
// the kubelet that the pod is of no use.
Operation EvictOperation(const ObjectKey& pod, std::string_view uid);

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };
std::string_view PrintWatchEventType(WatchEventType type);

struct WatchEvent {
  WatchEventType type = WatchEventType::kAdded;
  std::string object;  // JSON text; of a bookmark, only metadata.resourceVersion means something
  bool operator==(const WatchEvent&) const = default;
};

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  bool bookmarks = true;
  // After this long the server ends the watch; the watcher resumes it.
  absl::Duration server_timeout = absl::Minutes(5);
};

// One watch, until it ends or breaks. Used by one thread at a time, except Cancel().
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  // The next event. DeadlineExceeded: none came in time. OutOfRange (IsGone): the version asked for is too
  // old; list again. Unavailable: it ended or broke; resume it. Cancelled: after Cancel().
  virtual absl::StatusOr<WatchEvent> Next(absl::Duration timeout) = 0;
  virtual void Cancel() = 0;
};

struct RetryPolicy {
  int attempts = 5;  // in all
  absl::Duration first = absl::Milliseconds(50);
  absl::Duration most = absl::Seconds(10);
};

// All calls may be made from many threads at once. The transport and the clock must outlive it.
class Api {
 public:
  Api(Transport& transport, Clock& clock, IdSource ids, RetryPolicy retry = {})
      : transport_(transport), clock_(clock), ids_(std::move(ids)), retry_(retry) {}

  // The answers' bodies, in the order of the operations.
  std::vector<absl::StatusOr<std::string>> Do(std::vector<Operation> operations);
  absl::StatusOr<std::string> Do(Operation operation);

  absl::StatusOr<std::string> Get(const Resource& resource, const ObjectKey& key);
  absl::StatusOr<ListPage> List(const Resource& resource, std::string_view ns, const ListOptions& options);
  // Every page, at one resource version. A continue token that has expired begins the list anew.
  absl::StatusOr<ListPage> ListAll(const Resource& resource, std::string_view ns, ListOptions options);
  absl::StatusOr<std::string> Create(const Resource& resource, std::string_view ns, std::string object);
  absl::StatusOr<std::string> Update(const Resource& resource, const ObjectKey& key, std::string object,
                                     std::string_view subresource = "");
  absl::StatusOr<std::string> Patch(const Resource& resource, const ObjectKey& key, std::string patch,
                                    const PatchOptions& options, std::string_view subresource = "");
  absl::Status Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options = {});
  absl::StatusOr<std::unique_ptr<WatchStream>> Watch(const Resource& resource, std::string_view ns,
                                                     const WatchOptions& options);

  Transport& transport() { return transport_; }

 private:
  // How long to wait before the next attempt; nothing: there is none.
  std::optional<absl::Duration> NextWait(const absl::Status& failure, bool repeatable, int attempts_made);
  void Wait(absl::Duration time);

  Transport& transport_;
  Clock& clock_;
  IdSource ids_;
  RetryPolicy retry_;
};

}  // namespace trainyard::kube
