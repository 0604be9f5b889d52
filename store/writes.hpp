// Writes of one or more turns, in order, in one buffer: no allocation per write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "store/family.hpp"

namespace troupe {

/// One write, seen inside a `Writes`: valid while that is neither changed nor destroyed.
struct Write {
  Family family{};
  bool erase = false;
  std::string_view key;
  std::string_view value;

  friend bool operator==(const Write&, const Write&) = default;
};

/// An appendable list of writes. Later writes of a key win over earlier ones. `clear` keeps the memory, so
/// that one object serves many turns.
class Writes {
 public:
  void put(Family family, std::string_view key, std::string_view value) { add(family, false, key, value); }
  void erase(Family family, std::string_view key) { add(family, true, key, {}); }

  /// Adds the writes of `other` after these; takes its buffer when this is empty.
  void append(Writes&& other) {
    if (count_ == 0 && buffer_.capacity() <= other.buffer_.size()) {
      std::swap(buffer_, other.buffer_);
      count_ = other.count_;
    } else {
      append(static_cast<const Writes&>(other));
    }
    other.clear();
  }
  void append(const Writes& other) {
    buffer_.append(other.buffer_);
    count_ += other.count_;
  }

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// Bytes held: keys, values and 9 bytes per write.
  [[nodiscard]] std::size_t bytes() const { return buffer_.size(); }
  void reserve(std::size_t bytes) { buffer_.reserve(bytes); }
  /// A place in the list, to come back to.
  struct Mark {
    std::size_t bytes = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] Mark mark() const { return {buffer_.size(), count_}; }
  /// Forgets the writes that were added since `mark`.
  void rollback(const Mark& mark) {
    buffer_.resize(mark.bytes);
    count_ = mark.count;
  }
  void clear() {
    buffer_.clear();
    count_ = 0;
  }

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Write;
    using difference_type = std::ptrdiff_t;
    using pointer = const Write*;
    using reference = Write;

    iterator() = default;
    explicit iterator(const char* at) : at_(at) {}
    Write operator*() const {
      const Head head = read(at_);
      const char* key = at_ + kHeadBytes;
      return {static_cast<Family>(head.tag >> 1U),
              (head.tag & 1U) != 0,
              {key, head.key},
              {key + head.key, head.value}};
    }
    iterator& operator++() {
      const Head head = read(at_);
      at_ += kHeadBytes + head.key + head.value;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    const char* at_ = nullptr;
  };

  [[nodiscard]] iterator begin() const { return iterator(buffer_.data()); }
  [[nodiscard]] iterator end() const { return iterator(buffer_.data() + buffer_.size()); }

 private:
  struct Head {
    std::uint32_t key = 0;
    std::uint32_t value = 0;
    std::uint8_t tag = 0;  // family * 2 + erase
  };
  static constexpr std::size_t kHeadBytes = 9;

  static Head read(const char* at) {
    Head head;
    std::memcpy(&head.key, at, 4);
    std::memcpy(&head.value, at + 4, 4);
    head.tag = static_cast<std::uint8_t>(at[8]);
    return head;
  }
  void add(Family family, bool erase, std::string_view key, std::string_view value) {
    char head[kHeadBytes];
    const auto key_size = static_cast<std::uint32_t>(key.size());
    const auto value_size = static_cast<std::uint32_t>(value.size());
    std::memcpy(head, &key_size, 4);
    std::memcpy(head + 4, &value_size, 4);
    head[8] = static_cast<char>((static_cast<unsigned>(family) << 1U) | (erase ? 1U : 0U));
    buffer_.append(head, kHeadBytes).append(key).append(value);
    ++count_;
  }

  std::string buffer_;
  std::size_t count_ = 0;
};

}  // namespace troupe
