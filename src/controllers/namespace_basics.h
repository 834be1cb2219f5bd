// What every namespace has from its beginning: the service account `default`, and the certificate of the
// cluster's authority for pods that speak to the API server.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/document.h"
#include "base/ids.h"
#include "controllers/actions.h"
#include "controllers/loop.h"
#include "controllers/watches.h"
#include "kube/api.h"

namespace trainyard::controllers {

inline constexpr std::string_view kDefaultAccount = "default";
inline constexpr std::string_view kAuthorityMap = "kube-root-ca.crt";

// ---- pure

// The change that brings the authority's certificate into the map, which may not be there yet; nothing if it
// is there.
std::optional<Action> PlanAuthorityMap(const std::string& ns, const std::optional<Document>& live,
                                       std::string_view authority_pem);

// ---- the loop

// Used by one thread. What it is given must outlive it.
class NamespaceBasics {
 public:
  NamespaceBasics(kube::Api& api, Watches& watches, Clock& clock, IdSource random, std::string authority_pem);

  Loop& loop() { return loop_; }

 private:
  kube::Outcome Pass(const kube::ObjectKey& key);

  kube::Api& api_;
  Watches& watches_;
  const std::string authority_pem_;  // empty: there is none to give
  Loop loop_;
};

}  // namespace trainyard::controllers
