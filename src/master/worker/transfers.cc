#include "master/worker/transfers.h"

#include <future>
#include <utility>
#include <vector>

#include "base/status.h"

namespace trainyard::master {

void SendValues(
    Link& link, const NamedValues& values,
    const std::function<void(wire::Request& request, std::int64_t offset, std::int64_t total)>& fill,
    Link::Done done) {
  const std::int64_t total = BytesOf(values);
  for (std::int64_t offset = 0;; offset += ps::kFrameBytes) {
    wire::Request request;
    fill(request, offset, total);
    const bool last = offset + ps::kFrameBytes >= total;
    if (last) return link.Start(std::move(request), PartOf(values, offset), std::move(done));
    link.Start(std::move(request), PartOf(values, offset), [](const absl::StatusOr<Reply>&) {});
  }
}

absl::StatusOr<Reply> Await(const std::function<void(Link::Done)>& start) {
  std::promise<absl::StatusOr<Reply>> answer;
  start([&](absl::StatusOr<Reply> reply) { answer.set_value(std::move(reply)); });
  return answer.get_future().get();
}

absl::StatusOr<NamedValues> CollectValues(Link& link, const wire::Pulled& first,
                                          const ps::Unpacked& message) {
  Assembly assembly;
  TY_RETURN_IF_ERROR(assembly.Begin(first.variables(), first.total(), INT64_MAX));
  TY_RETURN_IF_ERROR(assembly.Add(0, message));
  for (std::int64_t offset = ps::kFrameBytes; offset < first.total(); offset += ps::kFrameBytes) {
    wire::Request request;
    request.mutable_pull()->set_version(first.version());
    request.mutable_pull()->set_generation(first.generation());
    request.mutable_pull()->set_offset(offset);
    TY_ASSIGN_OR_RETURN(const Reply reply, link.Ask(std::move(request)));
    TY_RETURN_IF_ERROR(assembly.Add(offset, reply.message));
  }
  if (!assembly.complete()) return absl::InternalError("the model that has come is not whole");
  return assembly.Take();
}

}  // namespace trainyard::master
