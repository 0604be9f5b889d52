#include "ops/log/log.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(LogLevels, DefaultAndComponents) {
  LogOptions options;
  ASSERT_TRUE(parse_log_levels("warn,placement=debug,store=off", options));
  EXPECT_EQ(options.level, LogLevel::warn);
  ASSERT_EQ(options.components.size(), 2U);
  EXPECT_EQ(options.components[0], std::make_pair(std::string("placement"), LogLevel::debug));
  EXPECT_EQ(options.components[1], std::make_pair(std::string("store"), LogLevel::off));
}

TEST(LogLevels, AnUnknownLevelIsNamed) {
  LogOptions options;
  const auto r = parse_log_levels("placement=loud", options);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().object, "loud");
}

TEST(Log, OneLinePerEventInBothFormats) {
  testing::internal::CaptureStderr();
  start_logging({.json = true});
  Log("store").info("opened", {{"path", "/a \"b\"\n"}});
  Log("store").debug("hidden");
  flush_logging();
  const std::string json = testing::internal::GetCapturedStderr();
  EXPECT_NE(json.find(R"("component":"store","event":"opened","path":"/a \"b\"\n"})"), std::string::npos)
      << json;
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 1);

  testing::internal::CaptureStderr();
  start_logging({.components = {{"store", LogLevel::error}}});
  Log("store").info("hidden");
  Log("host").warn("slow turn", {{"ms", "12"}, {"node", "a b"}});
  flush_logging();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(R"(host      slow turn ms=12 node="a b")"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace troupe
