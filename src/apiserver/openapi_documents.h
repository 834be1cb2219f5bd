// The OpenAPI documents of what the server serves, made when they are first asked for and kept until that
// changes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/resources.h"
#include "base/mutex.h"
#include "kube/http.h"

namespace trainyard::apiserver {

// From any thread.
class OpenApiDocuments {
 public:
  // The answer to "/openapi/v2", "/openapi/v3" or "/openapi/v3/apis/GROUP/VERSION"; nothing if there is no
  // such document.
  std::optional<kube::Response> Get(const std::shared_ptr<const ResourceTable>& table, std::string_view path,
                                    std::string_view accept);

 private:
  struct Made;
  std::shared_ptr<Made> For(const std::shared_ptr<const ResourceTable>& table);

  Mutex mu_;
  std::shared_ptr<Made> made_ TY_GUARDED_BY(mu_);
};

}  // namespace trainyard::apiserver
