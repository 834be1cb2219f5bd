// Keeps one collection of objects flowing from the API server to the node's loop: a thread that waits for the
// server, so that the loop never does.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/document.h"
#include "kube/api.h"
#include "kube/resource.h"
#include "node/loop.h"

namespace trainyard::node {

class ObjectFeed {
 public:
  // Called on the loop.
  struct Callbacks {
    std::function<void(std::vector<Document> objects)> listed;  // these, and no others
    std::function<void(Document object)> changed;               // added or modified
    std::function<void(Document object)> deleted;
  };
  // The API, the clock and the loop must outlive it.
  ObjectFeed(kube::Api& api, Clock& clock, Loop& loop, const kube::Resource& resource, Callbacks callbacks);
  ~ObjectFeed();  // Stop()
  ObjectFeed(const ObjectFeed&) = delete;
  ObjectFeed& operator=(const ObjectFeed&) = delete;

  // Nothing is posted to the loop afterwards. May be called twice.
  void Stop();

 private:
  struct Parts;
  void Run();

  const std::shared_ptr<Parts> parts_;
  std::thread thread_;
};

}  // namespace trainyard::node
