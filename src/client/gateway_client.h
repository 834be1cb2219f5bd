// Calls to a store's gateway: when to ask again, and what became of a write.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/document.h"
#include "client/gateway_errors.h"
#include "kube/http.h"
#include "kv/store.h"

namespace trainyard::client {

// All calls may be made from many threads at once.
class GatewayClient {
 public:
  // `path` stands before "/v3/..."; `timeout` is of one call, with all its attempts.
  GatewayClient(std::unique_ptr<kube::Transport> transport, std::string path, absl::Duration timeout);

  enum class Kind { kRead, kWrite };
  struct Question {
    Kind kind = Kind::kRead;
    std::string_view path;  // "/v3/kv/range"
    std::string body;
    kv::Revision asked = 0;  // the revision that it names, if any
  };
  // The answer. Asks again while that can help and there is time; a write only if it is certain that it was
  // not made. A gateway that has never answered is more likely misspelt than restarting: it is asked once.
  absl::StatusOr<Document> Call(const Question& question);
  // All in flight at once, and each as above.
  std::vector<absl::StatusOr<Document>> CallAll(const std::vector<Question>& questions);
  // An answer that comes line by line.
  absl::StatusOr<std::unique_ptr<kube::BodyReader>> Open(const Question& question);

  // Whether it has answered, ever.
  bool answered() const { return answered_; }
  absl::Duration timeout() const { return timeout_; }
  std::string url() const;
  std::string where() const;  // "the store at https://10.0.0.1:6443/api/v1/..."

 private:
  kube::Request RequestFor(const Question& question, absl::Duration timeout) const;
  // Of one attempt.
  Verdict Take(const Question& question, const absl::StatusOr<kube::Response>& response);

  const std::unique_ptr<kube::Transport> transport_;
  const std::string path_;
  const absl::Duration timeout_;
  std::atomic<bool> answered_ = false;
};

}  // namespace trainyard::client
