// What graphs say to each other, handed on to whoever knows how to reach them.
#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "graph/kernel/kernel.h"

namespace trainyard::graph {
namespace {

absl::StatusOr<Peers*> PeersOf(const OpRun& run) {
  if (run.services().peers != nullptr) return run.services().peers;
  return absl::FailedPreconditionError("there are no peers to talk to: run this graph as part of a job");
}

absl::Status Send(OpRun& run) {
  TY_ASSIGN_OR_RETURN(Peers * peers, PeersOf(run));
  const Strings& graphs = run.op().StringList("graphs");
  const std::vector<std::string>& names = run.op().In("X");
  for (std::size_t i = 0; i < names.size(); ++i)
    TY_RETURN_IF_ERROR(peers->Send(graphs[i], names[i], run.InVariable("X", static_cast<int>(i)).value));
  return absl::OkStatus();
}

absl::Status SendBarrier(OpRun& run) {
  TY_ASSIGN_OR_RETURN(Peers * peers, PeersOf(run));
  return peers->SendBarrier(run.op().StringList("graphs"));
}

absl::Status Recv(OpRun& run) {
  TY_ASSIGN_OR_RETURN(Peers * peers, PeersOf(run));
  const Strings& graphs = run.op().StringList("graphs");
  const std::vector<std::string>& names = run.op().Out("Out");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int at = static_cast<int>(i);
    if (run.IsSparseOut("Out", at))
      return absl::InvalidArgumentError(
          StrCat(names[i], " is sparse, and only dense variables are received"));
    TY_RETURN_IF_ERROR(peers->Receive(graphs[i], names[i], run.Out("Out", at)));
  }
  return run.op().Bool("wait") ? peers->FetchBarrier(graphs) : absl::OkStatus();
}

absl::Status FetchBarrier(OpRun& run) {
  TY_ASSIGN_OR_RETURN(Peers * peers, PeersOf(run));
  return peers->FetchBarrier(run.op().StringList("graphs"));
}

absl::Status Prefetch(OpRun& run) {
  TY_ASSIGN_OR_RETURN(Peers * peers, PeersOf(run));
  const Strings& graphs = run.op().StringList("graphs");
  for (int i = 0; i < run.CountIn("Ids"); ++i) {
    TY_RETURN_IF_ERROR(peers->Prefetch(graphs[static_cast<std::size_t>(i)], run.op().String("table"),
                                       run.In("Ids", i), run.Out("Out", i)));
  }
  return absl::OkStatus();
}

}  // namespace

void AddRemoteKernels(KernelTable& table) {
  table.Add("send", Send);
  table.Add("send_barrier", SendBarrier);
  table.Add("recv", Recv);
  table.Add("fetch_barrier", FetchBarrier);
  table.Add("prefetch", Prefetch);
}

}  // namespace trainyard::graph
