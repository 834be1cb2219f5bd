// How the kinds with few columns are shown.
#include <algorithm>
#include <cctype>

#include "apiserver/printers/printers.h"
#include "base/letters.h"
#include "base/text.h"

namespace trainyard::apiserver {
namespace {

std::string_view Name(const Document& object) { return StringAt(object, {"metadata", "name"}); }

std::int64_t Members(const Document& object, Path path) {
  const Document* found = Find(object, path);
  if (found == nullptr) return 0;
  if (found->is_object()) return static_cast<std::int64_t>(found->get_object().size());
  return found->is_array() ? static_cast<std::int64_t>(found->get_array().size()) : 0;
}

// The first of the times that the event has.
std::string_view FirstOf(std::initializer_list<std::string_view> times) {
  for (const std::string_view time : times) {
    if (!time.empty()) return time;
  }
  return "";
}

std::string_view LastSeen(const Document& event) {
  return FirstOf({StringAt(event, {"series", "lastObservedTime"}), StringAt(event, {"lastTimestamp"}),
                  StringAt(event, {"eventTime"}), StringAt(event, {"metadata", "creationTimestamp"})});
}

std::string_view FirstSeen(const Document& event) {
  return FirstOf({StringAt(event, {"firstTimestamp"}), StringAt(event, {"eventTime"}),
                  StringAt(event, {"metadata", "creationTimestamp"})});
}

Array EventCells(const Document& event, absl::Time now) {
  const std::string_view component = StringAt(event, {"source", "component"});
  const std::string_view host = StringAt(event, {"source", "host"});
  std::string_view message = StringAt(event, {"message"});
  while (message.ends_with('\n')) message.remove_suffix(1);
  const std::int64_t count = IntAt(event, {"series", "count"}).value_or(IntAt(event, {"count"}).value_or(1));
  return {PrintSince(LastSeen(event), now),
          StringAt(event, {"type"}),
          StringAt(event, {"reason"}),
          StrCat(LowerCase(StringAt(event, {"involvedObject", "kind"})), "/",
                 StringAt(event, {"involvedObject", "name"})),
          StringAt(event, {"involvedObject", "fieldPath"}),
          StrCat(component.empty() ? StringAt(event, {"reportingComponent"}) : component,
                 host.empty() ? "" : ", ", host),
          message,
          PrintSince(FirstSeen(event), now),
          std::max<std::int64_t>(count, 1),
          Name(event)};
}

}  // namespace

const Printer& EventPrinter() {
  static const Printer printer{
      .columns = {{.name = "Last Seen", .description = "When it happened last."},
                  {.name = "Type", .description = "Normal or Warning."},
                  {.name = "Reason", .description = "What happened, in a word."},
                  {.name = "Object", .description = "To what it happened."},
                  {.name = "Subobject", .description = "To which part of it.", .priority = 1},
                  {.name = "Source", .description = "Who says so.", .priority = 1},
                  {.name = "Message", .description = "What happened."},
                  {.name = "First Seen", .description = "When it happened first.", .priority = 1},
                  {.name = "Count", .description = "How often it happened.", .priority = 1},
                  {.name = "Name", .format = "name", .description = "The event's own name.", .priority = 1}},
      .cells = EventCells};
  return printer;
}

const Printer& NamespacePrinter() {
  static const Printer printer{
      .columns = {NameColumn(), {.name = "Status", .description = "Active, or Terminating."}, AgeColumn()},
      .cells = [](const Document& ns, absl::Time now) -> Array {
        return {Name(ns), StringAt(ns, {"status", "phase"}), PrintAgeOf(ns, now)};
      }};
  return printer;
}

const Printer& ConfigMapPrinter() {
  static const Printer printer{
      .columns = {NameColumn(),
                  {.name = "Data", .type = "integer", .description = "How many entries."},
                  AgeColumn()},
      .cells = [](const Document& map, absl::Time now) -> Array {
        return {Name(map), Members(map, {"data"}) + Members(map, {"binaryData"}), PrintAgeOf(map, now)};
      }};
  return printer;
}

const Printer& SecretPrinter() {
  static const Printer printer{
      .columns = {NameColumn(),
                  {.name = "Type", .description = "What it is for."},
                  {.name = "Data", .type = "integer", .description = "How many entries."},
                  AgeColumn()},
      .cells = [](const Document& secret, absl::Time now) -> Array {
        return {Name(secret), StringAt(secret, {"type"}), Members(secret, {"data"}), PrintAgeOf(secret, now)};
      }};
  return printer;
}

const Printer& ServiceAccountPrinter() {
  static const Printer printer{
      .columns = {NameColumn(),
                  {.name = "Secrets", .type = "integer", .description = "How many it names."},
                  AgeColumn()},
      .cells = [](const Document& account, absl::Time now) -> Array {
        return {Name(account), Members(account, {"secrets"}), PrintAgeOf(account, now)};
      }};
  return printer;
}

const Printer& LeasePrinter() {
  static const Printer printer{
      .columns = {NameColumn(), {.name = "Holder", .description = "Who has it."}, AgeColumn()},
      .cells = [](const Document& lease, absl::Time now) -> Array {
        return {Name(lease), StringAt(lease, {"spec", "holderIdentity"}), PrintAgeOf(lease, now)};
      }};
  return printer;
}

const Printer& PodGroupPrinter() {
  static const Printer printer{
      .columns = {NameColumn(),
                  {.name = "MinMember", .type = "integer", .description = "How many pods start together."},
                  AgeColumn()},
      .cells = [](const Document& group, absl::Time now) -> Array {
        return {Name(group), IntAt(group, {"spec", "minMember"}).value_or(1), PrintAgeOf(group, now)};
      }};
  return printer;
}

const Printer& DefinitionPrinter() {
  static const Printer printer{
      .columns = {NameColumn(), {.name = "Created At", .type = "date", .description = "When it was made."}},
      .cells = [](const Document& definition, absl::Time) -> Array {
        return {Name(definition), StringAt(definition, {"metadata", "creationTimestamp"})};
      }};
  return printer;
}

}  // namespace trainyard::apiserver
