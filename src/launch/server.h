// The launcher's face: tasks over HTTP. The seed's GET /create is kept beside a REST API, which
// launch/openapi.json describes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/document.h"
#include "launch/controller.h"

namespace trainyard::launch {

struct ServerOptions {
  std::string address = "127.0.0.1:7897";  // as ParseListenAddress() takes it
  std::string token;  // whoever does not show it is refused; "": requests of web pages are
};

class Server {
 public:
  // The controller outlives it. Unavailable: nobody can listen there.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Controller& controller, ServerOptions options);
  // Ends all streams.
  virtual ~Server() = default;
  virtual std::string address() const = 0;
};

// A task as clients see it.
Document TaskDocument(const StoredTask& task);

// The spec that the seed's query asks for: strategy, n_worker, n_ps, img, name. InvalidArgument: which one is
// wrong.
absl::StatusOr<TaskSpec> ParseCreateQuery(const std::map<std::string, std::string>& query);

}  // namespace trainyard::launch
