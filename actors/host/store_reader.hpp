// StateReader over a Store.
#pragma once

#include <stdexcept>
#include <string>

#include "actors/host/owner.hpp"
#include "store/store.hpp"

namespace troupe {

class StoreReader final : public StateReader {
 public:
  explicit StoreReader(Store& store) : store_(store) {}

  void scan(Family family, std::string_view prefix,
            const std::function<bool(std::string_view, std::string_view)>& visit) override {
    if (const auto done = store_.scan(family, prefix, visit); !done)
      throw std::runtime_error(done.error().text());
  }
  Bytes get(Family family, std::string_view key) override {
    const Result<std::string> value = store_.get(family, key);
    if (!value && value.error().code == ErrorCode::not_found) return {};
    if (!value) throw std::runtime_error(value.error().text());
    return Bytes({reinterpret_cast<const std::uint8_t*>(value->data()), value->size()});
  }

 private:
  Store& store_;
};

}  // namespace troupe
