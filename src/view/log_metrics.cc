#include "view/log_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/letters.h"

namespace trainyard::view {
namespace {

constexpr std::size_t kMostName = 48;
constexpr std::size_t kMostMetrics = 16;  // of a line
constexpr std::size_t kMostLine = 4096;   // bytes that are looked at

constexpr std::array<std::string_view, 22> kMetrics = {
    "acc",  "accuracy", "auc", "bleu",       "cost",      "f1",     "iou",    "loss", "losses", "lr",  "mae",
    "mape", "mse",      "nll", "perplexity", "precision", "recall", "reward", "rmse", "rouge",  "ppl", "wer"};
constexpr std::array<std::string_view, 9> kPlaces = {"step",      "steps", "epoch", "pass",  "iter",
                                                     "iteration", "batch", "round", "global"};
// Numbers that say where a line was written, and not how well it goes.
constexpr std::array<std::string_view, 14> kNoMetrics = {
    "rank",    "worker", "graph",      "pid",     "port", "records", "examples",
    "samples", "seed",   "generation", "version", "time", "seconds", "size"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsOfName(char c) {
  return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '/' || c == '-' || c == '@';
}

template <std::size_t N>
bool Contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Whether one of the words that a name is made of, "loss" of "val/loss_0", is among these.
template <std::size_t N>
bool HasWord(std::string_view name, const std::array<std::string_view, N>& words) {
  const std::string lower = LowerCase(name);
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= lower.size(); ++i) {
    if (i < lower.size() && (IsLetter(lower[i]) || (i > begin && IsDigit(lower[i])))) continue;
    std::string_view word = std::string_view(lower).substr(begin, i - begin);
    if (Contains(words, word)) return true;  // "f1"
    while (!word.empty() && IsDigit(word.back())) word.remove_suffix(1);
    if (!word.empty() && Contains(words, word)) return true;  // "loss2"
    begin = i + 1;
  }
  return false;
}

enum class Between : unsigned char { kSpace, kColon, kEquals };

struct Found {
  std::string_view name;
  Between between = Between::kSpace;
  double value = 0;
};

// Reads names with their numbers from left to right.
class Scanner {
 public:
  explicit Scanner(std::string_view line) : line_(line.substr(0, kMostLine)) {}

  std::optional<Found> Next() {
    while (at_ < line_.size()) {
      if (!IsLetter(line_[at_]) && line_[at_] != '_') {
        // A word that begins with a digit is no name.
        if (IsDigit(line_[at_])) {
          while (at_ < line_.size() && IsOfName(line_[at_])) ++at_;
        } else {
          ++at_;
        }
        continue;
      }
      Found found;
      const std::size_t begin = at_;
      while (at_ < line_.size() && IsOfName(line_[at_])) ++at_;
      found.name = line_.substr(begin, at_ - begin);
      std::size_t behind = at_;
      if (!TakeBetween(behind, found.between)) continue;
      if (TakeNumber(behind, found.value)) {
        at_ = behind;
        return found;
      }
    }
    return std::nullopt;
  }

 private:
  void SkipSpaces(std::size_t& at) const {
    while (at < line_.size() && (line_[at] == ' ' || line_[at] == '\t')) ++at;
  }

  bool TakeBetween(std::size_t& at, Between& between) const {
    if (at < line_.size() && (line_[at] == '"' || line_[at] == '\'')) ++at;  // of a key in JSON
    const std::size_t begin = at;
    SkipSpaces(at);
    if (at < line_.size() && (line_[at] == '=' || line_[at] == ':')) {
      between = line_[at] == '=' ? Between::kEquals : Between::kColon;
      ++at;
      SkipSpaces(at);
      return true;
    }
    return at > begin;
  }

  // One that something else does not make into a part of it: "1/2", "3s".
  bool TakeNumber(std::size_t& at, double& value) const {
    std::size_t begin = at;
    if (begin < line_.size() && line_[begin] == '+') ++begin;
    if (begin >= line_.size() || (!IsDigit(line_[begin]) && line_[begin] != '-' && line_[begin] != '.'))
      return false;
    const auto [end, error] = std::from_chars(line_.data() + begin, line_.data() + line_.size(), value);
    if (error != std::errc()) return false;
    at = static_cast<std::size_t>(end - line_.data());
    if (at < line_.size() && line_[at] == '.') return at + 1 == line_.size() || line_[at + 1] == ' ';
    return at == line_.size() || (!IsOfName(line_[at]) && line_[at] != ':');
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::pair<std::string, double>> ParseMetrics(std::string_view line) {
  std::vector<Found> all;
  bool placed = false;
  Scanner scanner(line);
  while (const auto found = scanner.Next()) {
    all.push_back(*found);
    placed = placed || HasWord(found->name, kPlaces);
  }
  std::vector<std::pair<std::string, double>> metrics;
  for (const Found& found : all) {
    if (found.name.size() > kMostName || !std::isfinite(found.value)) continue;
    const bool known = HasWord(found.name, kMetrics);
    const bool other = placed && found.between == Between::kEquals && !HasWord(found.name, kPlaces) &&
                       !HasWord(found.name, kNoMetrics);
    if (!known && !other) continue;
    if (metrics.size() == kMostMetrics) break;
    metrics.emplace_back(found.name, found.value);
  }
  return metrics;
}

}  // namespace trainyard::view
