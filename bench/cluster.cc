// The embedded cluster's API server as its clients meet it: `trainyard up`, over TLS.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/status.h"
#include "base/text.h"
#include "bench/https_load.h"
#include "bench/local_cluster.h"
#include "bench/report.h"
#include "tests/support/kube_apiserver.h"

namespace trainyard::bench {
namespace {

constexpr int kClusterClients = 32;
constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";

// A pod that is stored and not run: nobody schedules it.
std::string PodBody(std::string_view name, std::string_view label) {
  return StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
      R"(","labels":{"app":"bench","bench":")", label,
      R"("}},"spec":{"schedulerName":"nobody","restartPolicy":"Never","containers":[{"name":"main","image":"none",)"
      R"("command":["sleep","1000"],"env":[{"name":"RANK","value":"0"}],"resources":{"requests":{"cpu":"100m"}}}]}})");
}

// Creates pods from kClusterClients connections until `enough(created)`; pods a second.
class Creator {
 public:
  static absl::StatusOr<std::unique_ptr<Creator>> Connect(const HttpsTarget& target, std::string prefix) {
    auto creator = std::make_unique<Creator>(std::move(prefix));
    TY_ASSIGN_OR_RETURN(creator->load_, HttpsLoad::Connect(target, kClusterClients));
    return creator;
  }
  explicit Creator(std::string prefix) : prefix_(std::move(prefix)) {}

  absl::StatusOr<double> Run(const std::function<bool(int created)>& enough) {
    int created = 0;
    int asked = 0;
    absl::Status refused;
    const auto next = [&](int connection) {
      ++asked;
      load_->Send(connection, "POST", kPods, PodBody(StrCat(prefix_, "-", next_++), "create"));
    };
    load_->on_answer = [&](int connection, const HttpsAnswer& answer) {
      --asked;
      if (answer.code != 201)
        refused = absl::InternalError(StrCat("a create was answered with ", answer.code, ": ", answer.body));
      ++created;
      if (refused.ok() && !enough(created + asked)) next(connection);
    };
    const SteadyTime begin = Clock::System().Steady();
    for (int i = 0; i < kClusterClients && !enough(asked); ++i) next(i);
    TY_RETURN_IF_ERROR(load_->TurnUntil([&] { return asked == 0; }, absl::Minutes(2)));
    TY_RETURN_IF_ERROR(refused);
    return created / absl::ToDoubleSeconds(Clock::System().Steady() - begin);
  }
  absl::StatusOr<double> RunFor(absl::Duration time) {
    const SteadyTime end = Clock::System().Steady() + time;
    return Run([end](int) { return Clock::System().Steady() >= end; });
  }

