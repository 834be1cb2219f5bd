// Opens a store by URL:
//
//   embedded:PATH                                         a folder of this machine; ~ is the home folder
//   etcd://HOST[:PORT][,HOST[:PORT]...][?OPTION=VALUE&…]  an etcd cluster; the port is 2379 unless given
//   etcds://…                                             the same over TLS
//   memory:                                               forgotten when the process ends
//
// Options of etcd: ca, cert and key (files; any of them means TLS), user, password-file, token-file (of a
// store that `trainyard store` serves), timeout (as "3s").
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "kv/etcd/etcd_store.h"
#include "kv/store.h"

namespace trainyard::kv {

struct MemoryUrl {};
struct EmbeddedUrl {
  std::string folder;
};
using StoreUrl = std::variant<MemoryUrl, EmbeddedUrl, EtcdOptions>;

// What the process's environment adds to a URL.
struct StoreEnvironment {
  std::string home;           // $HOME
  std::string etcd_password;  // $TRAINYARD_ETCD_PASSWORD
  std::string etcd_token;     // $TRAINYARD_ETCD_TOKEN
};

// InvalidArgument: the message says what is wrong and shows the right form. Reads the password or token file
// if one is named.
absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view url, const StoreEnvironment& environment);

// Takes the environment of this process. NotFound: there is no embedded store there, and none is to be made.
enum class IfMissing { kCreate, kFail };
absl::StatusOr<std::unique_ptr<Store>> OpenStore(std::string_view url,
                                                 IfMissing if_missing = IfMissing::kCreate);

}  // namespace trainyard::kv
