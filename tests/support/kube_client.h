// What tests of the client over a real connection share: a server, a transport to it, and short ways to ask.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/document.h"
#include "kube/curl_transport.h"
#include "tests/support/http_server.h"

namespace trainyard::kube {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

inline ClusterConfig ConfigOf(const testing_support::HttpServer& server) {
  return {.server = server.url(), .ca_pem = testing_support::Certificates::Get().ca};
}

inline std::unique_ptr<Transport> Connect(ClusterConfig config, CurlOptions options = {}) {
  auto transport = NewCurlTransport(std::move(config), std::move(options));
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

inline absl::StatusOr<Response> Do(Transport& transport, Request request) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  return std::move(transport.DoAll(std::move(one)).front());
}

inline absl::StatusOr<Response> Get(Transport& transport, std::string target) {
  return Do(transport, {.target = std::move(target)});
}

// The answer as a document.
inline Document Json(const absl::StatusOr<Response>& response) {
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return nullptr;
  const auto document = ParseJson(response->body);
  EXPECT_TRUE(document.ok()) << response->body;
  return document.value_or(nullptr);
}

inline std::int64_t Stat(Transport& transport, std::string_view name) {
  return IntAt(Json(Get(transport, "/stats")), {name}).value_or(0);
}

inline std::string ProtocolName(const testing::TestParamInfo<testing_support::Protocol>& parameter) {
  switch (parameter.param) {
    case testing_support::Protocol::kHttp2:
      return "Http2";
    case testing_support::Protocol::kHttps1:
      return "Https1";
    case testing_support::Protocol::kHttp1:
      return "Http1";
  }
  return "";
}

class KubeClient : public testing::TestWithParam<testing_support::Protocol> {
 protected:
  void SetUp() override {
    auto server = testing_support::HttpServer::Start(GetParam());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    transport_ = Connect(ConfigOf(*server_));
  }

  std::unique_ptr<testing_support::HttpServer> server_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace trainyard::kube
