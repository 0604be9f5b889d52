#include "messages/message.hpp"

#include <gtest/gtest.h>

#include "messages/fb/pod_generated.h"
#include "messages/uid.hpp"

namespace troupe {
namespace {

Message pod_message(std::string_view name) {
  flatbuffers::FlatBufferBuilder b;
  const auto ns = b.CreateString("default");
  const auto n = b.CreateString(name.data(), name.size());
  fb::PodBuilder pod(b);
  pod.add_namespace_(ns);
  pod.add_name(n);
  b.Finish(pod.Finish());
  return {Kind::pod, b};
}

TEST(Message, KeepsTheTableItWasMadeFrom) {
  const Message m = pod_message("web-0");
  EXPECT_EQ(m.kind(), Kind::pod);
  EXPECT_EQ(text(m.as<fb::Pod>().name()), "web-0");
}

TEST(Message, VerifiedAcceptsItsOwnBytes) {
  const Message m = pod_message("web-0");
  const auto again = Message::verified(static_cast<std::uint16_t>(Kind::pod), m.bytes().span());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(text(again->as<fb::Pod>().name()), "web-0");
}

TEST(Message, VerifiedRefusesEveryTruncation) {
  const Message m = pod_message("web-0");
  for (std::size_t n = 0; n < m.bytes().size(); ++n) {
    EXPECT_FALSE(Message::verified(static_cast<std::uint16_t>(Kind::pod), m.bytes().span().first(n))) << n;
  }
}

TEST(Message, VerifiedNamesAnUnknownKind) {
  const Message m = pod_message("web-0");
  const auto r = Message::verified(9999, m.bytes().span());
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, ErrorCode::invalid);
  EXPECT_EQ(r.error().object, "unknown");
}

TEST(PodUid, CanonicalTextRoundTrips) {
  const std::string text = "3f1c2b4a-0001-4abc-8def-00ff00ff00ff";
  EXPECT_EQ(PodUid::parse(text).text(), text);
}

TEST(PodUid, OtherTextsHashApart) {
  EXPECT_NE(PodUid::parse("3F1C2B4A-0001-4abc-8def-00ff00ff00ff"),
            PodUid::parse("3f1c2b4a-0001-4abc-8def-00ff00ff00ff"));
  EXPECT_NE(PodUid::parse("a"), PodUid::parse("b"));
  EXPECT_TRUE(PodUid::parse("").zero());
}

}  // namespace
}  // namespace troupe
