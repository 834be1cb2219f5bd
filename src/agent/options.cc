#include "agent/options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "agent/config.h"

namespace trainyard::agent {
namespace {

struct Flag {
  std::string_view name;
  std::string_view value;
  std::string_view help;
  // False: the text is no such value.
  bool (*take)(Options& options, const std::string& text);
};

template <std::string Options::* kField>
bool TakeText(Options& options, const std::string& text) {
  options.*kField = text;
  return true;
}
template <std::uint64_t Options::* kField>
bool TakeMillis(Options& options, const std::string& text) {
  const auto millis = ParseMillis(text);
  options.*kField = millis.value_or(0);
  return millis.has_value();
}
bool TakeBytes(Options& options, const std::string& text) {
  const auto bytes = ParseBytes(text);
  options.log_bytes = bytes.value_or(0);
  return bytes && *bytes >= 4;
}

bool TakeRestarts(Options& options, const std::string& text) {
  std::uint64_t number = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, number);
  options.restarts = number;
  return error == std::errc() && end == text_end;
}

constexpr Flag kFlags[] = {
    {"listen", "ADDRESS:PORT", "where launchers reach it; port 0: any (0.0.0.0:7896)",
     TakeText<&Options::listen>},
    {"token-file", "FILE", "holds the token, if $TRAINYARD_AGENT_TOKEN does not",
     TakeText<&Options::token_file>},
    {"script", "FILE", "what is run unless a configuration says otherwise (exec.py)",
     TakeText<&Options::script>},
    {"python", "PROGRAM", "what runs a .py (the first of python3 and python)", TakeText<&Options::python>},
    {"working-dir", "FOLDER", "where the script runs (the current folder)", TakeText<&Options::working_dir>},
    {"state-dir", "FOLDER", "where output is kept, in files without names ($TMPDIR or /tmp)",
     TakeText<&Options::state_dir>},
    {"log-bytes", "BYTES", "how much output is kept in all, as 64Mi (64Mi)", TakeBytes},
    {"term-grace", "TIME", "after SIGTERM everything is over before this time (8s)",
     TakeMillis<&Options::term_grace_millis>},
    {"idle-timeout", "TIME", "after which a connection without requests is closed (30s)",
     TakeMillis<&Options::idle_timeout_millis>},
    {"request-timeout", "TIME", "within which a request is sent and an answer is read (10s)",
     TakeMillis<&Options::request_timeout_millis>},
    {"to", "FILE", "of install: where the program is put", TakeText<&Options::to>},
    {"restarts", "NUMBER", "of keep: most restarts of the program in this pod (no limit)", TakeRestarts},
};

const Flag* FindFlag(std::string_view name) {
  const auto* found = std::ranges::find(kFlags, name, &Flag::name);
  return found == std::end(kFlags) ? nullptr : found;
}

// "term-grace" → "TRAINYARD_AGENT_TERM_GRACE".
std::string VariableOf(std::string_view flag) {
  std::string name(kOwnVariables);
  for (const char c : flag) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return name;
}

std::string TakeValue(const Flag& flag, const std::string& source, const std::string& text,
                      Options& options) {
  if (flag.take(options, text)) return "";
  return source + " '" + text + "' is no " +
         (flag.value == "BYTES"    ? "number of bytes: write 64Mi"
          : flag.value == "NUMBER" ? "number: write 10"
                                   : "time: write 8s or 500ms");
}

std::string ReadEnvironment(const Environment& environment, Options& options) {
  for (const Flag& flag : kFlags) {
    const std::string variable = VariableOf(flag.name);
    const char* text = environment(variable);
    if (text == nullptr) continue;
    if (std::string wrong = TakeValue(flag, "$" + variable, text, options); !wrong.empty()) return wrong;
  }
  return "";
}

bool TakeAction(const std::string& arg, bool first, Options& options) {
  if (arg == "--help" || arg == "-h") {
    options.action = Action::kHelp;
  } else if (arg == "--version") {
    options.action = Action::kVersion;
  } else if (arg == "install" && first) {
    options.action = Action::kInstall;
  } else if (arg == "keep" && first) {
    options.action = Action::kKeep;
  } else {
    return false;
  }
  return true;
}

std::string ReadArgs(const std::vector<std::string>& args, Options& options) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (TakeAction(args[i], i == 0, options)) {
      if (options.action == Action::kHelp || options.action == Action::kVersion) return "";
      continue;
    }
    if (args[i] == "--" && options.action == Action::kKeep) {
      options.command.assign(args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
      return "";
    }
    const std::size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    const Flag* flag = name.starts_with("--") ? FindFlag(std::string_view(name).substr(2)) : nullptr;
    if (flag == nullptr) return "unknown argument '" + args[i] + "'";
    if (equals == std::string::npos && i + 1 == args.size()) return name + " needs a value";
    const std::string text = equals == std::string::npos ? args[++i] : args[i].substr(equals + 1);
    if (std::string wrong = TakeValue(*flag, name, text, options); !wrong.empty()) return wrong;
  }
  return "";
}

