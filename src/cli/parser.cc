// The one place that includes CLI11, which takes seconds to compile.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include <CLI/CLI.hpp>

#include "absl/strings/cord.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/help.h"

namespace trainyard::cli {
namespace {

constexpr absl::string_view kUsagePayload = "trainyard.dev/cli/usage";
constexpr absl::string_view kFinalPayload = "trainyard.dev/cli/final";
constexpr int kFailed = 1;
constexpr int kMisused = 2;
constexpr int kFailedForGood = 3;
constexpr unsigned kCompletionSeconds = 2;

// "--from-revision" of "kv watch" → "TRAINYARD_KV_WATCH_FROM_REVISION".
std::string EnvironmentName(std::string_view command, const Flags::Spec& spec) {
  const std::string_view flag = Split(spec.name, ',').back();
  std::string name = spec.everywhere ? "TRAINYARD" : StrCat("TRAINYARD_", command);
  StrAppend(name, "_", flag.substr(flag.find_first_not_of('-')));
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return std::isalnum(c) ? static_cast<char>(std::toupper(c)) : '_';
  });
  return name;
}

class CliFlags final : public Flags {
 public:
  CliFlags(CLI::App& app, std::string command) : app_(app), command_(std::move(command)) {}

  void Switch(const Spec& spec, bool& bound) override {
    Finish(app_.add_flag(spec.name, bound, spec.help), spec);
  }
  void Text(const Spec& spec, std::string& bound) override {
    Finish(app_.add_option(spec.name, bound, spec.help), spec);
  }
  void Texts(const Spec& spec, std::vector<std::string>& bound) override {
    // One value for each time that it is given: what follows may be an argument.
    Finish(app_.add_option(spec.name, bound, spec.help)
               ->expected(1)
               ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll),
           spec);
  }
  void Number(const Spec& spec, std::optional<std::int64_t>& bound) override {
    Parsed(spec, [&bound](const std::string& text) {
      bound = ParseNumber<std::int64_t>(text);
      return bound ? "" : StrCat("'", text, "' is no whole number");
    });
  }
  void Duration(const Spec& spec, std::optional<absl::Duration>& bound) override {
    Parsed(spec, [&bound](const std::string& text) {
      absl::Duration value;
      if (!absl::ParseDuration(text, &value))
        return StrCat("'", text, "' is no time: write it as 3s or 500ms");
      bound = value;
      return std::string();
    });
  }
  void Argument(const std::string& name, const std::string& help, std::string& bound) override {
    app_.add_option(name, bound, help)->required()->type_name("");
  }
  void OptionalArgument(const std::string& name, const std::string& help,
                        std::optional<std::string>& bound) override {
    app_.add_option_function<std::string>(
            name, [&bound](const std::string& value) { bound = value; }, help)
        ->type_name("");
  }
  void Arguments(const std::string& name, const std::string& help, std::vector<std::string>& bound) override {
    app_.add_option(name, bound, help)->required()->type_name("");
  }
  void OptionalArguments(const std::string& name, const std::string& help,
                         std::vector<std::string>& bound) override {
    app_.add_option(name, bound, help)->type_name("");
  }
  void Everything(std::vector<std::string>& bound) override {
    app_.set_help_flag();
    app_.fallthrough(false);
    app_.prefix_command();
    app_.parse_complete_callback([app = &app_, &bound] { bound = app->remaining(); });
  }

 private:
  // `parse` returns what is wrong with a text, or nothing.
  void Parsed(const Spec& spec, std::function<std::string(const std::string&)> parse) {
    const auto take = [parse = std::move(parse),
                       name = std::string(Split(spec.name, ',').back())](const std::string& text) {
      if (const std::string wrong = parse(text); !wrong.empty()) throw CLI::ValidationError(name, wrong);
    };
    Finish(app_.add_option_function<std::string>(spec.name, take, spec.help), spec);
  }

  void Finish(CLI::Option* option, const Spec& spec) {
    option->envname(EnvironmentName(command_, spec));
    if (!spec.value.empty()) option->type_name(spec.value);
    if (!spec.group.empty()) option->group(spec.group);
    if (spec.one_of.empty()) return;
    option->check([allowed = spec.one_of](const std::string& value) {
      if (std::ranges::find(allowed, value) != allowed.end()) return std::string();
      std::string list;
      for (const std::string& item : allowed) StrAppend(list, list.empty() ? "" : ", ", item);
      return StrCat("'", value, "' is not one of ", list);
    });
  }

  CLI::App& app_;
  std::string command_;
};

