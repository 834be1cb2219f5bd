// Speaks with an API server in the same process, without a connection.
#pragma once

#include <memory>
#include <string>

#include "apiserver/server.h"
#include "base/clock.h"
#include "kube/http.h"

namespace trainyard::apiserver {

class DirectTransport final : public kube::Transport {
 public:
  // `name` is who it speaks as: what it writes is recorded under that name. The server must outlive it.
  // `news` is notified whenever a body that was opened has something to read or ends, so that one thread can
  // read many of them without waiting for each.
  DirectTransport(ApiServer& server, std::string name, std::shared_ptr<Alarm> news = nullptr)
      : server_(server), name_(std::move(name)), news_(std::move(news)) {}

  std::vector<absl::StatusOr<kube::Response>> DoAll(std::vector<kube::Request> requests) override;
  absl::StatusOr<kube::OpenedResponse> Open(kube::Request request) override;
  std::string Server() const override { return "the embedded API server"; }

 private:
  http::ServerRequest Wrap(kube::Request request) const;

  ApiServer& server_;
  const std::string name_;
  const std::shared_ptr<Alarm> news_;
};

}  // namespace trainyard::apiserver
