#include "apiserver/openapi_documents.h"

#include "apiserver/discovery.h"
#include "apiserver/schema/openapi.h"

namespace trainyard::apiserver {
namespace {

// As clients ask for it, and as it is sent: an '@' has no place in a Content-Type, and Go refuses to read
// one.
constexpr std::string_view kProtobufV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
constexpr std::string_view kProtobufV2Sent = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

std::vector<ServedKind> KindsOf(const ResourceTable& table) {
  std::vector<ServedKind> kinds;
  for (const auto& resource : table.all()) {
    for (const ServedVersion& version : resource->versions) {
      ServedKind kind{.group = resource->group,
                      .version = version.name,
                      .kind = resource->kind,
                      .list_kind = resource->list_kind,
                      .plural = resource->plural,
                      .namespaced = resource->namespaced,
                      .schema = version.schema,
                      .subresources = resource->subresources};
      for (const std::string_view verb : VerbsOf(*resource)) kind.verbs.emplace_back(verb);
      if (version.has_status) kind.subresources.emplace_back("status");
      if (version.scale) kind.subresources.emplace_back("scale");
      kinds.push_back(std::move(kind));
    }
  }
  return kinds;
}

}  // namespace

struct OpenApiDocuments::Made {
  explicit Made(std::shared_ptr<const ResourceTable> of) : table(std::move(of)), kinds(KindsOf(*table)) {}

  const std::shared_ptr<const ResourceTable> table;
  const std::vector<ServedKind> kinds;
  Mutex mu;
  std::string v2_json TY_GUARDED_BY(mu);
  std::string v2_protobuf TY_GUARDED_BY(mu);
  std::vector<OpenApiV3Document> v3 TY_GUARDED_BY(mu);
};

std::shared_ptr<OpenApiDocuments::Made> OpenApiDocuments::For(
    const std::shared_ptr<const ResourceTable>& table) {
  MutexLock lock(mu_);
  if (made_ == nullptr || made_->table != table) made_ = std::make_shared<Made>(table);
  return made_;
}

std::optional<kube::Response> OpenApiDocuments::Get(const std::shared_ptr<const ResourceTable>& table,
                                                    std::string_view path, std::string_view accept) {
  const std::shared_ptr<Made> made = For(table);
  MutexLock lock(made->mu);
  if (path == "/openapi/v2") {
    const bool protobuf = accept.find(kProtobufV2) != std::string_view::npos;
    if (protobuf && made->v2_protobuf.empty())
      made->v2_protobuf = EncodeOpenApiV2(BuildOpenApiV2(made->kinds));
    if (!protobuf && made->v2_json.empty()) made->v2_json = PrintJson(BuildOpenApiV2(made->kinds));
    return kube::Response{.content_type = protobuf ? std::string(kProtobufV2Sent) : "application/json",
                          .body = protobuf ? made->v2_protobuf : made->v2_json};
  }
  constexpr std::string_view kV3 = "/openapi/v3";
  if (!path.starts_with(kV3)) return std::nullopt;
  if (made->v3.empty()) made->v3 = BuildOpenApiV3(made->kinds);
  if (path == kV3) return kube::Response{.body = PrintOpenApiV3Index(made->v3)};
  path.remove_prefix(kV3.size());
  for (const OpenApiV3Document& document : made->v3) {
    if (path.starts_with('/') && path.substr(1) == document.path)
      return kube::Response{.body = document.json};
  }
  return std::nullopt;
}

}  // namespace trainyard::apiserver
