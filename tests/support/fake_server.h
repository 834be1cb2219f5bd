// An API server in memory, as a Transport, for tests: keeps objects of any kind, checks preconditions, pages
// lists, sends watches, and fails in the ways that a test asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/mutex.h"
#include "kube/error.h"
#include "kube/http.h"
#include "kube/resource.h"

namespace trainyard::kube {

// All calls may be made from many threads at once. Streams that it opened may outlive it.
class FakeServer final : public Transport {
 public:
  FakeServer();
  ~FakeServer() override;

  std::vector<absl::StatusOr<Response>> DoAll(std::vector<Request> requests) override;
  absl::StatusOr<OpenedResponse> Open(Request request) override;
  std::string Server() const override { return "fake://server"; }

  // ---- what a test does behind the clients' backs

  // Creates or replaces; the object's metadata says which. Returns its resource version.
  std::string Put(const Resource& resource, std::string_view json);
  void Remove(const Resource& resource, const ObjectKey& key);
  // As it is stored; null if it is not.
  std::optional<Document> Find(const Resource& resource, const ObjectKey& key) const;
  std::vector<Document> FindAll(const Resource& resource) const;
  std::string Version() const;

  // ---- faults

  // Called for each request before it is done, with no lock held. What it returns is the answer; nothing: it
  // is done as usual.
  using Intercept = std::function<std::optional<absl::StatusOr<Response>>(const Request&)>;
  void SetIntercept(Intercept intercept);
  // Called for each answer after the request was done: an answer that is changed here is a write whose answer
  // was lost.
  using Tamper = std::function<void(const Request&, absl::StatusOr<Response>&)>;
  void SetTamper(Tamper tamper);
  // Forgets history: to watch from an older version, or to go on with a list, is 410.
  void Compact();
  // Ends the open watches as a server does when their time is over, or breaks them.
  void EndWatches();
  void BreakWatches();
  // The open watches stay open and nothing comes any more: a connection whose other end is gone.
  void SilenceWatches();
  // Tells the open watches the newest version.
  void SendBookmarks();

  // "GET /api/v1/pods?limit=500" of every request so far, and of every watch.
  std::vector<std::string> Requests() const;
  int CountOpenWatches() const;

 private:
  struct State;
  class Body;
  std::shared_ptr<State> state_;
};

}  // namespace trainyard::kube
