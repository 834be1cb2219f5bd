#include "node/hosts.h"

#include <sys/stat.h>

#include "base/files.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace trainyard::node {
namespace {

PodSpec Pod(std::string ns, std::string name) {
  PodSpec pod;
  pod.ns = std::move(ns);
  pod.name = std::move(name);
  return pod;
}

// The addresses that a name has, as the C library finds them: every line that has it, in order.
std::vector<std::string> Lookup(const std::string& hosts, std::string_view name) {
  std::vector<std::string> addresses;
  for (const std::string_view line : Split(hosts, '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == name) addresses.emplace_back(words[0]);
    }
  }
  return addresses;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Hosts : public testing::Test {
 protected:
  Hosts() {
    objects_.services[{"a", "web"}] = {.cluster_ip = "127.1.0.1"};
    objects_.services[{"b", "web"}] = {.cluster_ip = "127.1.0.2"};
    objects_.services[{"a", "ps"}] = {.cluster_ip = "None"};
    objects_.services[{"a", "pending"}] = {.cluster_ip = ""};
    objects_.endpoints[{"a", "ps"}] = {
        .addresses = {{.ip = "127.64.0.1", .hostname = "ps-0"}, {.ip = "127.64.0.2"}}};
  }
  std::string Render(const PodSpec& pod) { return RenderHosts(pod, "127.64.0.9", RenderNames(objects_)); }
  ClusterObjects objects_;
};

TEST_F(Hosts, NameAServiceInEveryFormThatANameServerWouldFind) {
  const std::string hosts = Render(Pod("a", "p"));
  for (const char* name : {"web", "web.a", "web.a.svc", "web.a.svc.cluster.local"}) {
    EXPECT_THAT(Lookup(hosts, name), ElementsAre("127.1.0.1")) << name;
  }
}

TEST_F(Hosts, GiveShortNamesToTheirOwnNamespaceOnly) {
  EXPECT_THAT(Lookup(Render(Pod("b", "p")), "web"), ElementsAre("127.1.0.2"));
  EXPECT_THAT(Lookup(Render(Pod("b", "p")), "web.a"), ElementsAre("127.1.0.1"));
  EXPECT_THAT(Lookup(Render(Pod("c", "p")), "web"), IsEmpty());
}

TEST_F(Hosts, ResolveAHeadlessServiceToAllItsPods) {
  const std::string hosts = Render(Pod("a", "p"));
  EXPECT_THAT(Lookup(hosts, "ps"), ElementsAre("127.64.0.1", "127.64.0.2"));
  EXPECT_THAT(Lookup(hosts, "ps.a.svc.cluster.local"), ElementsAre("127.64.0.1", "127.64.0.2"));
  for (const char* name : {"ps-0.ps", "ps-0.ps.a", "ps-0.ps.a.svc", "ps-0.ps.a.svc.cluster.local"}) {
    EXPECT_THAT(Lookup(hosts, name), ElementsAre("127.64.0.1")) << name;
  }
  EXPECT_THAT(Lookup(Render(Pod("b", "p")), "ps-0.ps.a"), ElementsAre("127.64.0.1"));
}

TEST_F(Hosts, LeaveOutAServiceThatHasNoAddressYet) {
  EXPECT_THAT(Lookup(Render(Pod("a", "p")), "pending"), IsEmpty());
}

TEST_F(Hosts, NameThePodItself) {
  PodSpec pod = Pod("a", "p");
  EXPECT_THAT(Lookup(Render(pod), "p"), ElementsAre("127.64.0.9"));
  EXPECT_THAT(Lookup(Render(pod), "localhost"), ElementsAre("127.64.0.9")) << "where its servers listen";
  pod.hostname = "h";
  pod.subdomain = "ps";
  pod.host_aliases = {{.address = "127.9.9.9", .names = {"x", "y"}}};
  EXPECT_THAT(Lookup(Render(pod), "h"), ElementsAre("127.64.0.9"));
  EXPECT_THAT(Lookup(Render(pod), "h.ps.a.svc.cluster.local"), ElementsAre("127.64.0.9"));
  EXPECT_THAT(Lookup(Render(pod), "y"), ElementsAre("127.9.9.9"));
}

TEST(WriteInPlace, KeepsTheFileAndReplacesAllOfItsText) {
  const testing_support::TempFolder folder;
  const std::string path = folder / "hosts";
  ASSERT_TRUE(WriteInPlace(path, "a long text").ok());
  struct stat before{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ASSERT_TRUE(WriteInPlace(path, "short").ok());
  struct stat after{};
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(ReadFile(path, 100).value(), "short");
  EXPECT_FALSE(WriteInPlace(folder / "none/hosts", "x").ok());
}

}  // namespace
}  // namespace trainyard::node
