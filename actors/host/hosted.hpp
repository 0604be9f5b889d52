// An owner class as the partition engine sees it: the engine is compiled once, this adapter once per class.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "actors/host/owner.hpp"

namespace troupe {

/// One instance of an owner class.
class HostedInstance {
 public:
  virtual ~HostedInstance() = default;
  virtual void on(const Message& message, Turn& turn) = 0;
  virtual void on_part(const Message& message, std::uint32_t index, Turn& turn) = 0;
  virtual void refuse_part(const Message& message, std::uint32_t index, Turn& turn) = 0;
  virtual void restore_entry(Family family, std::string_view key, std::string_view value) = 0;
  virtual void restored(Turn& turn) = 0;
  virtual void describe(CopySink& sink) const = 0;
  [[nodiscard]] virtual bool empty() const = 0;
};

/// What is the same for every partition of an owner class.
struct OwnerTraits {
  ActorKind kind{};
  bool streams = false;
  std::span<const Family> families;
  std::string_view (*instance_of)(Family, std::string_view key, std::string_view value) = nullptr;
  std::string (*prefix_of)(Family, std::string_view instance) = nullptr;
};

/// An owner class with the Shared of one partition.
class HostedOwner {
 public:
  virtual ~HostedOwner() = default;
  [[nodiscard]] virtual const OwnerTraits& traits() const = 0;
  virtual std::unique_ptr<HostedInstance> make(std::string_view key) = 0;
  virtual void split(const Message& message, PartSink& sink) const = 0;
  virtual void on_partition(const Message& message, Turn& turn) = 0;
  virtual void restore_partition(std::uint32_t partition, StateReader& reader) = 0;
};

template <Owner O>
const OwnerTraits& traits_of() {
  static constexpr OwnerTraits traits{
      O::kind, O::streams, std::span<const Family>(O::families),
      [](Family family, std::string_view key, std::string_view value) -> std::string_view {
        return O::instance_of(family, key, value);
      },
      [](Family family, std::string_view instance) -> std::string { return O::prefix_of(family, instance); }};
  return traits;
}

template <Owner O>
class Hosted final : public HostedOwner {
 public:
  explicit Hosted(std::unique_ptr<typename O::Shared> shared) : shared_(std::move(shared)) {}

  [[nodiscard]] const OwnerTraits& traits() const override { return traits_of<O>(); }
  std::unique_ptr<HostedInstance> make(std::string_view key) override {
    return std::make_unique<Instance>(std::string(key), *shared_);
  }
  void split(const Message& message, PartSink& sink) const override { O::split(message, sink); }
  void on_partition(const Message& message, Turn& turn) override { shared_->on(message, turn); }
  void restore_partition(std::uint32_t partition, StateReader& reader) override {
    shared_->restore(partition, reader);
  }

 private:
  class Instance final : public HostedInstance {
   public:
    Instance(std::string key, typename O::Shared& shared) : owner_(std::move(key), shared) {}
    void on(const Message& message, Turn& turn) override { owner_.on(message, turn); }
    void on_part(const Message& message, std::uint32_t index, Turn& turn) override {
      owner_.on_part(message, index, turn);
    }
    void refuse_part(const Message& message, std::uint32_t index, Turn& turn) override {
      owner_.refuse_part(message, index, turn);
    }
    void restore_entry(Family family, std::string_view key, std::string_view value) override {
      owner_.restore_entry(family, key, value);
    }
    void restored(Turn& turn) override { owner_.restored(turn); }
    void describe(CopySink& sink) const override { owner_.describe(sink); }
    [[nodiscard]] bool empty() const override { return owner_.empty(); }

   private:
    O owner_;
  };

  std::unique_ptr<typename O::Shared> shared_;
};

/// Makes the Shared of a partition.
template <Owner O>
using SharedFactory = std::function<std::unique_ptr<typename O::Shared>(std::uint32_t partition)>;

}  // namespace troupe
