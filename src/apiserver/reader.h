// Answers what only reads: get, list and watch.
#pragma once

#include <string>

#include "apiserver/call.h"
#include "apiserver/object_filter.h"
#include "apiserver/watch_hub.h"
#include "apiserver/watch_session.h"
#include "base/clock.h"
#include "base/executor.h"
#include "kv/store.h"

namespace trainyard::apiserver {

class Reader {
 public:
  // Lists that may be long run on `slow`, so that they hold up nobody; null: on the caller's thread.
  Reader(kv::Store& store, WatchHub& hub, Clock& clock, Executor* slow)
      : store_(store), hub_(hub), clock_(clock), slow_(slow) {}

  void Get(const CallPtr& call);
  void List(const CallPtr& call);
  void Watch(const CallPtr& call);
  // The objects that a list with the call's selectors would show.
  absl::StatusOr<std::vector<kube::ObjectKey>> Keys(const Call& call);
  // One object, as it is stored; an ApiError 404 if there is none.
  absl::StatusOr<kv::KeyValue> Find(const Call& call);

 private:
  struct Page {
    std::vector<kv::KeyValue> kvs;
    kv::Revision revision = 0;
    std::string continue_token;
  };
  struct ListTerms {
    std::string prefix;
    ObjectFilter filter;
    std::int64_t limit = 0;
    kv::Revision revision = 0;  // 0: the newest
    std::string start;          // the first key
  };

  absl::StatusOr<ListTerms> ParseListTerms(const Call& call);
  absl::StatusOr<Page> ReadPage(const ListTerms& terms);
  void ListNow(const CallPtr& call);
  void WatchNow(const CallPtr& call);
  absl::Status BeginWatch(Call& call);

  kv::Store& store_;
  WatchHub& hub_;
  Clock& clock_;
  Executor* slow_;
};

// An object as the client wants it: whole, its metadata alone, or as a row of a table. What is left of the
// call's budget pays for each object that it shows, as the objects of a watch leave the server one by one.
ObjectRenderer RendererFor(const Call& call, const Clock& clock);

}  // namespace trainyard::apiserver
