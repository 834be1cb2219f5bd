// Structured logging: a message and fields, as text for people or as JSON for machines, on standard error.
//
//   log::Info("opened store", {{"path", path}, {"revision", revision}});
//   2024-05-01T10:00:00.123Z INFO  opened store path=/data revision=42
#pragma once

#include <cmath>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trainyard::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };
enum class Format { kText, kJson };

// The words of the --log-level and --log-format flags; an unknown one is answered with the known ones.
absl::StatusOr<Level> ParseLevel(std::string_view text);
absl::StatusOr<Format> ParseFormat(std::string_view text);

// One key and its value; a number stays a number in JSON.
struct Field {
  Field(std::string_view k, std::string_view v) : key(k), text(v), quoted(true) {}
  Field(std::string_view k, const char* v) : Field(k, std::string_view(v)) {}
  Field(std::string_view k, const std::string& v) : Field(k, std::string_view(v)) {}
  Field(std::string_view k, absl::Duration v) : key(k), text(absl::FormatDuration(v)), quoted(true) {}
  Field(std::string_view k, const absl::Status& v)
      : key(k), text(v.ToString(absl::StatusToStringMode::kWithNoExtraData)), quoted(true) {}
  Field(std::string_view k, double v) : key(k), text(std::to_string(v)), quoted(!std::isfinite(v)) {}
  template <std::same_as<bool> T>
  Field(std::string_view k, T v) : key(k), text(v ? "true" : "false"), quoted(false) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view k, T v) : key(k), text(std::to_string(v)), quoted(false) {}

  std::string_view key;
  std::string text;
  bool quoted;
};
using Fields = std::initializer_list<Field>;

// One line without its newline. Pure: what Write prints.
std::string Render(Format format, absl::Time now, Level level, std::string_view message, Fields fields);

// For the whole process; call before the first thread.
void Configure(Level level, Format format);
void SetLevel(Level level);
bool Enabled(Level level);
void Write(Level level, std::string_view message, Fields fields);

inline void Debug(std::string_view message, Fields fields = {}) { Write(Level::kDebug, message, fields); }
inline void Info(std::string_view message, Fields fields = {}) { Write(Level::kInfo, message, fields); }
inline void Warn(std::string_view message, Fields fields = {}) { Write(Level::kWarn, message, fields); }
inline void Error(std::string_view message, Fields fields = {}) { Write(Level::kError, message, fields); }

}  // namespace trainyard::log