std::string ListCommands(const CLI::App& app) {
  std::string list;
  for (const CLI::App* sub : app.get_subcommands({}))
    StrAppend(list, list.empty() ? "" : ", ", sub->get_name());
  return list;
}

// The deepest command that was recognised.
const CLI::App& Reached(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : Reached(*parsed.back());
}

// Whatever a message quotes, it stays one line.
std::string OneLine(std::string message) {
  std::ranges::replace_if(message, [](unsigned char c) { return c < 0x20; }, ' ');
  return message;
}

int Misuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& reached = Reached(app);
  std::string name = reached.get_name();
  for (const CLI::App* up = reached.get_parent(); up != nullptr; up = up->get_parent()) {
    name = StrCat(up->get_name(), " ", name);
  }
  std::string message = error.what();
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const bool alone = reached.get_require_subcommand_min() == 0;
  if (!reached.get_subcommands({}).empty() && (!alone || !extras.empty())) {
    message =
        StrCat(extras.empty() ? "a command is missing" : StrCat("unknown command '", extras.front(), "'"),
               ": there are ", ListCommands(reached));
  } else if (!extras.empty()) {
    message = StrCat("unexpected argument '", extras.front(), "'");
  }
  std::cerr << name << ": " << OneLine(message) << "; see `" << name << " --help`\n";
  return kMisused;
}

CLI::App* FindSubcommand(const CLI::App& app, std::string_view name) {
  const auto subs = app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
  return subs.empty() ? nullptr : const_cast<CLI::App*>(subs.front());
}

// "kv get" → the subcommand get of the subcommand kv, made as needed. `launch` is a command by itself and has
// others below it: then none of these must be named.
CLI::App& Place(CLI::App& root, const Command& command, const std::set<std::string>& all) {
  CLI::App* app = &root;
  const std::string name = command.name();
  const std::vector<std::string_view> words = Split(name, ' ');
  std::string path;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word(words[i]);
    StrAppend(path, path.empty() ? "" : " ", word);
    CLI::App* sub = FindSubcommand(*app, word);
    app = sub != nullptr ? sub : app->add_subcommand(word);
    app->fallthrough();
    if (i + 1 < words.size() && !all.contains(path)) app->require_subcommand(1);
  }
  app->description(command.summary());
  app->footer(command.details());
  return *app;
}

// "-o,--output" of an option, as they are typed; positionals have none.
std::vector<std::string> FlagsOf(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back(StrCat("-", name));
  for (const std::string& name : option.get_lnames()) flags.push_back(StrCat("--", name));
  return flags;
}

// Flags before the last word say where the names are that it may become: -n, --context.
void TakeFlags(CLI::App& root, const std::vector<std::string>& words) {
  if (words.empty()) return;
  std::vector<std::string> before(words.rbegin() + 1, words.rend());  // as the library wants them
  try {
    root.parse(before);
  } catch (const CLI::Error&) {  // the line is not whole yet
  }
}

