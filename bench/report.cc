#include "bench/report.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

namespace trainyard::bench {
namespace {

std::string Shown(double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), number >= 100 ? "%.0f" : "%.2f", number);
  return text.data();
}

std::string Target(const Row& row) {
  std::string text;
  if (row.least_ratio) text = StrCat("ratio >= ", Shown(*row.least_ratio));
  if (row.least_figure) StrAppend(text, text.empty() ? "" : ", ", ">= ", Shown(*row.least_figure));
  if (row.most_figure) StrAppend(text, text.empty() ? "" : ", ", "<= ", Shown(*row.most_figure));
  if (!text.empty()) StrAppend(text, row.reached() ? "  reached" : "  MISSED");
  return text;
}

}  // namespace

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Add(std::vector<Row>& rows, Row row, const absl::StatusOr<double>& figure) {
  if (figure.ok()) {
    row.figure = *figure;
  } else {
    row.failure = Message(figure.status());
  }
  rows.push_back(std::move(row));
}

std::string PrintTable(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"NAME", "FIGURE", "UNIT", "LIMIT IN THE SAME RUN", "RATIO", "TARGET"}};
  for (const Row& row : rows) {
    const bool limited = !row.limit_name.empty();
    cells.push_back({row.name, row.failure.empty() ? Shown(row.figure) : StrCat("FAILED: ", row.failure),
                     row.unit, limited ? StrCat(Shown(row.limit), " (", row.limit_name, ")") : "-",
                     limited ? Shown(row.ratio()) : "-", Target(row)});
  }
  return Table(cells, 2);
}

std::string PrintRows(const std::vector<Row>& rows) {
  std::string text = "[";
  for (const Row& row : rows) {
    JsonObject json;
    json.Add("name", std::string_view(row.name))
        .Add("figure", row.figure)
        .Add("unit", std::string_view(row.unit));
    if (!row.limit_name.empty()) {
      json.Add("limit_name", std::string_view(row.limit_name))
          .Add("limit", row.limit)
          .Add("ratio", row.ratio());
    }
    if (row.least_ratio) json.Add("least_ratio", *row.least_ratio);
    if (row.least_figure) json.Add("least_figure", *row.least_figure);
    if (row.most_figure) json.Add("most_figure", *row.most_figure);
    if (!row.failure.empty()) json.Add("failure", std::string_view(row.failure));
    json.Add("reached", row.reached());
    StrAppend(text, text.size() == 1 ? "\n  " : ",\n  ", json.Str());
  }
  return text + "\n]\n";
}

double Rate(int threads, absl::Duration time, const std::function<void(int)>& work) {
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> done = 0;
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  const SteadyTime start = Clock::System().Steady();
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      std::int64_t mine = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        work(i);
        ++mine;
      }
      done += mine;
    });
  }
  std::this_thread::sleep_for(absl::ToChronoNanoseconds(time));
  stop = true;
  for (std::thread& thread : running) thread.join();
  return static_cast<double>(done) / absl::ToDoubleSeconds(Clock::System().Steady() - start);
}

Pair Alternate(int rounds, const std::function<double()>& figure, const std::function<double()>& limit) {
  std::vector<double> figures;
  std::vector<double> limits;
  for (int i = 0; i < rounds; ++i) {
    limits.push_back(limit());
    figures.push_back(figure());
  }
  return {.figure = Median(figures), .limit = Median(limits)};
}

}  // namespace trainyard::bench
