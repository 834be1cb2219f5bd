// Whatever a user or a client may hand over as text: none of it may crash, and what is read is the same after
// it has been printed and read again.
//
// The first byte of an input says what the rest is taken for.
#include <cstdint>
#include <string_view>

#include "apiserver/json_path.h"
#include "apiserver/schema/protobuf.h"
#include "apiserver/schema/schema.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/document.h"
#include "base/rfc3339.h"
#include "base/yaml.h"
#include "kube/quantity.h"
#include "kube/selector.h"

namespace trainyard {
namespace {

void Json(std::string_view text) {
  const auto document = ParseJson(text);
  if (!document.ok()) return;
  const auto again = ParseJson(PrintJson(*document));
  // By its text: 2500.0 may come back as 2500.
  TY_CHECK(again.ok() && PrintJson(*again) == PrintJson(*document), "JSON is the same when it is read again");
}

void Yaml(std::string_view text) {
  const auto documents = ParseJsonOrYaml(text);
  if (!documents.ok()) return;
  for (const Document& document : *documents) {
    if (!document.is_object()) continue;  // all that is ever printed
    const auto again = ParseJsonOrYaml(PrintYaml(document));
    TY_CHECK(again.ok() && again->size() == 1 && PrintJson(again->front()) == PrintJson(document),
             "YAML is the same when it is read again");
  }
}

void Protobuf(std::string_view bytes) {
  // The fuzzer need not find the four bytes that all of them begin with.
  const auto document = apiserver::DecodeProtobuf(std::string("k8s\0", 4).append(bytes));
  if (document.ok()) TY_CHECK(document->is_object(), "an object is an object");
}

void Definition(std::string_view text) {
  const auto document = ParseJson(text);
  if (!document.ok()) return;
  const auto schema = apiserver::ParseOpenApiSchema(*document);
  if (!schema.ok()) return;
  Document value = *document;
  apiserver::Prune(**schema, value);
  TY_CHECK(apiserver::Prune(**schema, value).empty(), "what is pruned needs no pruning");
  if (!apiserver::ApplyDefaults(**schema, value)) return;
  apiserver::Validate(**schema, value);
  for (const auto version : {apiserver::OpenApiVersion::kV2, apiserver::OpenApiVersion::kV3}) {
    TY_CHECK(apiserver::ToOpenApi(**schema, version).is_object(), "a schema can be printed");
  }
}

void Words(std::string_view text) {
  if (const auto quantity = kube::Quantity::Parse(text); quantity.ok()) {
    const auto again = kube::Quantity::Parse(quantity->Print());
    TY_CHECK(again.ok() && *again == *quantity, "an amount is the same when it is read again");
  }
  if (const auto selector = kube::LabelSelector::Parse(text); selector.ok()) selector->Matches({});
  if (const auto bytes = DecodeBase64(text); bytes.ok()) {
    TY_CHECK(DecodeBase64(EncodeBase64(*bytes)).value_or("") == *bytes, "bytes are the same when read again");
  }
  (void)ParseTime(text);
  (void)apiserver::JsonPath::Parse(text);
}

}  // namespace
}  // namespace trainyard

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'j':
      trainyard::Json(rest);
      break;
    case 'y':
      trainyard::Yaml(rest);
      break;
    case 'p':
      trainyard::Protobuf(rest);
      break;
    case 'd':
      trainyard::Definition(rest);
      break;
    default:
      trainyard::Words(rest);
      break;
  }
  return 0;
}
