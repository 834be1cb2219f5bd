#include "tests/contract/api/api_contract.h"

#include <atomic>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"

namespace trainyard::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

std::string_view PatchContentType(std::string_view kind) {
  if (kind == "json") return "application/json-patch+json";
  if (kind == "strategic") return "application/strategic-merge-patch+json";
  if (kind == "apply") return "application/apply-patch+yaml";
  return "application/merge-patch+json";
}

}  // namespace

void ApiContract::SetUp() {
  if (const std::string missing = GetParam().missing(); !missing.empty()) GTEST_SKIP() << missing;
  transport_ = &GetParam().start().transport();
  api_ = std::make_unique<kube::Api>(*transport_, Clock::System(), IdSource::Random());
  ns_ = StrCat("t-", IdSource::Random().Suffix(10));
  ASSERT_EQ(Post("/api/v1/namespaces", StrCat(R"({"metadata":{"name":")", ns_, R"("}})")).code, 201);
}

Answer ApiContract::Send(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view content_type, std::string_view accept) {
  std::vector<kube::Request> requests;
  requests.push_back({.method = std::string(method),
                      .target = std::string(target),
                      .body = std::string(body),
                      .content_type = std::string(content_type),
                      .accept = std::string(accept)});
  const auto responses = transport_->DoAll(std::move(requests));
  EXPECT_TRUE(responses[0].ok()) << method << " " << target << ": " << responses[0].status();
  if (!responses[0].ok()) return {};
  Answer answer{.code = responses[0]->code, .headers = responses[0]->headers};
  if (auto parsed = ParseJson(responses[0]->body); parsed.ok()) answer.body = *std::move(parsed);
  return answer;
}

Answer ApiContract::Patch(std::string_view target, std::string_view kind, std::string_view body) {
  return Send("PATCH", target, body, PatchContentType(kind));
}

std::unique_ptr<kube::WatchStream> ApiContract::Watch(const kube::Resource& resource,
                                                      kube::WatchOptions options) {
  auto stream = api_->Watch(resource, resource.namespaced ? ns_ : "", options);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return stream.ok() ? *std::move(stream) : nullptr;
}

std::string ApiContract::NextEvent(kube::WatchStream& stream) {
  for (;;) {
    const auto event = stream.Next(kPatience);
    if (!event.ok()) return StrCat("error ", ::trainyard::Message(event.status()));
    if (event->type == kube::WatchEventType::kBookmark) continue;
    const auto object = ParseJson(event->object);
    if (!object.ok()) return "no JSON";
    return StrCat(kube::PrintWatchEventType(event->type), " ", StringAt(*object, {"metadata", "name"}));
  }
}

std::vector<std::string> Names(const Answer& list) {
  std::vector<std::string> names;
  if (const Array* items = ArrayAt(list.body, {"items"})) {
    for (const Document& item : *items) names.emplace_back(StringAt(item, {"metadata", "name"}));
  }
  return names;
}

}  // namespace trainyard::testing
