// Calls to an etcd cluster: which member to ask, who we are, when to ask again, and what an error means.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kv/etcd/etcd.grpc.pb.h"
#include "kv/etcd/etcd_store.h"
#include "kv/store.h"

namespace trainyard::kv {

// From now on what gRPC has to say goes to our log, where it is for who debugs.
void RouteGrpcLog();

// One member.
struct EtcdMember {
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Watch::Stub> watch;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
};

// Before a member is asked again: waits a moment, or less if a connection to it comes up. Not a plain sleep:
// gRPC makes connections only while somebody waits for it.
void PauseBefore(EtcdMember& member);

// What an error says about the request.
enum class EtcdOutcome {
  kRefused,   // etcd understood it and said no: final
  kNotMade,   // it was not carried out; another member, or the same a little later, may
  kUnknown,   // it may have been carried out
  kNewToken,  // it was not carried out, because our token has expired
};
EtcdOutcome Classify(const grpc::Status& status);

// The error in the store's terms. `asked` is the revision that the request named, if any.
absl::Status ToStatus(const grpc::Status& status, EtcdOutcome outcome, std::string_view where,
                      Revision asked = 0);

class EtcdClient {
 public:
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Create(EtcdOptions options);

  enum class Kind { kRead, kWrite };
  using Attempt = std::function<grpc::Status(EtcdMember&, grpc::ClientContext&)>;
  // Runs `attempt` on one member after another until one answers or the time is over. A write is tried again
  // only if it is certain that it was not made.
  absl::Status Call(Kind kind, Revision asked, const Attempt& attempt);

  // For calls that last: a member, and a context with our token and without a deadline.
  EtcdMember& member();
  // Returns the token, which is empty where there are neither users nor a token of ours.
  absl::StatusOr<std::string> Prepare(grpc::ClientContext& context);
  // The member has failed; the next one is asked from now on.
  void Leave(const EtcdMember& member);
  // A token that etcd refused is not used again.
  void ForgetToken(const std::string& token);

  const EtcdOptions& options() const { return options_; }
  std::string where() const;  // "etcd at 10.0.0.1:2379,10.0.0.2:2379"

 private:
  explicit EtcdClient(EtcdOptions options) : options_(std::move(options)) {}
  absl::StatusOr<std::string> Token();
  bool GiveUp(std::size_t tried);

  const EtcdOptions options_;
  std::vector<std::unique_ptr<EtcdMember>> members_;
  Mutex mu_;
  std::size_t current_ TY_GUARDED_BY(mu_) = 0;
  bool answered_ TY_GUARDED_BY(mu_) = false;  // some member has, ever
  std::string token_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::kv
