// Decoding in tests: JSON text to a table, or to the error's text.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "k8s-bridge/decode/decode.hpp"
#include "messages/fb/pod_generated.h"

namespace troupe {

inline Message decoded(fb::ObjectKind kind, std::string_view json) {
  Decoder decoder;
  DecodedObject object = decoder.object(kind, json);
  if (!object) {
    ADD_FAILURE() << object.error().error.text() << "\n" << json;
    return {};
  }
  // what the decoder builds must stand the check that bytes from outside do
  EXPECT_TRUE(
      Message::verified(static_cast<std::uint16_t>(object->kind()), object->bytes().span()).has_value());
  return *object;
}

inline Message decoded_pod(std::string_view json) {
  return decoded(fb::ObjectKind::Pod, json);
}

inline const fb::PodClass& class_of(const Message& pod) {
  return *flatbuffers::GetRoot<fb::PodClass>(pod.as<fb::Pod>().class_bytes()->data());
}

inline std::string class_text(const Message& pod) {
  const auto* bytes = pod.as<fb::Pod>().class_bytes();
  return std::string(bytes->begin(), bytes->end());
}

inline std::map<std::string, std::int64_t> amounts(
    const flatbuffers::Vector<flatbuffers::Offset<fb::ResourceAmount>>* wire) {
  std::map<std::string, std::int64_t> out;
  if (wire == nullptr) return out;
  for (const fb::ResourceAmount* a : *wire) out[std::string(text(a->name()))] = a->amount();
  return out;
}

inline std::map<std::string, std::string> pairs(
    const flatbuffers::Vector<flatbuffers::Offset<fb::KeyValue>>* wire) {
  std::map<std::string, std::string> out;
  if (wire == nullptr) return out;
  for (const fb::KeyValue* kv : *wire) out[std::string(text(kv->key()))] = text(kv->value());
  return out;
}

inline std::vector<std::string> texts(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* wire) {
  std::vector<std::string> out;
  if (wire == nullptr) return out;
  for (const flatbuffers::String* s : *wire) out.emplace_back(text(s));
  return out;
}

/// "what | object | field", or "decoded".
inline std::string failure(fb::ObjectKind kind, std::string_view json) {
  Decoder decoder;
  const DecodedObject object = decoder.object(kind, json);
  if (object) return "decoded";
  const Error& e = object.error().error;
  return e.what + " | " + e.object + " | " + e.field;
}

inline std::string pod_failure(std::string_view json) {
  return failure(fb::ObjectKind::Pod, json);
}

}  // namespace troupe
