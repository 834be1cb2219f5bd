// What every API server must do, whoever wrote it. A test speaks HTTP through a Transport, and knows nothing
// of what is behind it. Each test has a namespace of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/document.h"
#include "base/text.h"
#include "kube/api.h"
#include "kube/error.h"
#include "tests/contract/api/api_under_test.h"

namespace trainyard::testing {

// An answer, with its body parsed if it is JSON.
struct Answer {
  int code = 0;
  Document body;
  std::vector<std::pair<std::string, std::string>> headers;

  std::string_view Str(Path path) const { return StringAt(body, path); }
  std::string_view reason() const { return Str({"reason"}); }
};

class ApiContract : public ::testing::TestWithParam<ApiKind> {
 protected:
  void SetUp() override;

  Answer Send(std::string_view method, std::string_view target, std::string_view body = "",
              std::string_view content_type = "application/json",
              std::string_view accept = "application/json");
  Answer Get(std::string_view target) { return Send("GET", target); }
  Answer Post(std::string_view target, std::string_view body) { return Send("POST", target, body); }
  Answer Put(std::string_view target, const Document& body) { return Send("PUT", target, PrintJson(body)); }
  Answer Patch(std::string_view target, std::string_view kind, std::string_view body);
  Answer Delete(std::string_view target, std::string_view body = "") { return Send("DELETE", target, body); }

  // "/api/v1/namespaces/NS/" and what follows.
  std::string In(std::string_view rest) const { return StrCat("/api/v1/namespaces/", ns_, "/", rest); }

  std::unique_ptr<kube::WatchStream> Watch(const kube::Resource& resource, kube::WatchOptions options);
  // The next event that is no bookmark, as "ADDED name".
  std::string NextEvent(kube::WatchStream& stream);

  kube::Transport* transport_ = nullptr;
  std::unique_ptr<kube::Api> api_;
  std::string ns_;
};

// The names of a list's items.
std::vector<std::string> Names(const Answer& list);

}  // namespace trainyard::testing
