#include "actors/placement/failure_text.hpp"

#include <gtest/gtest.h>

#include "actors/placement/plugins/scheduling_gates.hpp"

namespace troupe {
namespace {

TEST(FailureText, ReasonsAreSortedAsStringsWithTheirCounts) {
  EXPECT_EQ(failure_message(14, {{"Insufficient cpu", 10}, {"Insufficient memory", 2}, {"Too many pods", 2}}),
            "0/14 nodes are available: 10 Insufficient cpu, 2 Insufficient memory, 2 Too many pods.");
}

TEST(FailureText, PreFilterReplacesAndPostFilterFollows) {
  EXPECT_EQ(failure_message(3, {{"Insufficient cpu", 3}}, "pod affinity terms conflict"),
            "0/3 nodes are available: pod affinity terms conflict.");
  EXPECT_EQ(failure_message(2, {{"Insufficient memory", 2}}, "",
                            "preemption: not eligible due to preemptionPolicy=Never."),
            "0/2 nodes are available: 2 Insufficient memory. preemption: not eligible due to "
            "preemptionPolicy=Never.");
  EXPECT_EQ(failure_message(1, {}), "0/1 nodes are available:");
}

TEST(FailureText, NotesAreCutAt1024BytesBetweenCharacters) {
  const std::string exact(1024, 'x');
  EXPECT_EQ(event_note(exact), exact);
  EXPECT_EQ(event_note(std::string(1025, 'x')), std::string(1020, 'x') + " ...");
  // 1019 bytes, then characters of three bytes: none fits whole below 1020.
  std::string text(1019, 'x');
  for (int i = 0; i < 10; ++i) text += "\xE2\x82\xAC";
  EXPECT_EQ(event_note(text), std::string(1019, 'x') + " ...");
}

TEST(FailureText, EventNamesAreTheObjectAndTheTime) {
  EXPECT_EQ(event_name("web-1", 0x17ABCDEF01234567ULL), "web-1.17abcdef01234567");
  EXPECT_EQ(event_name(std::string(240, 'a'), 0x17ABCDEF01234567ULL), "") << "longer than a DNS subdomain";
  EXPECT_EQ(event_name("Web", 1), "");
  EXPECT_EQ(event_name("a..b", 1), "");
  EXPECT_EQ(event_name("-a", 1), "");
  EXPECT_EQ(event_name("a-.b", 1), "");
  EXPECT_EQ(event_name("a.b-c", 1), "a.b-c.1");
  EXPECT_EQ(event_name("", 1), "");
}

TEST(FailureText, GatesAreNamedInOrder) {
  EXPECT_EQ(SchedulingGates::refuse(std::vector<std::string>{"example.com/foo", "quota"}),
            "waiting for scheduling gates: [example.com/foo quota]");
  EXPECT_EQ(SchedulingGates::refuse(std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace troupe
