// A client that may get in and asks for anything: a few requests, one after the other, of an API server on a
// store in memory. Each is answered, and none by "it is our fault".
//
// An input is requests with a NUL between them, each "METHOD TARGET CONTENT-TYPE\nBODY".
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/direct_transport.h"
#include "apiserver/server.h"
#include "base/check.h"
#include "base/document.h"
#include "base/status.h"
#include "base/text.h"
#include "kv/open.h"

namespace trainyard::apiserver {
namespace {

constexpr int kMaxRequests = 16;

kube::Request ParseRequest(std::string_view text) {
  kube::Request request;
  const std::size_t newline = text.find('\n');
  if (newline != std::string_view::npos) request.body = text.substr(newline + 1);
  const auto words = Split(text.substr(0, newline), ' ');
  request.method = words[0];
  request.target = StrCat("/", words.size() > 1 ? words[1] : "");
  if (words.size() > 2) request.content_type = words[2];
  if (words.size() > 3) request.accept = words[3];
  return request;
}

void Check(const absl::StatusOr<kube::Response>& response) {
  TY_CHECK(response.ok(), "every request is answered");
  TY_CHECK(response->code >= 200 && response->code < 500,
           StrCat("answered ", response->code, ": ", response->body));
  if (response->content_type == "application/json") {
    TY_CHECK(ParseJson(response->body).ok(), "JSON is JSON");
  }
}

}  // namespace
}  // namespace trainyard::apiserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trainyard;  // NOLINT(google-build-using-namespace)
  std::string_view input(reinterpret_cast<const char*>(data), size);
  auto store = kv::OpenStore("memory:");
  TY_CHECK(store.ok(), "a store in memory");
  auto server = apiserver::ApiServer::Start({.store = store->get(), .seed = 1, .threads = false});
  TY_CHECK(server.ok(), "an API server");
  apiserver::DirectTransport transport(**server, "fuzz");
  int left = apiserver::kMaxRequests;
  for (const std::string_view text : Split(input, '\0')) {
    kube::Request request = apiserver::ParseRequest(text);
    if (request.target.find("watch") != std::string::npos) {
      const auto opened = transport.Open(std::move(request));
      TY_CHECK(opened.ok(), "every watch is answered");
    } else {
      std::vector<kube::Request> one;
      one.push_back(std::move(request));
      apiserver::Check(transport.DoAll(std::move(one))[0]);
    }
    if (--left == 0) break;
  }
  return 0;
}
