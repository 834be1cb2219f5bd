#include "base/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "absl/time/clock.h"
#include "base/json.h"
#include "base/text.h"

namespace trainyard::log {
namespace {

constexpr std::array<std::pair<Level, std::string_view>, 5> kLevels = {{
    {Level::kDebug, "debug"},
    {Level::kInfo, "info"},
    {Level::kWarn, "warn"},
    {Level::kError, "error"},
    {Level::kOff, "off"},
}};

std::string_view NameOf(Level level) { return kLevels[static_cast<std::size_t>(level)].second; }

std::atomic<Level> g_level{Level::kInfo};
std::atomic<Format> g_format{Format::kText};

// The lines are rendered here; spdlog serialises and writes them.
spdlog::logger& Sink() {
  static spdlog::logger& logger = [&]() -> spdlog::logger& {
    static spdlog::logger made("trainyard", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%v");
    made.set_level(spdlog::level::trace);
    made.flush_on(spdlog::level::trace);
    return made;
  }();
  return logger;
}

bool NeedsQuotes(std::string_view text) {
  return text.empty() || std::ranges::any_of(text, [](unsigned char c) {
           return c <= ' ' || c == '"' || c == '=' || c == 0x7f;
         });
}

}  // namespace

absl::StatusOr<Level> ParseLevel(std::string_view text) {
  for (const auto& [level, name] : kLevels) {
    if (text == name) return level;
  }
  return absl::InvalidArgumentError(
      StrCat("unknown log level '", text, "': use debug, info, warn, error or off"));
}

absl::StatusOr<Format> ParseFormat(std::string_view text) {
  if (text == "text") return Format::kText;
  if (text == "json") return Format::kJson;
  return absl::InvalidArgumentError(StrCat("unknown log format '", text, "': use text or json"));
}

std::string Render(Format format, absl::Time now, Level level, std::string_view message, Fields fields) {
  const std::string time = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", now, absl::UTCTimeZone());
  if (format == Format::kJson) {
    JsonObject line;
    line.Add("time", time).Add("level", NameOf(level)).Add("msg", message);
    for (const Field& field : fields) {
      if (field.quoted) {
        line.Add(field.key, std::string_view(field.text));
      } else {
        line.AddRaw(field.key, field.text);
      }
    }
    return line.Str();
  }
  std::string word(NameOf(level));
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  word.resize(5, ' ');
  std::string line = StrCat(time, " ", word, " ", message);
  for (const Field& field : fields) {
    StrAppend(line, " ", field.key, "=");
    if (field.quoted && NeedsQuotes(field.text)) {
      AppendJsonString(line, field.text);
    } else {
      line += field.text;
    }
  }
  return line;
}

void Configure(Level level, Format format) {
  g_level = level;
  g_format = format;
}

void SetLevel(Level level) { g_level = level; }

bool Enabled(Level level) { return level >= g_level.load(std::memory_order_relaxed); }

void Write(Level level, std::string_view message, Fields fields) {
  if (!Enabled(level)) return;
  Sink().log(spdlog::level::info, Render(g_format, absl::Now(), level, message, fields));
}

}  // namespace trainyard::log
