// A heap whose members are taken out by simply going stale: what left is skipped when it comes to the front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe {

/// `Before(a, b)`: a comes out first.
template <class Item, class Before>
class LazyHeap {
 public:
  void push(const Item& item) {
    items_.push_back(item);
    std::push_heap(items_.begin(), items_.end(), after);
  }

  /// The first item for which `live` holds, or null; drops what is stale before it.
  template <class Live>
  const Item* front(Live&& live) {
    while (!items_.empty() && !live(items_.front())) pop();
    return items_.empty() ? nullptr : &items_.front();
  }
  /// Takes the front away.
  void pop() {
    std::pop_heap(items_.begin(), items_.end(), after);
    items_.pop_back();
  }

  /// Drops everything stale once that is more than half. `live_count`: how many are not.
  template <class Live>
  void tidy(std::size_t live_count, Live&& live) {
    if (items_.size() < 64 || items_.size() < live_count * 2) return;
    std::erase_if(items_, [&](const Item& item) { return !live(item); });
    std::make_heap(items_.begin(), items_.end(), after);
  }

 private:
  static bool after(const Item& a, const Item& b) { return Before{}(b, a); }

  std::vector<Item> items_;
};

}  // namespace troupe