// What the last word may become.
std::vector<std::string> FindCompletions(CLI::App& root, const std::vector<Command*>& commands,
                                         const std::vector<std::string>& words) {
  TakeFlags(root, words);
  const CLI::App* app = &root;
  std::string path;
  std::string before;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    before = words[i];
    const CLI::App* const sub = words[i].starts_with('-') ? nullptr : FindSubcommand(*app, words[i]);
    if (sub == nullptr) continue;
    StrAppend(path, path.empty() ? "" : " ", words[i]);
    app = sub;
  }
  const std::string last = words.empty() ? "" : words.back();
  std::set<std::string> found;
  const auto add = [&](const std::string& word) {
    if (word.starts_with(last)) found.insert(word);
  };
  if (last.starts_with('-')) {
    for (const CLI::App* up = app; up != nullptr; up = up->get_parent()) {
      for (const CLI::Option* const option : up->get_options()) {
        for (const std::string& flag : FlagsOf(*option)) {
          if (flag.starts_with("--")) add(flag);
        }
      }
    }
    return {found.begin(), found.end()};
  }
  // The value of a flag is the shell's to complete: mostly a file.
  for (const CLI::Option* const option : app->get_options()) {
    const std::vector<std::string> flags = FlagsOf(*option);
    if (option->get_expected_min() > 0 && std::ranges::find(flags, before) != flags.end()) return {};
  }
  for (const CLI::App* const sub : app->get_subcommands({})) add(sub->get_name());
  for (Command* const command : commands) {
    if (command->name() != path) continue;
    for (const std::string& word : command->Complete()) add(word);
  }
  return {found.begin(), found.end()};
}

// Whether the flags of the command may be needed: the line has its first word, or is about all of them.
bool IsNamed(const Command& command, int argc, char** argv) {
  const std::string name = command.name();
  const std::string_view first = Split(name, ' ').front();
  return std::any_of(argv + 1, argv + argc, [&](std::string_view word) {
    return word == first || word == "man" || word == "__complete";
  });
}

bool IsTyped(const CLI::Option& option, int argc, char** argv) {
  const std::vector<std::string> flags = FlagsOf(option);
  return std::any_of(argv + 1, argv + argc, [&](std::string_view word) {
    return std::ranges::any_of(flags, [&](const std::string& flag) {
      return word == flag || (word.starts_with(flag) && word.substr(flag.size()).starts_with('='));
    });
  });
}

// `trainyard graph --context x status`: a flag of a command that has others below it is meant for the one
// that is run. What is typed and that one does not know is misuse: nobody would look at it.
void HandDown(CLI::App& sub, int argc, char** argv) {
  for (CLI::App* up = sub.get_parent(); up != nullptr && up->get_parent() != nullptr; up = up->get_parent()) {
    for (const CLI::Option* const option : up->get_options()) {
      if (option->count() == 0 || FlagsOf(*option).empty() || !IsTyped(*option, argc, argv)) continue;
      CLI::Option* const own = sub.get_option_no_throw(option->get_single_name().size() == 1
                                                           ? StrCat("-", option->get_single_name())
                                                           : StrCat("--", option->get_single_name()));
      if (own == nullptr)
        throw CLI::ValidationError(StrCat("unexpected argument '", FlagsOf(*option).back(), "'"));
      if (own->count() > 0) continue;
      for (const std::string& value : option->results()) own->add_result(value);
      own->run_callback();
    }
  }
}

// As troff wants it.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      StrAppend(out, "\\&", std::string(1, c));
    } else {
      out += c;
    }
  }
  return out;
}

void AppendManOptions(const CLI::App& app, std::string& out) {
  for (const CLI::Option* const option : app.get_options()) {
    std::string head;
    for (const std::string& flag : FlagsOf(*option)) StrAppend(head, head.empty() ? "" : ", ", flag);
    if (head.empty()) head = option->get_name(/*positional=*/true);
    if (head == "-h, --help" || head == "--help") continue;
    const std::string value = option->get_type_name();
    StrAppend(out, ".TP\n.B ", Roff(head),
              value.empty() || FlagsOf(*option).empty() ? "" : StrCat(" ", Roff(value)), "\n",
              Roff(option->get_description()), "\n");
  }
}

void AppendManCommand(const CLI::App& app, const std::string& path, std::string& out) {
  StrAppend(out, ".SS trainyard ", Roff(path), "\n", Roff(app.get_description()), "\n");
  AppendManOptions(app, out);
  if (!app.get_footer().empty()) StrAppend(out, ".PP\n.nf\n", Roff(app.get_footer()), "\n.fi\n");
  for (const CLI::App* const sub : app.get_subcommands({}))
    AppendManCommand(*sub, StrCat(path, " ", sub->get_name()), out);
}

