// Small helpers of the writers: what is empty is left out of the buffer.
#pragma once

#include <string_view>
#include <vector>

#include "messages/fb/common_generated.h"

namespace troupe {

inline flatbuffers::Offset<flatbuffers::String> wire_text(flatbuffers::FlatBufferBuilder& b,
                                                          std::string_view s) {
  return s.empty() ? flatbuffers::Offset<flatbuffers::String>(0) : b.CreateString(s.data(), s.size());
}

inline flatbuffers::Offset<fb::KeyValue> wire_pair(flatbuffers::FlatBufferBuilder& b, std::string_view key,
                                                   std::string_view value) {
  const auto k = b.CreateString(key.data(), key.size());
  const auto v = wire_text(b, value);
  return fb::CreateKeyValue(b, k, v);
}

template <class T>
flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<T>>> wire_vector(
    flatbuffers::FlatBufferBuilder& b, const std::vector<flatbuffers::Offset<T>>& items) {
  return items.empty() ? flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<T>>>(0)
                       : b.CreateVector(items);
}

}  // namespace troupe
