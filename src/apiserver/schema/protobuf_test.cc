#include "apiserver/schema/protobuf.h"

#include <set>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trainyard::apiserver {
namespace {

using ::testing::HasSubstr;

// A message under construction.
std::string Varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80U; value >>= 7U) bytes += static_cast<char>((value & 0x7FU) | 0x80U);
  bytes += static_cast<char>(value);
  return bytes;
}
std::string Number(unsigned field, std::int64_t value) {
  return Varint(field << 3U) + Varint(static_cast<std::uint64_t>(value));
}
std::string Bytes(unsigned field, std::string_view bytes) {
  return StrCat(Varint(field << 3U | 2U), Varint(bytes.size()), bytes);
}
std::string Body(std::string_view api_version, std::string_view kind, std::string_view message) {
  return StrCat(std::string_view("k8s\0", 4), Bytes(1, StrCat(Bytes(1, api_version), Bytes(2, kind))),
                Bytes(2, message));
}

std::string Decoded(std::string_view api_version, std::string_view kind, std::string_view message) {
  const auto document = DecodeProtobuf(Body(api_version, kind, message));
  return document.ok() ? PrintJson(*document) : StrCat("error: ", Message(document.status()));
}

TEST(ProtobufTest, ReadsWhatGoWritesForAConfigMap) {
  // What Go cannot leave out it writes as zeros: they are not there in JSON.
  const std::string meta = Bytes(1, "settings") + Bytes(2, "") + Bytes(5, "") + Number(7, 0) + Bytes(8, "");
  const std::string map = Bytes(1, meta) + Bytes(2, Bytes(1, "lr") + Bytes(2, "0.1")) +
                          Bytes(2, Bytes(1, "empty") + Bytes(2, "")) +
                          Bytes(3, Bytes(1, "raw") + Bytes(2, std::string("\0\xff", 2)));
  EXPECT_EQ(Decoded("v1", "ConfigMap", map),
            R"({"metadata":{"name":"settings"},"data":{"lr":"0.1","empty":""},"binaryData":{"raw":"AP8="},)"
            R"("apiVersion":"v1","kind":"ConfigMap"})");
}

TEST(ProtobufTest, KeepsAZeroThatIsAValue) {
  const std::string spec = Bytes(3, "") + Number(4, 0) + Number(11, 0);
  EXPECT_EQ(Decoded("v1", "Pod", Bytes(2, spec)),
            R"({"spec":{"terminationGracePeriodSeconds":0},"apiVersion":"v1","kind":"Pod"})");
}

TEST(ProtobufTest, ReadsMessagesThatJsonDoesNotShow) {
  const std::string volume = Bytes(1, "scratch") + Bytes(2, Bytes(2, Bytes(1, "Memory")));
  EXPECT_EQ(Decoded("v1", "Pod", Bytes(2, Bytes(1, volume))),
            R"({"spec":{"volumes":[{"name":"scratch","emptyDir":{"medium":"Memory"}}]},)"
            R"("apiVersion":"v1","kind":"Pod"})");
}

TEST(ProtobufTest, ReadsTimesAmountsAndPorts) {
  const std::string spec =
      Bytes(1, "holder") + Number(2, 15) + Bytes(3, Number(1, 1714557600) + Number(2, 123456000));
  EXPECT_EQ(
      Decoded("coordination.k8s.io/v1", "Lease", Bytes(2, spec)),
      R"({"spec":{"holderIdentity":"holder","leaseDurationSeconds":15,)"
      R"("acquireTime":"2024-05-01T10:00:00.123456Z"},"apiVersion":"coordination.k8s.io/v1","kind":"Lease"})");
  const std::string limits = Bytes(1, Bytes(1, "cpu") + Bytes(2, Bytes(1, "100m")));
  EXPECT_EQ(Decoded("v1", "Pod", Bytes(2, Bytes(2, Bytes(1, "c") + Bytes(8, limits)))),
            R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"100m"}}}]},)"
            R"("apiVersion":"v1","kind":"Pod"})");
  const std::string named = Bytes(4, Number(1, 1) + Number(2, 0) + Bytes(3, "http"));
  const std::string numbered = Bytes(4, Number(1, 0) + Number(2, 8080) + Bytes(3, ""));
  EXPECT_EQ(
      Decoded("v1", "Service", Bytes(2, Bytes(1, named) + Bytes(1, numbered))),
      R"({"spec":{"ports":[{"targetPort":"http"},{"targetPort":8080}]},"apiVersion":"v1","kind":"Service"})");
}

TEST(ProtobufTest, OptionsOfADeletionAreTheSameInEveryGroup) {
  EXPECT_EQ(
      Decoded("apps/v1", "DeleteOptions", Number(1, 0) + Bytes(4, "Foreground")),
      R"({"gracePeriodSeconds":0,"propagationPolicy":"Foreground","apiVersion":"apps/v1","kind":"DeleteOptions"})");
}

TEST(ProtobufTest, LeavesOutFieldsOfLaterVersions) {
  EXPECT_EQ(Decoded("v1", "ConfigMap", Bytes(900, "new") + Number(901, 7)),
            R"({"apiVersion":"v1","kind":"ConfigMap"})");
}

TEST(ProtobufTest, SaysWhatItCannotRead) {
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeProtobuf("{}").status()));
  EXPECT_TRUE(absl::IsUnimplemented(DecodeProtobuf(Body("a.io/v1", "Thing", "")).status()));
  const auto disk =
      DecodeProtobuf(Body("v1", "Pod", Bytes(2, Bytes(1, Bytes(2, Bytes(11, Bytes(1, "{x")))))));
  EXPECT_TRUE(absl::IsUnimplemented(disk.status()));
  EXPECT_THAT(Message(disk.status()), HasSubstr("'rbd'"));
  EXPECT_THAT(Decoded("v1", "ConfigMap", Number(1, 5)), HasSubstr("'metadata' is not what it has to be"));
  EXPECT_THAT(Decoded("v1", "Pod", Bytes(2, Bytes(4, "x"))), HasSubstr("'terminationGracePeriodSeconds'"));
}

TEST(ProtobufTest, EveryCutIsAnErrorOrAnObject) {
  const std::string whole = Body("v1", "Pod", Bytes(1, Bytes(1, "a")) + Bytes(2, Number(4, 300)));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = DecodeProtobuf(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(cut.ok() ? cut->is_object() : !Message(cut.status()).empty());
  }
}

// A type that is known in protobuf is known whole: a field without a number would be lost without a word.
TEST(ProtobufTest, TypesHaveNumbersForAllFieldsOrForNone) {
  int known = 0;
  for (const auto& [name, schema] : BuiltInKinds().types()) {
    if (schema->wire.empty()) continue;
    ++known;
    std::set<std::string> numbered;
    for (const WireField& field : schema->wire) numbered.insert(field.property);
    for (const auto& [property, unused] : schema->properties) {
      if (numbered.contains(property)) continue;
      EXPECT_THAT(property, testing::AnyOf("apiVersion", "kind")) << name;
    }
  }
  EXPECT_GT(known, 100);
}

}  // namespace
}  // namespace trainyard::apiserver