 private:
  const std::string prefix_;
  std::unique_ptr<HttpsLoad> load_;
  int next_ = 0;
};

absl::StatusOr<double> ColdStart(const Settings& settings) {
  std::vector<double> times;
  for (int i = 0; i < settings.rounds; ++i) {
    TY_ASSIGN_OR_RETURN(const auto cluster,
                        LocalCluster::Start(settings.trainyard, StrCat(settings.folder, "/cold-", i)));
    times.push_back(absl::ToDoubleMilliseconds(cluster->start_time()));
  }
  return Quantile(times, 0.5);
}

struct MemoryUse {
  double idle = 0;
  double full = 0;
};

absl::StatusOr<MemoryUse> Memory(const Settings& settings, int pods) {
  TY_ASSIGN_OR_RETURN(const auto cluster,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/memory"));
  const auto resident = [&] {
    // Until it has done what it does at the start, and after a load.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return cluster->ResidentMiB();
  };
  MemoryUse use;
  TY_ASSIGN_OR_RETURN(use.idle, resident());
  TY_ASSIGN_OR_RETURN(const auto creator, Creator::Connect(cluster->target(), "stored"));
  TY_RETURN_IF_ERROR(creator->Run([&](int created) { return created >= pods; }));
  TY_ASSIGN_OR_RETURN(use.full, resident());
  return use;
}

// A real kube-apiserver on a real etcd, if there is one.
absl::StatusOr<std::unique_ptr<testing_support::KubeApiServer>> StartPeer() {
  if (std::getenv("KUBEBUILDER_ASSETS") == nullptr) return nullptr;
  return testing_support::KubeApiServer::Start();
}

// Adds what the peer does to the row, if there is one.
absl::StatusOr<double> Creates(const Settings& settings, Row& row) {
  TY_ASSIGN_OR_RETURN(const auto cluster,
                      LocalCluster::Start(settings.trainyard, settings.folder + "/creates"));
  TY_ASSIGN_OR_RETURN(const auto ours, Creator::Connect(cluster->target(), "create"));
  TY_ASSIGN_OR_RETURN(const auto peer, StartPeer());
  std::unique_ptr<Creator> theirs;
  if (peer != nullptr && peer->port() != 0) {
    const HttpsTarget target{.port = static_cast<std::uint16_t>(peer->port()), .token = peer->token()};
    TY_ASSIGN_OR_RETURN(theirs, Creator::Connect(target, "create"));
    TY_RETURN_IF_ERROR(theirs->RunFor(settings.time));  // its first seconds are not like the rest
  }
  absl::Status failed;
  const auto rate = [&](Creator& creator) {
    const auto done = creator.RunFor(settings.time);
    if (!done.ok()) failed = done.status();
    return done.value_or(0);
  };
  const Pair pair =
      Alternate(settings.rounds, [&] { return rate(*ours); }, [&] { return theirs ? rate(*theirs) : 0; });
  TY_RETURN_IF_ERROR(failed);
  if (theirs) {
    row.limit_name = "kube-apiserver creates/s";
    row.limit = pair.limit;
  }
  return pair.figure;
}

// Open watches of pods, each of a label of its own or all of the same, and one connection that creates.
class Watchers {
 public:
  static absl::StatusOr<std::unique_ptr<Watchers>> Open(const HttpsTarget& target, int count,
                                                        bool all_match) {
    auto watchers = std::make_unique<Watchers>(count, all_match);
    TY_ASSIGN_OR_RETURN(watchers->load_, HttpsLoad::Connect(target, count + 1));
    TY_RETURN_IF_ERROR(watchers->Watch());
    return watchers;
  }
  Watchers(int count, bool all_match) : count_(count), all_match_(all_match) {}

  // Creates one pod, and adds how long the event took to each watcher whom it concerns, in milliseconds.
  absl::Status CreateOne(std::vector<double>& latencies) {
    const int concerned = all_match_ ? count_ : 1;
    const int number = next_++;
    int told = 0;
    std::optional<int> code;
    SteadyTime begin;
    load_->on_line = [&](int, std::string_view) {
      ++told;
      latencies.push_back(absl::ToDoubleMilliseconds(Clock::System().Steady() - begin));
    };
    load_->on_answer = [&](int, const HttpsAnswer& answer) { code = answer.code; };
    const std::string body = PodBody(StrCat(all_match_ ? "all-" : "one-", number), LabelOf(number % count_));
    begin = Clock::System().Steady();
    load_->Send(0, "POST", kPods, body);
    TY_RETURN_IF_ERROR(load_->TurnUntil([&] { return code && told >= concerned; }, absl::Seconds(30)));
    if (code != 201) return absl::InternalError(StrCat("a create was answered with ", *code));
    return absl::OkStatus();
  }

 private:
  std::string LabelOf(int watcher) const { return all_match_ ? "all" : StrCat("w", watcher); }

  absl::Status Watch() {
    TY_ASSIGN_OR_RETURN(const HttpsAnswer list, load_->Ask(0, "GET", StrCat(kPods, "?limit=1")));
    constexpr std::string_view kKey = "\"resourceVersion\":\"";
    const std::size_t at = list.body.find(kKey);
    if (at == std::string::npos) return absl::InternalError(StrCat("no version in a list: ", list.body));
    const std::string version =
        list.body.substr(at + kKey.size(), list.body.find('"', at + kKey.size()) - at - kKey.size());
    for (int i = 0; i < count_; ++i) {
      load_->Stream(i + 1, StrCat("/api/v1/pods?watch=true&resourceVersion=", version,
                                  "&labelSelector=bench%3D", LabelOf(i)));
    }
    return load_->TurnUntil([&] { return load_->streams() == count_; }, absl::Seconds(60));
  }

  const int count_;
  const bool all_match_;
  std::unique_ptr<HttpsLoad> load_;
  int next_ = 0;
};

absl::StatusOr<double> WatchLatency(const Settings& settings, int count, bool all_match) {
  TY_ASSIGN_OR_RETURN(
      const auto cluster,
      LocalCluster::Start(settings.trainyard, settings.folder + (all_match ? "/all" : "/one")));
  TY_ASSIGN_OR_RETURN(const auto watchers, Watchers::Open(cluster->target(), count, all_match));
  std::vector<double> latencies;
  TY_RETURN_IF_ERROR(watchers->CreateOne(latencies));
  latencies.clear();  // the first goes through everything cold
  const SteadyTime end = Clock::System().Steady() + settings.time * settings.rounds;
  while (Clock::System().Steady() < end) TY_RETURN_IF_ERROR(watchers->CreateOne(latencies));
  return Quantile(latencies, 0.99);
}

}  // namespace

void ClusterRows(const Settings& settings, std::vector<Row>& rows) {
  Add(rows, {.name = "cluster: ready from a cold start", .unit = "ms", .most_figure = 300},
      ColdStart(settings));

  const int pods = settings.quick ? 500 : 10000;
  const auto use = Memory(settings, pods);
  const auto part = [&](double MemoryUse::* member) {
    return use.ok() ? absl::StatusOr<double>((*use).*member) : use.status();
  };
  Add(rows, {.name = "cluster: resident memory, idle", .unit = "MiB", .most_figure = 30},
      part(&MemoryUse::idle));
  Add(rows,
      {.name = StrCat("cluster: resident memory, ", pods, " pods stored"), .unit = "MiB", .most_figure = 120},
      part(&MemoryUse::full));

  Row creates{.name = "cluster: pod creates over TLS, 32 clients, durable",
              .unit = "creates/s",
              .least_figure = 3000};
  const auto rate = Creates(settings, creates);
  Add(rows, creates, rate);

  const int watches = settings.quick ? 100 : 1000;
  // That all match is shown without a target: a thousand answers on a thousand connections are a thousand
  // system calls here and as many in the clients, which on two cores take longer than that by themselves.
  for (const bool all_match : {false, true}) {
    Row row{.name = StrCat("cluster: create to watch event, ", watches, " watches, ",
                           all_match ? "all match" : "one matches", ", p99"),
            .unit = "ms"};
    if (!all_match) row.most_figure = 10;
    Add(rows, row, WatchLatency(settings, watches, all_match));
  }
}

}  // namespace trainyard::bench