// A whole or decimal number at the beginning of the text, which is removed.
std::optional<double> CutNumber(std::string_view& text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0 && number < 1e15)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

ParsedOptions ParseOptions(const std::vector<std::string>& args, const Environment& environment) {
  ParsedOptions parsed;
  parsed.wrong = ReadEnvironment(environment, parsed.options);
  if (parsed.wrong.empty()) parsed.wrong = ReadArgs(args, parsed.options);
  if (parsed.wrong.empty() && parsed.options.action == Action::kInstall && parsed.options.to.empty()) {
    parsed.wrong = "install needs --to FILE";
  }
  if (parsed.wrong.empty() && parsed.options.action == Action::kKeep && parsed.options.command.empty()) {
    parsed.wrong = "keep needs a program: keep [--restarts N] -- PROGRAM [ARGUMENTS]";
  }
  return parsed;
}

std::string Help() {
  std::string text =
      "trainyard-agent runs one training script in a pod, as a launcher tells it over HTTP.\n"
      "\n"
      "usage: trainyard-agent [FLAGS]              serve; the token is in $TRAINYARD_AGENT_TOKEN\n"
      "       trainyard-agent install --to FILE    put this program there, for another container\n"
      "       trainyard-agent keep -- PROGRAM ...  run a program, and start it again when it is killed\n"
      "\n";
  for (const Flag& flag : kFlags) {
    std::string left = "  --" + std::string(flag.name) + " " + std::string(flag.value);
    left.resize(std::max<std::size_t>(left.size() + 1, 28), ' ');
    text.append(left).append(flag.help).append("\n");
  }
  text +=
      "  --help, --version\n"
      "\n"
      "Every flag can be set by an environment variable: --term-grace by TRAINYARD_AGENT_TERM_GRACE.\n"
      "It exits with the script's exit code; 2: it was misused.\n";
  return text;
}

std::optional<std::uint64_t> ParseMillis(const std::string& text) {
  std::string_view rest = text;
  const auto number = CutNumber(rest);
  if (!number) return std::nullopt;
  if (rest.empty() || rest == "s") return static_cast<std::uint64_t>(*number * 1'000);
  if (rest == "ms") return static_cast<std::uint64_t>(*number);
  if (rest == "m") return static_cast<std::uint64_t>(*number * 60'000);
  return std::nullopt;
}

std::optional<std::uint64_t> ParseBytes(const std::string& text) {
  std::uint64_t number = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, number);
  if (error != std::errc() || number > (std::uint64_t{1} << 32)) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text_end - end));
  if (unit.empty()) return number;
  if (unit == "Ki") return number << 10;
  if (unit == "Mi") return number << 20;
  if (unit == "Gi") return number << 30;
  return std::nullopt;
}

}  // namespace trainyard::agent
