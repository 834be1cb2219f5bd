// Writing YAML the way that Kubernetes' tools do, so that what people diff stays the same.
#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "base/yaml.h"
#include "base/yaml_scalar.h"

namespace trainyard {
namespace {

constexpr std::size_t kBestWidth = 80;
constexpr std::size_t kLongestSimpleKey = 128;

enum class Style { kPlain, kSingleQuoted, kDoubleQuoted, kLiteral };

// One character of a text.
struct Rune {
  std::uint32_t code = 0;
  std::size_t size = 1;  // in bytes
};

// `text` is UTF-8: JSON is.
Rune RuneAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i])) : 0U;
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {.code = first, .size = 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  std::uint32_t code = first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {.code = code, .size = std::min(size, text.size() - at)};
}

bool IsBreak(std::uint32_t code) {
  return code == '\n' || code == '\r' || code == 0x85 || code == 0x2028 || code == 0x2029;
}

bool IsPrintable(std::uint32_t code) {
  return code == '\n' || (code >= 0x20 && code <= 0x7E) || (code >= 0xA0 && code <= 0xD7FF) ||
         (code >= 0xE000 && code <= 0xFFFD && code != 0xFEFF);
}

// What decides how a text can be written.
struct Traits {
  bool multiline = false;
  bool plain = true;  // in a block, without quotes
  bool single_quoted = true;
  bool literal = true;
};

bool IsIndicator(std::string_view text, std::size_t at) {
  const bool space_before = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t';
  const bool space_behind = at + 1 >= text.size() || text[at + 1] == ' ' || text[at + 1] == '\t';
  const char c = text[at];
  if (at == 0 && std::string_view("#,[]{}&*!|>'\"%@`").find(c) != std::string_view::npos) return true;
  if (at == 0 && (c == '?' || c == '-')) return space_behind;
  if (c == ':') return space_behind;
  return c == '#' && space_before;
}

Traits Inspect(std::string_view text) {
  Traits traits;
  if (text.empty()) return {.literal = false};
  bool special = false;
  bool space_then_break = false;
  bool break_then_space = false;
  char before = 0;  // ' ', '\n' for any break, or something else
  for (std::size_t at = 0; at < text.size();) {
    const Rune rune = RuneAt(text, at);
    if (rune.size == 1 && IsIndicator(text, at)) traits.plain = false;
    special = special || !IsPrintable(rune.code);
    const char now = IsBreak(rune.code) ? '\n' : rune.code == ' ' ? ' ' : 'x';
    traits.multiline = traits.multiline || now == '\n';
    space_then_break = space_then_break || (before == ' ' && now == '\n');
    break_then_space = break_then_space || (before == '\n' && now == ' ');
    const bool edge = at == 0 || at + rune.size == text.size();
    if (edge && now != 'x') traits.plain = false;
    before = now;
    at += rune.size;
  }
  if (text.starts_with("---") || text.starts_with("...")) traits.plain = false;
  if (before == ' ') traits.literal = false;
  if (special || space_then_break) traits.literal = false;
  if (special || space_then_break || break_then_space) traits.single_quoted = false;
  traits.plain = traits.plain && traits.single_quoted && !traits.multiline;
  return traits;
}

Style Choose(std::string_view text, bool simple_key) {
  const Traits traits = Inspect(text);
  if (text.find('\n') != std::string_view::npos) {
    return traits.literal && !simple_key ? Style::kLiteral : Style::kDoubleQuoted;
  }
  if (NeedsQuotes(text) || traits.multiline) return Style::kDoubleQuoted;
  if (traits.plain) return Style::kPlain;
  return traits.single_quoted ? Style::kSingleQuoted : Style::kDoubleQuoted;
}

class Printer {
 public:
  explicit Printer(std::string& out) : out_(out) {}

  // `indent` is that of the lines that belong to the value, `inside` whether it stands behind "key:".
  void Print(const Document& value, std::size_t indent, bool inside) {
    if (const Object* object = value.if_object()) {
      PrintObject(*object, indent, inside);
    } else if (const Array* array = value.if_array()) {
      PrintArray(*array, indent, inside);
    } else {
      Space();
      PrintScalar(value, indent);
      EndLine();
    }
  }

 private:
  void PrintObject(const Object& object, std::size_t indent, bool inside) {
    if (object.empty()) {
      Space();
      Write("{}");
      EndLine();
      return;
    }
    if (inside) EndLine();
    for (const auto& member : object) {
      Indent(indent);
      PrintMember(Key(member), member.value(), indent);
    }
  }

  void PrintMember(std::string_view key, const Document& value, std::size_t indent) {
    const bool simple = key.size() <= kLongestSimpleKey && !Inspect(key).multiline;
    if (!simple) {
      Write("? ");
      PrintText(key, {.indent = indent + 2});
      EndLine();
      Indent(indent);
      Write(":");
      return PrintBehindMark(value, indent);
    }
    PrintText(key, {.simple_key = true, .indent = indent + 2});
    Write(":");
    // A sequence stands as far left as the key that it belongs to.
    Print(value, indent + (value.is_array() ? 0 : 2), true);
  }

