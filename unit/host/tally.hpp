// A small owner for host tests: a number per key. Messages are text commands.
//
//   to a key (Kind::self):  add N      the number grows by N and is written; reply "KEY=NUMBER"
//                           get        reply "KEY=NUMBER", nothing written
//                           tell X     sends X to placement, nothing written
//                           clear      erased; the instance becomes empty; reply "KEY=0"
//                           later N C  command C in N milliseconds; written, so that `restored` arms it again
//                           boom       changes everything it can, then throws
//                           boom-once  the same, but the second try adds 1
//                           intent     reply the next intent id, nothing written
//   to the partition (Kind::query): commands "KEY:COMMAND" separated by ";". Key "*": every instance. Key
//   "!":
//                           the Shared: set N (durable), show, boom, boom-once.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "actors/host/owner.hpp"
#include "messages/fb/ledger_generated.h"

namespace troupe::testing_host {

inline Message text_message(std::string_view text, Kind kind = Kind::self) {
  return {kind, Bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})};
}

inline std::string numbered(std::string_view prefix, std::uint64_t number) {
  std::string out(prefix);
  return out += std::to_string(number);
}

inline std::vector<std::string_view> cut(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

class Tally {
 public:
  static constexpr ActorKind kind = ActorKind::node;
  static constexpr std::array families = {Family::ledger};
  static constexpr bool streams = true;

  struct Shared : PartitionShared {
    std::uint32_t partition = 0;
    std::uint64_t number = 0;
    std::vector<std::string> tried;  // commands of the boom-once kind; survives throws as caches do

    bool second_try(std::string_view name) {
      for (const std::string& t : tried) {
        if (t == name) return true;
      }
      tried.emplace_back(name);
      return false;
    }
    void on(const Message& message, Turn& turn) {
      for (const std::string_view item : cut(message.bytes().view(), ';')) {
        if (!item.starts_with("!:")) continue;
        const std::string_view command = item.substr(2);
        if (command.starts_with("set ")) {
          number = std::stoull(std::string(command.substr(4)));
          turn.put(Family::meta, numbered("shared/", partition), encode_u64(number));
        }
        if (command == "boom" || (command == "boom-once" && !second_try("!"))) {
          number = 999'999;
          turn.put(Family::meta, numbered("shared/", partition), encode_u64(number));
          turn.reply(text_message("never"));
          throw std::runtime_error("shared boom");
        }
        turn.reply(text_message(numbered("shared=", number)));
      }
    }
    void restore(std::uint32_t at, StateReader& reader) {
      partition = at;
      number = decode_u64(reader.get(Family::meta, numbered("shared/", at)).view());
    }
  };

  Tally(std::string key, Shared& shared) : key_(std::move(key)), shared_(&shared) {}

  static void split(const Message& message, PartSink& sink) {
    std::uint32_t index = 0;
    if (message.bytes().view() == "split-boom") throw std::runtime_error("split boom");
    for (const std::string_view item : cut(message.bytes().view(), ';')) {
      const std::string_view key = item.substr(0, item.find(':'));
      if (key == "*") sink.every_instance();
      if (key == "!") sink.partition();
      if (key != "*" && key != "!") sink.part(key, index);
      ++index;
    }
  }
  void on_part(const Message& message, std::uint32_t index, Turn& turn) {
    const std::string_view item = cut(message.bytes().view(), ';')[index];
    run(item.substr(item.find(':') + 1), turn);
  }
  void refuse_part(const Message&, std::uint32_t index, Turn& turn) {
    turn.reply(text_message(numbered(key_ + " refused ", index)));
  }
  void on(const Message& message, Turn& turn) {
    std::string_view text = message.bytes().view();
    if (text.starts_with("*:")) text.remove_prefix(2);
    run(text, turn);
  }

  static std::string_view instance_of(Family, std::string_view key, std::string_view) {
    return key.substr(0, key.find('/'));
  }
  static std::string prefix_of(Family, std::string_view instance) { return std::string(instance) + "/"; }
  void restore_entry(Family, std::string_view key, std::string_view value) {
    if (value == "corrupt") throw std::runtime_error("entry cannot be read");
    if (key.ends_with("/timer")) {
      timer_ = value;
    } else {
      number_ = decode_u64(value);
      present_ = true;
    }
  }
  void restored(Turn& turn) {
    if (!timer_.empty()) arm(turn);
  }
  void describe(CopySink& sink) const {
    if (present_) sink(entry());
  }
  [[nodiscard]] bool empty() const { return !present_ && timer_.empty(); }

 private:
  void run(std::string_view command, Turn& turn) {
    if (command.starts_with("add ")) return add(std::stoull(std::string(command.substr(4))), turn);
    if (command == "get") return turn.reply(text_message(numbered(key_ + "=", number_)));
    if (command == "intent") return turn.reply(text_message(std::to_string(turn.new_intent_id())));
    if (command.starts_with("tell ")) {
      return turn.send({ActorKind::placement, 0, "0"}, text_message(command.substr(5)));
    }
    if (command.starts_with("later ")) {
      timer_ = command.substr(6);
      turn.put(Family::ledger, key_ + "/timer", timer_);
      return arm(turn);
    }
    if (command == "clear") {
      present_ = false;
      number_ = 0;
      turn.erase(Family::ledger, key_ + "/n");
      return turn.reply(text_message(key_ + "=0"));
    }
    if (command == "boom" || command == "boom-once") {
      if (command == "boom-once" && shared_->second_try(key_)) return add(1, turn);
      add(1000, turn);
      turn.after(1, text_message("add 5000"));
      turn.new_intent_id();
      throw std::runtime_error("boom");
    }
    throw std::runtime_error("no such command: " + std::string(command));
  }
  void add(std::uint64_t n, Turn& turn) {
    number_ += n;
    present_ = true;
    turn.put(Family::ledger, key_ + "/n", encode_u64(number_));
    const bool timer = turn.sender() == turn.self();
    if (!timer) turn.reply(text_message(numbered(key_ + "=", number_)));
    flatbuffers::FlatBufferBuilder b;
    build(b);
    turn.delta(b);
  }
  void arm(Turn& turn) {
    const std::size_t space = timer_.find(' ');
    turn.after(std::stoll(timer_.substr(0, space)), text_message(timer_.substr(space + 1)));
  }
  void build(flatbuffers::FlatBufferBuilder& b) const {
    const auto node = b.CreateString(key_);
    fb::DeltaEntryBuilder entry(b);
    entry.add_node(node);
    entry.add_ledger_version(number_);
    b.Finish(entry.Finish());
  }
  [[nodiscard]] Bytes entry() const {
    flatbuffers::FlatBufferBuilder b;
    build(b);
    return Bytes(std::span<const std::uint8_t>(b.GetBufferPointer(), b.GetSize()));
  }

  std::string key_;
  Shared* shared_;
  std::uint64_t number_ = 0;
  bool present_ = false;
  std::string timer_;  // "DELAY COMMAND"
};
static_assert(Owner<Tally>);

}  // namespace troupe::testing_host
