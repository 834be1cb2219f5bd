// trainyard store
#include <iostream>

#include "base/access.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ending_signals.h"
#include "kv/disk/embedded_store.h"
#include "kv/etcd/etcd_server.h"
#include "kv/gateway/gateway.h"

namespace trainyard::cli {
namespace {

class StoreServe final : public Command {
 public:
  std::string name() const override { return "store"; }
  std::string summary() const override {
    return "Serve an embedded store to other processes, as an etcd does";
  }
  std::string details() const override {
    return "Any client of etcd's version 3 can use it: etcdctl, and all of trainyard by --store "
           "etcd://HOST:PORT.\n"
           "--gateway serves the same store over HTTP and JSON, as etcd's own gateway does. It ends with "
           "SIGTERM\n"
           "or Ctrl-C.\n\n"
           "Examples:\n"
           "  trainyard store --path /var/lib/yard\n"
           "  trainyard store --path /var/lib/yard --listen :2379 --gateway :2380 --token-file token\n"
           "  trainyard kv put a 1 --store 'etcd://10.0.0.1:2379?token-file=token'\n"
           "  curl -H \"Authorization: Bearer $(cat token)\" http://10.0.0.1:2380/v3/kv/range -d "
           "'{\"key\":\"YQ==\"}'";
  }

  void Declare(Flags& flags) override {
    flags.Text(
        {.name = "--path", .value = "FOLDER", .help = "Where the store is kept; made if it is not there"},
        path_);
    flags.Text({.name = "--listen",
                .value = "ADDRESS",
                .help = "Where clients of etcd's come, as :2379 (127.0.0.1:2379)"},
               listen_);
    flags.Text({.name = "--gateway",
                .value = "ADDRESS",
                .help = "Where HTTP and JSON are served, as 127.0.0.1:2380 (nowhere)"},
               gateway_);
    flags.Text({.name = "--token-file",
                .value = "FILE",
                .help = "Let in only who has the token that is its first line ($TRAINYARD_ETCD_TOKEN)"},
               token_file_);
    flags.Switch({.name = "--insecure", .help = "Let other machines in without a token"}, insecure_);
  }

  absl::Status Run() override {
    if (path_.empty()) return UsageError("--path is missing: the folder where the store is kept");
    TY_ASSIGN_OR_RETURN(const std::string token, FindToken(token_file_, "TRAINYARD_ETCD_TOKEN"));
    TY_RETURN_IF_ERROR(CheckAddress("--listen", listen_, token));
    if (!gateway_.empty()) TY_RETURN_IF_ERROR(CheckAddress("--gateway", gateway_, token));
    const EndingSignals signals;  // before the first thread
    TY_ASSIGN_OR_RETURN(const auto store, kv::OpenEmbeddedStore(path_));
    TY_ASSIGN_OR_RETURN(const auto server,
                        kv::EtcdServer::Start(*store, {.address = listen_, .token = token}));
    std::unique_ptr<kv::Gateway> gateway;
    if (!gateway_.empty()) {
      TY_ASSIGN_OR_RETURN(gateway, kv::Gateway::Start(*store, {.address = gateway_, .token = token}));
    }
    std::cout << "The store in " << path_ << " is ready: etcd://" << server->address()
              << (gateway == nullptr ? "" : StrCat(" and http://", gateway->address())) << std::endl;
    if (!signals.AwaitFor(absl::Seconds(1))) {
      ReturnMemory();
      signals.Await();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckAddress(std::string_view flag, const std::string& text, const std::string& token) const {
    const auto address = ParseListenAddress(text);
    if (!address.ok()) return UsageError(StrCat(flag, ": ", Message(address.status())));
    if (address->IsLoopback() || !token.empty() || insecure_) return absl::OkStatus();
    return UsageError(StrCat(flag, ": other machines can reach ", address->Text(),
                             ": give a --token-file, or --insecure if all of them may read and change "
                             "everything"));
  }

  std::string path_;
  std::string listen_ = "127.0.0.1:2379";
  std::string gateway_;
  std::string token_file_;
  bool insecure_ = false;
};

}  // namespace

std::unique_ptr<Command> NewStoreServe() { return std::make_unique<StoreServe>(); }

}  // namespace trainyard::cli