  void PrintArray(const Array& array, std::size_t indent, bool inside) {
    if (array.empty()) {
      Space();
      Write("[]");
      EndLine();
      return;
    }
    if (inside) EndLine();
    for (const Document& element : array) {
      Indent(indent);
      Write("-");
      PrintBehindMark(element, indent);
    }
  }

  // Behind "-" or ":", where a sequence or mapping begins in the same line.
  void PrintBehindMark(const Document& value, std::size_t indent) {
    Write(" ");
    Print(value, indent + 2, false);
  }

  void PrintScalar(const Document& value, std::size_t indent) {
    if (value.is_string()) {
      PrintText(Text(value), {.indent = indent});
    } else if (value.is_double()) {
      Write(PrintDouble(value.get_double()));
    } else {
      Write(PrintJson(value));
    }
  }

  struct Place {
    bool simple_key = false;
    std::size_t indent = 0;
  };

  void PrintText(std::string_view text, const Place& place) {
    switch (Choose(text, place.simple_key)) {
      case Style::kPlain:
        PrintFolded(text, place, false);
        break;
      case Style::kSingleQuoted:
        Write("'");
        PrintFolded(text, place, true);
        Write("'");
        break;
      case Style::kDoubleQuoted:
        PrintDoubleQuoted(text, place);
        break;
      case Style::kLiteral:
        PrintLiteral(text, place.indent);
        break;
    }
  }

  // A long text goes on in the next line behind a space that stands alone.
  bool BreaksAt(std::string_view text, std::size_t at, const Place& place) const {
    return !place.simple_key && column_ > kBestWidth && at > 0 && at + 1 < text.size() && text[at] == ' ' &&
           text[at - 1] != ' ';
  }

  // Plain or between single quotes; the latter are doubled.
  void PrintFolded(std::string_view text, const Place& place, bool quoted) {
    for (std::size_t at = 0; at < text.size();) {
      const Rune rune = RuneAt(text, at);
      if (BreaksAt(text, at, place) && text[at + 1] != ' ') {
        EndLine();
        Indent(place.indent);
      } else {
        if (quoted && rune.code == '\'') Write("'");
        WriteRune(text.substr(at, rune.size));
      }
      at += rune.size;
    }
  }

  void PrintDoubleQuoted(std::string_view text, const Place& place) {
    Write("\"");
    for (std::size_t at = 0; at < text.size();) {
      const Rune rune = RuneAt(text, at);
      if (!IsPrintable(rune.code) || IsBreak(rune.code) || rune.code == '"' || rune.code == '\\') {
        PrintEscape(rune.code);
      } else if (BreaksAt(text, at, place)) {
        EndLine();
        Indent(place.indent);
        if (text[at + 1] == ' ') Write("\\");
      } else {
        WriteRune(text.substr(at, rune.size));
      }
      at += rune.size;
    }
    Write("\"");
  }

  void PrintEscape(std::uint32_t code) {
    struct Short {
      std::uint32_t code;
      char letter;
    };
    constexpr Short kShort[] = {{0x00, '0'},  {0x07, 'a'}, {0x08, 'b'}, {0x09, 't'},   {0x0A, 'n'},
                                {0x0B, 'v'},  {0x0C, 'f'}, {0x0D, 'r'}, {0x1B, 'e'},   {0x22, '"'},
                                {0x5C, '\\'}, {0x85, 'N'}, {0xA0, '_'}, {0x2028, 'L'}, {0x2029, 'P'}};
    for (const Short& one : kShort) {
      if (one.code == code) return Write(StrCat('\\', one.letter));
    }
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const int digits = code <= 0xFF ? 2 : code <= 0xFFFF ? 4 : 8;
    Write(digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U");
    for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) Write(kHex.substr(code >> shift & 15, 1));
  }

  void PrintLiteral(std::string_view text, std::size_t indent) {
    Write("|");
    if (text[0] == ' ' || IsBreak(RuneAt(text, 0).code)) Write("2");
    if (!text.ends_with('\n')) {
      Write("-");
    } else if (text.size() == 1 || text[text.size() - 2] == '\n') {
      Write("+");
    }
    if (text.ends_with('\n')) text.remove_suffix(1);
    for (const std::string_view line : Split(text, '\n')) {
      EndLine();
      if (line.empty()) continue;
      Indent(indent);
      Write(line);
    }
  }

  void Space() {
    if (!out_.empty() && !out_.ends_with('\n') && !out_.ends_with(' ')) Write(" ");
  }
  void Write(std::string_view text) {
    out_ += text;
    column_ += text.size();
  }
  void WriteRune(std::string_view bytes) {
    out_ += bytes;
    ++column_;
  }
  void EndLine() {
    out_ += '\n';
    column_ = 0;
  }
  // To this column, unless the line has gone that far already: behind "- ".
  void Indent(std::size_t to) {
    if (column_ < to) Write(std::string(to - column_, ' '));
  }

  std::string& out_;
  std::size_t column_ = 0;  // in characters, where it matters
};

}  // namespace

std::string PrintYaml(const Document& document) {
  std::string out;
  Printer(out).Print(document, 0, false);
  return out;
}

}  // namespace trainyard
