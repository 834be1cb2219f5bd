#include "agent/config.h"

#include <algorithm>
#include <initializer_list>

#include "boost/json/parse.hpp"

namespace trainyard::agent {
namespace {

namespace json = boost::json;

// The kernel takes no longer argument or variable, with the zero behind it.
constexpr std::size_t kMaxTextBytes = 131'071;

std::string_view View(const json::string& text) { return {text.data(), text.size()}; }
std::string_view KeyOf(const json::key_value_pair& member) {
  return {member.key().data(), member.key().size()};
}

std::string Join(std::initializer_list<std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += piece;
  return text;
}

// Fills a configuration; the first thing that is wrong stays.
class ConfigReader {
 public:
  ParsedConfig Read(const json::value& document) {
    const json::object* object = document.if_object();
    if (object == nullptr)
      return {.wrong = "a configuration is a JSON object: {\"attempt\": 1, \"env\": {…}}"};
    if (IsEnvironment(*object)) {
      ReadEnv(document);
    } else {
      for (const auto& member : *object) ReadField(KeyOf(member), member.value());
    }
    if (!wrong_.empty()) return {.wrong = std::move(wrong_)};
    return {.config = std::move(config_)};
  }

 private:
  static bool IsEnvironment(const json::object& object) {
    return !object.contains("env") &&
           std::ranges::all_of(object, [](const auto& member) { return member.value().is_string(); });
  }

  void ReadField(std::string_view name, const json::value& value) {
    if (name == "attempt") return ReadAttempt(value);
    if (name == "env") return ReadEnv(value);
    if (name == "command") return ReadCommand(value);
    if (name == "workingDir") return ReadText(name, value, config_.working_dir);
    Wrong(Join({"a configuration has no field '", name,
                "': there are attempt, env, command and workingDir; variables go into env"}));
  }

  void ReadAttempt(const json::value& value) {
    const std::int64_t* number = value.if_int64();
    if (number == nullptr || *number < 1) return Wrong("attempt is a whole number from 1 on");
    config_.attempt = *number;
  }

  void ReadEnv(const json::value& value) {
    const json::object* object = value.if_object();
    if (object == nullptr) return Wrong("env is an object of texts: {\"TF_CONFIG\": \"…\"}");
    for (const auto& member : *object) ReadVariable(KeyOf(member), member.value());
  }

  void ReadVariable(std::string_view name, const json::value& value) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string_view::npos) {
      return Wrong("a variable's name is empty or holds = or a zero");
    }
    if (name.starts_with(kOwnVariables)) {
      return Wrong(
          Join({"the variable ", name, " is one of the agent's own, which no script gets: leave it out"}));
    }
    std::string text;
    ReadText(Join({"the variable ", name}), value, text);
    if (name.size() + 1 + text.size() > kMaxTextBytes) {
      return Wrong(
          Join({"the variable ", name, " has more bytes than the kernel hands to a process (131071)"}));
    }
    config_.env[std::string(name)] = std::move(text);
  }

  void ReadCommand(const json::value& value) {
    const json::array* array = value.if_array();
    if (array == nullptr) return Wrong("command is a list of texts: [\"python3\", \"exec.py\"]");
    for (const json::value& item : *array)
      ReadText("an item of command", item, config_.command.emplace_back());
    if (!config_.command.empty() && config_.command[0].empty()) Wrong("command names no program");
  }

  void ReadText(std::string_view what, const json::value& value, std::string& out) {
    const json::string* text = value.if_string();
    if (text == nullptr) return Wrong(Join({what, " must be text: write it in quotes"}));
    out = View(*text);
    if (out.find('\0') != std::string::npos)
      Wrong(Join({what, " holds a zero, which no process can be given"}));
    if (out.size() > kMaxTextBytes) Wrong(Join({what, " has more bytes than the kernel hands to a process"}));
  }

  void Wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  ScriptConfig config_;
  std::string wrong_;
};

}  // namespace

ParsedConfig ParseConfig(std::string_view body) {
  json::error_code error;
  const json::value document = json::parse(json::string_view(body.data(), body.size()), error);
  if (error) return {.wrong = "the body is no JSON (" + error.message() + "): send a configuration"};
  return ConfigReader().Read(document);
}

}  // namespace trainyard::agent
