#include "master/pserver/pserver.h"

#include <memory>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "master/pserver/shard.h"
#include "master/rpc/link.h"
#include "master/rpc/sessions.h"

namespace trainyard::master {
namespace {

// Orders one after the other; what takes its time is told of when it is done.
absl::Status Obey(const std::shared_ptr<Link>& link, Shard& shard) {
  for (std::int64_t after = 0;;) {
    wire::Request request;
    request.mutable_serve()->set_after(after);
    TY_ASSIGN_OR_RETURN(Reply reply, link->Ask(std::move(request)));
    if (!reply.head.has_order()) return absl::InternalError("the master's answer makes no sense");
    after = reply.head.order().id();
    const bool over = reply.head.order().has_end();
    if (over) return absl::OkStatus();
    shard.Obey(std::move(*reply.head.mutable_order()), [link](wire::Obeyed obeyed) {
      wire::Request told;
      *told.mutable_obeyed() = std::move(obeyed);
      link->Start(std::move(told), {}, [](const absl::StatusOr<Reply>&) {});
    });
  }
}

}  // namespace

absl::Status RunPserver(const PserverOptions& options,
                        const std::function<void(std::function<void()> stop)>& on_running) {
  Shard shard(options.index);
  TY_ASSIGN_OR_RETURN(const auto server,
                      SessionServer::Start({.address = options.listen, .token = options.token}, shard));
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  TY_ASSIGN_OR_RETURN(const std::shared_ptr<Link> link,
                      Link::Connect({.address = options.master,
                                     .token = options.token,
                                     .worker = options.index,
                                     .incarnation = NewIncarnation(),
                                     .pod = options.pod,
                                     .pserver_address = StrCat(host, ":", server->port()),
                                     .patience = options.patience,
                                     .on_running = on_running}));
  on_running([link] { link->Stop(); });
  const absl::Status ended = Obey(link, shard);
  on_running([] {});
  link->Stop();
  return ended;
}

}  // namespace trainyard::master
