// Calls to other graphs, wherever the registry says that they are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/steady_time.h"
#include "google/protobuf/message_lite.h"
#include "ps/registry.h"
#include "ps/rpc/channel.h"

namespace trainyard::ps {

// One channel for each graph, as long as it stays where it is. From any thread.
class Channels {
 public:
  explicit Channels(std::string token) : token_(std::move(token)) {}
  std::shared_ptr<Channel> To(std::string_view graph, const GraphPod& pod);

 private:
  const std::string token_;
  Mutex mu_;
  std::map<std::string, std::pair<std::int64_t, std::shared_ptr<Channel>>, std::less<>> channels_
      TY_GUARDED_BY(mu_);
};

// The same call to several graphs, all under way together. A graph that cannot be reached is looked up and
// called again. One thread.
class GroupCall {
 public:
  struct Options {
    std::string method;
    absl::Duration timeout = absl::Seconds(5);  // of one attempt
    // An error: waiting has become pointless, and why.
    std::function<absl::Status()> hopeless;
  };
  GroupCall(Registry& registry, Channels& channels, Options options);
  ~GroupCall();

  // Begins the call, and does not wait.
  void Add(std::string graph, std::shared_ptr<const google::protobuf::MessageLite> request);
  // Until all have answered OK. Else the first answer that another attempt would not change (Aborted,
  // InvalidArgument, FailedPrecondition, DataLoss), or what `hopeless` says.
  absl::Status Wait();

 private:
  struct Answers;
  struct Member {
    std::string graph;
    std::shared_ptr<const google::protobuf::MessageLite> request;
    std::int64_t tried = 0;    // the incarnation that is being asked
    std::int64_t attempt = 0;  // 0: none is under way
    SteadyTime again;          // not before
    bool done = false;
  };
  void Launch(std::size_t number);
  absl::Status Look(std::size_t number);

  Registry& registry_;
  Channels& channels_;
  const Options options_;
  std::int64_t attempts_ = 0;
  std::vector<Member> members_;
  const std::shared_ptr<Answers> answers_;
};

}  // namespace trainyard::ps
