#include "master/restarts.h"

#include <utility>

#include "base/document.h"
#include "base/text.h"

namespace trainyard::master {
namespace {

constexpr std::size_t kMostCauses = 10;
constexpr std::size_t kMostCauseBytes = 300;

}  // namespace

void Count(Restarts& restarts, const LastEnd& end, absl::Time now) {
  ++restarts.count;
  restarts.early = end.early ? restarts.early + 1 : 0;
  restarts.last.push_back(
      {absl::FromUnixSeconds(absl::ToUnixSeconds(now)), Shortened(end.cause, kMostCauseBytes)});
  if (restarts.last.size() > kMostCauses) restarts.last.erase(restarts.last.begin());
}

Restarts ParseRestarts(std::string_view json) {
  const absl::StatusOr<Document> document = ParseJson(json);
  return document.ok() ? job::ParseMasterRestarts(*document) : Restarts();
}

}  // namespace trainyard::master
