#include "cli/kv_common.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::cli {
namespace {

std::string DefaultUrl() {
  const char* home = std::getenv("TRAINYARD_HOME");
  return home != nullptr && *home != '\0' ? StrCat("embedded:", home, "/store")
                                          : "embedded:~/.trainyard/store";
}

}  // namespace

void StoreFlag::Declare(Flags& flags) {
  flags.Text({.name = "--store",
              .value = "URL",
              .help = "embedded:PATH, etcd://HOST:PORT[,HOST:PORT][?user=…&ca=…] or etcds://… "
                      "(embedded:$TRAINYARD_HOME/store)",
              .everywhere = true},
             url_);
}

absl::StatusOr<std::unique_ptr<kv::Store>> StoreFlag::Open(kv::IfMissing if_missing) const {
  auto store = kv::OpenStore(url_.empty() ? DefaultUrl() : url_, if_missing);
  return absl::IsInvalidArgument(store.status()) ? UsageError(Message(store.status())) : std::move(store);
}

std::string ToJson(const kv::KeyValue& kv) {
  JsonObject json;
  const auto add = [&](const char* name, const std::string& text) {
    if (IsUtf8(text)) {
      json.Add(name, std::string_view(text));
    } else {
      json.Add(StrCat(name, "_base64"), std::string_view(absl::Base64Escape(text)));
    }
  };
  add("key", kv.key);
  add("value", kv.value);
  json.Add("create_revision", kv.create_revision)
      .Add("mod_revision", kv.mod_revision)
      .Add("version", kv.version);
  if (kv.lease != kv::kNoLease) json.Add("lease", kv.lease);
  return json.Str();
}

std::string Quoted(std::string_view key) { return StrCat("'", Escaped(key), "'"); }

absl::Status Print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) return ErrnoStatus(errno, "cannot write to standard output");
  return absl::OkStatus();
}

}  // namespace trainyard::cli