std::string ManPage(const CLI::App& root) {
  std::string out =
      ".TH TRAINYARD 1\n.SH NAME\ntrainyard \\- runs distributed training jobs to their end\n"
      ".SH SYNOPSIS\n.B trainyard\n.I COMMAND\n[\\fIFLAGS\\fR]\n.SH DESCRIPTION\n.nf\n";
  StrAppend(out, Roff(PrintHelpPage()), ".fi\n.SH OPTIONS\n");
  AppendManOptions(root, out);
  out += ".SH COMMANDS\n";
  for (const HelpGroup& group : HelpGroups()) {
    for (const HelpEntry& entry : group.entries) {
      if (const CLI::App* const app = FindSubcommand(root, entry.word))
        AppendManCommand(*app, app->get_name(), out);
    }
  }
  return out;
}

}  // namespace

absl::Status UsageError(std::string_view message) {
  absl::Status status = absl::InvalidArgumentError(std::string(message));
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsagePayload).has_value(); }

absl::Status FinalError(absl::Status status) {
  status.SetPayload(kFinalPayload, absl::Cord());
  return status;
}

int RunCommandLine(int argc, char** argv, const std::vector<Command*>& commands) {
  CLI::App app("Runs distributed training jobs to their end.", "trainyard");
  app.require_subcommand(1);
  std::string level = "warn";
  std::string format = "text";
  CliFlags globals(app, "");
  globals.Text({.name = "--log-level",
                .value = "LEVEL",
                .help = "What is logged to standard error: debug, info, warn, error, off (warn)",
                .everywhere = true,
                .one_of = {"debug", "info", "warn", "error", "off"}},
               level);
  globals.Text({.name = "--log-format",
                .value = "FORMAT",
                .help = "text or json (text)",
                .everywhere = true,
                .one_of = {"text", "json"}},
               format);

  const std::map<std::string, std::string> groups = {
      {"checkpoint", "Look at checkpoints of elastic jobs, verify and export them"},
      {"data", "Look at record files, verify and convert them"},
      {"image", "Make images for the launcher"},
      {"kv", "Look into a store and change it"},
      {"node", "Let a node of the cluster fail and come back"}};
  Command* chosen = nullptr;
  std::set<std::string> names;
  for (const Command* command : commands) names.insert(command->name());
  for (Command* command : commands) {
    CLI::App& sub = Place(app, *command, names);
    // Of fifty commands one is wanted, mostly: the flags of the others cost more than the rest of the start.
    if (!IsNamed(*command, argc, argv)) continue;
    CliFlags flags(sub, command->name());
    command->Declare(flags);
    sub.callback([&chosen, &sub, command, argc, argv] {
      if (!sub.get_subcommands().empty()) return;
      HandDown(sub, argc, argv);
      chosen = command;
    });
  }
  for (const auto& [name, description] : groups) {
    if (CLI::App* group = FindSubcommand(app, name)) group->description(description);
  }
  app.add_subcommand("man")->description("Print this help as a man page: trainyard man > trainyard.1");
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    ::alarm(kCompletionSeconds);  // a shell waits: better no names than a long wait for them
    for (const std::string& word : FindCompletions(app, commands, {argv + 2, argv + argc}))
      std::cout << word << "\n";
    return std::cout.flush() ? 0 : kFailed;
  }
  try {
    app.parse(argc, argv);
    if (app.got_subcommand("man")) {
      std::cout << ManPage(app);
      return std::cout.flush() ? 0 : kFailed;
    }
  } catch (const CLI::Success& help) {
    if (&Reached(app) == &app) {
      std::cout << PrintHelpPage();
      return std::cout.flush() ? 0 : kFailed;
    }
    const int code = app.exit(help);
    return std::cout.flush() ? code : kFailed;
  } catch (const CLI::ParseError& error) {
    return Misuse(app, error);
  }
  log::Configure(*log::ParseLevel(level), *log::ParseFormat(format));
  const absl::Status status = chosen->Run();
  if (status.ok()) return 0;
  std::cerr << "trainyard " << chosen->name() << ": " << OneLine(std::string(Message(status))) << "\n";
  if (status.GetPayload(kFinalPayload).has_value()) return kFailedForGood;
  return IsUsageError(status) ? kMisused : kFailed;
}

}  // namespace trainyard::cli
