// Reading YAML; yaml_print.cc writes it.
#include "base/yaml.h"

#include <libfyaml.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "base/base64.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "base/yaml_scalar.h"

namespace trainyard {
namespace {

// What aliases may add to a stream, all together: enough for any that a person wrote.
constexpr std::size_t kMaxAliasBytes = std::size_t{16} * 1024 * 1024;

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

// Memory that a document takes, about, and how deep it goes.
struct Extent {
  std::size_t bytes = sizeof(Document);
  std::size_t depth = 0;

  void Add(const Extent& part, std::size_t key_size) {
    bytes += part.bytes + key_size;
    depth = std::max(depth, part.depth + 1);
  }
};

Extent Measure(const Document& document) {
  Extent extent;
  if (const auto* text = document.if_string()) extent.bytes += text->size();
  if (const auto* array = document.if_array()) {
    for (const Document& element : *array) extent.Add(Measure(element), 0);
  } else if (const auto* object = document.if_object()) {
    for (const auto& member : *object) extent.Add(Measure(member.value()), Key(member).size());
  }
  return extent;
}

struct Anchored {
  Document document;
  Extent extent;
};

// A sequence or mapping that has begun and not ended.
struct Open {
  Document document;
  std::string anchor;
  std::optional<std::string> key;  // of a mapping, whose value is to come
  fy_mark key_mark{};
  bool merging = false;  // its value is merged into the mapping
  std::vector<Object> merged;
};

std::string_view TokenText(fy_token* token) {
  if (token == nullptr) return {};
  std::size_t size = 0;
  const char* text = fy_token_get_text(token, &size);
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

absl::Status WrongAt(std::string_view what, int line, int column) {
  return absl::InvalidArgumentError(StrCat("not valid YAML: ", what, " at line ", line, ", column ", column));
}

absl::Status WrongAt(std::string_view what, fy_event* event) {
  const fy_mark* mark = fy_event_start_mark(event);
  if (mark == nullptr) return absl::InvalidArgumentError(StrCat("not valid YAML: ", what));
  return WrongAt(what, mark->line + 1, mark->column + 1);
}

// The value of a scalar that says itself what it is: !!int "3".
absl::StatusOr<Document> ResolveTagged(std::string_view tag, std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(StrCat("\"", Escaped(text), "\" is tagged as ", what, " and is none"));
  };
  if (!tag.starts_with(kTagPrefix)) return Document(text);
  tag.remove_prefix(kTagPrefix.size());
  Document value = ResolveScalar(text);
  if (tag == "null") return value.is_null() ? absl::StatusOr<Document>(value) : wrong("null");
  if (tag == "bool") return value.is_bool() ? absl::StatusOr<Document>(value) : wrong("a bool");
  if (tag == "float") return value.is_number() ? absl::StatusOr<Document>(value) : wrong("a number");
  if (tag == "int") {
    return value.is_number() && !value.is_double() ? absl::StatusOr<Document>(value)
                                                   : wrong("a whole number");
  }
  if (tag == "binary") {
    TY_ASSIGN_OR_RETURN(const std::string bytes, DecodeBase64(text));
    return IsUtf8(bytes) ? absl::StatusOr<Document>(Document(bytes)) : wrong("text in base 64");
  }
  return Document(text);
}

absl::StatusOr<Document> Resolve(fy_event* event) {
  fy_token* token = event->scalar.value;
  const std::string_view text = TokenText(token);
  if (event->scalar.tag != nullptr) return ResolveTagged(TokenText(event->scalar.tag), text);
  const bool plain = token == nullptr || fy_token_scalar_style(token) == FYSS_PLAIN;
  if (!plain) return Document(text);
  Document value = ResolveScalar(text);
  if (value.is_double() && !std::isfinite(value.get_double())) {
    return absl::InvalidArgumentError(
        StrCat(text, " is a number that JSON does not have; for a text, quote it"));
  }
  return value;
}

// What a key is in JSON, where keys are texts.
std::optional<std::string> KeyText(const Document& key) {
  if (key.is_string()) return std::string(Text(key));
  if (key.is_double()) return PrintDouble(key.get_double());
  if (key.is_bool() || key.is_int64() || key.is_uint64()) return PrintJson(key);
  return std::nullopt;
}

// Builds documents out of a parser's events.
class YamlBuilder {
 public:
  absl::Status Take(fy_event* event) {
    switch (event->type) {
      case FYET_SCALAR:
        return TakeScalar(event);
      case FYET_ALIAS:
        return TakeAlias(event);
      case FYET_MAPPING_START:
        return Begin(event, Object(), event->mapping_start.anchor);
      case FYET_SEQUENCE_START:
        return Begin(event, Array(), event->sequence_start.anchor);
      case FYET_MAPPING_END:
      case FYET_SEQUENCE_END:
        return End(event);
      case FYET_DOCUMENT_END:
        anchors_.clear();
        return absl::OkStatus();
      case FYET_NONE:
      case FYET_STREAM_START:
      case FYET_STREAM_END:
      case FYET_DOCUMENT_START:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  std::vector<Document> Release() { return std::move(documents_); }

 private:
  bool AtKey() const { return !open_.empty() && open_.back().document.is_object() && !open_.back().key; }

  absl::Status TakeScalar(fy_event* event) {
    const bool merge = AtKey() && event->scalar.tag == nullptr && TokenText(event->scalar.value) == "<<" &&
                       fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
    absl::StatusOr<Document> value = Resolve(event);
    if (!value.ok()) return WrongAt(Message(value.status()), event);
    TY_RETURN_IF_ERROR(Remember(event, TokenText(event->scalar.anchor), *value));
    if (!merge) return Place(event, *std::move(value));
    open_.back().key = "<<";
    open_.back().merging = true;
    return absl::OkStatus();
  }

  absl::Status TakeAlias(fy_event* event) {
    const std::string_view name = TokenText(event->alias.anchor);
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) return WrongAt(StrCat("alias *", name, " has no anchor before it"), event);
    const Extent& extent = found->second.extent;
    TY_RETURN_IF_ERROR(Spend(event, extent.bytes));
    if (open_.size() + extent.depth > kMaxDocumentDepth) return TooDeep(event);
    return Place(event, found->second.document);
  }

  absl::Status Begin(fy_event* event, Document empty, fy_token* anchor) {
    if (AtKey()) return WrongAt("a key that is no text", event);
    if (open_.size() >= kMaxDocumentDepth) return TooDeep(event);
    open_.push_back({.document = std::move(empty), .anchor = std::string(TokenText(anchor))});
    return absl::OkStatus();
  }

  absl::Status End(fy_event* event) {
    Open ended = std::move(open_.back());
    open_.pop_back();
    // What the mapping says itself counts before what is merged into it, and what is merged first before the
    // rest.
    for (Object& merged : ended.merged) {
      for (auto& member : merged) ended.document.get_object().insert(std::move(member));
    }
    TY_RETURN_IF_ERROR(Remember(event, ended.anchor, ended.document));
    return Place(event, std::move(ended.document));
  }

  absl::Status Place(fy_event* event, Document value) {
    if (open_.empty()) {
      if (!value.is_null()) documents_.push_back(std::move(value));
      return absl::OkStatus();
    }
    Open& parent = open_.back();
    if (Array* array = parent.document.if_array()) {
      array->push_back(std::move(value));
    } else if (!parent.key) {
      parent.key = KeyText(value);
      if (!parent.key) return WrongAt("a key that is no text", event);
      if (const fy_mark* mark = fy_event_start_mark(event)) parent.key_mark = *mark;
    } else if (std::exchange(parent.merging, false)) {
      parent.key.reset();
      return Merge(event, parent, std::move(value));
    } else {
      const auto [member, added] = parent.document.get_object().emplace(*parent.key, std::move(value));
      if (!added) {
        return WrongAt(StrCat("key \"", Escaped(*parent.key), "\" is given twice"), parent.key_mark.line + 1,
                       parent.key_mark.column + 1);
      }
      parent.key.reset();
    }
    return absl::OkStatus();
  }

  static absl::Status Merge(fy_event* event, Open& parent, Document value) {
    if (Object* object = value.if_object()) {
      parent.merged.push_back(std::move(*object));
      return absl::OkStatus();
    }
    Array* array = value.if_array();
    if (array == nullptr) return WrongAt("<< takes a mapping or a sequence of them", event);
    for (Document& element : *array) {
      if (!element.is_object()) return WrongAt("<< takes a mapping or a sequence of them", event);
      parent.merged.push_back(std::move(element.get_object()));
    }
    return absl::OkStatus();
  }

  absl::Status Remember(fy_event* event, std::string_view anchor, const Document& value) {
    if (anchor.empty()) return absl::OkStatus();
    Anchored anchored{.document = value, .extent = Measure(value)};
    TY_RETURN_IF_ERROR(Spend(event, anchored.extent.bytes));
    anchors_.insert_or_assign(std::string(anchor), std::move(anchored));
    return absl::OkStatus();
  }

  absl::Status Spend(fy_event* event, std::size_t bytes) {
    alias_bytes_ += bytes;
    if (alias_bytes_ <= kMaxAliasBytes) return absl::OkStatus();
    return WrongAt(StrCat("its aliases grow to more than ", FormatBytes(kMaxAliasBytes)), event);
  }

  static absl::Status TooDeep(fy_event* event) {
    return WrongAt(StrCat("it is nested deeper than ", kMaxDocumentDepth), event);
  }

  std::vector<Document> documents_;
  std::vector<Open> open_;
  std::map<std::string, Anchored, std::less<>> anchors_;
  std::size_t alias_bytes_ = 0;
};

struct Destroy {
  void operator()(fy_diag* diag) const { fy_diag_destroy(diag); }
  void operator()(fy_parser* parser) const { fy_parser_destroy(parser); }
};

absl::Status FirstError(fy_diag* diag) {
  void* place = nullptr;
  while (const fy_diag_error* error = fy_diag_errors_iterate(diag, &place)) {
    if (error->type >= FYET_ERROR) return WrongAt(error->msg, error->line, error->column);
  }
  return absl::InvalidArgumentError("not valid YAML");
}

bool BeginsLikeJson(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace

absl::StatusOr<std::vector<Document>> ParseYaml(std::string_view text) {
  int line = 0;
  for (const std::string_view one : Split(text, '\n')) {
    ++line;
    if (!IsUtf8(one)) return absl::InvalidArgumentError(StrCat("not valid YAML: not UTF-8 at line ", line));
  }
  // The library takes a NUL for the end, and what follows it would be lost.
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    return absl::InvalidArgumentError(StrCat("not valid YAML: a NUL at byte ", at + 1));
  }
  fy_diag_cfg diag_config;
  fy_diag_cfg_default(&diag_config);
  diag_config.fp = nullptr;
  const std::unique_ptr<fy_diag, Destroy> diag(fy_diag_create(&diag_config));
  fy_diag_set_collect_errors(diag.get(), true);
  fy_parse_cfg config{};
  config.diag = diag.get();
  // The depth is ours to bound; nothing here goes deeper for a document that does.
  config.flags = static_cast<fy_parse_cfg_flags>(FYPCF_QUIET | FYPCF_COLLECT_DIAG |
                                                 FYPCF_DISABLE_DEPTH_LIMIT | FYPCF_JSON_NONE);
  const std::unique_ptr<fy_parser, Destroy> parser(fy_parser_create(&config));
  if (parser == nullptr || fy_parser_set_string(parser.get(), text.data(), text.size()) != 0) {
    return absl::ResourceExhaustedError("cannot make a YAML parser: out of memory");
  }
  YamlBuilder builder;
  while (fy_event* event = fy_parser_parse(parser.get())) {
    const absl::Status taken = builder.Take(event);
    fy_parser_event_free(parser.get(), event);
    TY_RETURN_IF_ERROR(taken);
  }
  if (fy_parser_get_stream_error(parser.get())) return FirstError(diag.get());
  return builder.Release();
}

absl::StatusOr<std::vector<Document>> ParseJsonOrYaml(std::string_view text) {
  if (!BeginsLikeJson(text)) return ParseYaml(text);
  absl::StatusOr<Document> json = ParseJson(text);
  if (json.ok()) return std::vector<Document>{*std::move(json)};
  absl::StatusOr<std::vector<Document>> yaml = ParseYaml(text);
  // What looks like JSON was meant to be: its error is the one to show.
  if (!yaml.ok()) return json.status();
  return yaml;
}

}  // namespace trainyard
