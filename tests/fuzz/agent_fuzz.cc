// What a launcher sends to an agent: requests over a network that cuts them anywhere, and the configurations
// in them.
//
// The first bytes of an input say how it is cut; the rest is what is sent. Every body is taken for a
// configuration too, and so is the whole input.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config.h"
#include "agent/http_request.h"
#include "agent/json_text.h"
#include "agent/launch_plan.h"
#include "base/check.h"
#include "base/document.h"

namespace trainyard::agent {
namespace {

constexpr std::size_t kCuts = 8;

struct Parsed {
  std::vector<Request> requests;
  int bad = 0;
  bool operator==(const Parsed&) const = default;
};

void FeedAll(RequestParser& parser, std::string_view bytes, Parsed& parsed) {
  while (parsed.bad == 0) {
    const std::size_t taken = parser.Feed(bytes);
    TY_CHECK(taken <= bytes.size(), "no more is taken than there is");
    bytes.remove_prefix(taken);
    switch (parser.stage()) {
      case RequestParser::Stage::kDone:
        parsed.requests.push_back(parser.Take());
        break;
      case RequestParser::Stage::kBad:
        parsed.bad = parser.bad().code;
        break;
      case RequestParser::Stage::kHead:
      case RequestParser::Stage::kBody:
        if (bytes.empty()) return;
        TY_CHECK(taken > 0, "a parser that wants more takes what there is");
        break;
    }
  }
}

// `cuts`: how many bytes come at once, in turn; 0: all that are left.
Parsed ParseRequests(std::string_view cuts, std::string_view sent) {
  RequestParser parser;
  Parsed parsed;
  for (std::size_t i = 0; !sent.empty() && parsed.bad == 0; ++i) {
    const std::size_t cut = cuts.empty() ? 0 : static_cast<std::uint8_t>(cuts[i % cuts.size()]);
    const std::string_view piece = sent.substr(0, cut == 0 ? sent.size() : cut);
    sent.remove_prefix(piece.size());
    FeedAll(parser, piece, parsed);
  }
  return parsed;
}

void CheckConfig(std::string_view body) {
  const ParsedConfig parsed = ParseConfig(body);
  TY_CHECK(parsed.config.has_value() == parsed.wrong.empty(), "it is taken, or something is wrong");
  if (!parsed.config) return;
  const ScriptConfig& config = *parsed.config;
  TY_CHECK(config.attempt >= 1, "attempts count from 1");
  std::string printed = "{\"attempt\": " + std::to_string(config.attempt) +
                        ", \"workingDir\": " + Quote(config.working_dir) + ", \"command\": [";
  for (const std::string& word : config.command)
    printed += (printed.ends_with('[') ? "" : ", ") + Quote(word);
  printed += "], \"env\": {";
  for (const auto& [name, value] : config.env) {
    printed += (printed.ends_with('{') ? "" : ", ") + Quote(name) + ": " + Quote(value);
  }
  const ParsedConfig again = ParseConfig(printed + "}}");
  TY_CHECK(again.config == config, "a configuration is the same when it is read again");
  for (const std::string& variable : PlanLaunch({}, config, {}).env) {
    TY_CHECK(variable.find('\0') == std::string::npos && !variable.starts_with(kOwnVariables),
             "a process can be given it");
  }
}

}  // namespace
}  // namespace trainyard::agent

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trainyard::agent;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view sent = input.substr(std::min(input.size(), kCuts));
  const Parsed whole = ParseRequests("", sent);
  TY_CHECK(whole == ParseRequests(input.substr(0, kCuts), sent), "how the bytes are cut does not matter");
  for (const Request& request : whole.requests) {
    TY_CHECK(request.path.starts_with('/'), "a path begins with a slash");
    TY_CHECK(request.body.size() <= kMaxBodyBytes, "a body is bounded");
    CheckConfig(request.body);
  }
  TY_CHECK(trainyard::ParseJson(Quote(input)).ok(), "every text can be put into JSON");
  CheckConfig(input);
  return 0;
}
