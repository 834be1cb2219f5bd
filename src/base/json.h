// Writing JSON: enough for log lines and command output, without a JSON library's header.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard {

bool IsUtf8(std::string_view text);
// The text, with U+FFFD for every byte that is none.
std::string ToUtf8(std::string_view text);

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so that the
// document stays valid whatever a user's value holds.
void AppendJsonString(std::string& out, std::string_view text);

// Builds one object; keys appear in the order in which they are added.
class JsonObject {
 public:
  JsonObject& Add(std::string_view key, std::string_view value);
  JsonObject& Add(std::string_view key, const char* value) { return Add(key, std::string_view(value)); }
  JsonObject& Add(std::string_view key, double value);
  // A template, or a bool would take an integer and a pointer a bool.
  template <std::same_as<bool> T>
  JsonObject& Add(std::string_view key, T value) {
    return AddRaw(key, value ? "true" : "false");
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonObject& Add(std::string_view key, T value) {
    return AddRaw(key, std::to_string(value));
  }
  // `json` is a JSON text already.
  JsonObject& AddRaw(std::string_view key, std::string_view json);

  std::string Str() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

}  // namespace trainyard
