#include "k8s-bridge/embedded/pod_splice.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#include "messages/fb/pod_generated.h"

namespace troupe {
namespace {

// The result is laid out as
//   root offset | vtable | root table | every byte of the old buffer | what was replaced
// FlatBuffers offsets point forward, so a fresh root table in front reaches the old children and the appended
// ones. The prefix is a multiple of eight bytes, so everything old keeps its alignment.

enum class Slot : std::uint8_t { offset, scalar4, scalar8, uid, flag };

// One entry per field of fb::Pod, in schema order.
constexpr std::array kFields = {
    Slot::offset,   // namespace
    Slot::offset,   // name
    Slot::uid,      // uid
    Slot::offset,   // uid_text
    Slot::offset,   // resource_version
    Slot::offset,   // labels
    Slot::offset,   // annotations
    Slot::scalar8,  // creation_ms
    Slot::scalar8,  // deletion_ms
    Slot::scalar8,  // start_ms
    Slot::offset,   // scheduler_name
    Slot::offset,   // node_name
    Slot::offset,   // nominated_node_name
    Slot::scalar4,  // priority
    Slot::flag,     // preemption_never
    Slot::offset,   // phase
    Slot::offset,   // scheduling_gates
    Slot::offset,   // class_bytes
    Slot::offset,   // pinned_node
    Slot::offset,   // scheduled_condition
    Slot::offset,   // owners
    Slot::scalar8,  // generation
};

template <class... Args>
constexpr std::size_t arity(flatbuffers::Offset<fb::Pod> (*)(Args...)) {
  return sizeof...(Args);
}
static_assert(arity(&fb::CreatePod) == kFields.size() + 1,
              "fb::Pod has grown: describe its fields in kFields");

constexpr std::size_t size_of(Slot slot) {
  switch (slot) {
    case Slot::offset:
    case Slot::scalar4:
      return 4;
    case Slot::scalar8:
      return 8;
    case Slot::uid:
      return 16;
    case Slot::flag:
      return 1;
  }
  return 0;
}

constexpr std::size_t aligned(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

struct Layout {
  std::array<std::uint16_t, kFields.size()> at{};  // within the table
  std::uint16_t table_size = 0;
};

// Widest fields first: no holes but after the table's own four bytes.
constexpr Layout make_layout() {
  Layout layout;
  std::size_t next = 8;
  for (const std::size_t width : {std::size_t{16}, std::size_t{8}, std::size_t{4}, std::size_t{1}}) {
    for (std::size_t f = 0; f < kFields.size(); ++f) {
      if (size_of(kFields[f]) != width) continue;
      layout.at[f] = static_cast<std::uint16_t>(next);
      next += width;
    }
  }
  layout.table_size = static_cast<std::uint16_t>(next);
  return layout;
}

constexpr Layout kLayout = make_layout();
constexpr std::size_t kVtableAt = 4;
constexpr std::size_t kVtableSize = 4 + 2 * kFields.size();
constexpr std::size_t kTableAt = aligned(kVtableAt + kVtableSize, 8);
constexpr std::size_t kPrefix = aligned(kTableAt + kLayout.table_size, 8);

template <class T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

class Splice {
 public:
  Splice(std::span<const std::uint8_t> old, std::vector<std::uint8_t>& out) : out_(out) {
    out_.resize(kPrefix + old.size());
    std::memset(out_.data(), 0, kPrefix);
    std::memcpy(out_.data() + kPrefix, old.data(), old.size());
    store<std::uint32_t>(out_.data(), kTableAt);
    store<std::uint16_t>(out_.data() + kVtableAt, kVtableSize);
    store<std::uint16_t>(out_.data() + kVtableAt + 2, kLayout.table_size);
    store<std::int32_t>(out_.data() + kTableAt, static_cast<std::int32_t>(kTableAt - kVtableAt));

    const std::size_t root = kPrefix + load<std::uint32_t>(old.data());
    const std::size_t vtable = root - static_cast<std::size_t>(load<std::int32_t>(out_.data() + root));
    const std::size_t known = (load<std::uint16_t>(out_.data() + vtable) - 4U) / 2U;
    for (std::size_t f = 0; f < kFields.size() && f < known; ++f) {
      const auto field = load<std::uint16_t>(out_.data() + vtable + 4 + 2 * f);
      if (field == 0) continue;
      const std::size_t from = root + field;
      if (kFields[f] == Slot::offset) {
        point(f, from + load<std::uint32_t>(out_.data() + from));
      } else {
        present(f);
        std::memcpy(out_.data() + kTableAt + kLayout.at[f], out_.data() + from, size_of(kFields[f]));
      }
    }
  }

  void text(std::uint16_t vt, std::string_view value) {
    const std::size_t at = grow(4, 4 + value.size() + 1);
    store<std::uint32_t>(out_.data() + at, static_cast<std::uint32_t>(value.size()));
    if (!value.empty()) std::memcpy(out_.data() + at + 4, value.data(), value.size());
    point(index(vt), at);
  }

  void table(std::uint16_t vt, std::span<const std::uint8_t> finished) {
    const std::size_t at = grow(8, finished.size());
    std::memcpy(out_.data() + at, finished.data(), finished.size());
    point(index(vt), at + load<std::uint32_t>(finished.data()));
  }

 private:
  static constexpr std::size_t index(std::uint16_t vt) { return (vt - 4U) / 2U; }

  std::size_t grow(std::size_t alignment, std::size_t size) {
    const std::size_t at = aligned(out_.size(), alignment);
    out_.resize(at + size, 0);
    return at;
  }

  void present(std::size_t f) { store<std::uint16_t>(out_.data() + kVtableAt + 4 + 2 * f, kLayout.at[f]); }

  void point(std::size_t f, std::size_t target) {
    present(f);
    const std::size_t at = kTableAt + kLayout.at[f];
    store<std::uint32_t>(out_.data() + at, static_cast<std::uint32_t>(target - at));
  }

  std::vector<std::uint8_t>& out_;
};

}  // namespace

Message with_changes(const Message& pod, const PodChanges& changes, std::vector<std::uint8_t>& scratch) {
  Splice splice(pod.bytes().span(), scratch);
  if (changes.resource_version) splice.text(fb::Pod::VT_RESOURCE_VERSION, *changes.resource_version);
  if (changes.node_name) splice.text(fb::Pod::VT_NODE_NAME, *changes.node_name);
  if (changes.nominated_node_name) splice.text(fb::Pod::VT_NOMINATED_NODE_NAME, *changes.nominated_node_name);
  if (!changes.scheduled_condition.empty()) {
    splice.table(fb::Pod::VT_SCHEDULED_CONDITION, changes.scheduled_condition);
  }
  return {Kind::pod, Bytes(scratch)};
}

}  // namespace troupe
